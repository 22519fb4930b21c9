"""Jobs that were suspended: that time is nobody's GPU time, and whoever ran in their place is not counted beside them."""

import json
import random
from dataclasses import replace
from zoneinfo import ZoneInfo

import pytest
from pytest import approx

from carbonreport.audit.alike import alike_jobs
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.people import named
from carbonreport.audit.sacct import jobs_query
from carbonreport.audit.window import window_of
from carbonreport.errors import RecordError
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US, US_PER_S
from carbonreport.workflows.ledger import Keeping, keep_sacct, rules

NOON = "2026-03-02T12:00Z"
HALF_KWH = 1_800_000_000  # mJ: 500 W for an hour


def found(year, slug):
    return next((f for f in year.findings if f.slug == slug), None)


def in_its_place(begin, hours, away_h, **others):
    """A job that was suspended after an hour, and the one that ran on its board until it went on."""
    first = a_job("1", begin, hours, suspended_us=round(away_h * HOUR_US), project="first", **others)
    return [first, a_job("2", us(begin) + HOUR_US, away_h, suspended_us=0, project="second", **others)]


def test_a_suspended_job_and_the_one_in_its_place_hold_the_wall_time(audited):
    year = audited(in_its_place(NOON, 6, 2.5, gpu_model="h200", gpus=4), [], watts=100.0)

    assert year.jobs.gpu_us == 4 * 6 * HOUR_US
    assert year.jobs.energy.estimated_mj == 4 * 6 * 360_000_000
    assert {g.name: g.gpu_us for g in year.groups["project"]} == {"first": 4 * 3.5 * HOUR_US, "second": 4 * 2.5 * HOUR_US}
    assert "10.0 GPU-hours" in found(year, "suspended").text
    assert found(year, "suspended").count == 1


def test_a_suspension_of_seconds_is_not_nothing(audited):
    year = audited([a_job("1", NOON, 1, suspended_us=12 * US_PER_S)], [])

    assert "0.0033 GPU-hours of it are not its own" in found(year, "suspended").text


def test_on_a_metered_host_each_has_the_energy_of_its_own_hours_and_nothing_is_idle_or_estimated(audited):
    energies = [HALF_KWH + 1_000 * h for h in range(6)]
    readings = [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, energy) for h, energy in enumerate(energies)]

    year = audited(in_its_place(NOON, 6, 2), readings, watts=999.0)

    assert {g.name: g.energy.it_mj for g in year.groups["project"]} == {
        "first": sum(energies) - sum(energies[1:3]),
        "second": sum(energies[1:3]),
    }
    assert year.whole.it_mj == sum(energies)
    assert year.jobs.known_gpu_us == year.jobs.gpu_us == year.busy_gpu_us == year.metered_gpu_us == 6 * HOUR_US
    assert found(year, "host-overfull") is None


def test_the_metered_part_of_a_suspended_job_is_not_twice_the_boards_power(audited):
    half = a_job("1", NOON, 40, suspended_us=20 * HOUR_US, project="half", gpu_model="h200")
    other = a_job("2", us(NOON) + 40 * HOUR_US, 100, suspended_us=0, hosts="n5", project="other", gpu_model="h200")
    readings = [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, HALF_KWH) for h in range(20)]

    year = audited([half, other], readings, watts=500.0)

    energies = {g.name: g.energy for g in year.groups["project"]}
    assert (energies["half"].measured_mj, energies["half"].estimated_mj) == (20 * HALF_KWH, 0)
    assert energies["other"].estimated_mj == 100 * HALF_KWH


def test_jobs_that_took_turns_on_a_host_share_it_evenly(audited):
    jobs = [a_job(str(i), NOON, 4, suspended_us=2 * HOUR_US, project=f"project {i}") for i in range(2)]

    year = audited(jobs, [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, HALF_KWH) for h in range(4)], watts=999.0)

    assert [g.energy.it_mj for g in year.groups["project"]] == [2 * HALF_KWH, 2 * HALF_KWH]
    assert year.whole.it_mj == 4 * HALF_KWH


def test_a_board_waits_while_its_job_is_suspended_and_nobody_runs_there(audited):
    readings = [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, HALF_KWH if h < 2 else 360_000_000) for h in range(6)]

    year = audited([a_job("1", NOON, 4, suspended_us=2 * HOUR_US)], readings)

    assert (year.jobs.gpu_us, year.busy_gpu_us, year.idle_gpu_us) == (2 * HOUR_US, 2 * HOUR_US, 4 * HOUR_US)
    assert year.whole.it_mj == sum(r.energy_mj for r in readings)


