"""Published figures of kernel-level DVFS (Spaan, Chen and Varbanescu, arXiv 2601.08539), and what switches make of them."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.aggregate import least_at, local_choices, ratios
from carbonreport.plan.problem import Problem, switches_of
from carbonreport.plan.result import Way
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanTable

FIGURE_6 = (
    Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data"))
    / "dvfs"
    / "spaan_fig6_local_global.json"
)
HALF_MEAN_WATTS = 169.4


def blocking(seconds, watts=HALF_MEAN_WATTS):
    return Switching(Latency.exactly(seconds), watts)


def own_best(table):
    """Column of each kernel's own best clocks, as the table prints them. Shape (rows,)."""
    measured = ~np.isnan(table.seconds)
    measured[:, table.unlocked] = False
    return np.where(measured.any(axis=1), measured.argmax(axis=1), table.unlocked)


def test_sums_of_the_published_kernels(kernels):
    assert kernels.baseline_seconds == approx(5.3585, rel=1e-3)
    assert kernels.baseline_joules == approx(1815.4, rel=1e-3)
    assert kernels.baseline_watts == approx(338.8, rel=1e-3)
    assert (len(kernels.names), kernels.sequence.size) == (46, 897)


def test_the_published_plan_saves_what_was_published(kernels):
    time, energy = ratios(kernels, own_best(kernels))

    assert 100 * (time - 1) == approx(0.001, abs=0.01)
    assert 100 * (energy - 1) == approx(-15.638, abs=0.01)
    plan = solve(kernels, 0.0001)
    assert (plan.kind, plan.way.energy_percent) == ("kernel", approx(-15.638, abs=0.01))


def test_the_published_plan_switches_824_times(kernels):
    plan = own_best(kernels)[kernels.sequence]
    pairs = [kernels.pairs[c] for c in plan]

    def changes(values):
        return sum(a != b for a, b in zip(values, values[1:] + values[:1], strict=True))

    assert switches_of(plan) == 824
    assert changes([p.mem_mhz for p in pairs]) == 679
    assert changes([p.sm_mhz for p in pairs]) == 584
    assert len(set(pairs)) == 16
    assert 1000 * kernels.baseline_seconds / switches_of(plan) == approx(6.503, abs=0.001)


def test_blocking_for_six_milliseconds_a_switch_ruins_it(kernels):
    seconds, joules = Problem.of(kernels, blocking(0.006)).cost(own_best(kernels)[kernels.sequence])

    assert 100 * (seconds / kernels.baseline_seconds - 1) == approx(92.26, abs=0.05)
    assert 100 * (joules / kernels.baseline_joules - 1) == approx(30.50, abs=0.05)


def test_longest_latency_within_one_per_cent(kernels):
    plan = own_best(kernels)[kernels.sequence]

    def in_time(latency_s):
        return Problem.of(kernels, blocking(latency_s)).cost(plan)[0] <= 1.01 * kernels.baseline_seconds

    assert in_time(64.8e-6)
    assert not in_time(65.2e-6)


def test_one_pair_all_along_at_a_tenth_of_a_per_cent(passes):
    static = solve(passes, 0.001).of("static")

    assert static is not None
    assert set(static.pairs) == {ClockPair(None, 9501)}
    assert (static.time_percent, static.energy_percent) == (approx(0.05, abs=0.05), approx(-9.68, abs=0.05))


def test_a_pair_a_pass_with_no_slowdown(passes):
    plan = solve(passes, 0.0)

    assert plan.kind == "pass"
    assert plan.pairs == (ClockPair(None, 9251), ClockPair(1890, None))
    assert (plan.way.time_percent, plan.way.energy_percent) == (approx(-0.09, abs=0.1), approx(-2.0, abs=0.1))


def test_a_pair_a_pass_of_least_energy_times_time(passes):
    plan = solve(passes, None, objective="edp")

    assert plan.pairs == (ClockPair(1680, 5001), ClockPair(1680, 9251))
    assert (plan.way.time_percent, plan.way.energy_percent) == (approx(10.19, abs=0.05), approx(-25.40, abs=0.05))


@pytest.mark.parametrize(
    ("slowdown", "time", "energy"), [(0.02, 1.14, -10.87), (0.03, 2.39, -12.98), (0.05, 3.94, -16.05), (0.10, 8.64, -22.34)]
)
def test_pairs_a_pass_along_the_frontier(passes, slowdown, time, energy):
    way = solve(passes, slowdown).way

    assert (way.time_percent, way.energy_percent) == (approx(time, abs=0.01), approx(energy, abs=0.01))


