"""Looking at zones: `carbonreport grid`."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from carbonreport.cli.grid import command
from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.grid.cache import GridCache, Key
from carbonreport.grid.look import find, look, trust_in_words
from carbonreport.grid.readings import MEASURED, Readings
from carbonreport.model.series import Family


def output(*arguments: str, **environ: str) -> str:
    done = CliRunner().invoke(command, list(arguments), env=environ, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_zones_are_found_by_code_name_and_the_names_of_others():
    assert "US-CAL-CISO" in output("zones", "us-cal") and "US-CAL-BANC" in output("zones", "northern california")
    assert [row["code"] for row in json.loads(output("zones", "DE_LU", "--json"))] == ["DE"]
    assert [row["code"] for row in json.loads(output("zones", "california", "--json"))] == ["US-CAL-CISO", "US-CAL-BANC"]
    assert [row.code for row in find("10YFR-RTE------C")] == ["FR"]
    assert len(find()) > 340


def test_an_unknown_zone_names_the_nearest():
    with pytest.raises(CarbonreportError, match="nearest: .*DE"):
        find("Germny")


def test_show_prints_the_day_by_month_its_swing_its_trust_and_the_licence():
    text = output("show", "DE")
    assert "Jan" in text and "23:00" in text
    assert "swing" in text and "90 %" in text
    assert text.rstrip().splitlines()[-1].startswith("Data: Electricity Maps (ODbL-1.0)")
    july = output("show", "DE", "--month", "7")
    assert "July" in july and "January" not in july


def test_the_curve_is_the_shape_at_the_newest_level():
    shown = look("DE", 2026)
    assert shown.curves is not None and shown.profile.shape is not None
    assert np.allclose(shown.curves, shown.profile.shape * shown.profile.levels[2025])
    day = shown.day(7)
    assert day is not None and day.best_hour in (12, 13, 14)
    assert json.loads(output("show", "DE", "--month", "7", "--json"))["day"]["best_hour"] == day.best_hour


def test_a_longer_run_is_trusted_more_and_a_windy_zone_less_than_a_flat_one():
    factors = [factor for _, factor in look("DE", 2026).factors]
    assert factors == sorted(factors, reverse=True)
    assert dict(look("DE", 2026).factors)[24] > dict(look("ZA", 2026).factors)[24]
    assert dict(look("DE", 2030).factors)[24] > dict(look("DE", 2026).factors)[24]  # the level gets old


@pytest.mark.parametrize(
    ("zone", "words"),
    [("KR", "hardly change"), ("AF", "no hourly data"), ("JP-TK", "estimated every hour"), ("US-HI-OA", "successor is US-HI")],
)
def test_a_zone_that_cannot_be_trusted_says_why(zone, words):
    assert words in " ".join(trust_in_words(look(zone, 2026)))


def test_direct_hours_are_refused_where_they_go_their_own_way():
    assert "283 gCO₂e/kWh\n" in output("show", "DE")
    assert "go their own way" in output("show", "NO")


def test_the_hours_ahead_are_listed_with_their_quality_and_error():
    hours = json.loads(output("next", "DE", "--hours", "30", "--json"))["hours"]
    assert 30 <= len(hours) <= 31
    assert {hour["quality"] for hour in hours} == {"typical"} and all(hour["factor_90"] > 1 for hour in hours)
    assert "typical" in output("next", "DE", "--hours", "2")
    for source, message in (("electricitymaps", "set ELECTRICITYMAPS_API_KEY"), ("csv", "forecasts nothing"), ("uk", "two families")):
        with pytest.raises(CarbonreportError, match=message):
            output("next", "GB", "--grid", source, ELECTRICITYMAPS_API_KEY="", CARBONREPORT_OFFLINE="1")


def test_compare_orders_zones_and_refuses_to_compare_kinds():
    text = output("compare", "DE", "FR", "SE")
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["SE", "FR", "DE"]
    assert "not to be compared" not in text
    assert "not to be compared with each other" in output("compare", "DE", "WORLD")


def test_compare_says_why_hours_are_missing_and_whose_data_are_which():
    lines = output("compare", "DE", "FR", "SE", "ES").splitlines()
    assert "No swing and no hours of SE: it has no hourly data; only the yearly mean is used." in lines
    assert [line.partition(":")[0] for line in lines if line.startswith("Data")] == ["Data of DE", "Data of FR", "Data of SE", "Data of ES"]
    assert "Average, life-cycle, consumption-based, gCO₂e: what a run is charged." in output("compare", "DE", "FR")


def test_show_writes_units_signs_and_ranges_like_a_statement():
    text = output("show", "DE")
    assert "gCO₂e/kWh in 2025 (average, life-cycle, consumption-based)" in text
    assert "from workdays by −" in text and "by 1–20 %" in text


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_the_day_curves_are_drawn(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"de{suffix}"
    output("show", "DE", "--plot", str(path))
    assert path.stat().st_size > 3000


def test_what_cannot_be_drawn_is_named_and_nothing_is_written(tmp_path):
    for zone, name, message in (("DE", "x.docx", "suffix must be"), ("KR", "x.svg", "no hourly data")):
        with pytest.raises(OutputError, match=message):
            output("show", zone, "--plot", str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_the_cache_is_listed_and_emptied(tmp_path: Path):
    starts = np.arange(3) * 3600.0
    held = Readings("DE", "x", Family(), "x", starts, starts + 3600, np.ones(3), np.full(3, MEASURED, dtype=np.int8))
    GridCache(tmp_path).write(Key("someone", "DE", Family()), held, (0, 10800), 1e9)
    environ = {"CARBONREPORT_CACHE": str(tmp_path)}
    assert "1970-01" in output("cache", **environ)
    assert json.loads(output("cache", "--json", **environ))["entries"][0]["zone"] == "DE"
    assert "removed 1 files" in output("cache", "--clear", **environ)
    assert "0.0 of at most" in output("cache", **environ)
