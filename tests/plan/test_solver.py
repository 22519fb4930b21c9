"""The search against all plans, its bound, and what it is compared with."""

import itertools

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan import exact
from carbonreport.plan.exact import every_plan, worth_having
from carbonreport.plan.prices import Search, by_prices
from carbonreport.plan.problem import Problem, switches_of
from carbonreport.plan.repair import repaired
from carbonreport.plan.result import Cap
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError, PlanTable


def small(seed, *, memory=False):
    """A cyclic problem of 3 to 6 invocations and 2 to 4 choices, of which some plan is in time."""
    random = np.random.default_rng(seed)
    n, k = int(random.integers(3, 7)), int(random.integers(2, 5))
    seconds = random.uniform(1, 5, (n, k))
    joules = 20 / seconds * random.uniform(0.8, 1.2, (n, k)) + 2 * seconds
    near = np.full(k, random.choice([0.0, 0.2, 1.0]))
    groups = np.arange(k) % 2 if memory else np.zeros(k, dtype=int)
    problem = Problem(np.arange(n), seconds, joules, near, 3 * near if memory else near, groups, 1.0)
    return problem, float(seconds.min(axis=1).sum()) * random.uniform(1.0, 1.6)


def by_hand(problem, budget_s):
    """Least energy of all plans in time, counted plan by plan."""
    k = problem.near_s.size
    costs = [problem.cost(np.array(plan)) for plan in itertools.product(range(k), repeat=problem.n)]
    return min((joules for seconds, joules in costs if seconds <= budget_s * (1 + 1e-9)), default=None)


def searched(problem, budget_s):
    search = Search(problem, budget_s)
    by_prices(search)
    repaired(search)
    return search


@pytest.mark.parametrize("seed", range(60))
def test_tiny_problems_are_solved_exactly_and_the_search_is_near(seed):
    problem, budget_s = small(seed)
    least = by_hand(problem, budget_s)
    plans, seconds, joules = every_plan(problem)
    assert len(plans) == problem.near_s.size**problem.n
    in_time = joules[seconds <= budget_s * (1 + 1e-9)]
    search = searched(problem, budget_s)

    if least is None:
        assert in_time.size == 0 and search.best is None
        return
    assert in_time.min() == approx(least)
    assert search.bound_joules <= least * (1 + 1e-9), "a bound is never above the optimum"
    assert search.best is None or search.best_joules >= least * (1 - 1e-9)


def test_the_search_is_near_on_average():
    over = []
    for seed in range(60):
        problem, budget_s = small(seed)
        least = by_hand(problem, budget_s)
        found = searched(problem, budget_s).best_joules
        if least is not None and np.isfinite(found):
            over.append(found / least - 1)

    assert len(over) > 30
    assert 100 * np.mean(over) <= 0.3


@pytest.mark.parametrize("seed", range(20))
def test_memory_clocks_that_cost_more_are_counted(seed):
    problem, budget_s = small(seed, memory=True)
    least = by_hand(problem, budget_s)
    search = searched(problem, budget_s)

    if least is not None:
        assert search.bound_joules <= least * (1 + 1e-9)
        assert search.best is None or search.best_joules >= least * (1 - 1e-9)
        kept = worth_having(problem)
        assert by_hand(problem.only(kept), budget_s) == approx(least), "choices that are left out are not missed"


def test_a_cycle_pays_for_the_way_back_to_its_start():
    problem = Problem(np.arange(2), np.ones((2, 2)), np.ones((2, 2)), np.full(2, 0.5), np.full(2, 0.5), np.zeros(2, int), 10.0)

    assert problem.cost(np.array([0, 1])) == (approx(3.0), approx(12.0))
    assert switches_of(np.array([0, 1])) == 2


def test_plans_without_a_way_back_are_not_taken_for_cheap():
    """The search of more than tiny problems agrees with all plans on whole cycles."""
    for seed in range(8):
        random = np.random.default_rng(seed)
        seconds = random.uniform(1, 3, (8, 4))
        joules = 8 / seconds + random.uniform(0, 2, (8, 4))
        problem = Problem(np.arange(8), seconds, joules, np.full(4, 0.3), np.full(4, 0.3), np.zeros(4, int), 1.0)
        budget_s = float(seconds.min(axis=1).sum() * 1.4)
        _, all_s, all_j = every_plan(problem)
        least = all_j[all_s <= budget_s].min()
        search = searched(problem, budget_s)
        assert search.bound_joules <= least * (1 + 1e-9)
        assert search.best_joules <= least * 1.03


@pytest.mark.parametrize("latency_s", [0.0, 2e-5, 1e-4, 1e-3, 5e-3])
@pytest.mark.parametrize("slowdown", [0.0, 0.006, 0.02, 0.05])
def test_long_iterations_are_in_time_near_the_bound_and_not_worse_than_simpler_ways(layer, latency_s, slowdown):
    table = layer(layers=24, cores=30)
    caps = (Cap(300, 1.004, 0.985), Cap(200, 1.3, 0.7))
    plan = solve(table, slowdown, Switching(Latency.exactly(latency_s), 100.0), caps=caps)

    assert plan.time_ratio <= (1 + slowdown) * (1 + 1e-6)
    assert plan.bound <= plan.energy_ratio
    assert plan.gap_percent <= (0.05 if latency_s == 0 else 0.5)
    seconds, joules = (table.counts @ cells for cells in (table.seconds, table.joules))
    in_time = joules[seconds <= (1 + slowdown) * table.baseline_seconds * (1 + 1e-9)] / table.baseline_joules
    assert plan.energy_ratio <= in_time.min() + 1e-9
    if slowdown >= 0.006:
        assert plan.energy_ratio <= 0.985


