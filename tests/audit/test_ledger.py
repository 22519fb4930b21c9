"""The ledger: once is once, whoever imports, however often, and whatever kills them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from carbonreport.audit.alike import alike_jobs
from carbonreport.audit.folder import LocalFolder
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.tables import month_of
from carbonreport.errors import CarbonreportError, OutputError, RecordError
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US

JOBS = [a_job(str(i), f"2026-0{1 + i % 6}-03T10:00Z", 1 + i) for i in range(30)]


def held(ledger, con, table="jobs"):
    ledger.open(con)
    return con.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()


@pytest.mark.parametrize("url", ["{tmp}/ledger", "memory://{tmp}/ledger"])
def test_importing_twice_changes_neither_files_nor_rows(con, tmp_path, url):
    ledger = Ledger(url.format(tmp=tmp_path))
    ledger.add(JOBS, "jobs", con)
    first, files = held(ledger, con), ledger._folder.paths("jobs/*/*.parquet")

    ledger.add(list(reversed(JOBS)), "jobs", con)

    assert held(ledger, con) == first
    assert ledger._folder.paths("jobs/*/*.parquet") == files
    assert len(first) == len(JOBS)


def test_rows_lie_by_the_utc_month_in_which_they_begin(con, tmp_path):
    Ledger(str(tmp_path)).add(JOBS, "jobs", con)

    assert {p.parent.name for p in tmp_path.glob("jobs/*/*.parquet")} == {f"month={month_of(j.start_us)}" for j in JOBS}


def test_a_job_that_was_running_is_known_longer_the_next_time_and_stays_one_job(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    running = a_job("1", "2026-03-01T10:00Z", 2, state="RUNNING")
    ended = a_job("1", "2026-03-01T10:00Z", 7, state="COMPLETED", source="later")
    ledger.add([ended], "jobs", con)
    ledger.add([running], "jobs", con)

    repeated = ledger.open(con)

    assert con.execute("SELECT state, (end_us - start_us) / 3600000000 FROM jobs").fetchall() == [("COMPLETED", 7.0)]
    assert repeated["jobs"] == 1


def test_the_same_reading_out_of_two_files_is_one(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    counter = a_reading("GPU-a", "2026-03-01T10:00Z", 1, 5_000, source="b")
    power = a_reading("GPU-a", "2026-03-01T10:00Z", 1, 5_100, method="averaged", source="a")
    ledger.add([power], "meters", con)
    ledger.add([counter, replace(counter, source="c")], "meters", con)

    assert [row[6] for row in held(ledger, con, "meters")] == [5_000]


def test_unknown_energy_stays_null(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    ledger.add([a_reading("GPU-a", "2026-03-01T10:00Z", 1, None), a_reading("GPU-b", "2026-03-01T10:00Z", 1, 0)], "meters", con)

    ledger.open(con)

    assert con.execute("SELECT device, energy_mj FROM meters ORDER BY 1").fetchall() == [("GPU-a", None), ("GPU-b", 0)]


def test_a_half_written_file_is_not_read(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    ledger.add(JOBS, "jobs", con)
    whole = next(iter(tmp_path.glob("jobs/*/*.parquet")))
    whole.with_name(f".{whole.name}.123.abcd.part").write_bytes(whole.read_bytes()[:100])

    assert len(held(ledger, con)) == len(JOBS)


def test_a_file_of_somebody_else_is_named(con, tmp_path):
    folder = tmp_path / "jobs" / "month=2026-01"
    folder.mkdir(parents=True)
    (folder / "x.parquet").write_bytes(b"not parquet")

    with pytest.raises(RecordError, match="cannot read the ledger"):
        Ledger(str(tmp_path)).open(con)


def test_a_folder_that_cannot_be_written_is_said(con, tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match="cannot write to the ledger"):
        Ledger(str(tmp_path / "file")).add(JOBS, "jobs", con)


FILL = """
import sys
from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.testing.ledger import a_job, a_reading
con = connect(threads=1)
ledger = Ledger(sys.argv[1])
begin = int(sys.argv[2])
print("ready", flush=True)
for turn in range(int(sys.argv[3])):
    ledger.add([a_job(str(i), f"2026-0{1 + i % 6}-03T10:00Z", 1 + i) for i in range(begin, begin + 20)], "jobs", con)
    ledger.add([a_reading(f"GPU-{i}", f"2026-0{1 + i % 6}-03T10:00Z", 1, i) for i in range(begin, begin + 20)], "meters", con)
