"""The least energy within a slowdown, switches paid for; never worse than nothing, one pair, a pair a pass that it found, or a power cap. Pure."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.plan.aggregate import open_cells
from carbonreport.plan.coarse import best_pair_of_names, by_passes
from carbonreport.plan.edp import by_product, product_bound
from carbonreport.plan.exact import every_plan, is_tiny, worth_having
from carbonreport.plan.few import MOST_STEPS, best_of_few
from carbonreport.plan.late import asked_early, late_cost
from carbonreport.plan.mixed import mixed_bound, mixed_lines
from carbonreport.plan.prices import SLACK, Search, by_prices
from carbonreport.plan.problem import Problem, switches_of
from carbonreport.plan.repair import repaired
from carbonreport.plan.result import KINDS, Aggregation, Cap, Kind, Objective, Plan, Way
from carbonreport.plan.switching import FREE_SWITCHING, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, IntArray, PlanError, PlanTable

_EQUAL = 1e-9  # energy ratios that differ by less are equal, and the simpler way is taken
_LATE_LATENCIES = (0.0, 0.25, 1.0)  # times the latency: plans that are tried where the effect is merely late
_LATE_BUDGETS = 4
_MIXED_PRICES = np.geomspace(0.02, 50.0, 60)  # times the mean power


def solve(
    table: PlanTable,
    slowdown: float | None = 0.0,
    switching: Switching = FREE_SWITCHING,
    *,
    objective: Objective = "waste",
    aggregation: Aggregation = "global",
    caps: Sequence[Cap] = (),
    with_kernels: bool = True,
) -> Plan:
    """The best way to run the iteration of a table.

    Args:
        table: What kernels cost under each pair of clocks.
        slowdown: Share by which an iteration may be longer than unlocked; None for no limit.
        switching: What changes of clocks cost.
        objective: "waste": least energy within the slowdown; "edp": least energy times time within it.
        aggregation: "global": the sum of times counts; "local": besides, no kernel may be slower by more than that (under "edp", each kernel takes
            the clocks of its own least energy times time, or none).
        caps: Power caps that were measured over the same work.
        with_kernels: Whether plans kernel by kernel are looked for; without, one pair, a pair a pass and caps alone.

    Raises:
        PlanError: No plan is so fast: the slowdown is below 0 and nothing reaches it.
    """
    if slowdown is not None and not -1 < slowdown < np.inf:
        raise PlanError(f"a slowdown of {slowdown:g} cannot be; 0.01 is 1 % longer")
    limit = np.inf if slowdown is None else (1 + slowdown) * (1 + SLACK)
    n = table.sequence.size
    ways = [Way("none", (UNLOCKED,) * n, 1.0, 1.0)]
    ways += [Way("cap", (), cap.time_ratio, cap.energy_ratio, cap_watts=cap.cap_watts, is_whole=True) for cap in caps]
    allowed = open_cells(table, slowdown, objective) if aggregation == "local" else None
    found, bound, is_exact = _fine(table, slowdown, switching, objective, allowed, with_kernels=with_kernels)
    ways += found
    if table.whole is not None:
        ways += _of_whole(table, table.whole, slowdown, switching, objective)
    in_time = [way for way in ways if way.time_ratio <= limit]
    if not in_time:
        fastest = float(np.nanmin(table.seconds, axis=1) @ table.counts) / table.baseline_seconds
        raise PlanError(
            f"no plan takes {100 * (slowdown or 0):+.2f} % of time; the fastest clocks of each kernel, without any switch, take {100 * (fastest - 1):+.2f} %"
        )
    best = _least(in_time, objective)
    others = tuple(
        _least([way for way in in_time if way.kind == kind], objective) for kind in KINDS if any(w.kind == kind for w in in_time)
    )
    return Plan(best, others, slowdown, objective, _bound(bound, best, objective), is_exact, switching.stall_watts)


def _bound(proved: float, best: Way, objective: Objective) -> float:
    """What was proved of the kernels' plans; what was measured as a whole can be better. Rounding alone is taken out."""
    score = best.score(objective)
    return min(proved, score) if best.is_whole or proved <= score * (1 + _EQUAL) else proved


