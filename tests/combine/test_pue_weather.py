"""A PUE by the weather: the curve goes through the two numbers that a site knows, and what is not known is the annual value."""

import math
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from carbonreport.combine.pue_fit import by_hours, fit, refuse_implausible
from carbonreport.errors import BadPue
from carbonreport.model.pue_model import PueModel, is_modelled
from carbonreport.model.weather import Weather

HOUR = 3600.0
BERLIN = (52.5, 13.4)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def year(mean: float = 10.0, swing: float = 10.0, *, bulb="dry-bulb", hours: int = 8760, start: str = "2025-01-01") -> Weather:
    """Warmest in July, and by 5 degrees in the afternoon."""
    starts = [at(start) + HOUR * i for i in range(hours)]
    celsius = [
        mean - swing * math.cos(2 * math.pi * (i / 24 - 15) / 365) - 5 * math.cos(2 * math.pi * (i % 24 - 2) / 24) for i in range(hours)
    ]
    return Weather(bulb, tuple(starts), tuple(s + HOUR for s in starts), tuple(celsius), "made up")


@settings(deadline=None, max_examples=60)
@given(
    bulb=st.sampled_from(["dry-bulb", "wet-bulb"]),
    cold=st.floats(1.0, 1.5),
    rise=st.floats(0.01, 0.8),
    low=st.floats(-15, 12),
    apart=st.floats(10, 30),
)
def test_the_curve_goes_through_both_temperatures_never_falls_and_stays_above_1(bulb, cold, rise, low, apart):
    model = PueModel(bulb, cold, cold + rise, low, max(low + apart, 18.0), spot=BERLIN)

    found = fit(model)

    assert found.pue(low) == approx(cold)
    assert found.pue(model.warm_celsius) == approx(cold + rise)
    line = [found.pue(t) for t in range(-40, 50)]
    assert all(b >= a - 1e-12 for a, b in pairwise(line))
    assert min(line) >= 1.0


def test_the_published_curve_is_found_again_from_two_of_its_points():
    curve = lambda t: 7.1705e-5 * t**2 + 0.0041 * t + 1.0743  # noqa: E731
    found = fit(PueModel("dry-bulb", curve(-3.9), curve(35.0), -3.9, 35.0, spot=BERLIN))

    assert found.pue(-3.9) == approx(1.059, abs=5e-4)
    assert found.pue(35) == approx(1.306, abs=5e-4)
    assert found.pue(12) == approx(curve(12))
    assert found.pue(60) == found.pue(45)  # outdoor air is held to -20..45 °C


def test_a_wet_bulb_model_is_level_up_to_its_knee_and_straight_above():
    found = fit(PueModel("wet-bulb", 1.04, 1.25, 10.0, 24.0, spot=BERLIN))

    assert found.pue(-5) == found.pue(16) == approx(1.04)
    assert found.pue(20) - found.pue(18) == approx(found.pue(22) - found.pue(20)) == approx(2 * 0.21 / 8)


@pytest.mark.parametrize("is_south", [False, True])
@pytest.mark.parametrize("bulb", ["dry-bulb", "wet-bulb"])
def test_numbers_of_summer_and_winter_are_the_means_over_the_halves_of_the_year(bulb, is_south):
    weather = year(14, -10 if is_south else 10, bulb=bulb)
    model = PueModel(bulb, 1.12, 1.30, is_south=is_south, spot=BERLIN)

    found = fit(model, weather)

    warm = {10, 11, 12, 1, 2, 3} if is_south else {4, 5, 6, 7, 8, 9}
    halves = {True: [], False: []}
    for start_s, celsius in zip(weather.starts_s, weather.celsius, strict=True):
        halves[datetime.fromtimestamp(start_s, UTC).month in warm].append(found.pue(celsius))
    assert sum(halves[True]) / len(halves[True]) == approx(1.30, abs=2e-3)
    assert sum(halves[False]) / len(halves[False]) == approx(1.12, abs=2e-3)
    assert found.basis == "weather of 2025"


