"""A typical year expands to exactly the local hours."""

from datetime import UTC, datetime, timedelta
from time import perf_counter
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carbonreport.combine.seasonal import expand
from carbonreport.errors import BadTime
from carbonreport.model.series import QUALITIES, Array, Family, IntensitySeries, SeasonalProfile

# Every cell has a value of its own, so that a wrong month or hour cannot hide.
SHAPE: Array = 0.5 + np.arange(288, dtype=np.float64).reshape(12, 24) / 288
LEVELS = {2021: 400.0, 2022: 380.0, 2024: 300.0}
# A ratio of its own for every hour, so that a workday taken for a weekend cannot hide.
WEEKENDS: Array = 0.6 + np.arange(24, dtype=np.float64) / 50

CHANGE_DAYS = {
    "Europe/Berlin": ("2024-03-30", "2024-10-26"),
    "Europe/London": ("2024-03-30", "2024-10-26"),
    "America/New_York": ("2024-03-09", "2024-11-02"),
    "Australia/Sydney": ("2024-04-06", "2024-10-05"),
    "Australia/Lord_Howe": ("2024-04-06", "2024-10-05"),
    "America/Sao_Paulo": ("2018-11-03", "2019-02-16"),
    "Asia/Kolkata": ("2023-12-31", "2024-02-28"),
    "Asia/Kathmandu": ("2023-12-31", "2024-02-28"),
    "UTC": ("2023-12-31", "2024-02-28"),
}


def profile(
    time_zone: str = "Europe/Berlin",
    *,
    shape: Array | None = SHAPE,
    marks: tuple[str, ...] = (),
    successor: str = "",
    weekends: Array | None = None,
) -> SeasonalProfile:
    terms = ((0.1, 6.0),)
    return SeasonalProfile("XX", "Somewhere", time_zone, LEVELS, shape, terms, 0.2, Family(), "test", "", marks, successor, weekends)