def _least(ways: Sequence[Way], objective: Objective) -> Way:
    """The best, the simplest of equals."""
    least = min(way.score(objective) for way in ways)
    return min((way for way in ways if way.score(objective) <= least + _EQUAL), key=lambda way: (way.switches, KINDS.index(way.kind)))


def _fine(
    table: PlanTable,
    slowdown: float | None,
    switching: Switching,
    objective: Objective,
    allowed: NDArray[np.bool_] | None,
    *,
    with_kernels: bool,
) -> tuple[list[Way], float, bool]:
    """One pair all along, a pair a pass, and pairs kernel by kernel, put together from kernels; with the bound of the score."""
    whole = Problem.of(table, switching, allowed)
    kept = worth_having(whole)
    problem = whole.only(kept)
    pairs = tuple(table.pairs[c] for c in kept)
    budget_s = np.inf if slowdown is None else (1 + slowdown) * table.baseline_seconds
    make = _Maker(table, problem, pairs, switching)
    seconds, joules = problem.constant()
    score = joules if objective == "waste" else joules * seconds
    in_time = np.where(seconds <= budget_s * (1 + SLACK), score, np.inf)
    ways: list[Way] = []
    if np.isfinite(in_time).any():
        ways += make.ways("static", [np.full(problem.n, int(in_time.argmin()), dtype=np.intp)])
    plan, bound, is_exact = _searched(problem, budget_s, objective) if with_kernels else (None, 0.0, False)
    if table.passes:
        coarse, members = by_passes(problem, table.passes)
        is_same = with_kernels and coarse.n == problem.n
        found = [
            plan if is_same else _searched(coarse, budget_s, objective)[0],
            best_pair_of_names(coarse, table.passes, budget_s, objective),
        ]
        ways += make.ways("pass", [steps[members] for steps in found if steps is not None])
    if not with_kernels:
        return ways, 0.0, False
    scale = table.baseline_joules * (table.baseline_seconds if objective == "edp" else 1.0)
    if switching.effect == "late" and not problem.is_free:
        return [*ways, *_late(make, budget_s, objective)], _mixed(problem, budget_s, objective) / scale, False
    if plan is not None:
        ways += make.ways("kernel", [plan])
    return ways, bound / scale, is_exact


def _searched(problem: Problem, budget_s: float, objective: Objective) -> tuple[IntArray | None, float, bool]:
    """Best plan, bound of its score, and whether no plan can be better."""
    limit_s = budget_s * (1 + SLACK)
    if is_tiny(problem):
        plans, seconds, joules = every_plan(problem)
        score = np.where(seconds <= limit_s, joules if objective == "waste" else joules * seconds, np.inf)
        best = int(score.argmin())
        return (plans[best], float(score[best]), True) if np.isfinite(score[best]) else (None, 0.0, True)
    price = 0.0
    if objective == "edp":
        plan, bound = by_product(problem, budget_s)
    else:
        search = Search(problem, min(budget_s, float(problem.seconds.sum()) * problem.n))
        by_prices(search)
        repaired(search)
        plan, bound, price = search.best, search.bound_joules, sum(search.bracket) / 2
    if problem.n > MOST_STEPS:
        return plan, bound, False
    seconds_joules = problem.constant() if plan is None else problem.cost(plan)
    mean_watts = float(np.median(np.asarray(seconds_joules[1]) / np.asarray(seconds_joules[0])))
    plan, is_proved = best_of_few(problem, limit_s, objective, plan, price or mean_watts)
    if not is_proved or plan is None:
        return plan, bound, False
    least_s, least_j = problem.cost(plan)
    return plan, max(bound, (least_j if objective == "waste" else least_j * least_s) * (1 - _EQUAL)), True


