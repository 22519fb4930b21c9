"""Deadlines of the working week through the command line, and what is said of a search that had to be coarse."""

import json
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from click.testing import CliRunner

from carbonreport.cli.main import cli
from carbonreport.cli.when import _RULES
from carbonreport.recommend.pauses import affordable, best_schedule, slot_of
from carbonreport.recommend.rates import Rates
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.deadline import RULES

PLACE = ("--pue", "1.2")


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, ["when", *arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def flat(tmp_path):
    """The same every hour but for one: Sunday 5 July 2026, 12:00 UTC."""
    path, begin = tmp_path / "grid.csv", datetime.fromisoformat("2026-07-01T00:00Z")
    rows = [f"{begin + timedelta(hours=h):%Y-%m-%dT%H:%M:%SZ},{100 if h == 4 * 24 + 12 else 400}\n" for h in range(300)]
    path.write_text("Time (UTC),g_per_kwh\n" + "".join(rows))
    return path


def test_a_job_that_would_end_on_a_friday_evening_may_end_on_monday_morning(flat):
    result = run("--hours", "1", "--kw", "1", "--zone", "GB", "--grid", str(flat), *PLACE, "--earliest", "2026-07-03T17:30Z")
    by_rule = run(
        *("--hours", "1", "--kw", "1", "--zone", "GB", "--grid", str(flat), *PLACE, "--earliest", "2026-07-03T17:30Z"),
        *("--deadline", "next-workday", "--json"),
    )
    found = json.loads(by_rule.stdout)

    assert "not-worth-it" in result.stdout, "a day is too short"
    assert found["deadline"] == {"utc": "2026-07-06T08:00:00+00:00", "local": "2026-07-06T09:00:00+01:00", "rule": "next-workday"}
    assert found["options"][0]["start"]["utc"] == "2026-07-05T12:00:00+00:00"
    assert "2026-07-06T09:00+01:00" in by_rule.stderr
    assert "Europe/London" in by_rule.stderr


def test_the_clock_is_that_of_the_place_not_of_this_machine():
    job = ("--hours", "1", "--kw", "1", *PLACE, "--deadline", "semi-weekly", "--json", "--earliest", "2026-07-02T12:30Z")

    deadlines = {zone: json.loads(run("--zone", zone, *job).stdout)["deadline"] for zone in ("DE", "US-CAL-CISO")}

    assert deadlines["DE"]["local"] == "2026-07-06T09:00:00+02:00", "in Berlin Thursday's morning is over"
    assert deadlines["US-CAL-CISO"]["local"] == "2026-07-02T09:00:00-07:00", "in California it is to come"


def test_a_job_that_ends_within_the_hours_of_work_has_no_slack_and_that_is_said():
    result = run("--hours", "2", "--kw", "1", "--zone", "DE", *PLACE, "--earliest", "2026-07-01T10:00+02:00", "--deadline", "next-workday")

    assert "not-worth-it: now is the best that is allowed" in result.stdout
    assert "ends within the hours of work" in result.stderr


def test_a_job_like_a_run_has_the_clock_of_that_run_unless_a_zone_is_given(tmp_path):
    run_there = make_record({"GPU": 700.0}, 3, start="2026-06-01T09:00Z", zone="DE")
    record = save(replace(run_there, place=replace(run_there.place, time_zone="America/New_York")), tmp_path / "run.jsonl")
    job = ("--like", str(record), *PLACE, "--earliest", "2026-07-03T15:00+02:00", "--deadline", "next-workday", "--json")

    own, given = (json.loads(run(*job, *zone).stdout)["deadline"]["local"] for zone in ((), ("--zone", "DE")))

    assert own == "2026-07-03T12:00:00-04:00", "it ends at noon there, within the hours of work"
    assert given == "2026-07-06T09:00:00+02:00"


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (("--zone", "DE", "--deadline", "tomorrow"), "next-workday, semi-weekly", 2),
        (("--zone", "DE", "--deadline", "next-workday", "--slack", "3h"), "give one", 2),
        (("--deadline", "next-workday"), "give --zone", 1),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    refused = run("--hours", "1", "--kw", "1", *arguments, code=code)

    assert words in " ".join(f"{refused.output} {refused.exception}".split())


def test_the_command_line_knows_every_rule():
    assert _RULES == RULES


def test_a_search_in_longer_steps_than_asked_for_is_said_aloud():
    job = ("--hours", "400", "--kw", "1", "--zone", "DE", *PLACE, "--earliest", "2026-01-01T00:00Z", "--slack", "1400h")
    few, many, none = (
        {note["slug"]: note["text"] for note in json.loads(run(*job, *more, "--json").stdout)["notes"]}
        for more in (("--pauses", "1", "--pause-cost", "15min"), ("--pauses", "30"), ())
    )

    assert "pauses-coarse" not in few and "pauses-coarse" not in none
    assert "at most 30 pauses within 1.8e+03 h were placed in steps of 40 min, not 5" in many["pauses-coarse"]


def test_the_note_names_the_step_that_is_taken():
    """The same function decides both; here the schedule of a small case lies on the longer step where that one is asked for."""
    seconds, span_s = 400 * 3600.0, 1800 * 3600.0
    assert affordable(slot_of(seconds, 300), seconds, span_s, 30) == 2400
    assert affordable(slot_of(seconds, 300), seconds, span_s, None) == 600
    assert affordable(900, 3600.0, 24 * 3600.0, 1000) == 900, "more pauses than slots of work are as good as any number"


def test_a_schedule_on_a_longer_step_begins_and_ends_on_it():
    saw = 100.0 + 50.0 * (np.arange(48) % 5)
    rates = Rates.of(3600.0 * np.arange(49), saw, np.ones(48))
    found = best_schedule(1000.0, 5400.0, rates, earliest_s=0.0, latest_end_s=48 * 3600.0, most_pauses=2, pause_s=0.0, slot_s=3600)

    assert all(moment % 3600 == 0 for piece in found.runs for moment in piece)
    assert sum(to_s - from_s for from_s, to_s in found.runs) == 7200, "work is rounded up to whole steps"
