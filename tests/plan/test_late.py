"""Late changes in the long run, and what no late plan can beat."""

import itertools

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.late import asked_early, late_cost
from carbonreport.plan.mixed import mixed_bound
from carbonreport.plan.problem import Problem
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanTable


def problem(seed):
    """Two to five invocations under three choices, whose changes take up to several iterations."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 6))
    near = np.array([0.3, 0.3, 0.6]) * random.choice([0.5, 1.0, 7.0, 15.0])
    return Problem(
        np.arange(n), random.uniform(0.5, 2, (n, 3)), random.uniform(1, 9, (n, 3)), near, near + 0.1, np.array([0, 0, 1]), 1.0
    ), random.integers(0, 3, n)


def long_run(of, requests, laps=1500, first=300):
    """Mean time, energy and changes of many iterations after the first ones, told as a list of events on one clock."""
    now, current, served, due, waiting, changes, kept = 0.0, int(requests[-1]), None, None, None, 0, None
    joules = 0.0
    for lap in range(laps):
        if lap == first:
            kept = now, joules, changes
        for row, want in zip(of.rows.tolist(), requests.tolist(), strict=True):
            while served is not None and due <= now + 1e-12:
                current, changes, served = served, changes + 1, None
                if waiting is not None and waiting != current:
                    served, due = waiting, now + float(of.switch_s(np.array(current), np.array(waiting)))
                waiting = None
            if served is None and want != current:
                served, due = want, now + float(of.switch_s(np.array(current), np.array(want)))
            elif served is not None:
                waiting = want
            left = 1.0
            while left > 1e-12:
                full = float(of.seconds[row, current])
                spent = left * full if served is None else min(left * full, max(due - now, 0.0))
                left, now, joules = left - spent / full, now + spent, joules + spent / full * float(of.joules[row, current])
                if served is not None and due <= now + 1e-12 and left > 1e-12:
                    current, changes, served = served, changes + 1, None
                    if waiting is not None and waiting != current:
                        served, due = waiting, now + float(of.switch_s(np.array(current), np.array(waiting)))
                    waiting = None
    return (now - kept[0]) / (laps - first), (joules - kept[1]) / (laps - first), (changes - kept[2]) / (laps - first)


def test_late_plans_cost_what_they_come_to_in_the_long_run():
    compared = 0
    for seed in range(80):
        of, requests = problem(seed)
        cost = late_cost(of, requests)
        if cost is None or len(set(requests.tolist())) < 2:
            continue
        seconds, joules, changes = long_run(of, requests)
        assert cost[:2] == (approx(seconds, rel=5e-3), approx(joules, rel=5e-3)), seed
        assert changes - 0.01 <= cost[2] < changes + 1.01
        compared += 1
    assert compared > 50


def test_a_change_that_takes_longer_than_an_iteration_reaches_into_the_next_ones():
    """Kernels of 1 s each, changes of 3.37 s: the clocks that are in force are seldom those that a kernel asks for."""
    of = Problem(
        np.arange(2), np.ones((2, 2)), np.array([[1.0, 5.0], [1.0, 5.0]]), np.full(2, 3.37), np.full(2, 3.37), np.zeros(2, int), 1.0
    )
    seconds, joules, _ = late_cost(of, np.array([0, 1]))

    assert seconds == approx(2.0)
    assert joules == approx(long_run(of, np.array([0, 1]))[1], rel=5e-3)


def test_the_newest_request_takes_the_place_of_one_that_waits():
    """a, b and c ask for 0, 1 and 2 within one change: 1 is never in force."""
    joules = np.array([[1.0, 100.0, 2.0]] * 3)
    of = Problem(np.arange(3), np.ones((3, 3)), joules, np.full(3, 2.37), np.full(3, 2.37), np.zeros(3, int), 1.0)

    assert late_cost(of, np.array([0, 1, 2]))[1] == approx(long_run(of, np.array([0, 1, 2]))[1], rel=5e-3)


def test_a_plan_that_never_settles_is_refused():
    random = np.random.default_rng(222)
    n, k = int(random.integers(2, 6)), 3
    seconds, joules = random.uniform(0.5, 2, (n, k)), random.uniform(1, 9, (n, k))
    of = Problem(np.arange(n), seconds, joules, np.full(k, random.choice([0.3, 2.0, 7.0])), np.full(k, 7.1), np.zeros(k, int), 1.0)

    assert late_cost(of, random.integers(0, k, n)) is None


def test_each_change_is_sent_ahead_by_the_longest_latency():
    of = Problem(np.arange(4), np.ones((4, 2)), np.ones((4, 2)), np.array([0.1, 1.0]), np.ones(2), np.zeros(2, int), 1.0)

    assert asked_early(of, np.array([0, 0, 1, 1])).tolist() == [0, 1, 1, 0]


def small_table(seed):
    random = np.random.default_rng(seed)
    n, k = int(random.integers(2, 6)), 3
    seconds = random.uniform(0.5, 2, (n, 1)) * np.where(np.arange(k) == 0, 1, random.uniform(0.9, 1.6, (n, k)))
    joules = seconds * random.uniform(50, 150, (n, k))
    pairs = (UNLOCKED, ClockPair(1200), ClockPair(1500))
    return PlanTable(tuple(f"k{i}" for i in range(n)), np.arange(n), pairs, seconds, joules), float(random.choice([0.05, 0.3, 1.0, 3.0]))


@pytest.mark.parametrize("objective", ["waste", "edp"])
def test_no_late_plan_at_all_is_below_the_bound(objective):
    for seed in range(25):
        table, latency_s = small_table(seed)
        switching = Switching(Latency.exactly(latency_s), 50.0, effect="late")
        plan, of = solve(table, 0.05, switching, objective=objective), Problem.of(table, switching)
        least = np.inf
        for choices in itertools.product(range(3), repeat=of.n):
            cost = late_cost(of, np.array(choices))
            if cost is not None and cost[0] <= 1.05 * table.baseline_seconds:
                least = min(least, cost[1] * (cost[0] if objective == "edp" else 1.0))
        scale = table.baseline_joules * (table.baseline_seconds if objective == "edp" else 1.0)
        assert plan.bound <= least / scale * (1 + 1e-9), seed
        assert plan.bound <= plan.way.score(objective)


def test_a_late_change_inside_a_kernel_counts_in_the_bound():
    """Free changes between whole kernels save nothing here; a change inside the long one does."""
    table = PlanTable(
        ("long", "short"),
        np.array([0, 1]),
        (UNLOCKED, ClockPair(1200)),
        np.array([[10.0, 15.0], [1.0, 1.0]]),
        np.array([[1000.0, 500.0], [100.0, 100.0]]),
    )
    switching = Switching(Latency.exactly(0.9), 50.0, effect="late")
    seconds, joules, _ = late_cost(Problem.of(table, switching), np.array([0, 1]))

    assert seconds <= 1.03 * 11
    assert solve(table, 0.03, switching).bound <= joules / 1100 < 1
    assert solve(table, 0.03, switching).bound == approx(0.97), "3 % of 11 s are 0.33 s, of which each saves 100 J"


def test_mixed_kernels_are_bounded_by_the_line_between_their_cells():
    of = Problem(np.zeros(1, int), np.array([[1.0, 2.0, 1.2]]), np.array([[10.0, 4.0, 9.9]]), np.ones(3), np.ones(3), np.zeros(3, int), 1.0)

    assert mixed_bound(of, 1.5) == approx(7.0)
    assert mixed_bound(of, 3.0) == approx(4.0)
    assert mixed_bound(of, 1.0) == approx(10.0)


def test_a_late_plan_that_is_too_slow_is_made_again_for_less_time():
    energies = []
    for seed in (0, 3, 4):
        random = np.random.default_rng(seed)
        seconds = random.uniform(0.5, 2, (12, 1)) * np.c_[np.ones(12), random.uniform(1.0, 1.5, (12, 3))]
        joules = random.uniform(0.5, 2, (12, 1)) * np.c_[np.full(12, 300.0), random.uniform(120, 320, (12, 3))]
        pairs = (UNLOCKED, *(ClockPair(2000 - 10 * i) for i in range(3)))
        table = PlanTable(tuple(map(str, range(12))), np.arange(12), pairs, seconds, joules)
        plan = solve(table, 0.05, Switching(Latency.exactly(0.4), 50.0, effect="late"))
        assert plan.time_ratio <= 1.05 * (1 + 2e-9)
        energies.append(plan.energy_ratio)

    assert np.mean(energies) < 0.86, "cutting the time by a tenth of what is too much never gets there"