def test_at_little_load_the_fixed_part_of_the_overhead_weighs_more():
    full, half = (fit(PueModel("dry-bulb", 1.1, 1.3, 5, 30, load=load, fixed_share=0.4, spot=BERLIN)) for load in (1.0, 0.5))

    assert half.pue(30) - 1 == approx((full.pue(30) - 1) * (0.4 / 0.5 + 0.6))
    assert half.model.profile().value - 1 == approx((full.model.profile().value - 1) * 1.4)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"cold": 1.3, "warm": 1.1}, "the warm one above the cold one"),
        ({"cold": 1.1, "warm": 1.1}, "the warm one above the cold one"),
        ({"cold": 0.9, "warm": 1.1}, "from 1 on"),
        ({"cold": math.nan, "warm": 1.1}, "from 1 on"),
        ({"cold_celsius": 10, "warm_celsius": 12}, "5 °C apart"),
        ({"bulb": "wet-bulb", "cold_celsius": 2, "warm_celsius": 15}, "not above the knee of 16 °C"),
        ({"bulb": "damp-bulb"}, "none of dry-bulb, wet-bulb"),
        ({"annual": 1.5}, "does not lie between"),
        ({"load": 0.0, "fixed_share": 0.5}, "load 0"),
        ({"fixed_share": 1.5}, "a share from 0 to 1"),
        ({"spot": None}, "needs the weather"),
        ({"spot": (95.0, 0.0)}, "no degrees north and east"),
        ({"factors": (1.1, 1.2)}, "do not enclose"),
    ],
)
def test_a_model_that_cannot_be_is_refused(given, words):
    with pytest.raises(BadPue, match=words):
        PueModel(**{"bulb": "dry-bulb", "cold": 1.1, "warm": 1.3, "spot": BERLIN, **given})


@pytest.mark.parametrize(
    ("bulb", "weather", "words"),
    [
        ("dry-bulb", year(hours=24 * 90), "need a year of weather, not 90 days"),
        ("dry-bulb", None, "need a year of weather, not 0 days"),
        ("dry-bulb", year(26, 0.0), "differs too little"),
        ("wet-bulb", year(-5, 8, bulb="wet-bulb"), "give knee_celsius"),
    ],
)
def test_weather_that_cannot_bear_out_the_two_numbers_is_refused(bulb, weather, words):
    with pytest.raises(BadPue, match=words):
        fit(PueModel(bulb, 1.1, 1.3, spot=BERLIN), weather)


def test_a_curve_that_no_facility_has_is_refused():
    weather = year(16, 14)
    with pytest.raises(BadPue, match="check its two numbers"):
        refuse_implausible(fit(PueModel("dry-bulb", 1.5, 6.0, 10, 16, spot=BERLIN)), weather)


def test_hours_without_weather_have_the_annual_value_and_its_wide_range():
    model = PueModel("dry-bulb", 1.1, 1.3, 5, 30, spot=BERLIN)
    weather = Weather("dry-bulb", (0.0, HOUR), (HOUR, 2 * HOUR), (30.0, 5.0), "made up")
    annual = model.profile()

    covered, none_missing = by_hours(annual, fit(model).hours(weather), 600.0, 2 * HOUR)
    partly, missing_s = by_hours(annual, fit(model).hours(weather), 600.0, 4 * HOUR)
    unknown, all_s = by_hours(annual, fit(model).hours(weather.within(9e9, 9.1e9)), 0.0, HOUR)

    assert (none_missing, missing_s, all_s) == (0, 2 * HOUR, HOUR)
    assert covered.values == approx((1.3, 1.1))
    assert partly.values == approx((1.3, 1.1, 1.2))
    assert partly.edges_s == (600.0, HOUR, 2 * HOUR, 4 * HOUR)
    assert covered.value == approx((3000 * 1.3 + HOUR * 1.1) / (2 * HOUR - 600))
    assert (covered.low / covered.value, covered.high / covered.value) == (approx(0.96), approx(1.04))
    assert partly.high / partly.value > covered.high / covered.value
    assert (unknown.low, unknown.value, unknown.high) == approx((annual.low, annual.value, annual.high))
    assert "weather of made up" in covered.source and "weather of" not in unknown.source


def test_the_annual_value_of_a_model_is_an_estimate_between_its_two_numbers():
    annual = PueModel("wet-bulb", 1.05, 1.25, 10, 24, annual=1.1, spot=BERLIN).profile()

    assert (annual.value, annual.low, annual.high) == approx((1.1, 1.05, 1.25))
    assert annual.origin == "estimated" and is_modelled(annual)
    assert annual.source == "wet-bulb model fitted to 1.05 at 10\u00a0°C and 1.25 at 24\u00a0°C, knee at 16\u00a0°C"
