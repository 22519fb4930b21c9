"""When to run again: every start hour priced with the run's own power; promised only where it holds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.model.pue import PueProfile, day_and_night, pue_profile, two_seasons
from carbonreport.model.series import Family, SeasonalProfile
from carbonreport.recommend.when import month, start_hour
from carbonreport.testing import make_record

NO_FACILITY = PueProfile(1.0, 1.0, 1.0, "reported", "none")


def zone(night_share: float, *, terms: tuple[tuple[float, float], ...] = ((0.05, 6.0),), marks: tuple[str, ...] = ()) -> SeasonalProfile:
    """A zone whose nights (0:00 to 8:00) have a share of the days' intensity."""
    shape = np.ones((12, 24))
    shape[:, :8] = night_share
    return SeasonalProfile("XX", "X", "UTC", {2026: 400.0}, shape, terms, 0.1, Family(), "a test", marks=marks)


def test_a_short_run_is_advised_to_wait_for_a_clearly_cleaner_night():
    run = make_record({"GPU": 500.0}, 3, start="2026-01-15T12:00Z")

    advice = start_hour(run, zone(0.5), NO_FACILITY, "UTC")

    assert advice is not None
    assert (advice.action, advice.own) == ("shift", 12)
    assert advice.best in range(6)
    assert advice.saving == approx(1 - 0.5**0.8)
    assert advice.low < advice.saving < advice.high
    assert advice.chance > 0.95


@pytest.mark.parametrize(
    ("run", "profile", "words"),
    [
        (make_record({"GPU": 500.0}, 3), zone(0.97), "under 5 %"),
        (make_record({"GPU": 500.0}, 13), zone(0.2), "runs of over 12 h"),
        (make_record({"GPU": 500.0}, 3), zone(0.9, terms=((0.5, 6.0),)), "chance"),
        (make_record({"GPU": 500.0}, 3), zone(0.5, marks=("estimated",)), "was not measured"),
    ],
)
def test_what_does_not_hold_is_not_promised_and_the_reason_is_said(run, profile, words):
    advice = start_hour(run, profile, NO_FACILITY, "UTC")

    assert advice is not None
    assert advice.action == "none"
    assert words in advice.because


def test_the_pue_of_the_night_counts_as_well_as_the_grid():
    run = make_record({"GPU": 500.0}, 3, start="2026-01-15T12:00Z")

    without = start_hour(run, zone(0.9), NO_FACILITY, "UTC")
    with_nights = start_hour(run, zone(0.9), pue_profile((), day_and_night(1.5, 1.3), source="site"), "UTC")

    assert without is not None
    assert with_nights is not None
    assert with_nights.saving == approx(1 - (0.9 * 1.3 / 1.5) ** 0.8)
    assert with_nights.saving > without.saving


def test_every_start_is_priced_exactly_with_partial_hours():
    run = make_record({"GPU": 500.0}, 1.5, start="2026-01-15T06:45Z")

    advice = start_hour(run, zone(0.5), NO_FACILITY, "UTC")

    assert advice is not None
    now, best = 0.5 * 1.25 + 1.0 * 0.25, 0.5 * 1.5
    assert advice.saving == approx(1 - (best / now) ** 0.8)


def test_there_is_nothing_to_compare_without_length_energy_or_day_curve():
    assert start_hour(make_record({"GPU": 1.0}, 0), zone(0.5), NO_FACILITY, "UTC") is None
    assert start_hour(make_record({"GPU": 0.0}, 1), zone(0.5), NO_FACILITY, "UTC") is None
    assert start_hour(make_record({"GPU": 1.0}, 1), replace(zone(0.5), shape=None), NO_FACILITY, "UTC") is None


def test_the_season_is_advised_by_the_facilitys_own_pue_alone():
    run = make_record({"GPU": 500.0}, 200, start="2026-07-15T12:00Z")

    advice = month(run, zone(1.0), pue_profile(two_seasons(1.60, 1.072), source="site"), "UTC")

    assert advice is not None
    assert (advice.action, advice.own) == ("season", 7)
    assert advice.saving == approx(0.33, abs=1e-3)
    assert month(run, zone(1.0), NO_FACILITY, "UTC") is None


def test_a_mild_pue_is_no_reason_to_wait_for_winter():
    advice = month(make_record({"GPU": 500.0}, 2), zone(1.0), pue_profile(two_seasons(1.12, 1.10), source="site"), "UTC")

    assert advice is not None
    assert advice.action == "none"


def test_real_zones_give_finite_advice_at_every_hour():
    grid = EmbeddedGrid()
    for code in ("DE", "US-CAL-CISO", "AU-NSW", "US-MIDA-PJM"):
        for hour in (0, 9, 19):
            run = make_record({"GPU": 500.0}, 4, start=f"2026-05-15T{hour:02}:30Z")
            advice = start_hour(run, grid.profile(code), NO_FACILITY, "UTC")
            assert advice is not None
            assert math.isfinite(advice.saving)
            assert 0 <= advice.chance <= 1
            assert advice.saving > -0.01
