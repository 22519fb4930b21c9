"""Least energy times time: the plan lies where a price of time touches the frontier from below. Pure."""

import numpy as np

from carbonreport.plan.prices import Search
from carbonreport.plan.problem import Problem
from carbonreport.plan.table import Array, IntArray
from carbonreport.plan.viterbi import best_paths

_RANGE = np.geomspace(0.02, 50.0, 24)  # prices, times the mean power
_ROUNDS = 6


def by_product(problem: Problem, limit_s: float) -> tuple[IntArray | None, float]:
    """The plan of least energy times time that is in time, and a bound of that product. [J s]

    A product of two positive sums is least at a corner of the lower hull of (time, energy), which the cheapest plans at all prices are; at the best
    corner the price is energy / time, which repeated pricing reaches.
    """
    seconds, joules = problem.constant()
    search = Search(problem, float(limit_s))
    prices = float(np.median(joules / seconds)) * _RANGE
    values = np.empty(0)
    tried = np.empty(0)
    best, product = None, np.inf
    for choice in np.flatnonzero(seconds <= search.limit_s):
        if seconds[choice] * joules[choice] < product:
            best, product = np.full(problem.n, choice, dtype=np.intp), float(seconds[choice] * joules[choice])
    for _ in range(_ROUNDS):
        paths = best_paths(problem, prices)
        tried, values = np.append(tried, prices), np.append(values, paths.values)
        before = product
        for plan in paths.choices:
            s, j = problem.cost(plan)
            if s <= search.limit_s and s * j < product:
                best, product = plan, s * j
        if best is None or product >= before * (1 - 1e-12):
            break
        s, j = problem.cost(best)
        prices = j / s * np.linspace(0.8, 1.25, 10)
    return best, _bound(tried, values, float(problem.seconds.min(axis=1)[problem.rows].sum()))


def _bound(watts: Array, values: Array, least_s: float) -> float:
    """Least time times energy above all lines energy = value - price * time; on a line the product is concave, so at its ends."""
    order = np.argsort(watts)
    watts, values = watts[order], values[order]
    with np.errstate(divide="ignore", invalid="ignore"):
        meets = (values[None] - values[:, None]) / (watts[None] - watts[:, None])
    at_s = meets[np.isfinite(meets) & (meets > least_s)]
    at_s = np.append(at_s, least_s)
    envelope = (values[None] - watts[None] * at_s[:, None]).max(axis=1)
    return float((at_s * np.maximum(envelope, 0)).min())