def test_dearer_switches_never_save_more(layer):
    table = layer(layers=6)
    latencies = [0.0, 1e-5, 1e-4, 5e-4, 2e-3, 1e-2, 1.0]
    energies = [solve(table, 0.02, Switching(Latency.exactly(latency), 100.0)).energy_ratio for latency in latencies]

    assert all(b >= a - 5e-4 for a, b in itertools.pairwise(energies))
    static = solve(table, 0.02, Switching(Latency.exactly(1.0), 100.0))
    assert static.switches == 0


def test_a_pair_a_pass_is_the_best_of_all_pairs_of_pairs(layer):
    table, switching = layer(), Switching(Latency.exactly(1e-3), 100.0)
    problem = Problem.of(table, switching)
    limit_s = 1.02 * table.baseline_seconds * (1 + 1e-9)
    is_forward = np.array(table.passes) == "forward"
    costs = [problem.cost(np.where(is_forward, a, b)) for a in range(len(table.pairs)) for b in range(len(table.pairs))]
    least = min(joules for seconds, joules in costs if seconds <= limit_s) / table.baseline_joules

    ways = [way.energy_ratio for way in solve(table, 0.02, switching, with_kernels=False).others]
    assert min(ways) == approx(least)


def test_least_energy_times_time_is_that_of_all_plans():
    for seed in range(20):
        problem, _ = small(seed)
        plans, seconds, joules = every_plan(problem)
        from carbonreport.plan.edp import by_product

        plan, bound = by_product(problem, np.inf)
        least = float((seconds * joules).min())
        s, j = problem.cost(plan)
        assert bound <= least * (1 + 1e-9)
        assert least * (1 - 1e-9) <= s * j <= least * 1.05
        assert len(plans) == seconds.size


def test_local_plans_slow_no_kernel_down(layer):
    table = layer()
    plan = solve(table, 0.01, aggregation="local")
    columns = np.array([table.pairs.index(pair) for pair in plan.pairs])
    each = table.seconds[table.sequence, columns] / table.seconds[table.sequence, table.unlocked]

    assert each.max() <= 1.01 + 1e-9
    assert solve(table, 0.01).energy_ratio <= plan.energy_ratio + 1e-9


def test_a_late_effect_is_what_the_clocks_before_make_of_it():
    """One long kernel asks for clocks that come after half of its time: half of it is run at the ones before."""
    table = PlanTable(
        ("a", "b"), np.array([0, 1]), (UNLOCKED, ClockPair(900)), np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[4.0, 3.0], [4.0, 3.0]])
    )
    from carbonreport.plan.late import late_cost

    problem = Problem.of(table, Switching(Latency.exactly(0.5), 100.0))
    seconds, joules, changes = late_cost(problem, np.array([0, 1]))

    # a: 0.5 s at the slow clocks of b (a quarter), then three quarters unlocked; b: 0.5 s unlocked (half), then half slow.
    assert seconds == approx(0.5 + 0.75 + 0.5 + 1.0)
    assert joules == approx(0.25 * 3 + 0.75 * 4 + 0.5 * 4 + 0.5 * 3)
    assert changes == 2


def test_plans_of_stalls_stay_in_time_where_the_effect_is_late(layer):
    from carbonreport.plan.late import late_cost

    table = layer(layers=6)
    switching = Switching(Latency.exactly(1e-4), 100.0)
    plan = solve(table, 0.02, switching)
    seconds, _, _ = late_cost(Problem.of(table, switching), np.array([table.pairs.index(pair) for pair in plan.pairs]))

    assert plan.switches > 0
    assert seconds <= 1.02 * table.baseline_seconds


def test_a_cap_is_taken_where_it_is_best():
    table = PlanTable(("a",), np.array([0, 0]), (UNLOCKED, ClockPair(900)), np.array([[1.0, 1.2]]), np.array([[1.0, 0.9]]))
    plan = solve(table, 0.05, caps=(Cap(300, 1.03, 0.95), Cap(250, 1.2, 0.8)))

    assert (plan.kind, plan.way.cap_watts, plan.energy_ratio) == ("cap", 300, 0.95)


def test_what_cannot_be_reached_is_said():
    table = PlanTable(("a",), np.array([0]), (UNLOCKED, ClockPair(900)), np.array([[1.0, 0.99]]), np.array([[1.0, 0.9]]))

    assert solve(table, -0.01).time_ratio == approx(0.99)
    with pytest.raises(PlanError, match=r"no plan takes -2\.00 % of time; .* -1\.00 %"):
        solve(table, -0.02)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pairs": (ClockPair(900), ClockPair(800))}, "unlocked"),
        ({"seconds": np.array([[1.0, -1.0]])}, "above 0"),
        ({"seconds": np.array([[1.0, np.nan]])}, "without"),
        ({"sequence": np.array([1])}, "sequence"),
        ({"passes": ("a", "b")}, "passes"),
        ({"seconds": np.ones((2, 2))}, "shape"),
    ],
)
def test_tables_that_cannot_be_are_refused(change, words):
    good = {
        "names": ("a",),
        "sequence": np.array([0]),
        "pairs": (UNLOCKED, ClockPair(900)),
        "seconds": np.ones((1, 2)),
        "joules": np.ones((1, 2)),
    }
    PlanTable(**good)

    with pytest.raises(PlanError, match=words):
        PlanTable(**(good | change))


def test_tiny_is_told_by_the_number_of_plans():
    problem, _ = small(0)
    assert exact.is_tiny(problem)
    assert not exact.is_tiny(Problem(np.zeros(20, int), np.ones((1, 9)), np.ones((1, 9)), np.zeros(9), np.zeros(9), np.zeros(9, int), 1.0))
