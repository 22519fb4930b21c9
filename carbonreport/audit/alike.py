"""Jobs that may be one under two ids: counted, since nobody can tell."""

from typing import Any

# One names the task alone, the other the array's task alone, and all else agrees; or nobody says which cluster one of them is of.
_ALIKE = """
    WITH numbered AS (SELECT cluster, start_us, end_us, project, person, partition, gpus, hosts, count(*) AS n, sum(gpus * (end_us - start_us - coalesce(suspended_us, 0))) AS gpu_us FROM jobs
        WHERE array_id = '' AND regexp_full_match(job_id, '[0-9]+') GROUP BY ALL),
    tasks AS (SELECT cluster, start_us, end_us, project, person, partition, gpus, hosts, count(*) AS n, sum(gpus * (end_us - start_us - coalesce(suspended_us, 0))) AS gpu_us FROM jobs
        WHERE array_id <> '' AND array_id = job_id GROUP BY ALL),
    homeless AS (SELECT DISTINCT a.job_id, a.start_us, a.gpus * (a.end_us - a.start_us - coalesce(a.suspended_us, 0)) AS gpu_us FROM jobs a JOIN jobs b ON a.job_id = b.job_id AND a.start_us = b.start_us
        WHERE a.cluster = '' AND b.cluster <> ''),
    alike AS (SELECT least(a.n, b.n) AS n, least(a.gpu_us, b.gpu_us) AS gpu_us FROM numbered a JOIN tasks b ON a.start_us = b.start_us AND a.end_us = b.end_us AND a.project = b.project
        AND a.person = b.person AND a.gpus = b.gpus AND (a.partition = b.partition OR '' IN (a.partition, b.partition)) AND (a.hosts = b.hosts OR '' IN (a.hosts, b.hosts))
        AND (a.cluster = b.cluster OR '' IN (a.cluster, b.cluster))
        UNION ALL SELECT 1, gpu_us FROM homeless)
    SELECT coalesce(sum(n), 0)::BIGINT, coalesce(sum(gpu_us), 0)::BIGINT FROM alike"""


def alike_jobs(con: Any) -> tuple[int, int]:
    """Jobs of the table `jobs` that may be another one of them under another id, and their GPU-microseconds."""
    (is_possible,) = con.execute(
        "SELECT coalesce(bool_or(cluster = '' OR (array_id <> '' AND array_id = job_id)), false) FROM jobs"
    ).fetchall()[0]
    if not is_possible:
        return 0, 0
    count, gpu_us = con.execute(_ALIKE).fetchall()[0]
    return int(count), int(gpu_us)
