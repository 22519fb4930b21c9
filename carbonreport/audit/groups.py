"""Jobs by what they have in common: GPU time from the jobs, energy from the priced pieces, both adding up exactly."""

from collections.abc import Callable
from typing import Any

from carbonreport.audit.queries import Queries
from carbonreport.model.audit import NOBODY as NOBODY
from carbonreport.model.audit import Energy, Group, Missing

NO_GPU = "no GPU"
THERE = ("RUNNING", "SUSPENDED", "COMPLETING", "RESIZING")  # states of jobs that have not ended
LOST = ("BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "TIMEOUT")


def held_by_month(db: Queries) -> Any:
    """The table `audit_by_month` of jobs by month with their dimensions and GPU time; parts of a job add up to it exactly."""
    ibis = db.ibis
    jobs, months, opened, powers = (db.table(f"audit_{name}") for name in ("jobs", "months", "open", "powers"))
    known = opened.left_join(powers, "gpu_model").select(
        "job_no", "covered_us", model="gpu_model", has_power=lambda t: t.mj_per_us.notnull()
    )
    t = jobs.left_join(known, "job_no")
    lost = t.state.isin(LOST).ifelse(t.state, t.state.isin(THERE).ifelse("still running", "COMPLETED"))
    t = t.mutate(
        project=_said(t.project),
        person=_said(t.person),
        partition=_said(t.partition),
        gpu_model=((t.gpus == 0) & (t.gpu_model == "")).ifelse(NO_GPU, _said(t.model.coalesce(t.gpu_model))),
        outcome=(t.state == "").ifelse(NOBODY, lost),
        known_us=t.covered_us.coalesce(0),
        has_power=t.has_power.coalesce(True),
    )
    cut = t.join(months, [t.begin_us < months.m_until, t.until_us > months.m_from])
    a, b = ibis.greatest(cut.begin_us, cut.m_from), ibis.least(cut.until_us, cut.m_until)
    length = (cut.until_us - cut.begin_us).cast("float64")

    def part(amount: Any) -> Any:
        return (amount * ((b - cut.begin_us) / length)).round().cast("int64") - (amount * ((a - cut.begin_us) / length)).round().cast(
            "int64"
        )

    held = part(cut.held_us)
    known_us = part(cut.known_us)
    held_parts = cut.select(
        "job_no",
        "project",
        "person",
        "partition",
        "gpu_model",
        "outcome",
        "month",
        held_us=held,
        known_us=known_us,
        unknown_us=cut.has_power.ifelse(0, held - known_us),
    )
    db.con.execute(f"CREATE OR REPLACE TEMP TABLE audit_by_month AS {db.sql(held_parts)}")
    return db.table("audit_by_month")


def groups_of(db: Queries, jobs: Any, dimension: str) -> tuple[Group, ...]:
    """Jobs that have something in common, those with the most energy first; months in turn.

    Args:
        db: The tables.
        jobs: What `held_by_month` gave.
        dimension: One of its columns.
    """
    held = jobs.group_by(name=jobs[dimension]).agg(
        jobs=jobs.job_no.nunique(), held=jobs.held_us.sum(), known=jobs.known_us.sum(), unknown=jobs.unknown_us.sum()
    )
    priced = db.table("audit_priced")
    priced = priced.filter(priced.use == "job")
    if dimension == "month":
        energies = energies_by(db, priced, "month")
    else:
        names = jobs.select("job_no", name=jobs[dimension]).distinct()
        energies = energies_by(db, priced.drop("gpu_model").join(names, "job_no"), "name")
    groups = [
        Group(str(name), int(n), int(us), int(known), int(unknown), energies.get(str(name), Energy()))
        for name, n, us, known, unknown in db.rows(held)
    ]
    if dimension == "month":
        return tuple(sorted(groups, key=lambda group: group.name))
    return tuple(sorted(groups, key=lambda group: (-group.energy.it_mj, -group.gpu_us, group.name)))


def missing_of(db: Queries, jobs: Any) -> tuple[Missing, ...]:
    """GPU time without any energy by board and partition, the most first.

    Args:
        db: The tables.
        jobs: What `held_by_month` gave.
    """
    open_us = jobs.filter(jobs.unknown_us > 0).group_by("gpu_model", "partition").agg(us=lambda t: t.unknown_us.sum())
    found = [Missing(str(model), str(partition), int(us)) for model, partition, us in db.rows(open_us)]
    return tuple(sorted(found, key=lambda one: (-one.gpu_us, one.gpu_model, one.partition)))


def energies_by(db: Queries, t: Any, name: str) -> dict[str, Energy]:
    """Energy of priced pieces by a column of theirs."""

    def of(known: str) -> Any:
        return (t.known == known).ifelse(t.mj, 0).sum()

    rows = t.group_by(group=t[name]).agg(
        measured=of("measured"),
        reported=of("reported"),
        estimated=of("estimated"),
        split=t.is_split.ifelse(t.mj, 0).sum(),
        facility=t.facility_joules.sum(),
        grams=t.grams.sum(),
    )
    return {str(group): Energy(int(m), int(r), int(e), int(s), float(f), float(g)) for group, m, r, e, s, f, g in db.rows(rows)}


def renamed(con: Any, groups: tuple[Group, ...], people: Callable[[str, bool], str]) -> tuple[Group, ...]:
    """Groups of people under the names that the report may show; those that become one are added."""
    kinds = dict(con.execute("SELECT person, bool_and(is_pseudonym) FROM audit_jobs GROUP BY 1").fetchall())
    merged: dict[str, Group] = {}
    for group in groups:
        name = group.name if group.name == NOBODY and "" in kinds else people(group.name, bool(kinds.get(group.name, False))) or NOBODY
        one = merged.get(name)
        merged[name] = Group(
            name,
            group.jobs + (one.jobs if one else 0),
            group.gpu_us + (one.gpu_us if one else 0),
            group.known_gpu_us + (one.known_gpu_us if one else 0),
            group.unknown_gpu_us + (one.unknown_gpu_us if one else 0),
            group.energy + (one.energy if one else Energy()),
        )
    return tuple(merged.values())


def _said(column: Any) -> Any:
    return (column == "").ifelse(NOBODY, column)
