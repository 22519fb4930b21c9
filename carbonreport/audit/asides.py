"""What advice and intervals rest on, beside the groups: spreads of single jobs, boards, and short jobs."""

from collections.abc import Mapping

from carbonreport.audit.queries import Queries
from carbonreport.units import HOUR_US

_LEAST_MEASURED_US = HOUR_US // 2  # GPU time of a job whose own mean power says something
_LEAST_JOBS = 5  # that tell how far jobs are apart


def spreads(db: Queries) -> Mapping[str, tuple[float, float]]:
    """How far single jobs and idle hours are from the means that stand for the unmeasured ones: 5th and 95th percentile over the mean.

    Too few jobs tell no spread, and nothing is given of them.
    """
    rows = db.con.execute(f"""
        WITH jobs AS (SELECT gpu_model, covered_mj / metered_us AS mj_per_us FROM audit_open WHERE metered_us > {_LEAST_MEASURED_US} AND covered_mj > 0),
        means AS (SELECT gpu_model, avg(mj_per_us) AS mean FROM jobs GROUP BY 1),
        idle AS (SELECT gpu_model, energy_mj / room_us / nullif(avg(energy_mj / room_us) OVER (PARTITION BY gpu_model), 0) AS ratio FROM audit_use WHERE held_us = 0 AND room_us > 0)
        SELECT 'mean of the lab' AS name, quantile_cont(mj_per_us / mean, 0.05), quantile_cont(mj_per_us / mean, 0.95) FROM jobs JOIN means USING (gpu_model) HAVING count(*) >= {_LEAST_JOBS}
        UNION ALL SELECT 'idle power', quantile_cont(ratio, 0.05), quantile_cont(ratio, 0.95) FROM idle""").fetchall()
    return {name: (min(low, 1.0), max(high, 1.0)) for name, low, high in rows if low is not None and low > 0}


def board_energy(db: Queries) -> dict[str, tuple[float, float]]:
    """Facility energy [J] and emissions [g] of jobs by board."""
    t = db.table("audit_priced")
    t = t.filter(t.use == "job")
    rows = t.group_by("gpu_model").agg(j=t.facility_joules.sum(), g=t.grams.sum())
    return {model: (float(j), float(g)) for model, j, g in db.rows(rows)}


def rated_energy(db: Queries) -> dict[str, int]:
    """Energy that was estimated at the rated power of boards, by board. [mJ]"""
    rows = db.con.execute("SELECT gpu_model, sum(energy_mj) FROM audit_pieces WHERE method = 'rated power' GROUP BY 1").fetchall()
    return {str(model): int(mj) for model, mj in rows}


def short_jobs_share(db: Queries, longest_h: float) -> float:
    """Part of the jobs' energy that is of jobs shorter than so many hours."""
    t, jobs = db.table("audit_priced"), db.table("audit_jobs")
    joined = t.filter(t.use == "job").join(jobs, "job_no")
    is_short = (joined.end_us - joined.start_us - joined.suspended_us) <= round(longest_h * HOUR_US)
    ((short, whole),) = db.rows(joined.agg(s=is_short.ifelse(joined.mj, 0).sum(), w=joined.mj.sum()))
    return float(short or 0) / whole if whole else 0.0
