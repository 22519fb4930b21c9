"""Deadlines of the working week: the next workday's morning, or the next of two mornings a week; against looking at every quarter hour."""

import os
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from carbonreport.grid.sources.csv import create
from carbonreport.recommend.deadlines import DEADLINES, next_workday, semi_weekly
from carbonreport.recommend.pauses import best_schedule
from carbonreport.recommend.rates import Job, Rates
from carbonreport.recommend.windows import starts

RAW = Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data")) / "grid"
HALF_HOUR_S, HOUR_S = 1800.0, 3600.0
ZONES = ("UTC", "Europe/Berlin", "America/Los_Angeles", "Asia/Kolkata", "Pacific/Auckland")


def at(text, zone="UTC"):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("end", "next_morning", "twice_a_week"),
    [
        ("2026-07-01T12:00", "2026-07-01T12:00", "2026-07-02T09:00"),  # a Wednesday at noon is work
        ("2026-07-01T17:00", "2026-07-01T17:00", "2026-07-02T09:00"),
        ("2026-07-01T17:30", "2026-07-02T09:00", "2026-07-02T09:00"),
        ("2026-07-02T03:00", "2026-07-02T09:00", "2026-07-02T09:00"),
        ("2026-07-02T09:00", "2026-07-02T09:00", "2026-07-02T09:00"),
        ("2026-07-02T09:30", "2026-07-02T09:30", "2026-07-06T09:00"),
        ("2026-07-03T18:00", "2026-07-06T09:00", "2026-07-06T09:00"),  # a Friday evening waits for Monday, not for Saturday
        ("2026-07-04T12:00", "2026-07-06T09:00", "2026-07-06T09:00"),
        ("2026-07-05T23:30", "2026-07-06T09:00", "2026-07-06T09:00"),
    ],
)
@pytest.mark.parametrize("zone", ZONES)
def test_a_result_may_come_with_the_next_morning_on_which_somebody_works(end, next_morning, twice_a_week, zone):
    assert next_workday(at(end, zone), zone) == at(next_morning, zone)
    assert semi_weekly(at(end, zone), zone) == at(twice_a_week, zone)


def slow_next_workday(local):
    """Quarter hour by quarter hour."""
    if local.weekday() < 5 and 9 * 60 <= local.hour * 60 + local.minute <= 17 * 60:
        return local
    while local.weekday() > 4 or (local.hour, local.minute) != (9, 0):
        local += timedelta(minutes=15)
    return local


def slow_semi_weekly(local):
    while local.weekday() not in (0, 3) or (local.hour, local.minute) != (9, 0):
        local += timedelta(minutes=15)
    return local


@given(st.integers(0, 4 * 24 * 365 * 3), st.sampled_from(ZONES))
def test_every_deadline_is_that_of_looking_at_every_quarter_hour(quarters, zone):
    end_s = at("2024-01-01T00:00") + 900 * quarters
    local = datetime.fromtimestamp(end_s, UTC).astimezone(ZoneInfo(zone))

    assert next_workday(end_s, zone) == slow_next_workday(local).timestamp()
    assert semi_weekly(end_s, zone) == slow_semi_weekly(local).timestamp()


@given(st.integers(0, 3 * 365 * 24 * 3600), st.sampled_from(sorted(DEADLINES)), st.sampled_from(ZONES))
def test_no_deadline_is_before_the_end_or_over_four_days_after_it(offset_s, rule, zone):
    end_s = at("2024-01-01T00:00") + offset_s
    found = DEADLINES[rule](end_s, zone)

    assert end_s <= found <= end_s + (4 * 24 + 1) * HOUR_S
    assert DEADLINES[rule](found, zone) == found


# What jobs save by them: a small grid of our own, every start and every choice of half hours looked at


def test_what_jobs_save_by_them_is_what_looking_at_everything_finds():
    begin_s = at("2026-07-01T00:00")  # a Wednesday
    random = np.random.default_rng(7)
    grams = 300 + 120 * np.sin(np.arange(7 * 48) / 48 * 2 * np.pi) + random.normal(0, 30, 7 * 48)
    rates = Rates.of(begin_s + HALF_HOUR_S * np.arange(grams.size + 1), grams, np.ones(grams.size))
    jobs = [(begin_s + HALF_HOUR_S * int(a), 3) for a in random.integers(0, 4 * 48, 12)]

    for rule, slow in (("next-workday", slow_next_workday), ("semi-weekly", slow_semi_weekly)):
        for start_s, slots in jobs:
            first = round((start_s - begin_s) / HALF_HOUR_S)
            end = datetime.fromtimestamp(start_s + slots * HALF_HOUR_S, UTC)
            last = min(round((slow(end).timestamp() - begin_s) / HALF_HOUR_S), first + 60)
            window = list(grams[first:last])
            shifted = min(sum(window[i : i + slots]) for i in range(len(window) - slots + 1))
            paused = min(sum(chosen) for chosen in combinations(window, slots))

            latest_s = min(DEADLINES[rule](end.timestamp(), "UTC"), begin_s + (first + 60) * HALF_HOUR_S)
            assert moved(rates, start_s, slots, latest_s)[1:] == approx((shifted / 2, paused / 2))