@pytest.mark.parametrize("seed", range(4))
def test_the_energy_of_metered_hosts_adds_up_whoever_was_suspended(audited, seed):
    rng = random.Random(seed)
    begin = us("2026-05-01T00:00Z")
    jobs = []
    for i in range(40):
        hours = rng.choice([0.5, 1, 3, 7.25, 30])
        away_us = rng.choice([0, None, round(rng.random() * hours * HOUR_US)])
        jobs.append(a_job(str(i), begin + rng.randrange(72 * 3600) * US_PER_S, hours, gpus=rng.choice([1, 2]), hosts=rng.choice(["n0", "n1", "n[0-1]"]), suspended_us=away_us))  # fmt: skip
    readings = [
        a_reading(f"GPU-{host}-{i}", begin + h * HOUR_US, 1, rng.randrange(10**8, 10**9), host=f"n{host}")
        for host in range(2)
        for i in range(2)
        for h in range(96)
    ]

    year = audited(jobs, readings)

    assert year.whole.measured_mj + year.idle.estimated_mj == sum(r.energy_mj for r in readings)
    assert year.jobs.gpu_us == sum(j.gpus * (j.end_us - j.start_us - (j.suspended_us or 0)) for j in jobs)
    assert year.jobs.known_gpu_us <= year.jobs.gpu_us
    assert year.busy_gpu_us <= year.metered_gpu_us
    assert found(year, "suspension-unknown").count == sum(j.suspended_us is None for j in jobs)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_a_suspended_job_over_new_year_counts_once_in_both_years_together(audited, zone):
    midnight = window_of(2026, zone, 4e9).from_us
    job = a_job("1", midnight - 2 * HOUR_US, 7, gpus=3, gpu_model="h200", suspended_us=2 * HOUR_US + 1)

    years = [audited([job], [], year=y, time_zone=zone, watts=100.0) for y in (2025, 2026)]

    assert sum(year.jobs.gpu_us for year in years) == 3 * (5 * HOUR_US - 1)
    assert years[0].jobs.gpu_us == approx(3 * 2 * 5 / 7 * HOUR_US)


def test_a_nodes_energy_is_not_a_suspended_jobs_own_where_another_one_ran_there(audited):
    first, second = in_its_place(NOON, 4, 2, exclusive=True, energy_mj=HALF_KWH)

    assert audited([first, second], []).jobs.energy.reported_mj == HALF_KWH
    assert audited([replace(first, job_id="3", hosts="n7")], [], year=2026).jobs.energy.reported_mj == 2 * HALF_KWH


def test_the_top_jobs_say_how_long_they_ran(audited):
    year = audited(in_its_place(NOON, 6, 2, gpu_model="h200"), [], watts=100.0)

    assert [job.hours for job in year.top] == [approx(4), approx(2)]


# What Slurm says

COLUMNS = "JobIDRaw|JobID|Account|User|Start|End|ElapsedRaw|State|NodeList|AllocTRES"
LENGTHS = {"7200": 0, "7199": 0, "7201": 0, "5400": 1800 * US_PER_S, "00:30:00": 5400 * US_PER_S, "": None, "4294967294": None, "9000": 0}


def sacct(elapsed, start="1772359200", end="1772366400"):
    return f"{COLUMNS}\n1|1|vision|ada|{start}|{end}|{elapsed}|COMPLETED|n1|gres/gpu:h200=2\n"


@pytest.mark.parametrize(("elapsed", "away_us"), LENGTHS.items())
def test_elapsed_leaves_out_the_suspension(con, tmp_path, elapsed, away_us):
    (tmp_path / "sacct.txt").write_text(sacct(elapsed))

    query, _ = jobs_query(con, tmp_path / "sacct.txt", rules(), ZoneInfo("UTC"), named("none", None), "")

    assert con.execute(f"SELECT end_us - start_us, suspended_us FROM ({query})").fetchall() == [(2 * HOUR_US, away_us)]


@pytest.mark.parametrize(("elapsed", "away_us"), LENGTHS.items())
def test_other_shapes_of_sacct_say_the_same(con, tmp_path, elapsed, away_us):
    path = tmp_path / "sacct.txt"
    path.write_text(sacct(elapsed, "2026-03-01T10:00:00", "2026-03-01T12:00:00").replace("|", "\t"))

    keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none", time_zone="UTC"), con=con)

    Ledger(str(tmp_path / "ledger")).open(con)
    assert con.execute("SELECT end_us - start_us, suspended_us FROM jobs").fetchall() == [(2 * HOUR_US, away_us)]


