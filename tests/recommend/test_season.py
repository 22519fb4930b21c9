"""Another month: the site's own PUE counts whole, the grid's months are shrunk and doubted."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.model.pue import PueProfile, pue_profile, two_seasons
from carbonreport.model.series import Family, SeasonalProfile
from carbonreport.recommend import season
from carbonreport.recommend.rates import Job

JULY = 1_782_900_000.0  # 2026-07-01 10:00 UTC
FLAT = PueProfile(1.2, 1.2, 1.2, "reported", "a test")
SUMMER_WINTER = pue_profile(two_seasons(1.60, 1.072), source="a test")


def zone(winter_share=1.0, terms=((0.05, 6.0),)):
    shape = np.ones((12, 24))
    shape[[0, 1, 2, 9, 10, 11]] = winter_share
    return SeasonalProfile("XX", "X", "UTC", {2026: 400.0, 2027: 400.0}, shape, terms, 0.1, Family(), "a test")


def best(profile, pue, hours=6.0, missed=0.02):
    return season.best(season.months(Job.steady(1000.0, hours * 3600), JULY, profile, pue, "UTC", missed))


def test_summer_to_winter_is_a_third_less_for_a_site_whose_pue_says_so():
    month = best(zone(), SUMMER_WINTER)
    saving = season.saving(month)

    assert month.number in (10, 11, 12, 1, 2, 3)
    assert saving.value == approx(0.33, abs=1e-3), "of the PUE nothing is taken off"
    assert saving.chance > 0.95


def test_a_cap_and_the_winter_together_are_recomputed():
    month = best(zone(), SUMMER_WINTER)

    assert 1 - season.saving(month, energy_log=math.log(0.863)).value == approx(0.578, abs=1e-3)


def test_the_grids_part_is_shrunk_and_doubted_by_what_its_months_missed():
    certain, doubted, unknown = (season.saving(best(zone(0.8), FLAT, missed=missed)) for missed in (0.01, 0.15, None))

    assert certain.value == approx(1 - 0.8**0.8)
    assert doubted.value == certain.value
    assert certain.chance > doubted.chance > unknown.chance
    assert unknown.high - unknown.low > doubted.high - doubted.low > certain.high - certain.low


def test_pue_and_grid_are_weighed_together():
    dirty_winter = best(zone(1.6), SUMMER_WINTER)

    assert dirty_winter.ratio >= 1 - 1e-9 or dirty_winter.number in (4, 5, 6, 8, 9)
    assert best(zone(0.9), SUMMER_WINTER).ratio == approx(0.9 * 1.072 / 1.60)


def test_a_job_is_priced_in_the_month_in_which_it_runs():
    """A job of 40 days from mid-March, half in the warm half of the year."""
    march = 1_773_532_800.0
    months = season.months(Job.steady(1000.0, 40 * 86400), march, zone(), SUMMER_WINTER, "UTC", 0.02)
    by_number = {month.number: month.pue_ratio for month in months}
    days_of_winter = 17
    now = (days_of_winter * 1.072 + (40 - days_of_winter) * 1.60) / 40

    assert by_number[11] == approx(1.072 / now, rel=1e-3)
    assert by_number[7] == approx(1.60 / now, rel=1e-3)


@pytest.mark.parametrize("shape", [None, np.ones((12, 24))])
def test_without_any_difference_nothing_is_saved(shape):
    month = best(replace(zone(), shape=shape), FLAT)

    assert month.ratio == approx(1.0)
    assert season.saving(month).value == approx(0.0, abs=1e-9)