"""


def test_two_processes_that_import_at_once_lose_and_double_nothing(con, tmp_path):
    ledger = str(tmp_path / "ledger")
    both = [subprocess.Popen([sys.executable, "-c", FILL, ledger, begin, "5"], stdout=subprocess.DEVNULL) for begin in ("0", "10")]

    assert [process.wait(timeout=120) for process in both] == [0, 0]

    Ledger(ledger).open(con)
    assert con.execute("SELECT count(*), count(DISTINCT job_id) FROM jobs").fetchall() == [(30, 30)]
    assert con.execute("SELECT count(*), sum(energy_mj)::BIGINT FROM meters").fetchall() == [(30, sum(range(30)))]


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGKILL")
@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.3])
def test_an_import_that_is_killed_leaves_a_ledger_that_reads_and_can_be_filled_again(con, tmp_path, after_s):
    ledger = str(tmp_path / "ledger")
    environ = {**os.environ, "TMPDIR": str(tmp_path)}  # what it leaves behind goes with the test
    process = subprocess.Popen([sys.executable, "-c", FILL, ledger, "0", "1000"], stdout=subprocess.PIPE, env=environ)
    process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    process.stdout.close()

    Ledger(ledger).open(con)
    assert con.execute("SELECT count(*) - count(DISTINCT job_id) FROM jobs").fetchall() == [(0,)]

    assert subprocess.run([sys.executable, "-c", FILL, ledger, "0", "1"], stdout=subprocess.DEVNULL, check=False).returncode == 0
    Ledger(ledger).open(con)
    assert con.execute("SELECT count(*), count(DISTINCT job_id) FROM jobs").fetchall() == [(20, 20)]


def test_a_file_appears_under_its_name_whole(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"x" * 10_000)

    LocalFolder(tmp_path / "ledger").put(source, "jobs/month=2026-01/a.parquet")

    assert [p.name for p in (tmp_path / "ledger").rglob("*") if p.is_file()] == ["a.parquet"]
    assert us("2026-01-01T01:00Z") - us("2026-01-01T00:00Z") == HOUR_US


def test_the_same_job_in_files_that_say_different_things_is_one(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    whole = a_job("127", "2026-03-03T10:00Z", 2, array_id="123_4")
    ledger.add([whole], "jobs", con)
    ledger.add([replace(whole, cluster="", array_id="", source="b"), replace(whole, job_id="123_4", source="c")], "jobs", con)

    assert [row[:2] for row in held(ledger, con)] == [("lab", "127")]


def test_jobs_that_may_be_the_same_are_counted(con, tmp_path):
    ledger = Ledger(str(tmp_path))
    ledger.add([a_job("127", "2026-03-03T10:00Z", 2), a_job("123_4", "2026-03-03T10:00Z", 2, array_id="123_4")], "jobs", con)
    ledger.add([a_job("9", "2026-03-03T10:00Z", 3), a_job("124_4", "2026-03-03T11:00Z", 2, array_id="124_4")], "jobs", con)
    ledger.open(con)

    assert alike_jobs(con) == (1, 2 * HOUR_US)


@pytest.mark.parametrize("url", ["{tmp}/ledger", "memory://{tmp}/ledger"])
def test_people_are_written_in_one_way_in_a_ledger(tmp_path, url):
    ledger = Ledger(url.format(tmp=tmp_path))
    ledger.claim()
    ledger.claim("names")
    ledger.claim("names")

    with pytest.raises(CarbonreportError, match="--people names"):
        ledger.claim("pseudonyms")


def test_a_ledger_of_another_version_is_refused_and_said(con, tmp_path):
    (tmp_path / "ledger.json").write_text('{"carbonreport_ledger": 99}')

    with pytest.raises(RecordError, match="another version"):
        Ledger(str(tmp_path)).open(con)


def test_the_root_of_all_files_is_no_ledger():
    with pytest.raises(RecordError, match="folder of its own"):
        Ledger("/")


def test_a_ledger_whose_name_has_signs_of_patterns_is_read_alone(con, tmp_path):
    for name, job_id in (("L1", "1"), ("L[1]", "2")):
        Ledger(str(tmp_path / name)).add([a_job(job_id, "2026-03-03T10:00Z", 2)], "jobs", con)

    assert [row[1] for row in held(Ledger(str(tmp_path / "L[1]")), con)] == ["2"]