def test_json_of_sacct_says_it_too(con, tmp_path):
    times = {"start": 1772359200, "end": 1772366400, "elapsed": 3600, "submission": 1772355600}
    job = {"job_id": 1, "user": "ada", "state": {"current": ["COMPLETED"]}, "time": times, "tres": {"allocated": []}, "steps": []}
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": [job]}))

    keep_sacct(tmp_path / "sacct.json", Keeping(str(tmp_path / "ledger"), people="none"), con=con)

    Ledger(str(tmp_path / "ledger")).open(con)
    assert con.execute("SELECT suspended_us FROM jobs").fetchall() == [(HOUR_US,)]


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED"])
@pytest.mark.parametrize(("suspended", "away_s"), [("00:00:00", 0), ("", 0), ("00:30:00", 1800), ("1-00:00:00", 86_400)])
@pytest.mark.parametrize("delimiter", ["|", "\t"])
def test_a_job_that_has_not_ended_is_known_until_now_its_suspension_apart(con, tmp_path, state, suspended, away_s, delimiter):
    header, row = sacct("3600", "2026-03-01T10:00:00", "Unknown").replace("COMPLETED", state).splitlines()
    path = tmp_path / "sacct.txt"
    path.write_text(f"{header}|Suspended\n{row}|{suspended}\n".replace("|", delimiter))

    keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none", time_zone="UTC"), con=con)

    Ledger(str(tmp_path / "ledger")).open(con)
    away_us = away_s * US_PER_S
    assert con.execute("SELECT end_us - start_us, suspended_us FROM jobs").fetchall() == [(HOUR_US + away_us, away_us)]


def test_json_of_a_job_that_has_not_ended_says_the_same(con, tmp_path):
    times = {"start": 1772359200, "end": 0, "elapsed": 3600, "suspended": 1800}
    job = {"job_id": 1, "user": "ada", "state": {"current": ["SUSPENDED"]}, "time": times, "tres": {"allocated": []}, "steps": []}
    (tmp_path / "sacct.json").write_text(json.dumps({"jobs": [job]}))

    keep_sacct(tmp_path / "sacct.json", Keeping(str(tmp_path / "ledger"), people="none"), con=con)

    Ledger(str(tmp_path / "ledger")).open(con)
    assert con.execute("SELECT end_us - start_us, suspended_us FROM jobs").fetchall() == [(HOUR_US * 3 // 2, HOUR_US // 2)]


# Ledgers from before it was kept


def without_the_column(ledger, con):
    """What an earlier version wrote."""
    for number, path in enumerate(ledger.glob("jobs/*/*.parquet")):
        old = path.with_name(f"old{number}.parquet")
        con.execute(f"COPY (SELECT * EXCLUDE (suspended_us) FROM read_parquet('{path}')) TO '{old}' (FORMAT parquet)")
        path.unlink()


def test_an_old_ledger_is_read_and_its_suspensions_are_unknown(con, tmp_path):
    job = a_job("1", NOON, 4, suspended_us=2 * HOUR_US)
    ledger = Ledger(str(tmp_path))
    ledger.add([job, replace(job, job_id="2")], "jobs", con)
    without_the_column(tmp_path, con)
    ledger.open(con)
    assert con.execute("SELECT job_id, suspended_us FROM jobs ORDER BY 1").fetchall() == [("1", None), ("2", None)]

    ledger.add([job], "jobs", con)
    repeated = ledger.open(con)

    assert con.execute("SELECT job_id, suspended_us FROM jobs ORDER BY 1").fetchall() == [("1", 2 * HOUR_US), ("2", None)]
    assert repeated["jobs"] == 1


def test_a_file_that_lacks_a_column_of_old_is_refused_beside_good_ones(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    ledger.add([a_job("1", NOON, 4)], "jobs", con)
    (good,) = tmp_path.glob("jobs/*/*.parquet")
    con.execute(f"COPY (SELECT * EXCLUDE (hosts) FROM read_parquet('{good}')) TO '{good.with_name('z.parquet')}' (FORMAT parquet)")

    with pytest.raises(RecordError, match=r"another version .* has no hosts"):
        ledger.open(con)


def test_jobs_that_may_be_the_same_leave_out_their_suspension(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    ledger.add([a_job("127", NOON, 4, suspended_us=HOUR_US)], "jobs", con)
    ledger.add([a_job("123_4", NOON, 4, array_id="123_4", suspended_us=HOUR_US)], "jobs", con)
    ledger.open(con)

    assert alike_jobs(con) == (1, 3 * HOUR_US)