def _mixed(problem: Problem, budget_s: float, objective: Objective) -> float:
    """Bound of the score of plans that may run parts of a kernel under different clocks."""
    if objective == "waste":
        return mixed_bound(problem, budget_s * (1 + SLACK))
    seconds, joules = problem.constant()
    watts = np.append(0.0, float(np.median(joules / seconds)) * _MIXED_PRICES)
    least_s = float(problem.seconds.min(axis=1)[problem.rows].sum())
    return product_bound(watts, mixed_lines(problem, watts), least_s, budget_s * (1 + SLACK))


class _Maker:
    """Ways out of choices, with the effect of the switches that is planned with."""

    def __init__(self, table: PlanTable, problem: Problem, pairs: tuple[ClockPair, ...], switching: Switching) -> None:
        self.table, self.problem, self.pairs, self.switching = table, problem, pairs, switching

    def ways(self, kind: Kind, plans: Sequence[IntArray]) -> list[Way]:
        """Those of them whose cost settles."""
        return [way for way in (self.way(kind, plan) for plan in plans) if way is not None]

    def way(self, kind: Kind, choices: IntArray) -> Way | None:
        """A plan as it turns out; None where late changes never settle into a pattern, so that nobody can say."""
        changes = switches_of(choices)
        if self.switching.effect == "late" and changes:
            cost = late_cost(self.problem, choices)
            if cost is None:
                return None
            seconds, joules, changes = cost
        else:
            seconds, joules = self.problem.cost(choices)
        held = tuple(self.pairs[c] for c in choices)
        if len(set(held)) == 1:
            kind = "none" if held[0] == UNLOCKED else "static"
        return Way(kind, held, seconds / self.table.baseline_seconds, joules / self.table.baseline_joules, changes)


def _late(make: _Maker, budget_s: float, objective: Objective) -> list[Way]:
    """Plans for several latencies, asked for at once or ahead of time, each as it turns out where the effect is late.

    Where one turns out too slow, it is planned again for less time.
    """
    ways: list[Way] = []
    for times in _LATE_LATENCIES:
        problem = replace(make.problem, near_s=times * make.problem.near_s, far_s=times * make.problem.far_s)
        for is_early in (False, True):
            allowed_s = budget_s
            for _ in range(_LATE_BUDGETS):
                plan, _, _ = _searched(problem, allowed_s, objective)
                if plan is None:
                    break
                way = make.way("kernel", asked_early(make.problem, plan) if is_early else plan)
                if way is None:
                    break
                ways.append(way)
                excess_s = way.time_ratio * make.table.baseline_seconds - budget_s
                if excess_s <= budget_s * SLACK:
                    break
                allowed_s -= 1.1 * excess_s
    return ways


def _of_whole(table: PlanTable, whole: PlanTable, slowdown: float | None, switching: Switching, objective: Objective) -> list[Way]:
    """The same from passes that were measured as a whole; their ratios are to their own baseline."""
    ways = solve(whole, slowdown, switching, objective=objective).others
    return [lifted for lifted in (way_of_whole(table, whole, way) for way in ways) if lifted is not None]


def way_of_whole(table: PlanTable, whole: PlanTable, way: Way) -> Way | None:
    """A way of passes that were measured as a whole, spelt out for each invocation; None for unlocked clocks, and for passes that the table lacks."""
    has_passes = bool(table.passes and whole.passes)
    if way.kind == "none" or (len(set(way.pairs)) > 1 and not has_passes):
        return None
    by_pass = dict(zip(whole.passes, way.pairs, strict=bool(whole.passes)))
    pairs = tuple(by_pass[name] for name in table.passes) if has_passes else (way.pairs[0],) * table.sequence.size
    return replace(way, kind="static" if way.kind == "static" else "pass", pairs=pairs, is_whole=True)
