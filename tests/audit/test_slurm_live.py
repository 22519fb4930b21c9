"""A real Slurm, where one is given: CARBONREPORT_SLURM=1 with sacct, sbatch and the accounts vision and language of a test cluster."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from carbonreport.units import US_PER_S

pytestmark = pytest.mark.skipif(
    not os.environ.get("CARBONREPORT_SLURM") or shutil.which("sbatch") is None,
    reason="no Slurm is given: set CARBONREPORT_SLURM=1 beside SLURM_CONF",
)
PULL = Path(__file__).resolve().parents[2] / "examples" / "slurm" / "pull.sh"


def submit(*arguments):
    return subprocess.run(["sbatch", "--parsable", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def rows_of(job_ids):
    asked = ["sacct", "-X", "-D", "-P", "-n", "-j", ",".join(job_ids), "--format=JobID,State,Start"]
    return [line.split("|") for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()]


def runs(job_id):
    return any(state == "RUNNING" for _, state, _ in rows_of([job_id]))


def wait_for(condition, seconds=240):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "Slurm did not do it in time"
        time.sleep(1)


def test_what_slurm_ran_is_audited_with_requeues_failures_arrays_suspensions_and_what_still_runs(tmp_path):
    array = submit("-A", "language", "--array=1-3", "--gres=gpu:1", "--wrap=sleep 2")
    failed = submit("-A", "language", "--gres=gpu:1", "--wrap=sleep 1; exit 3")
    paused = submit("-A", "language", "--gres=gpu:1", "--wrap=sleep 10")
    wait_for(lambda: runs(paused))
    subprocess.run(["scontrol", "suspend", paused], check=True)
    time.sleep(8)
    subprocess.run(["scontrol", "resume", paused], check=True)
    again = submit("-A", "vision", "-J", "a|b", "--requeue", "--gres=gpu:1", "--wrap=sleep 600")
    wait_for(lambda: runs(again))
    time.sleep(3)
    subprocess.run(["scontrol", "requeue", again], check=True)
    running = submit("-A", "vision", "--gres=gpu:2", "--wrap=sleep 600")
    wait_for(lambda: runs(running))
    wait_for(lambda: all(state == "COMPLETED" for _, state, _ in rows_of([array, paused])) and rows_of([failed])[0][1] == "FAILED")
    subprocess.run(["scontrol", "suspend", running], check=True)
    year = time.gmtime().tm_year
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [
        sys.executable,
        "-m",
        "carbonreport",
        "audit",
        "--year",
        str(year),
        "--zone",
        "DE",
        "--gpu",
        "H200-SXM",
        "--ledger",
        str(tmp_path / "ledger"),
    ]

    try:
        done = subprocess.run(
            [*command, "--sacct", "live", "-o", str(tmp_path / "live.json")], capture_output=True, text=True, env=environ, check=False
        )
        pulled = subprocess.run([str(PULL), str(year)], capture_output=True, text=True, check=True).stdout
    finally:
        subprocess.run(["scancel", again, running], check=False)

    assert done.returncode == 0, done.stderr
    con = __import__("carbonreport.audit.database", fromlist=["connect"]).connect()
    jobs = con.execute(
        f"SELECT job_id, state, project, gpus, suspended_us FROM read_parquet('{tmp_path}/ledger/jobs/*/*.parquet')"
    ).fetchall()
    away_us = {row[0]: row[4] for row in jobs}
    assert (failed, "FAILED", "language", 1, 0) in jobs
    assert (running, "SUSPENDED", "vision", 2) in [row[:4] for row in jobs]
    assert away_us[paused] >= 6 * US_PER_S and away_us[running] >= 0
    assert [row[1] for row in jobs if row[0] == again].count("REQUEUED") == 1
    assert sum(1 for row in jobs if row[2] == "language" and row[1] == "COMPLETED") >= 3
    held = json.loads((tmp_path / "live.json").read_text())
    assert held["in_progress"] and held["running"] >= 1
    assert held["jobs"]["jobs"] == len({(row[0], row[1]) for row in jobs})
    assert sum(group["it_mj"] for group in held["groups"]["project"]) == held["everything"]["it_mj"] > 0
    (tmp_path / "pulled.txt").write_text(pulled)
    again_done = subprocess.run(
        [*command, "--sacct", str(tmp_path / "pulled.txt")], capture_output=True, text=True, env=environ, check=False
    )
    assert again_done.returncode == 0, again_done.stderr
