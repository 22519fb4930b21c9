"""A lab's year at size: a million jobs and twenty million power samples, imported and audited on two cores.

    python benchmarks/audit_scale.py                    1, 10 and 100 %, and a gigabyte of sacct
    python benchmarks/audit_scale.py --shares 1,10      smaller
    python benchmarks/audit_scale.py --sacct-mb 0       without the gigabyte
    python benchmarks/audit_scale.py --labelled         every sample names the job that had its board

Goals: 60 s and 3 GB for all of it; sacct at 50 MB/s or more; time that grows no faster than the data.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from carbonreport.audit.database import connect
from carbonreport.units import SECONDS_PER_YEAR, US_PER_S
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.ledger import Keeping, keep_meters, keep_sacct
from carbonreport.workflows.place import PlaceOptions

JOBS, SAMPLES = 1_000_000, 20_000_000
BOARDS, HOSTS = 256, 64
YEAR_S = round(SECONDS_PER_YEAR)
START_S = 1_735_686_000  # 2025-01-01 in Berlin
HEADER = "JobIDRaw|JobID|Cluster|Partition|Account|User|Submit|Start|End|ElapsedRaw|State|NNodes|NodeList|ReqTRES|AllocTRES|ConsumedEnergyRaw|Suspended|JobName"
CORES = 2


def write_sacct(path: Path, jobs: int) -> None:
    """Jobs spread over a year and 64 hosts, a fifth with energy of their node, steps left out as `sacct -X` does."""
    con = connect(threads=CORES)
    con.execute("SELECT setseed(0.5)")
    con.execute(f"""
        COPY (WITH drawn AS (
                SELECT i, {START_S} + (random() * {YEAR_S})::BIGINT AS s, (60 + 14000 * random() * random())::BIGINT AS l, 1 + (random() * 3)::BIGINT AS g, (random() * {HOSTS - 1})::BIGINT AS h,
                    (random() * 199)::BIGINT AS u, (random() * 39)::BIGINT AS p, random() AS r, random() AS e FROM range({jobs}) t(i))
            SELECT i AS "JobIDRaw", i AS "JobID", 'lab' AS "Cluster", CASE WHEN r < 0.8 THEN 'gpu' ELSE 'long' END AS "Partition", 'project' || p AS "Account", 'user' || u AS "User",
                s - 600 AS "Submit", s AS "Start", s + l AS "End", l AS "ElapsedRaw",
                CASE WHEN r < 0.85 THEN 'COMPLETED' WHEN r < 0.93 THEN 'FAILED' WHEN r < 0.97 THEN 'CANCELLED by ' || u ELSE 'TIMEOUT' END AS "State", 1 AS "NNodes", 'n' || h AS "NodeList",
                'billing=8,cpu=8,gres/gpu=' || g || ',mem=' || g * 60 || 'G,node=1' AS "ReqTRES",
                'billing=8,cpu=8,' || CASE WHEN e < 0.2 THEN 'energy=' || l * 700 || ',' ELSE '' END || 'gres/gpu:h200=' || g || ',gres/gpu=' || g || ',mem=' || g * 60 || 'G,node=1' AS "AllocTRES",
                CASE WHEN e < 0.2 THEN (l * 700)::VARCHAR ELSE '0' END AS "ConsumedEnergyRaw", '00:00:00' AS "Suspended", 'train_model_' || i || CASE WHEN r < 0.01 THEN '|with|pipes' ELSE '' END AS "JobName"
            FROM drawn ORDER BY i) TO '{path}' (FORMAT csv, DELIMITER '|', QUOTE '', ESCAPE '', HEADER true)""")


def write_samples(path: Path, samples: int, *, is_labelled: bool) -> None:
    """Power of 256 boards in turn, evenly spaced, over as much of the year as the number allows at one minute."""
    con = connect(threads=CORES)
    label = f", ((i % {BOARDS}) // {BOARDS // HOSTS} * 10000 + (i // {BOARDS}) // 90)::VARCHAR AS hpc_job" if is_labelled else ""
    con.execute(f"""
        COPY (SELECT 'GPU-' || md5((i % {BOARDS})::VARCHAR) AS uuid, make_timestamptz(({START_S} + (i // {BOARDS}) * 60)::BIGINT * {US_PER_S}) AS "timestamp",
                80 + 500 * ((hash(i) % 1000) / 1000.0) AS watts, 'n' || ((i % {BOARDS}) // {BOARDS // HOSTS}) AS hostname, 'NVIDIA H200' AS modelname{label}
            FROM range({samples}) t(i)) TO '{path}' (FORMAT parquet)""")


def timed(folder: Path, share: float) -> None:
    """Import and audit in this process; one line of results for the parent."""
    jobs, samples = folder / f"jobs-{share:g}.txt", folder / f"samples-{share:g}.parquet"
    scratch = folder / f"scratch-{share:g}"
    con = connect(threads=CORES, memory="2GB", scratch=scratch)
    keeping = Keeping(str(folder / f"ledger-{share:g}"), people="pseudonyms")
    begin = time.perf_counter()
    keep_sacct(jobs, keeping, con=con)
    after_jobs = time.perf_counter()
    keep_meters(samples, keeping, con=con)
    after_samples = time.perf_counter()
    found = audit(Asked(2025, keeping.url), PlaceOptions(zone="DE", pue="1.3"), environ={}, con=con)
    end = time.perf_counter()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    whole = found.priced.year.whole
    assert sum(energy.it_mj for _, energy in found.priced.year.months) == whole.it_mj
    print(after_jobs - begin, after_samples - after_jobs, end - after_samples, end - begin, peak, whole.it_mj / 3.6e12)


def import_alone(path: Path, folder: Path) -> None:
    """Megabytes of sacct a second."""
    con = connect(threads=CORES, memory="2GB", scratch=folder / "scratch-import")
    begin = time.perf_counter()
    taken = keep_sacct(path, Keeping(str(folder / "ledger-import"), people="pseudonyms"), con=con)
    seconds = time.perf_counter() - begin
    size = path.stat().st_size / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(f"{size:,.0f} MB of sacct, {taken.rows:,} jobs: {seconds:.1f} s, {size / seconds:.0f} MB/s, {peak:.2f} GB")


def child(*arguments: str) -> str:
    """This script again in a process of its own, on two cores where the system can pin it."""
    pinned = (lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])) if hasattr(os, "sched_setaffinity") else None
    return subprocess.run(
        [sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True, preexec_fn=pinned
    ).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--shares", default="1,10,100", help="percent of a million jobs and twenty million samples")
    parser.add_argument("--sacct-mb", type=float, default=1000.0)
    parser.add_argument("--labelled", action="store_true", help="every sample names a job")
    parser.add_argument("--child", nargs=2)
    asked = parser.parse_args()
    if asked.child:
        folder, what = Path(asked.child[0]), asked.child[1]
        return import_alone(folder / "import.txt", folder) if what == "import" else timed(folder, float(what))
    with tempfile.TemporaryDirectory(prefix="carbonreport-scale-") as name:
        folder = Path(name)
        print(
            f"{'share':>6} {'jobs':>10} {'samples':>11} {'sacct s':>8} {'power s':>8} {'audit s':>8} {'all s':>7} {'GB':>5} {'x time':>7}   IT MWh"
        )
        before = None
        for share in (float(text) for text in asked.shares.split(",")):
            jobs, samples = round(JOBS * share / 100), round(SAMPLES * share / 100)
            write_sacct(folder / f"jobs-{share:g}.txt", jobs)
            write_samples(folder / f"samples-{share:g}.parquet", samples, is_labelled=asked.labelled)
            sacct_s, power_s, audit_s, all_s, peak, mwh = (float(text) for text in child("--child", name, f"{share:g}").split())
            ratio = "" if before is None else f"{all_s / before[1]:.1f}/{share / before[0]:.0f}"
            print(
                f"{share:>5g}% {jobs:>10,} {samples:>11,} {sacct_s:>8.1f} {power_s:>8.1f} {audit_s:>8.1f} {all_s:>7.1f} {peak:>5.2f} {ratio:>7} {mwh:>8.1f}",
                flush=True,
            )
            before = (share, all_s)
        if asked.sacct_mb:
            path = folder / "import.txt"
            rows = round(asked.sacct_mb / 229e-6)
            write_sacct(path, rows)
            print(child("--child", name, "import"))
    return None


if __name__ == "__main__":
    main()
