"""A marginal signal beside the average one: told apart, never mixed, and a disagreement is said plainly."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.errors import CarbonreportError
from carbonreport.grid.sources import uk, watttime
from carbonreport.recommend.rates import Job
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.signals import Signals, marginal_signals
from carbonreport.workflows.ways import Way, piece
from carbonreport.workflows.when import Ask, plan

BEGIN = datetime(2026, 7, 1, tzinfo=UTC)
NOW_S = (BEGIN + timedelta(hours=10)).timestamp()
HOUR = 3600.0
ACCOUNT = {"WATTTIME_USER": "someone", "WATTTIME_PASSWORD": "s3cret"}


def hourly(folder, name, title, grams):
    path = folder / name
    rows = "".join(f"{BEGIN + timedelta(hours=h):%Y-%m-%dT%H:%M:%SZ},{g}\n" for h, g in enumerate(grams))
    path.write_text(f"Time (UTC),{title}\n{rows}")
    return path


def day_grams(*, clean_hours, count=96):
    return [100 if h % 24 in clean_hours else 400 for h in range(count)]


@pytest.fixture
def average(tmp_path):
    """Clean at noon and after."""
    return hourly(tmp_path, "average.csv", "g_per_kwh", day_grams(clean_hours=(12, 13, 14)))


def when(grid, *more):
    place = ("--zone", "GB", "--pue", "1.2", "--grid", str(grid), "--earliest", "2026-07-01T08:00Z")
    result = CliRunner().invoke(cli, ["when", "--hours", "3", "--kw", "2", *place, *more])
    assert result.exit_code == 0, result.output
    return result.stdout


def shift(grid, *more):
    return next(o for o in json.loads(when(grid, *more, "--json"))["options"] if o["action"] == "shift")


def test_where_nobody_gave_a_marginal_signal_nothing_is_said_of_one(average):
    assert shift(average)["marginal"] is None
    assert "marginal" not in when(average)


def test_both_signals_are_told_apart_and_agree(average, tmp_path):
    marginal = hourly(tmp_path, "m.csv", "marginal g_per_kwh", [500 if h % 24 in (12, 13, 14) else 700 for h in range(96)])
    without, with_it = shift(average), shift(average, "--marginal", str(marginal))
    second = with_it["marginal"]
    lines = [line for line in when(average, "--marginal", str(marginal)).splitlines() if line.startswith("marginal signal")]

    assert second["now_grams"] == approx(3 * 2 * 1.2 * 700)
    assert second["grams"] == approx(3 * 2 * 1.2 * 500)
    assert second["change_percent"] == approx(100 * (500 / 700 - 1))
    assert second["agrees"] is True
    assert "m.csv" in second["source"] and "marginal" in second["source"]
    for field in ("grams", "saving_percent", "chance", "saved", "start"):
        assert with_it[field] == without[field], "the average figures do not move"
    (line,) = lines
    assert "both signals agree" in line and "−29 %" in line and "no part of the figures above" in line


def test_a_disagreement_is_said_plainly_and_the_average_advice_kept_with_it(average, tmp_path):
    marginal = hourly(tmp_path, "m.csv", "marginal g_per_kwh", [800 if h % 24 in (12, 13, 14) else 500 for h in range(96)])
    text, found = when(average, "--marginal", str(marginal)), shift(average, "--marginal", str(marginal))

    assert found["advised"] and found["marginal"]["agrees"] is False
    assert found["marginal"]["change_percent"] == approx(60)
    assert "THE SIGNALS DISAGREE: lower than now by average intensity, not lower by the marginal one" in text
    assert "avoid" not in text.lower()


def test_an_option_that_the_marginal_signal_does_not_reach_is_not_compared_and_a_note_says_so(average, tmp_path):
    marginal = hourly(tmp_path, "m.csv", "marginal g_per_kwh", [500] * 13)
    found = json.loads(when(average, "--marginal", str(marginal), "--json"))

    assert found["options"][0]["marginal"] is None
    assert [note["slug"] for note in found["notes"]].count("marginal-unknown") == 1


def test_a_second_signal_cannot_become_the_first(average, tmp_path):
    marginal = hourly(tmp_path, "m.csv", "marginal g_per_kwh", [500] * 96)
    arguments = ["when", "--hours", "3", "--kw", "2", "--zone", "GB", "--pue", "1.2", "--earliest", "2026-07-01T08:00Z"]

    as_first = CliRunner().invoke(cli, [*arguments, "--grid", str(marginal)])
    as_second = CliRunner().invoke(cli, [*arguments, "--grid", str(average), "--marginal", str(average)])

    for refused, words in ((as_first, "give them as --marginal"), (as_second, "says nothing of marginal")):
        assert refused.exit_code == 1
        assert words in str(refused.exception), "one line of `carbonreport: error:` makes of it what main() prints"


# Out of the network


class Answers:
    """WattTime's answers with pounds per MWh of our own, by five minutes: dirty now, cleaner from three hours on."""

    def __init__(self):
        self.asked = []

    def __call__(self, request):
        self.asked.append(request.url)
        if request.url.endswith("/login"):
            return b'{"token": "t"}'
        query = dict(request.parameters)
        if request.url.endswith("/forecast"):
            begin, count = NOW_S, int(query["horizon_hours"]) * 12
        else:
            begin = datetime.fromisoformat(query["start"].replace("Z", "+00:00")).timestamp()
            count = round((datetime.fromisoformat(query["end"].replace("Z", "+00:00")).timestamp() - begin) / 300)
        meta = {"region": query["region"], "signal_type": "co2_moer", "units": "lbs_co2_per_mwh", "data_point_period_seconds": 300}
        at = [begin + 300 * i for i in range(count)]
        data = [
            {"point_time": f"{datetime.fromtimestamp(t, UTC):%Y-%m-%dT%H:%M:%SZ}", "value": 1000 if t < NOW_S + 3 * HOUR else 400}
            for t in at
        ]
        return json.dumps({"meta": meta, "data": data}).encode()


