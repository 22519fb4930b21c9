"""`carbonreport import`, and foreign logs where records are expected."""

import json
import os
import subprocess
import sys

import pytest
from pytest import approx


@pytest.fixture
def carbonreport(tmp_path):
    """Runs the command in a folder of its own."""

    def run(*arguments):
        command = [sys.executable, "-m", "carbonreport", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)

    return run


def test_json_says_what_a_file_holds(carbonreport, tmp_path, logs):
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)

    done = carbonreport("import", "emissions.csv", "--json", "--time-zone", "Europe/Madrid")

    found = json.loads(done.stdout)
    assert done.returncode == 0
    assert (found["file"], found["format"], found["method"], found["rows"], found["rejected"]) == (
        "emissions.csv",
        "codecarbon",
        "reported",
        3,
        [],
    )
    assert found["it_kwh"] == approx(0.012)
    assert "import-pue-taken-out" in {note["slug"] for note in found["notes"]}


def test_several_files_are_a_line_each_and_what_cannot_be_read_is_null(carbonreport, tmp_path, logs):
    (tmp_path / "a.json").write_text(logs.JOULES)
    (tmp_path / "b.csv").write_text("timestamp, utilization.gpu [%]\n2026/03/02 10:00:00, 5 %\n")
    (tmp_path / "c.txt").write_text("nothing\n")

    done = carbonreport("import", "a.json", "b.csv", "c.txt", "--json")

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1  # c.txt could not be read
    assert [(f["format"], f["it_kwh"] is None) for f in found] == [("joules", False), ("nvidia-smi", True), (None, True)]


def test_a_file_that_cannot_be_read_does_not_keep_the_others_from_being_printed_but_fails_the_command(carbonreport, tmp_path, logs):
    (tmp_path / "ok.json").write_text(logs.JOULES)
    (tmp_path / "util.csv").write_text("timestamp, utilization.gpu [%]\n2026/03/02 10:00:00, 5 %\n")

    missing = carbonreport("import", "nofile", "ok.json")
    two = carbonreport("import", "nofile", "ok.json", "util.csv", "none")
    without = carbonreport("import", "ok.json", "util.csv")

    assert missing.returncode == 1 and missing.stdout.startswith("ok.json: joules, ")
    assert missing.stderr == "carbonreport: error: cannot read nofile: No such file or directory\n"
    assert two.returncode == 1 and two.stdout.count("joules, ") == 1
    assert two.stderr.splitlines()[-1] == "carbonreport: error: 2 of 4 files could not be read"
    assert [two.stderr.count(f"cannot read {name}") for name in ("nofile", "none")] == [1, 1]
    assert without.returncode == 0 and "no column of power" in without.stderr


def test_the_reason_why_a_file_has_no_energy_is_said_once(carbonreport, tmp_path):
    (tmp_path / "ab.csv").write_text("a,b\n1,2\n")
    (tmp_path / "e.json").write_text("{}")

    plain = carbonreport("import", "ab.csv")
    slurm = carbonreport("import", "--format", "slurm", "e.json")

    assert (plain.returncode, slurm.returncode) == (1, 1)
    assert (plain.stdout + plain.stderr).count("no column of power or energy") == 1
    assert "ab.csv, a table: " in plain.stderr and "a log of csv" not in plain.stderr
    assert (slurm.stdout + slurm.stderr).count("no list of jobs") == 1
    assert "squeue" not in slurm.stdout + slurm.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_only_regular_files_are_read_and_nothing_waits_for_a_pipe(carbonreport, tmp_path):
    os.mkfifo(tmp_path / "pipe")

    for name, kind in (("pipe", "a pipe"), ("/dev/null", "a device"), (".", "a folder")):
        done = carbonreport("import", name)
        assert done.returncode == 1 and f"{name} is {kind}; " in done.stderr and done.stderr.count("\n") == 1
    assert "only regular files are read" in carbonreport("import", "pipe").stderr


def test_a_file_without_energy_is_one_line_and_exit_1(carbonreport, tmp_path):
    (tmp_path / "util.csv").write_text("timestamp, utilization.gpu [%]\n2026/03/02 10:00:00, 5 %\n")

    done = carbonreport("import", "util.csv", "--json")

    assert done.returncode == 1
    assert json.loads(done.stdout)["it_kwh"] is None
    assert done.stderr.count("\n") == 1 and "no column of power" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.csv"], "cannot read absent.csv"),
        (["a.json", "--time-zone", "Mars/Base"], "unknown time zone"),
        (["a.json", "--format", "nonsense"], "unknown importer"),
        (["a.json", "--mapping", "unit"], "KEY=VALUE"),
        (["a.json", "--mapping", "unit=horses"], "unit=horses"),
        (["a.json", "--mapping", "colour=red"], "unknown mapping"),
        (["dmon.log", "--mapping", "period_s=1", "--start", "2026-03-02T10:00"], "has no time zone"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_1(carbonreport, tmp_path, logs, arguments, words):
    (tmp_path / "a.json").write_text(logs.JOULES)
    (tmp_path / "dmon.log").write_text(logs.DMON)

    done = carbonreport("import", *arguments)

    assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


def test_show_takes_a_log_as_it_takes_a_record(carbonreport, tmp_path, logs):
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)

    done = carbonreport("show", "emissions.csv", "--zone", "ES", "--pue", "1.3", "--json")

    found = json.loads(done.stdout)
    assert found["it_joules"]["value"] == approx(0.012 * 3.6e6) and found["it_joules"]["origin"] == "reported"
    assert found["facility_joules"]["value"] == approx(1.3 * 0.012 * 3.6e6)
    assert found["hours"][0]["start"].startswith("2026-03-02T09")


