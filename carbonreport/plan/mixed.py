"""What plans cost at least that run parts of a kernel under different clocks, as late changes do. Pure.

A late change mixes clocks inside one kernel: its time and energy are those of its cells, weighed by the parts of its work. Plans that may mix as they
like are a linear problem whose dual is a single price of time; each price proves a bound.
"""

import numpy as np

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import Array

_ROUNDS = 60
_STEEPEST = 1e9  # prices, times the mean power


def mixed_lines(problem: Problem, watts: Array) -> Array:
    """Least energy plus price times time of a plan that may mix, at each price. [J] Shape (prices,)."""
    counts = np.bincount(problem.rows, minlength=len(problem.seconds))
    return np.array([float(counts @ (problem.joules + price * problem.seconds).min(axis=1)) for price in watts])


def mixed_bound(problem: Problem, budget_s: float) -> float:
    """No plan in time needs less, however it mixes. [J]

    The price is where the tangents of a too slow and a fast plan meet, until neither is beaten there: the linear problem's own optimum.
    """
    slow_s, slow_j = _cheapest(problem, 0.0)
    if slow_s <= budget_s:
        return slow_j
    seconds, joules = problem.constant()
    price = _STEEPEST * float(np.median(joules / seconds))
    fast_s, fast_j = _cheapest(problem, price)
    for _ in range(_ROUNDS):
        if fast_s >= slow_s or fast_s > budget_s:
            break
        price = (fast_j - slow_j) / (slow_s - fast_s)
        own_s, own_j = _cheapest(problem, price)
        if own_j + price * own_s >= (slow_j + price * slow_s) * (1 - 1e-13):
            break
        if own_s > budget_s:
            slow_s, slow_j = own_s, own_j
        else:
            fast_s, fast_j = own_s, own_j
    return max(0.0, float(mixed_lines(problem, np.array([price]))[0]) - price * budget_s)


def _cheapest(problem: Problem, price: float) -> tuple[float, float]:
    """Time and energy of the cheapest plan at a price of time, without switches. [s, J]"""
    best = (problem.joules + price * problem.seconds).argmin(axis=1)
    rows, counts = np.arange(len(problem.seconds)), np.bincount(problem.rows, minlength=len(problem.seconds))
    return float(counts @ problem.seconds[rows, best]), float(counts @ problem.joules[rows, best])
