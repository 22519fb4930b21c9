"""When and where to run: priced exactly, advised only where it holds, and never in words that promise more."""

import json
import os
import subprocess
import sys
import time
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.store.writer import save
from carbonreport.testing import make_record

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(os.environ.get("CARBONREPORT_RAW", ROOT.parent / "shared" / "data")) / "grid"
BEGIN = "2026-01-10T00:00Z"


def when(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(cli, ["when", *arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def answer(*arguments: str) -> dict:
    return json.loads(when(*arguments, "--json"))


@pytest.fixture
def grid(tmp_path):
    """Three days: 400 g by day, 100 g from midnight to six, 50 g in one hour of the third day."""
    path = tmp_path / "grid.csv"
    begin = datetime.fromisoformat(BEGIN)
    rows = [(begin + timedelta(hours=h), 50 if h == 60 else 100 if h % 24 < 6 else 400) for h in range(96)]
    path.write_text("Time (UTC),g_per_kwh\n" + "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},{g}\n" for t, g in rows))
    return path


def place(grid, *more):
    return ["--grid", str(grid), "--zone", "GB", "--pue", "1.0", "--earliest", "2026-01-10T12:00Z", *more]


def test_the_best_start_is_named_with_what_it_saves(grid):
    found = answer("--hours", "4", "--kw", "2", *place(grid))
    (shift,) = found["options"]

    assert found["now"]["grams"] == approx(4 * 2 * 400)
    assert shift["start"]["utc"] == "2026-01-11T00:00:00+00:00"
    assert shift["grams"] == approx(4 * 2 * 100)
    assert shift["saving_percent"]["value"] == approx(75)
    assert shift["waits_hours"] == approx(12)
    assert found["verdict"] == "worth-it"


def test_no_slack_saves_exactly_nothing(grid):
    found = answer("--hours", "4", "--kw", "2", "--slack", "0h", *place(grid))
    (shift,) = found["options"]

    assert shift["start"] == found["now"]["start"]
    assert shift["saving_percent"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert found["verdict"] == "not-worth-it"


def test_pausing_is_never_worse_than_waiting_and_waiting_never_than_now(grid):
    found = answer("--hours", "8", "--kw", "2", "--pauses", "3", "--pause-cost", "5min", "--slack", "48h", *place(grid))
    grams = {option["action"]: option["grams"] for option in found["options"]}

    assert grams["pause"] < grams["shift"] < found["now"]["grams"]
    (pause,) = [option for option in found["options"] if option["action"] == "pause"]
    assert all(a[1] <= b[0] for a, b in pairwise(pause["runs"]))
    assert pause["run_seconds"] == approx(8 * 3600 + 300 * (len(pause["runs"]) - 1))


def test_a_pause_that_costs_more_than_it_saves_is_not_taken(grid):
    found = answer("--hours", "8", "--kw", "2", "--pauses", "3", "--pause-cost", "6h", "--slack", "48h", *place(grid))

    assert all(option["action"] != "pause" for option in found["options"])


def test_reserved_equipment_that_waits_is_charged(grid):
    free = answer("--hours", "1", "--kw", "2", *place(grid))["options"][0]
    reserved = answer("--hours", "1", "--kw", "2", "--idle-kw", "1.5", *place(grid))["options"][0]

    assert free["grams"] == approx(200)
    assert reserved["start"] == answer("--hours", "1", "--kw", "2", *place(grid))["now"]["start"]
    assert reserved["saving_percent"]["value"] == 0


def test_only_allowed_hours_of_the_zone_s_clock_are_used(grid):
    shift = answer("--hours", "2", "--kw", "2", "--hours-allowed", "8-18", "--slack", "40h", *place(grid))["options"][0]
    start = datetime.fromisoformat(shift["start"]["local"])

    assert 8 <= start.hour <= 16
    assert shift["grams"] == approx(2 * 2 * 400)


def test_busy_equipment_is_left_alone(grid, tmp_path):
    busy = tmp_path / "busy.csv"
    busy.write_text("from,to\n2026-01-11T00:00Z,2026-01-11T03:00Z\n")
    shift = answer("--hours", "3", "--kw", "2", "--busy", str(busy), *place(grid))["options"][0]

    assert shift["start"]["utc"] == "2026-01-11T03:00:00+00:00"


def test_a_job_like_a_run_has_its_length_and_power(grid, tmp_path):
    record = make_record({"GPU": 700.0}, 3, start="2025-03-01T09:00Z")
    path = save(record, tmp_path / "run.jsonl")
    found = answer("--like", str(path), *place(grid))

    assert found["now"]["it_joules"] == approx(700 * 3 * 3600)
    assert found["now"]["grams"] == approx(0.7 * 3 * 400)


def test_a_long_run_is_not_shifted_by_a_typical_day_alone():
    found = answer("--hours", "30", "--kw", "2", "--zone", "DE", "--pue", "1.2", "--earliest", "2026-07-01T18:00Z")

    assert found["verdict"] == "not-worth-it"
    assert "typical profile alone saves nothing" in found["because"]


def test_a_short_run_in_a_sunny_grid_is_advised_from_a_typical_day():
    found = answer("--hours", "3", "--kw", "2", "--zone", "US-CAL-CISO", "--pue", "1.2", "--earliest", "2026-05-02T02:00Z")
    best = found["options"][0]

    assert found["verdict"] == "worth-it"
    assert best["chance"] > 0.75
    assert best["saving_percent"]["low"] < best["saving_percent"]["value"] < best["saving_percent"]["high"]


def test_another_zone_is_priced_at_its_own_grid_and_said_with_its_doubt():
    found = answer("--hours", "6", "--kw", "2", "--zone", "PL,SE-SE3", "--pue", "1.2", "--earliest", "2026-07-01T18:00Z")
    (move,) = [option for option in found["options"] if option["action"] == "move"]

    assert move["zone"] == "SE-SE3"
    assert move["grams"] < 0.2 * found["now"]["grams"]
    assert "marginal" in move["because"]


def test_the_words_are_those_of_a_difference_and_promise_nothing(grid):
    text = when("--hours", "4", "--kw", "2", *place(grid))

    assert "difference in average intensity" in text
    assert "sbatch --begin=" in text
    for word in ("avoid", "carbon neutral", "climate-friendly"):
        assert word not in text.lower()


def test_lines_that_start_the_job_say_whose_clock_they_follow(grid, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        lines = when("--hours", "4", "--kw", "2", *place(grid, "--earliest", "2026-01-10T12:00:37Z")).splitlines()
    finally:
        monkeypatch.undo()
        time.tzset()

    at = lines.index("start it by this machine's clock, JST, with one of:")
    assert lines[at + 1 : at + 4] == [
        "    sbatch --begin=2026-01-11T09:00 …",
        "    at -t 202601110900",
        "    cron: 00 09 11 01 *    (fires every year: take it out afterwards)",
    ]


def test_a_start_that_is_now_has_no_row_of_its_own(grid):
    rows = when("--hours", "4", "--kw", "2", "--slack", "0h", *place(grid)).splitlines()

    assert [row.split()[0] for row in rows[1:3]] == ["now", "not-worth-it:"]


def test_a_deadline_without_a_zone_is_read_by_this_machine_and_echoed(grid):
    result = CliRunner().invoke(cli, ["when", "--hours", "4", "--kw", "2", *place(grid), "--deadline", "2026-01-11T12:00"])

    assert result.exit_code == 0, result.output
    assert "by this machine's clock" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["--zone", "DE"], "give --like RECORD, or --hours and --kw", 2),
        (["--hours", "0", "--kw", "1", "--zone", "DE"], "above 0", 1),
        (["--hours", "1", "--kw", "1"], "give --zone", 1),
        (["--hours", "1", "--kw", "1", "--zone", "DE", "--slack", "1 fortnight"], "write 24h", 2),
        (["--hours", "1", "--kw", "1", "--zone", "DE", "--slack", "24h", "--deadline", "2030-01-01T00:00Z"], "give one", 2),
        (
            ["--hours", "5", "--kw", "1", "--zone", "DE", "--earliest", "2026-01-01T00:00Z", "--deadline", "2026-01-01T03:00Z"],
            "longer than",
            2,
        ),
        (["--hours", "5", "--kw", "1", "--zone", "DE", "--hours-allowed", "18"], "18-8", 2),
        (["--hours", "5", "--kw", "1", "--zone", "Narnia"], "Narnia", 1),
        (["--hours", "5", "--kw", "1", "--zone", "DE", "--slack", "500d"], "over a year", 1),
        (["--like", "missing.jsonl"], "missing.jsonl", 1),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments, words, code, tmp_path):
    command = [sys.executable, "-m", "carbonreport", "when", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.skipif(not (RAW / "ger_ci.csv").is_file(), reason="the raw files are not here")
def test_one_job_of_2020_as_published(tmp_path):
    """Six hours in Germany from 15 June 2020, 9:00 UTC, 24 h of slack, on quarter hours."""
    path = tmp_path / "ger.csv"
    path.write_text((RAW / "ger_ci.csv").read_text().replace("Time,Carbon Intensity", "Time (UTC),Carbon Intensity", 1))
    found = answer(
        *("--hours", "6", "--kw", "1", "--zone", "DE", "--pue", "1.0", "--grid", str(path), "--earliest", "2020-06-15T09:00Z"),
        *("--slack", "24h", "--pauses", "200", "--pause-cost", "0s"),
    )
    options = {option["action"]: option for option in found["options"]}

    assert found["now"]["grams"] / 6 == approx(356.0298, abs=1e-3)
    assert options["shift"]["grams"] / 6 == approx(351.9164, abs=1e-3)
    assert options["shift"]["start"]["utc"] == "2020-06-16T08:45:00+00:00"
    assert options["pause"]["grams"] / 6 == approx(348.3417, abs=1e-3)
    assert np.isclose(found["now"]["grams_per_kwh"], 356.0298, atol=1e-3)
