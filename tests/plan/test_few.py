"""Plans of few steps: proved to be the best, against all plans; least energy times time; and what switching plans cost at least."""

import itertools

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.coarse import best_pair_of_names, by_passes
from carbonreport.plan.edp import by_product, product_bound
from carbonreport.plan.exact import every_plan
from carbonreport.plan.few import best_of_few
from carbonreport.plan.prices import Search, by_prices
from carbonreport.plan.problem import Problem
from carbonreport.plan.repair import repaired
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanTable
from carbonreport.plan.viterbi import least_with_switches


def made(seed, n=5, k=6, *, latency=0.05):
    """A problem whose memory clocks take longer to change, and whose clocks trade time for energy."""
    random = np.random.default_rng(seed)
    seconds = random.uniform(0.5, 2, (n, 1)) * random.uniform(1, 1.5, (n, k))
    joules = 300 / seconds * random.uniform(0.7, 1.3, (n, k))
    near = np.full(k, latency) * random.uniform(0.5, 1.5, k)
    return Problem(np.arange(n), seconds, joules, near, 3 * near, np.arange(k) % 2, 100.0)


@pytest.mark.parametrize("objective", ["waste", "edp"])
@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_few_steps_is_the_best_of_all_plans(seed, objective):
    of = made(seed)
    _, seconds, joules = every_plan(of)
    score = joules if objective == "waste" else joules * seconds
    for limit_s in (float(np.quantile(seconds, 0.02)), float(np.quantile(seconds, 0.3)), np.inf):
        for known in (None, np.zeros(5, dtype=int)):
            held = known if known is not None and of.cost(known)[0] <= limit_s else None
            plan, is_proved = best_of_few(of, limit_s, objective, held, 100.0)
            s, j = of.cost(plan)
            assert is_proved and s <= limit_s
            assert (j if objective == "waste" else j * s) == approx(score[seconds <= limit_s].min(), rel=1e-9)


def test_nothing_is_proved_where_there_is_too_much_to_look_at():
    known = np.zeros(9, dtype=int)
    plan, is_proved = best_of_few(made(0, n=9), np.inf, "waste", known, 100.0)

    assert plan is known and not is_proved


