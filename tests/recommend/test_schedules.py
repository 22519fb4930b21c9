"""Best starts and best schedules with pauses, against brute force over everything that is possible."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from carbonreport.recommend.pauses import best_schedule, slot_of
from carbonreport.recommend.rates import Job, Rates, cost_of_starts
from carbonreport.recommend.windows import starts

HOUR = 3600.0


def hourly(values, begin_s=0.0):
    return Rates.of(begin_s + HOUR * np.arange(len(values) + 1), np.array(values, float), np.ones(len(values)))


def exact(job, rates, start_s):
    """The sum over slices and pieces, cut at every edge."""
    cuts = sorted({*(start_s + job.edges_s), *(e for e in rates.edges_s if start_s < e < start_s + job.seconds)})
    grams = 0.0
    for a, b in pairwise(cuts):
        piece = np.searchsorted(job.edges_s, (a + b) / 2 - start_s, side="right") - 1
        hour = np.searchsorted(rates.edges_s, (a + b) / 2, side="right") - 1
        grams += job.watts[piece] * rates.grams_per_joule[hour] * (b - a)
    return grams


@given(
    st.lists(st.floats(1, 900), min_size=6, max_size=30),
    st.lists(st.tuples(st.floats(300, 5000), st.floats(0, 2000)), min_size=1, max_size=4),
    st.floats(0, 3 * HOUR),
)
def test_a_start_costs_the_sum_over_slices_with_partial_ones_exact(values, pieces, start_s):
    rates = hourly(values)
    job = Job(np.concatenate([[0.0], np.cumsum([s for s, _ in pieces])]), np.array([w for _, w in pieces]))
    (grams,) = cost_of_starts(job, rates, np.array([start_s]))
    if start_s + job.seconds <= rates.edges_s[-1]:
        assert grams == approx(exact(job, rates, start_s), rel=1e-9, abs=1e-9)
    else:
        assert np.isnan(grams)


@given(
    st.lists(st.integers(1, 900), min_size=12, max_size=30), st.integers(1, 5), st.integers(0, 10), st.sets(st.integers(0, 29), max_size=4)
)
def test_the_best_start_is_the_best_of_all_that_are_allowed(values, length, slack, shut):
    rates, job = hourly(values), Job.steady(1000.0, length * HOUR)
    latest = min(length + slack, len(values))
    found = starts(job, rates, earliest_s=0, latest_end_s=latest * HOUR, step_s=HOUR, closed=[(h * HOUR, (h + 1) * HOUR) for h in shut])
    allowed = [h for h in range(latest - length + 1) if not any(x in shut for x in range(h, h + length))]
    costs = {h: sum(values[h : h + length]) for h in allowed}

    if not allowed:
        assert found.best is None or found.best == 0
        return
    assert found.best is not None
    assert found.grams[found.best] == approx(min(costs.values()), rel=1e-9)
    assert found.at_s[found.best] == min(h for h in allowed if costs[h] == min(costs.values())) * HOUR


def schedules(count, work, overhead, most_pauses):
    """Every choice of runs: slots of work in order, each run after the first begun by its checkpoint."""
    for chosen in combinations(range(count), work):
        runs = []
        for slot in chosen:
            if runs and slot == runs[-1][1]:
                runs[-1][1] = slot + 1
            else:
                runs.append([slot, slot + 1])
        if len(runs) - 1 > most_pauses:
            continue
        begun = [runs[0], *([a - overhead, b] for a, b in runs[1:])]
        if all(a[1] <= b[0] for a, b in pairwise(begun)):
            yield begun


def brute(values, work, overhead, most_pauses, watts, idle_watts, shut):
    best = np.inf
    for runs in schedules(len(values), work, overhead, most_pauses):
        on = {slot for a, b in runs for slot in range(a, b)}
        if on & shut:
            continue
        end = runs[-1][1]
        best = min(best, sum(values[i] * (watts if i in on else idle_watts) for i in range(end)))
    return best


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.integers(1, 500), min_size=5, max_size=11),
    st.integers(1, 5),
    st.integers(0, 2),
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([0.0, 50.0]),
    st.sets(st.integers(0, 10), max_size=3),
)
def test_the_best_schedule_is_the_best_of_all(values, work, overhead, most_pauses, idle_watts, shut):
    shut = {s for s in shut if s < len(values)}
    expected = brute(values, work, overhead, len(values) if most_pauses is None else most_pauses, 1000.0, idle_watts, shut)
    found = best_schedule(
        1000.0,
        work * HOUR,
        hourly(values),
        earliest_s=0,
        latest_end_s=len(values) * HOUR,
        most_pauses=most_pauses,
        pause_s=overhead * HOUR,
        idle_watts=idle_watts,
        closed=[(s * HOUR, (s + 1) * HOUR) for s in shut],
        slot_s=3600,
    )

    if not np.isfinite(expected):
        assert found is None
        return
    assert found is not None
    assert found.grams == approx(expected / 1000, rel=1e-9)
    on = {slot for a, b in found.runs for slot in range(round(a / HOUR), round(b / HOUR))}
    assert not on & shut
    assert len(on) == work + overhead * found.pauses
    assert most_pauses is None or found.pauses <= most_pauses
    end = round(found.runs[-1][1] / HOUR)
    cost = sum(values[i] * (1000.0 if i in on else idle_watts) for i in range(end)) / 1000
    assert cost == approx(found.grams, rel=1e-9), "the schedule costs what it says"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 500), min_size=10, max_size=40), st.integers(1, 8))
def test_pausing_is_never_worse_than_waiting_and_waiting_never_worse_than_now(values, length):
    length = min(length, len(values))
    rates, job = hourly(values), Job.steady(500.0, length * HOUR)
    shifted = starts(job, rates, earliest_s=0, latest_end_s=len(values) * HOUR, step_s=HOUR)
    paused = best_schedule(500.0, length * HOUR, rates, earliest_s=0, latest_end_s=len(values) * HOUR, pause_s=0, slot_s=3600)

    assert shifted.best is not None
    assert paused is not None
    assert paused.grams <= shifted.grams[shifted.best] + 1e-9
    assert shifted.grams[shifted.best] <= shifted.grams[0]


def test_no_slack_is_no_choice():
    rates, job = hourly([300, 100, 200, 50]), Job.steady(500.0, 2 * HOUR)
    found = starts(job, rates, earliest_s=0, latest_end_s=2 * HOUR)

    assert found.at_s.tolist() == [0.0]
    assert found.best == 0


def test_waiting_with_reserved_equipment_is_charged():
    rates, job = hourly([300, 300, 300, 200]), Job.steady(1000.0, HOUR)
    free = starts(job, rates, earliest_s=0, latest_end_s=4 * HOUR, step_s=HOUR)
    reserved = starts(job, rates, earliest_s=0, latest_end_s=4 * HOUR, step_s=HOUR, idle_watts=500.0)

    assert free.best == 3
    assert reserved.best == 0


def test_a_deadline_that_cannot_be_met_leaves_now():
    found = starts(Job.steady(500.0, 5 * HOUR), hourly([100] * 8), earliest_s=0, latest_end_s=3 * HOUR)

    assert found.at_s.size == 1
    assert found.best == 0


@pytest.mark.parametrize(
    ("seconds", "pause_s", "slot_s"), [(6 * HOUR, 300, 300), (6 * HOUR, 0, 900), (5400, 900, 900), (100, 0, 100), (61, 0, 900), (7, 0, 900)]
)
def test_a_slot_is_the_longest_that_divides_work_pause_and_a_quarter_of_an_hour(seconds, pause_s, slot_s):
    """Where that would be under a minute, the work is rounded up to whole slots instead."""
    assert slot_of(seconds, pause_s) == slot_s
