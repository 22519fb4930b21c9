"""What the builder makes of years of hours: days of the newest year, months of all, and weekends as far as the weeks show them."""

import sys
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import ModuleType
from zoneinfo import ZoneInfo

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
RATIO = 0.7 + np.arange(24) / 60
DAY_CURVE = 1 + 0.3 * np.sin(np.arange(24) * np.pi / 12)


@pytest.fixture(scope="module")
def shapes() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module("grid_shapes")
    finally:
        sys.path.pop(0)


def year_of(
    year: int, ratio: np.ndarray, *, time_zone: str = "Europe/Berlin", noise: float = 0.0, seed: int = 0, curve: np.ndarray = DAY_CURVE
):
    """Hours of a year: a day curve at 400 g/kWh, weekends by a ratio, and days that are off as a whole."""
    random, zone = np.random.default_rng(seed), ZoneInfo(time_zone)
    begin = datetime(year, 1, 1, tzinfo=UTC)
    at = [(begin + timedelta(hours=hour)).astimezone(zone) for hour in range(8760)]
    off = np.repeat(np.exp(random.normal(0, noise, 365)), 24)
    return 400 * off * np.array([curve[t.hour] * (ratio[t.hour] if t.weekday() >= 5 else 1.0) for t in at])


@pytest.mark.parametrize("time_zone", ["Europe/Berlin", "America/New_York", "Australia/Sydney", "UTC"])
def test_weekends_are_found_again_across_clock_changes(shapes, time_zone):
    years = {year: year_of(year, RATIO, time_zone=time_zone) for year in (2022, 2023)}
    assert shapes.weekend_ratio(time_zone, years) == pytest.approx(RATIO)


def test_half_of_each_local_hour_of_india_is_told_by_either_utc_hour(shapes):
    ratio = shapes.weekend_ratio("Asia/Kolkata", {2022: year_of(2022, np.full(24, 0.8), time_zone="Asia/Kolkata", curve=np.ones(24))})
    assert ratio[1:] == pytest.approx(0.8)
    assert 0.8 < ratio[0] < 1  # half of Saturday's first hour is told by a UTC hour that began on Friday


def test_noisy_weekends_are_found_within_their_noise_and_more_years_come_nearer(shapes):
    def miss(years: int, seed: int) -> float:
        hours = {2015 + i: year_of(2015 + i, RATIO, noise=0.3, seed=100 * seed + i) for i in range(years)}
        return float(np.abs(np.log(shapes.weekend_ratio("Europe/Berlin", hours) / RATIO)).mean())

    one, four = (np.mean([miss(count, seed) for seed in range(12)]) for count in (1, 4))
    assert four < one < 0.06


def test_weekends_that_are_only_noise_are_drawn_towards_workdays(shapes):
    drawn, raw = [], []
    for seed in range(30):
        hours = year_of(2022, np.ones(24), noise=0.3, seed=seed)
        drawn.append(np.abs(np.log(shapes.weekend_ratio("Europe/Berlin", {2022: hours}))).mean())
        raw.append(np.abs(shapes.week_logs("Europe/Berlin", shapes.begin_s(2022), hours).mean(axis=0)).mean())
    assert np.mean(drawn) < 0.6 * np.mean(raw)
    assert min(drawn) == 0


def test_a_year_without_any_change_has_weekends_like_workdays(shapes):
    assert list(shapes.weekend_ratio("UTC", {2022: np.full(8760, 100.0)})) == [1.0] * 24


def test_a_part_of_a_week_counts_for_nothing(shapes):
    hours = year_of(2022, RATIO)
    logs = shapes.week_logs("Europe/Berlin", shapes.begin_s(2022), hours)
    assert logs.shape == (51, 24)  # 2022 began on a Saturday; from Monday, 3 January, to Sunday, 25 December
    wild = hours.copy()
    wild[:46] *= 9
    wild[-140:] *= 9
    assert np.array_equal(shapes.week_logs("Europe/Berlin", shapes.begin_s(2022), wild), logs)


def test_days_are_those_of_the_newest_year_months_and_weekends_those_of_all(shapes):
    january = np.append(np.full(31 * 24, 1.5), np.ones(8760 - 31 * 24))
    old, new = year_of(2021, np.full(24, 0.6)) * january, year_of(2022, np.full(24, 0.8), curve=DAY_CURVE[::-1])
    own = [shapes.shape("UTC", shapes.begin_s(year), hours) for year, hours in ((2021, old), (2022, new))]
    made = shapes.typical_shape("UTC", {2022: new, 2021: old})

    assert made / made.mean(axis=1, keepdims=True) == pytest.approx(own[1] / own[1].mean(axis=1, keepdims=True))
    assert made.mean(axis=1) == pytest.approx((own[0].mean(axis=1) + own[1].mean(axis=1)) / 2)
    assert made[0].mean() > 1.2 * made[1].mean()
    assert np.all(np.abs(shapes.weekend_ratio("Europe/Berlin", {2021: old, 2022: new}) - 0.69) < 0.01)


def test_one_year_has_its_own_shape(shapes):
    hours = year_of(2022, RATIO)
    assert shapes.typical_shape("UTC", {2022: hours}) == pytest.approx(shapes.shape("UTC", shapes.begin_s(2022), hours))


def test_hours_are_cut_into_the_calendar_years_that_are_whole(shapes):
    start_s = shapes.begin_s(2019) + 24 * 3600
    found = shapes.whole_years(start_s, np.arange(2 * 8784 + 8760, dtype=np.float64))
    assert {year: hours.size for year, hours in found.items()} == {2020: 8784, 2021: 8760}
    assert found[2020][0] == 364 * 24 and found[2021][0] == 364 * 24 + 8784


def test_a_year_like_the_one_before_is_missed_by_nothing_and_a_turned_day_by_its_hours_alone(shapes):
    calm, turned = year_of(2021, np.ones(24), time_zone="UTC"), year_of(2022, np.ones(24), time_zone="UTC", curve=DAY_CURVE[::-1])
    assert shapes.misses("UTC", {2020: turned, 2021: calm, 2022: calm}) == pytest.approx((0, 0))
    month, hour = shapes.misses("UTC", {2021: calm, 2022: turned})
    assert month == pytest.approx(0)
    assert hour == pytest.approx(np.abs(DAY_CURVE / DAY_CURVE[::-1] - 1).mean())


def test_a_typical_year_laid_on_a_year_has_its_mean_and_its_weekends(shapes):
    years = {2022: year_of(2022, RATIO)}
    relative = shapes.typical_relative("Europe/Berlin", 2023, years)
    assert relative.size == 8760 and relative.mean() == pytest.approx(1)
    truth = year_of(2023, RATIO)
    assert np.abs(np.log(relative / (truth / truth.mean()))).max() < 0.06  # a month of four or five weekends