def test_a_local_log_without_a_place_is_refused_with_the_way_out(carbonreport, tmp_path, logs):
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)

    done = carbonreport("show", "emissions.csv")

    assert done.returncode == 1 and "give --zone" in done.stderr


def test_a_log_without_a_date_becomes_a_record_when_somebody_dates_it(carbonreport, tmp_path, logs):
    (tmp_path / "log.csv").write_text("elapsed_sec,power_w\n0,50\n10,60\n")
    assert "--start" in carbonreport("show", "log.csv", "--zone", "ES").stderr

    done = carbonreport("import", "log.csv", "--start", "2026-03-02T10:00+01:00", "--out", "runs")

    record = next((tmp_path / "runs").glob("*.jsonl"))
    shown = json.loads(carbonreport("show", record, "--zone", "ES", "--json").stdout)
    assert done.returncode == 0
    assert shown["it_joules"]["value"] == approx(550) and shown["hours"][0]["start"].startswith("2026-03-02T09")


def test_runs_without_a_date_are_not_written_and_that_is_said(carbonreport, tmp_path, logs):
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)

    done = carbonreport("import", "emissions.csv", "--out", "runs")

    assert done.returncode == 0 and not (tmp_path / "runs").exists()
    assert "2 runs without a date were not written; give --time-zone" in done.stderr


def test_a_record_is_not_imported_again(carbonreport, tmp_path, logs):
    (tmp_path / "events.jsonl").write_text(logs.WANDB)
    carbonreport("import", "events.jsonl", "--out", "runs")
    record = next((tmp_path / "runs").glob("*.jsonl"))

    done = carbonreport("import", record)

    assert done.returncode == 1 and "is a record of carbonreport already" in done.stderr


def test_a_statement_of_a_log_names_it_and_verify_finds_it_true(carbonreport, tmp_path, logs):
    (tmp_path / "events.jsonl").write_text(logs.WANDB)

    carbonreport("statement", "events.jsonl", "--zone", "ES", "-o", "energy.md", "-o", "energy.json")

    assert "a log of wandb" in (tmp_path / "energy.md").read_text().replace("\\", "")
    assert carbonreport("verify", "energy.md", "events.jsonl", "--zone", "ES").returncode == 0


def test_the_two_logs_of_one_run_count_once(carbonreport, tmp_path, logs):
    lines = [line for line in logs.CARBONTRACKER.splitlines() if "for gpu" not in line]
    (tmp_path / "1_carbontracker.log").write_text("\n".join(lines).replace("GPU with device(s) Some GPU, Some GPU, Some GPU. ", ""))
    alone = json.loads(carbonreport("show", "1_carbontracker.log", "--zone", "ES", "--json").stdout)
    (tmp_path / "1_carbontracker_output.log").write_text(logs.CARBONTRACKER_OUTPUT)

    both = json.loads(carbonreport("show", "1_carbontracker.log", "1_carbontracker_output.log", "--zone", "ES", "--json").stdout)

    assert both["it_joules"]["value"] == alone["it_joules"]["value"] == approx(1000)


def test_when_plans_a_job_like_that_of_a_log(carbonreport, tmp_path, logs):
    (tmp_path / "events.jsonl").write_text(logs.WANDB)
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)

    done = carbonreport("when", "--like", "events.jsonl", "--zone", "ES", "--slack", "6h")
    several = carbonreport("when", "--like", "emissions.csv", "--zone", "ES", "--slack", "6h")

    assert done.returncode == 0 and "now" in done.stdout
    assert several.returncode == 1 and "holds 2 runs" in several.stderr


def test_boards_without_a_uuid_of_two_files_are_not_taken_for_one(carbonreport, tmp_path, logs):
    (tmp_path / "a.jsonl").write_text(logs.WANDB)
    (tmp_path / "b.jsonl").write_text(logs.WANDB.replace("100.0", "200.0"))

    found = json.loads(carbonreport("show", "a.jsonl", "b.jsonl", "--zone", "ES", "--json").stdout)

    assert sorted(device["it_joules"] for device in found["devices"]) == approx([6000, 12000])


def test_runs_are_kept_in_a_ledger_once_however_often_they_are_imported(carbonreport, tmp_path, logs):
    pytest.importorskip("duckdb")
    (tmp_path / "emissions.csv").write_text(logs.CODECARBON)
    command = ("import", "emissions.csv", "--time-zone", "Europe/Madrid", "--ledger", "lab", "--project", "speech", "--people", "none")

    first, again = carbonreport(*command), carbonreport(*command)

    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "rows kept in lab" in first.stderr
    audited = carbonreport("audit", "--year", "2026", "--ledger", "lab", "--zone", "ES", "--pue", "1.3", "-o", "audit.json")
    assert audited.returncode == 0, audited.stderr
    year = json.loads((tmp_path / "audit.json").read_text())
    assert year["it_joules"]["value"] == approx(0.012 * 3.6e6)
    assert [group["name"] for group in year["groups"]["project"]] == ["speech"]


@pytest.mark.parametrize(("text", "rows"), [("a,b\n1,2\n", "1 row\n"), ("a,b\n\n1,2\n3,4", "2 rows\n")])
def test_rows_of_a_table_without_energy_are_counted_and_none_is_said_to_be_used(carbonreport, tmp_path, text, rows):
    (tmp_path / "junk.csv").write_text(text)

    assert carbonreport("import", "junk.csv").stdout == f"junk.csv: csv, no energy, 0 runs, {rows}"
