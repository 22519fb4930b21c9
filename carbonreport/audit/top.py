"""The jobs with the most energy."""

from collections.abc import Callable

from carbonreport.audit.groups import energies_by
from carbonreport.audit.queries import Queries
from carbonreport.audit.tables import OWN_CLUSTER
from carbonreport.model.audit import TopJob
from carbonreport.units import hours_from_microseconds

_TOP = 15


def top_jobs(db: Queries, people: Callable[[str, bool], str]) -> tuple[TopJob, ...]:
    """The jobs with the most energy.

    Args:
        db: The tables.
        people: How a person of the ledger is written in the report: (text, is it a pseudonym).
    """
    t = db.table("audit_priced")
    t = t.filter(t.use == "job")
    sums = t.group_by("job_no").agg(mj=t.mj.sum())
    best = [int(job_no) for job_no, _ in db.rows(sums.order_by([db.ibis.desc("mj"), "job_no"]).limit(_TOP))]
    energies = energies_by(db, t.filter(t.job_no.isin(best)).mutate(key=t.job_no.cast("string")), "key") if best else {}
    found = []
    for no, cluster, job_id, project, person, is_pseudonym, model, gpus, state, start_us, ran_us in db.con.execute(
        "SELECT job_no, cluster, job_id, project, person, is_pseudonym, coalesce(nullif(o.gpu_model, ''), j.gpu_model), gpus, state, start_us, (j.until_us - j.begin_us) * ran_share "
        "FROM audit_jobs j LEFT JOIN audit_open o USING (job_no) WHERE job_no IN (SELECT unnest(?::BIGINT[]))",
        [best],
    ).fetchall():
        name = f"{cluster} {job_id}".strip() if cluster != OWN_CLUSTER else f"record {job_id}"
        found.append(
            TopJob(
                name,
                project,
                people(person, is_pseudonym),
                model,
                int(gpus),
                state,
                int(start_us),
                hours_from_microseconds(ran_us),
                energies[str(no)],
            )
        )
    return tuple(sorted(found, key=lambda job: (-job.energy.it_mj, job.start_us, job.job_id)))