@pytest.mark.parametrize("objective", ["waste", "edp"])
def test_no_pair_a_pass_is_better_than_the_plan(objective):
    """Five passes under 14 pairs are more plans than are looked at one by one."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        f, core = np.linspace(1, 0.4, 13), random.uniform(0.5, 1.3, 5)
        slow = np.c_[np.ones(5), np.maximum(1, core[:, None] / f) * random.uniform(0.98, 1.02, (5, 13))]
        seconds = slow * random.uniform(0.2, 2, (5, 1))
        joules = seconds * np.c_[np.full(5, 400.0), (120 + 280 * f ** random.uniform(1.5, 3, (5, 1))) * random.uniform(0.8, 1.2, (5, 13))]
        pairs = (UNLOCKED, *(ClockPair(2000 - 10 * i, 2000 + i % 2 * 600) for i in range(13)))
        table = PlanTable(tuple("abcde"), np.arange(5), pairs, seconds, joules, tuple("abcde"))
        switching = Switching(Latency.exactly(0.005), 100.0, Latency.exactly(0.05))
        of = Problem.of(table, switching)
        plans = np.stack(np.unravel_index(np.arange(14**5), (14,) * 5), axis=1)
        waits = sum(of.switch_s(plans[:, i - 1], plans[:, i]) for i in range(5))
        s, j = (cells[np.arange(5), plans].sum(axis=1) for cells in (seconds, joules))
        s, j = (s + waits) / table.baseline_seconds, (j + 100 * waits) / table.baseline_joules
        for slowdown in (0.005, 0.02, 0.05):
            least = (j if objective == "waste" else j * s)[s <= 1 + slowdown].min()
            plan = solve(table, slowdown, switching, objective=objective)
            assert plan.way.score(objective) <= least * (1 + 1e-8), (seed, slowdown)
            assert plan.bound <= least * (1 + 1e-9)


def test_two_passes_that_alternate_often_get_the_best_pair_of_each():
    of = made(3, n=2, k=8)
    names = ("forward", "backward") * 12
    many = Problem(np.tile(np.arange(2), 12), of.seconds, of.joules, of.near_s, of.far_s, of.memory, of.stall_watts)
    coarse, members = by_passes(many, names)
    budget_s = 1.1 * 12 * float(of.seconds.min(axis=1).sum()) + 2
    plan = best_pair_of_names(coarse, names, budget_s, "waste")
    costs = [many.cost(np.tile([a, b], 12)) for a, b in itertools.product(range(8), repeat=2)]

    assert many.cost(plan[members])[1] == approx(min(joules for seconds, joules in costs if seconds <= budget_s))
    assert best_pair_of_names(coarse, ("a", "b", "c", "d") * 6, budget_s, "waste") is None


@pytest.mark.parametrize("latency", [0.0, 0.02])
def test_least_energy_times_time_under_a_limit_is_near_the_best_of_all_and_bounded(latency):
    over = []
    for seed in range(8):
        of = made(seed, n=9, k=3, latency=latency)
        _, seconds, joules = every_plan(of)
        for share in (0.01, 0.1, 0.5):
            limit_s = float(np.quantile(seconds, share))
            least = float((seconds * joules)[seconds <= limit_s].min())
            plan, bound = by_product(of, limit_s)
            s, j = of.cost(plan)
            assert s <= limit_s * (1 + 1e-8) and bound <= least * (1 + 1e-9)
            over.append(s * j / least - 1)
            search = Search(of, limit_s)
            by_prices(search)
            repaired(search)
            waste_s, waste_j = of.cost(search.best)
            assert s * j <= waste_s * waste_j * (1 + 1e-9), "never worse than the plan of least energy"
    assert np.mean(over) < 0.002


def test_a_bound_of_energy_times_time_knows_that_energy_is_never_below_its_least():
    """Without the level line the last price would promise energies of 0 at long times."""
    random = np.random.default_rng(0)
    for _ in range(300):
        seconds, joules = np.exp(random.uniform(0, 3, 6)), np.exp(random.uniform(-4, 5, 6))
        watts = np.append(0.0, np.geomspace(0.02, 50, 24) * np.median(joules / seconds))
        values = (joules[None] + watts[:, None] * seconds[None]).min(axis=1)
        bound = product_bound(watts, values, float(seconds.min()), np.inf)
        assert 0 < bound <= (seconds * joules).min() * (1 + 1e-9)
        limit_s = float(np.median(seconds))
        inside = seconds <= limit_s
        assert product_bound(watts, values, float(seconds.min()), limit_s) <= (seconds * joules)[inside].min() * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_what_switching_plans_cost_at_least_is_below_every_one_that_switches(seed):
    of, watts = made(seed, n=4, k=4, latency=0.2), np.array([0.0, 30.0, 200.0])
    plans, seconds, joules = every_plan(of)
    switches = (plans != plans[:, :1]).any(axis=1)
    bounds = least_with_switches(of, watts)

    for price, bound in zip(watts, bounds, strict=True):
        assert bound <= (joules + price * seconds)[switches].min() * (1 + 1e-12)


def test_what_switching_plans_cost_at_least_is_met_where_changes_cost_the_same():
    """One stretch of other clocks: its two changes are counted once each, not less and not more."""
    seconds = np.array([[1.0, 9.0], [9.0, 1.0], [9.0, 1.0], [1.0, 9.0]])
    of = Problem(np.arange(4), seconds, seconds, np.full(2, 0.5), np.full(2, 0.5), np.zeros(2, int), 2.0)
    turned = Problem(np.arange(4), seconds[[0, 0, 1, 1]], seconds[[0, 0, 1, 1]], of.near_s, of.far_s, of.memory, 2.0)

    for each in (of, turned):  # both changes inside, and one at the cycle's end
        assert least_with_switches(each, np.array([1.0])) == approx(4 * 2 + 2 * 0.5 * (1 + 2))
    two = Problem(np.arange(2), seconds[:2], seconds[:2], of.near_s, of.far_s, of.memory, 2.0)
    assert least_with_switches(two, np.array([1.0])) == approx(2 * 2 + 2 * 0.5 * (1 + 2))
