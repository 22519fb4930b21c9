"""Units: the same energy and time whichever way they are converted."""

import pytest
from pytest import approx

from carbonreport import units


def test_a_kilowatt_hour_is_one_in_every_unit():
    assert units.kwh(3.6e6) == units.kwh_from_millijoules(3_600_000_000) == 1
    assert units.mwh(3.6e9) == 1
    assert units.MJ_PER_KWH == units.MJ_PER_J * units.JOULES_PER_KWH


@pytest.mark.parametrize("hours", [0, 1, 2.5, 8760])
def test_hours_are_the_same_from_seconds_and_from_microseconds(hours):
    assert units.hours(hours * units.SECONDS_PER_HOUR) == hours
    assert units.hours_from_microseconds(hours * units.HOUR_US) == hours
    assert units.days(hours * units.SECONDS_PER_HOUR) == approx(hours / 24)


def test_watts_times_microseconds_are_millijoules():
    assert 500 * units.HOUR_US / units.WATT_US_PER_MJ == units.MJ_PER_KWH / 2


def test_grams_become_kilograms_and_back():
    assert units.kilograms(units.grams_from_kilograms(2.5)) == 2.5
