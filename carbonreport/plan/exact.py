"""Every plan of a tiny problem, and pairs of clocks that no plan can want. Pure."""

import numpy as np

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import Array, IntArray

MOST_PLANS = 300_000
_MOST_COMPARISONS = 60_000_000


def is_tiny(problem: Problem) -> bool:
    """Whether all plans can be looked at."""
    return bool(problem.n * np.log(max(problem.near_s.size, 1)) <= np.log(MOST_PLANS))


def every_plan(problem: Problem) -> tuple[IntArray, Array, Array]:
    """All plans with their time and energy. [s, J] Shapes (plans, n), (plans,), (plans,)."""
    k, n = problem.near_s.size, problem.n
    plans = np.stack(np.unravel_index(np.arange(k**n), (k,) * n), axis=1).astype(np.intp)
    stalled = np.zeros(len(plans))
    for i in range(n):
        stalled += problem.switch_s(plans[:, i - 1], plans[:, i])
    seconds = problem.seconds[problem.rows, plans].sum(axis=1) + stalled
    joules = problem.joules[problem.rows, plans].sum(axis=1) + stalled * problem.stall_watts
    return plans, seconds, joules


def worth_having(problem: Problem) -> IntArray:
    """Choices that are not slower and dearer than one other choice in every row: the others can be left out of any search.

    To put the better one in the place of the other, wherever it stands in a plan, never adds a change, time or energy.
    """
    k, rows = problem.near_s.size, len(problem.seconds)
    if problem.seconds.size * k > _MOST_COMPARISONS:
        return np.arange(k)
    cells = np.concatenate([problem.seconds, problem.joules, problem.near_s[None], problem.far_s[None]]).T.copy()
    memory = problem.memory if problem.has_memory else np.zeros(k, dtype=np.intp)
    kept, held = np.empty((k, 2 * rows + 2)), np.empty(k, dtype=np.intp)
    count = 0
    for c in np.argsort(problem.constant()[1], kind="stable"):
        is_better = (kept[:count] <= cells[c]).all(axis=1) & (memory[held[:count]] == memory[c])
        if not is_better.any():
            kept[count], held[count] = cells[c], c
            count += 1
    return np.sort(held[:count])