def moved(rates, start_s, slots, latest_s):
    """Intensity times hours of starting at once, at the best start, and with pauses that cost nothing. [g h/kWh]"""
    watts, seconds = 1000.0, slots * HALF_HOUR_S
    window = {"earliest_s": start_s, "latest_end_s": latest_s}
    priced = starts(Job.steady(watts, seconds), rates, step_s=HALF_HOUR_S, **window)
    paused = best_schedule(watts, seconds, rates, pause_s=0.0, slot_s=int(HALF_HOUR_S), **window)
    return float(priced.grams[0]), float(np.nanmin(priced.grams)), paused.grams


# The published figures


def published_jobs():
    """3,387 trainings of 4 to 90 h that begin between 9 and 17 on a workday of 2020, drawn as described: (begin [POSIX s], half hours)."""
    days = [datetime(2020, 1, 1, tzinfo=UTC) + timedelta(days=i) for i in range(366)]
    workdays = [day for day in days if day.weekday() < 5]
    random = np.random.default_rng(0)
    counts = dict(zip(workdays, random.multinomial(3387, [1 / len(workdays)] * len(workdays)), strict=True))
    begins = []
    for day in days:
        minutes = np.sort(random.choice(range(9 * 60, 17 * 60, 30), size=counts.get(day, 0)))
        begins += [(day + timedelta(minutes=int(m))).timestamp() for m in minutes]
    lengths = random.choice(range(4 * 60, 90 * 60, 30), size=len(begins))
    return [(begin_s, int(minutes) // 30) for begin_s, minutes in zip(begins, lengths, strict=True)]


@pytest.mark.skipif(not (RAW / "ger_ci.csv").is_file(), reason="the raw files are not here")
@pytest.mark.parametrize(
    ("name", "rule", "shifted", "paused"),
    [
        ("ger_ci.csv", "next-workday", 6.95, 9.19),
        ("gb_ci.csv", "next-workday", 7.63, 10.32),
        ("fr_ci.csv", "next-workday", 5.71, 7.15),
        ("ger_ci.csv", "semi-weekly", 14.15, 18.48),
        ("gb_ci.csv", "semi-weekly", 14.85, 20.09),
        ("fr_ci.csv", "semi-weekly", 11.25, 13.95),
    ],
)
def test_jobs_of_2020_save_what_the_rules_as_written_and_a_perfect_forecast_give(tmp_path, name, rule, shifted, paused):
    """Wiesner et al. 2021, whose clock is that of the files; they print less for the next workday: there a Friday evening may end on Saturday."""
    path = tmp_path / name
    path.write_text((RAW / name).read_text(encoding="utf-8").replace("Time,", "Time (UTC),", 1), encoding="utf-8")
    begin_s, end_s = at("2020-01-01T00:00"), at("2021-01-08T00:00")
    rows = create({"path": str(path)}).readings  # by themselves: a quarter hour of Germany is missing, which no half hour begins with
    grams = rows.grams_per_kwh[np.searchsorted(rows.starts_s, np.arange(begin_s, end_s, HALF_HOUR_S), side="right") - 1]
    rates = Rates.of(begin_s + HALF_HOUR_S * np.arange(grams.size + 1), grams, np.ones(grams.size))

    sums = np.zeros(3)
    for number, (start_s, slots) in enumerate(published_jobs()):
        latest_s = DEADLINES[rule](start_s + slots * HALF_HOUR_S, "UTC")
        first, last = (round((s - begin_s) / HALF_HOUR_S) for s in (start_s, latest_s))
        window = Rates(rates.edges_s[first : last + 1], rates.grams_per_joule[first:last])
        priced = starts(Job.steady(1000.0, slots * HALF_HOUR_S), window, earliest_s=start_s, latest_end_s=latest_s, step_s=HALF_HOUR_S)
        cleanest = float(np.partition(grams[first:last], slots - 1)[:slots].sum()) / 2
        if number % 300 == 0:  # the schedule of the product is as good as the cleanest half hours; of all jobs it would take minutes
            assert moved(window, start_s, slots, latest_s)[2] == approx(cleanest)
        sums += (float(priced.grams[0]), float(np.nanmin(priced.grams)), cleanest)

    assert 100 * (1 - sums[1] / sums[0]) == approx(shifted, abs=0.5), "shifted"
    assert 100 * (1 - sums[2] / sums[0]) == approx(paused, abs=0.5), "paused"