def posix(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def intensity_at(series: IntensitySeries, time_s: float) -> float:
    return float(series.grams_per_kwh[np.searchsorted(series.edges_s, time_s, side="right") - 1])


def expected_at(time_zone: str, time_s: float, weekends: Array | None = None) -> float:
    local = datetime.fromtimestamp(time_s, UTC).astimezone(ZoneInfo(time_zone))
    year = min(LEVELS, key=lambda known: (abs(known - local.year), -known))
    mean_day = float(LEVELS[year] * SHAPE[local.month - 1, local.hour])
    if weekends is None:
        return mean_day
    # Five workdays of w and two days of r w are seven of the mean day.
    workday = mean_day * 7 / (5 + 2 * weekends[local.hour])
    return float(workday * weekends[local.hour] if local.strftime("%a") in ("Sat", "Sun") else workday)


def grams_of(series: IntensitySeries) -> float:
    """Mean over the period."""
    return float(np.average(series.grams_per_kwh, weights=np.diff(series.edges_s)))


@pytest.mark.parametrize("time_zone", CHANGE_DAYS)
def test_every_quarter_hour_of_a_period_with_a_clock_change_has_its_local_month_and_hour(time_zone):
    for day in CHANGE_DAYS[time_zone]:
        start_s, end_s = posix(day), posix(day) + 3 * 86400
        series = expand(profile(time_zone), start_s, end_s)
        for quarter_s in np.arange(start_s, end_s, 900):
            for moment_s in (quarter_s, quarter_s + 899):
                assert intensity_at(series, moment_s) == pytest.approx(expected_at(time_zone, moment_s)), f"{time_zone} {moment_s}"


@pytest.mark.parametrize("time_zone", CHANGE_DAYS)
def test_every_quarter_hour_of_a_week_with_a_clock_change_knows_its_local_workday_or_weekend(time_zone):
    for day in CHANGE_DAYS[time_zone]:
        start_s, end_s = posix(day) - 3 * 86400, posix(day) + 4 * 86400
        series = expand(profile(time_zone, weekends=WEEKENDS), start_s, end_s)
        for quarter_s in np.arange(start_s, end_s, 900):
            for moment_s in (quarter_s, quarter_s + 899):
                expected = expected_at(time_zone, moment_s, WEEKENDS)
                assert intensity_at(series, moment_s) == pytest.approx(expected), f"{time_zone} {moment_s}"


def test_a_saturday_differs_from_a_monday_by_the_zone_s_ratio_and_from_a_sunday_not_at_all():
    zone = profile("UTC", weekends=WEEKENDS)
    saturday, sunday, monday = (
        expand(zone, posix(day), posix(day) + 86400).grams_per_kwh for day in ("2024-06-08", "2024-06-09", "2024-06-10")
    )
    assert saturday / monday == pytest.approx(WEEKENDS)
    assert list(saturday) == list(sunday)


def test_the_zone_s_own_clock_decides_when_the_weekend_begins():
    friday_s = posix("2024-06-07T14:00")  # Saturday has begun in Auckland, where it is two o'clock
    for name, hour, is_weekend in (("Pacific/Auckland", 2, True), ("UTC", 14, False)):
        series = expand(profile(name, weekends=WEEKENDS), friday_s, friday_s + 3600)
        workday = 300 * SHAPE[5, hour] * 7 / (5 + 2 * WEEKENDS[hour])
        assert series.grams_per_kwh[0] == pytest.approx(workday * (WEEKENDS[hour] if is_weekend else 1))


@settings(max_examples=40, deadline=None)
@given(
    weekends=st.lists(st.floats(0.01, 50), min_size=24, max_size=24),
    day=st.integers(0, 23),
    time_zone=st.sampled_from(["UTC", "Asia/Kathmandu"]),
)
def test_any_seven_days_of_a_month_have_the_mean_of_that_month_whatever_weekends_do(weekends, day, time_zone):
    start_s = datetime(2024, 7, 1, tzinfo=ZoneInfo(time_zone)).timestamp() + day * 86400
    apart, alike = (
        grams_of(expand(profile(time_zone, weekends=ratio), start_s, start_s + 7 * 86400)) for ratio in (np.array(weekends), None)
    )
    assert apart == pytest.approx(alike)


def test_twenty_eight_years_in_which_every_date_falls_on_every_day_have_the_mean_of_the_shape():
    # 2030 to 2057 are all charged at the level of 2024.
    start_s, end_s = posix("2030-01-01"), posix("2058-01-01")
    apart, alike = (grams_of(expand(profile("UTC", weekends=ratio), start_s, end_s)) for ratio in (WEEKENDS, None))
    assert apart == pytest.approx(alike, rel=1e-12)


@pytest.mark.parametrize("year", range(2024, 2035))
def test_the_weekends_of_one_year_move_its_mean_by_under_half_a_per_cent_even_if_they_lack_a_third(year):
    start_s, end_s = posix(f"{year}-01-01"), posix(f"{year + 1}-01-01")
    apart, alike = (grams_of(expand(profile(weekends=ratio), start_s, end_s)) for ratio in (np.full(24, 2 / 3), None))
    assert apart == pytest.approx(alike, rel=0.005)


def test_a_zone_whose_weekends_are_not_known_and_one_whose_weekends_are_like_workdays_are_the_same():
    unknown, alike = (expand(profile(weekends=ratio), posix("2024-03-28"), posix("2024-04-04")) for ratio in (None, np.ones(24)))
    assert list(unknown.grams_per_kwh) == pytest.approx(list(alike.grams_per_kwh))
    assert "holidays" not in unknown.notes[0][1] and "holidays are not known" in alike.notes[0][1]


@pytest.mark.parametrize("weekends", [np.ones(23), np.zeros(24), np.full(24, np.nan), np.full(24, np.inf), np.full(24, -1.0)])
def test_weekends_that_are_not_24_positive_ratios_are_refused(weekends):
    with pytest.raises(ValueError, match="24 positive ratios"):
        profile(weekends=weekends)


def test_weekends_without_a_shape_are_refused():
    with pytest.raises(ValueError, match="no shape"):
        profile(shape=None, weekends=WEEKENDS)


@settings(max_examples=60, deadline=None)
@given(
    time_zone=st.sampled_from([*CHANGE_DAYS, "Africa/Casablanca", "America/St_Johns", "Pacific/Chatham", "Asia/Tehran"]),
    start_s=st.floats(0, 2.2e9),
    hours=st.floats(0.01, 400),
    share=st.floats(0, 1, exclude_max=True),
)
def test_any_moment_of_any_period_has_its_local_month_and_hour(time_zone, start_s, hours, share):
    end_s = start_s + 3600 * hours
    series = expand(profile(time_zone), start_s, end_s)
    moment_s = start_s + share * (end_s - start_s)

    assert (series.edges_s[0], series.edges_s[-1]) == (start_s, max(end_s, start_s + 1))
    assert np.diff(series.edges_s).max() <= 3600
    near_an_edge = np.abs(series.edges_s - moment_s).min() < 1e-3
    if not near_an_edge:
        assert intensity_at(series, moment_s) == pytest.approx(expected_at(time_zone, moment_s))


@pytest.mark.parametrize(("day", "hours"), [("2024-03-31", 23), ("2024-10-27", 25), ("2024-06-01", 24)])
def test_a_day_in_berlin_has_as_many_hours_as_its_clock_shows(day, hours):
    zone = ZoneInfo("Europe/Berlin")
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    start_s, end_s = midnight.timestamp(), (midnight + timedelta(days=1)).timestamp()
    assert expand(profile(), start_s, end_s).grams_per_kwh.size == hours


def test_the_half_hour_that_lord_howe_repeats_is_charged_twice():
    # 2024-04-07 02:00 at +11 becomes 01:30 at +10:30.
    change_s = posix("2024-04-06T15:00")
    series = expand(profile("Australia/Lord_Howe"), change_s - 1800, change_s + 1800)
    assert intensity_at(series, change_s - 1) == intensity_at(series, change_s + 1)


def test_a_whole_year_at_a_shape_of_mean_one_has_the_level_as_its_mean():
    days = np.array([31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    shape = SHAPE / np.average(SHAPE.mean(axis=1), weights=days)
    series = expand(profile("Asia/Kathmandu", shape=shape), posix("2024-01-01") - 20700, posix("2025-01-01") - 20700)
    assert np.average(series.grams_per_kwh, weights=np.diff(series.edges_s)) == pytest.approx(LEVELS[2024])


def test_a_period_cut_in_two_has_the_same_grams_as_the_whole():
    start_s, middle_s, end_s = posix("2024-03-30T05:17"), posix("2024-03-31T00:44"), posix("2024-04-02T12:01")
    whole, first, second = (expand(profile(), a, b) for a, b in ((start_s, end_s), (start_s, middle_s), (middle_s, end_s)))

    def grams(series: IntensitySeries) -> float:
        return float(np.sum(series.grams_per_kwh * np.diff(series.edges_s)))

    assert grams(first) + grams(second) == pytest.approx(grams(whole))


def test_a_year_in_the_table_has_no_error_of_its_level_and_a_distant_one_has_the_root_of_its_age():
    known = expand(profile(), posix("2024-05-01"), posix("2024-05-02"))
    later = expand(profile(), posix("2028-05-01"), posix("2028-05-02"))
    assert known.errors["typical"].level_sd == 0
    assert later.errors["typical"].level_sd == pytest.approx(0.2 * 2)
    assert later.errors["typical"].terms == ((0.1, 6.0),)


def test_the_level_is_that_of_the_local_year():
    series = expand(profile("America/New_York", shape=None), posix("2021-12-31"), posix("2022-01-02"))
    assert list(series.grams_per_kwh) == [400, 380]
    assert series.edges_s[1] == posix("2022-01-01T05:00")


def test_a_year_between_two_known_ones_takes_the_newer():
    assert expand(profile(shape=None), posix("2023-05-01"), posix("2023-05-02")).grams_per_kwh[0] == 300


def test_a_zone_without_a_shape_has_one_interval_and_says_so():
    series = expand(profile(shape=None), posix("2024-02-01"), posix("2024-11-01"))
    assert list(series.edges_s) == [posix("2024-02-01"), posix("2024-11-01")]
    assert QUALITIES[series.quality[0]] == "annual"
    assert set(series.errors) == {"annual"}
    assert [slug for slug, _ in series.notes] == ["annual-level"]


def test_marks_become_notes_with_zone_year_and_successor():
    series = expand(profile(shape=None, marks=("constant", "retired"), successor="YY"), posix("2024-02-01"), posix("2024-02-02"))
    assert [slug for slug, _ in series.notes] == ["grid-constant", "zone-retired"]
    assert "YY" in series.notes[1][1]
    assert all("XX" in text and "2024" in text for _, text in series.notes)
    assert [slug for slug, _ in expand(profile(marks=("estimated",)), 0, 60).notes] == ["typical-profile", "grid-estimated"]


def test_a_run_without_length_still_has_an_intensity():
    assert expand(profile(), 1.7e9, 1.7e9).grams_per_kwh.size == 1


def test_a_period_that_runs_backwards_is_refused():
    with pytest.raises(BadTime, match="ends before it starts"):
        expand(profile(), 10, 0)


def test_an_unknown_time_zone_is_refused_with_a_way_out():
    with pytest.raises(BadTime, match=r"'Mars/Olympus'.*pip install tzdata"):
        expand(profile("Mars/Olympus"), 0, 60)


def test_thirty_one_years_expand_in_about_a_second():
    begin = perf_counter()
    series = expand(profile(), posix("2000-01-01"), posix("2031-01-01"))
    assert perf_counter() - begin < 3
    assert series.grams_per_kwh.size == pytest.approx(31 * 8766, rel=0.001)
