"""Least energy times time, with or without a limit of time: a price of time touches the frontier from below, and the limit has one of its own. Pure."""

from dataclasses import replace

import numpy as np

from carbonreport.plan.prices import SLACK, Search, by_prices
from carbonreport.plan.problem import Problem
from carbonreport.plan.repair import repaired
from carbonreport.plan.table import Array, IntArray
from carbonreport.plan.viterbi import best_paths

_RANGE = np.append(0.0, np.geomspace(0.02, 50.0, 24))  # prices, times the mean power
_ROUNDS, _CHARGES = 6, 3


def by_product(problem: Problem, budget_s: float) -> tuple[IntArray | None, float]:
    """The plan of least energy times time that is in time, and a bound of that product. [J s]

    A product of two positive sums is least at a corner of the lower hull of (time, energy), which the cheapest plans at all prices are, or at the
    limit; at the best corner the price is energy / time, which repeated pricing reaches. The plan of least energy in time is looked for too, and plans
    of least energy whose time is charged at the price of the best one, with all that a search tries on its way.
    """
    limit_s = budget_s * (1 + SLACK)
    best = _Best(problem, limit_s)
    seconds, joules = problem.constant()
    for choice in np.flatnonzero(seconds <= limit_s):
        best.offer(np.full(problem.n, choice, dtype=np.intp))
    prices = float(np.median(joules / seconds)) * _RANGE
    watts, values = np.empty(0), np.empty(0)
    for _ in range(_ROUNDS):
        paths = best_paths(problem, prices)
        watts, values = np.append(watts, prices), np.append(values, paths.values)
        before = best.product
        for plan in paths.choices:
            best.offer(plan)
        if best.plan is None or best.product >= before * (1 - 1e-12):
            break
        prices = best.price * np.linspace(0.8, 1.25, 10)
    charge = 0.0
    for _ in range(_CHARGES):
        charged = _charged(problem, charge)
        search = Search(charged, min(budget_s, float(problem.seconds.sum()) * problem.n), charge_watts=charge)
        by_prices(search)
        repaired(search)
        watts, values = np.append(watts, charge), np.append(values, search.bound_joules)
        for found in (search.best, search.best_product_plan):
            if found is not None:
                best.offer(found)
        if best.plan is None or abs(best.price - charge) <= 1e-3 * charge:
            break
        charge = best.price
    return best.plan, product_bound(watts, values, float(problem.seconds.min(axis=1)[problem.rows].sum()), limit_s)


class _Best:
    """The plan of least product that is in time."""

    def __init__(self, problem: Problem, limit_s: float) -> None:
        self._problem, self._limit_s = problem, limit_s
        self.plan: IntArray | None = None
        self.product, self.price = np.inf, 0.0

    def offer(self, plan: IntArray) -> None:
        seconds, joules = self._problem.cost(plan)
        if seconds <= self._limit_s and seconds * joules < self.product:
            self.plan, self.product, self.price = plan.copy(), seconds * joules, joules / seconds


def _charged(problem: Problem, watts: float) -> Problem:
    """The problem with a price of time in its energy."""
    return replace(problem, joules=problem.joules + watts * problem.seconds, stall_watts=problem.stall_watts + watts)


def product_bound(watts: Array, values: Array, least_s: float, most_s: float) -> float:
    """Least time times energy above all lines energy = value - price * time between two times. [J s]

    The lines, a level one (a price of 0) among them, bound the energy from below. Between two corners of the highest of them the product is concave, so
    that it is least at a corner or an end; without a last time the level line is the highest in the end, and the product rises on it.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = (values[None] - values[:, None]) / (watts[None] - watts[:, None])
    at_s = meets[np.isfinite(meets) & (meets > least_s) & (meets < most_s)]
    at_s = np.unique(np.append(at_s, [least_s, most_s] if np.isfinite(most_s) else [least_s]))
    envelope = (values[None] - watts[None] * at_s[:, None]).max(axis=1)
    return float((at_s * np.maximum(envelope, 0)).min())