def opened(answers, module=watttime):
    def open_(name):
        made = module.create({}, fetch=answers, environ=ACCOUNT) if module is watttime else module.create({}, fetch=answers)
        return replace(made, cache=None, now_s=lambda: NOW_S)

    return open_


def test_watttime_is_asked_for_the_past_part_and_for_the_forecast_and_compared():
    answers = Answers()
    signals = marginal_signals(["watttime"], ["US-CAL-CISO"], NOW_S - 2 * HOUR, NOW_S + 24 * HOUR, opened=opened(answers), environ=ACCOUNT)
    job = Job.steady(1000.0, HOUR)
    now, later = (Way("none", None, job, piece(at_s, job), grams) for at_s, grams in ((NOW_S - HOUR, 300.0), (NOW_S + 5 * HOUR, 250.0)))
    second = signals.second(now, later, 0, (job.joules, job.joules))

    assert second.now_grams == approx(453.59237)
    assert second.ratio == approx(0.4)
    assert second.agrees
    assert "WattTime co2_moer" in second.source and "CO2 alone" in second.source
    assert {url.rpartition("/")[2] for url in answers.asked} == {"login", "historical", "forecast"}


def test_one_provider_stands_for_all_places_and_only_a_marginal_one():
    with pytest.raises(CarbonreportError, match="has average intensities"):
        marginal_signals(["uk"], ["GB"], NOW_S, NOW_S + HOUR, opened=opened(Answers(), uk))
    both = marginal_signals(["watttime"], ["US-CAL-CISO", "US-TEX-ERCO"], NOW_S, NOW_S + HOUR, opened=opened(Answers()))
    assert [readings.zone for readings in both.places] == ["US-CAL-CISO", "US-TEX-ERCO"]


def test_a_job_of_changing_power_is_weighed_by_it():
    job = Job(np.array([0.0, HOUR, 2 * HOUR]), np.array([0.0, 1000.0]))  # all its energy in the second hour
    signals = marginal_signals(["watttime"], ["US-CAL-CISO"], NOW_S, NOW_S + 9 * HOUR, opened=opened(Answers()))
    now, later = (Way("none", None, job, piece(at_s, job), 1.0) for at_s in (NOW_S, NOW_S + 2 * HOUR))

    second = signals.second(now, later, 0, (job.joules, job.joules))

    assert second.ratio == approx(0.4)
    assert Signals().second(now, later, 0, (1.0, 1.0)) is None


def test_without_an_account_it_is_one_line(average):
    ask = Ask(Job.steady(1000.0, HOUR), NOW_S, NOW_S + 9 * HOUR, marginal=("watttime",))
    with pytest.raises(CarbonreportError, match="WATTTIME_USER"):
        plan(ask, PlaceOptions("US-CAL-CISO", "1.2", None, None), environ={})
