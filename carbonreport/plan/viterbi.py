"""Cheapest plans for given prices of time, all prices at once; and what any plan that switches costs at least. Pure.

At a price (watts: joules paid per second) the plan that costs least is a shortest path over the invocations. A change costs by its target alone
(and by whether the memory clock changes), so that a step needs the best choice before, not all of them: O(n K) and not O(n K^2).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import Array, IntArray

_MOST_KEPT = 20_000_000  # cells of priced rows that are made beforehand


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Best plan at each price.

    Attributes:
        choices: Choice of each invocation. Shape (prices, n).
        values: Price of each, without the change back to its start where none was given. [J] Shape (prices,).
    """

    choices: IntArray
    values: Array


class _Prices:
    """Rows of the table priced: joules + price * seconds. Shape of one (prices, choices)."""

    def __init__(self, problem: Problem, watts: Array) -> None:
        self._problem, self._watts = problem, watts[:, None]
        small = problem.seconds.size * watts.size <= _MOST_KEPT
        self._kept = problem.joules[:, None, :] + self._watts[None] * problem.seconds[:, None, :] if small else None

    def of(self, row: int) -> Array:
        if self._kept is not None:
            return np.asarray(self._kept[row])
        return np.asarray(self._problem.joules[row] + self._watts * self._problem.seconds[row])

    def waits(self, seconds: Array) -> Array:
        """Price of changes that last so long. Shape (prices, choices)."""
        return np.asarray(seconds * (self._watts + self._problem.stall_watts))


def best_paths(problem: Problem, watts: Array, first: IntArray | None = None) -> Paths:
    """The cheapest plan at each price of time.

    Args:
        problem: What is planned.
        watts: Prices. [J/s] Shape (prices,).
        first: Choice of the first invocation at each price; then the change from the last one back to it is counted, and the plan is the best
            cyclic one with that start. Shape (prices,).
    """
    prices = _Prices(problem, watts)
    every, n, k = np.arange(watts.size), problem.n, problem.near_s.size
    far = prices.waits(problem.far_s)
    near = prices.waits(problem.near_s) if problem.has_memory else None
    dp = prices.of(int(problem.rows[0])).copy()
    if first is not None:
        held = dp[every, first]
        dp = np.full_like(dp, np.inf)
        dp[every, first] = held
    stays = np.empty((n, watts.size, k), dtype=bool)
    best = np.empty((n, watts.size), dtype=np.int32)
    groups = _Groups(problem.memory) if near is not None else None
    for i in range(1, n):
        best[i] = dp.argmin(axis=1)
        other = dp[every, best[i]][:, None] + far
        if groups is not None and near is not None:
            other = np.minimum(other, groups.least(dp, i) + near)
        np.less_equal(dp, other, out=stays[i])
        dp = np.minimum(dp, other)
        dp += prices.of(int(problem.rows[i]))
    if first is not None:
        dp = dp + _back(problem, prices, first)
    last = dp.argmin(axis=1)
    values = dp[every, last]
    return Paths(_traced(problem, prices, last, stays, best, groups), values)


class _Groups:
    """The best choice with each memory clock, kept for the way back."""

    def __init__(self, memory: IntArray) -> None:
        self._memory = memory
        self._members = [np.flatnonzero(memory == g) for g in range(int(memory.max()) + 1)]
        self._bests: dict[int, tuple[IntArray, Array]] = {}

    def least(self, dp: Array, step: int) -> Array:
        """Value of the best choice before with the memory clock of each choice. Shape (prices, choices)."""
        every = np.arange(dp.shape[0])
        bests = np.stack([members[dp[:, members].argmin(axis=1)] for members in self._members], axis=1)
        values = dp[every[:, None], bests]
        self._bests[step] = (bests, values)
        return np.asarray(values[:, self._memory])

    def before(self, step: int, price: int, choice: int) -> tuple[int, float]:
        """Best choice before with the same memory clock, and its value."""
        bests, values = self._bests[step]
        group = self._memory[choice]
        return int(bests[price, group]), float(values[price, group])

    def globally(self, step: int, price: int) -> float:
        """Value of the best choice before."""
        return float(self._bests[step][1][price].min())


def _traced(
    problem: Problem, prices: _Prices, last: IntArray, stays: NDArray[np.bool_], best: NDArray[np.int32], groups: _Groups | None
) -> IntArray:
    """Choices from the last one back to the first. Shape (prices, n)."""
    every = np.arange(last.size)
    plans = np.empty((last.size, problem.n), dtype=np.intp)
    choice = plans[:, -1] = last
    if groups is not None:
        far, near = prices.waits(problem.far_s), prices.waits(problem.near_s)
    for i in range(problem.n - 1, 0, -1):
        left = best[i].astype(np.intp)
        if groups is not None:
            for b in every:
                mate, value = groups.before(i, int(b), int(choice[b]))
                if value + near[b, choice[b]] <= groups.globally(i, int(b)) + far[b, choice[b]]:
                    left[b] = mate
        choice = plans[:, i - 1] = np.where(stays[i, every, choice], choice, left)
    return plans


def _back(problem: Problem, prices: _Prices, first: IntArray) -> Array:
    """Price of the change from each last choice back to the first one. Shape (prices, choices)."""
    choices = np.arange(problem.near_s.size)
    seconds = np.stack([problem.switch_s(choices, np.full_like(choices, f)) for f in first])
    return prices.waits(seconds)


def least_with_switches(problem: Problem, watts: Array) -> Array:
    """What a cyclic plan costs at least that is not one choice all along, at each price. [J] Shape (prices,).

    Such a plan changes twice or more in a cycle. Counted here: no change yet, one, or more; one alone is paired with the one back. Where the
    memory clock matters the shorter latency is taken, so that it stays a lower bound.
    """
    prices = _Prices(problem, watts)
    wait = prices.waits(problem.near_s)
    none = prices.of(int(problem.rows[0])).copy()
    one, more = np.full_like(none, np.inf), np.full_like(none, np.inf)
    for i in range(1, problem.n):
        now = prices.of(int(problem.rows[i]))
        one_before = one.min(axis=1, keepdims=True)
        more = np.minimum(more, np.minimum(more.min(axis=1, keepdims=True), one_before) + wait)
        more += now
        one = np.minimum(one, none.min(axis=1, keepdims=True) + wait)
        one += now
        none = none + now
    return np.asarray(np.minimum(one.min(axis=1) + wait.min(axis=1), more.min(axis=1)))