def toy():
    """Two kernels of one length: A may save 2 % of time and 20 % of energy, or 3 and 15; B may pay 1 % of time for 35 % of energy."""
    pairs = (UNLOCKED, ClockPair(1000), ClockPair(1100))
    seconds = np.array([[1.0, 0.98, 0.97], [1.0, 1.01, np.nan]])
    joules = np.array([[1.0, 0.80, 0.85], [1.0, 0.65, np.nan]])
    return PlanTable(("A", "B"), np.array([0, 1]), pairs, seconds, joules)


def test_the_worked_example_local_and_global():
    local, whole = solve(toy(), 0.0, aggregation="local"), solve(toy(), 0.0)

    assert (local.way.time_percent, local.way.energy_percent) == (approx(-1.0), approx(-10.0))
    assert (whole.way.time_percent, whole.way.energy_percent) == (approx(-0.5), approx(-27.5))
    under_local = solve(toy(), -0.01)
    assert (under_local.way.time_percent, under_local.way.energy_percent) == (approx(-1.0), approx(-25.0)), "the paper's figure"
    assert ratios(toy(), local_choices(toy(), 0.0)) == (approx(0.99), approx(0.90))


def test_equal_energy_times_time_is_not_equal_waste():
    fast, slow = Way("static", (), 1.0, 0.5), Way("static", (), 2.0, 0.25)
    assert fast.score("edp") == slow.score("edp") == 0.5

    table = PlanTable(
        ("k",), np.array([0]), (UNLOCKED, ClockPair(500), ClockPair(900)), np.array([[1.0, 2.0, 1.0]]), np.array([[1.0, 0.25, 0.5]])
    )
    assert solve(table, 0.0).pairs == (ClockPair(900),), "waste takes the one in time and rejects the other"


def test_the_published_curve_at_its_printed_tolerances():
    """Figure 6, global: some of its points as published."""
    time = np.array([-2.0, -1, 0, 0.6, 1, 2, 5, 10, 20, 30, 84])
    energy = np.array([-12.77, -14.24, -15.64, -16.48, -17.01, -18.37, -22.19, -27.31, -31.83, -34.30, -36.94])

    assert least_at(time, energy, 0.0) == -15.64
    assert least_at(time, energy, 0.5) == -15.64, "a plan that is faster than it must be counts"
    assert least_at(time, energy, 30) == approx(-34.3, abs=0.05)


@pytest.mark.skipif(not FIGURE_6.is_file(), reason="the digitised figure is not here")
def test_the_whole_published_curves():
    curves = {name: np.array(points) for name, points in json.loads(FIGURE_6.read_text()).items()}

    def at(name, percent):
        return least_at(curves[name][:, 0], curves[name][:, 1], percent)

    assert at("global", 0) == approx(-15.64, abs=0.05)
    assert at("local", 0) == approx(-11.54, abs=0.05)
    assert at("global", 30) == approx(-34.3, abs=0.05)
    assert at("global", 84) == approx(-36.9, abs=0.05)
    for percent in (0, 1, 5, 10, 30):
        assert at("global", percent) <= at("local", percent), "the sum of times leaves more room than each kernel's"


# With switches paid for


def test_ten_microseconds_keep_the_saving_and_six_milliseconds_leave_one_pair(both):
    fast, slow = (solve(both, 0.01, blocking(latency)) for latency in (10e-6, 6e-3))

    assert (fast.kind, fast.way.energy_percent) == ("kernel", approx(-15.56, abs=0.05))
    assert (slow.kind, slow.switches, slow.way.energy_percent) == ("static", 0, approx(-9.68, abs=0.01))


@pytest.mark.parametrize("effect", ["stalls", "late"])
@pytest.mark.parametrize("latency_s", [0.0, 1e-6, 1e-5, 1e-4, 5e-4, 1e-3, 6e-3, 22e-3, 0.1])
def test_a_plan_is_in_time_and_never_worse_than_one_pair(both, latency_s, effect):
    plan = solve(both, 0.01, Switching(Latency.exactly(latency_s), HALF_MEAN_WATTS, effect=effect))

    assert plan.time_ratio <= 1.01 + 1e-9
    assert plan.way.energy_percent <= -9.68 + 0.01
    assert plan.bound <= plan.energy_ratio


def test_where_nothing_helps_nothing_is_done(kernels):
    """At 50 ms no kernel's own clocks are worth a switch, and none of them was measured for all kernels."""
    plan = solve(kernels, 0.01, blocking(0.05))

    assert (plan.kind, plan.switches, plan.time_ratio, plan.energy_ratio) == ("none", 0, 1.0, 1.0)
    assert set(plan.pairs) == {UNLOCKED}
