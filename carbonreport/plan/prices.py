"""The search for the price of time at which plans are just fast enough; and the bound that it proves. Pure."""

from dataclasses import dataclass

import numpy as np

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import Array, IntArray
from carbonreport.plan.viterbi import best_paths, least_with_switches

SLACK = 1e-9  # of the budget, so that rounding refuses nothing
_PER_ROUND, _ROUNDS, _BOUND_ROUNDS = 8, 4, 2
_CLOSE = 2e-4  # of the energy: a gap that nobody looks closer at
_RANGE = np.geomspace(0.02, 60.0, 7)  # prices first tried, times the mean power
_STEEPEST = 1e7


@dataclass(slots=True)
class Search:
    """What was found so far under one budget.

    Attributes:
        problem: What is planned.
        budget_s: Longest time that is allowed. [s]
        bound_joules: No plan in time needs less, as far as is proved. [J]
        best: Best plan in time, or None.
        best_joules: Its energy. [J]
        slow: A plan that is cheaper and too slow, nearest to the budget, or None.
        fast: The plan in time at the lowest price, or None.
        bracket: Prices of the two. [W]
        charge_watts: Price of time that the problem's energy already holds, where energy times time is to be small. [W]
        best_product_plan: Plan in time of least energy (without that price) times time.
        best_product: Its product. [J s]
    """

    problem: Problem
    budget_s: float
    bound_joules: float = 0.0
    best: IntArray | None = None
    best_joules: float = float("inf")
    slow: IntArray | None = None
    fast: IntArray | None = None
    bracket: tuple[float, float] = (0.0, 0.0)
    charge_watts: float = 0.0
    best_product_plan: IntArray | None = None
    best_product: float = float("inf")

    @property
    def limit_s(self) -> float:
        """The budget with room for rounding. [s]"""
        return self.budget_s * (1 + SLACK)

    def offer(self, choices: IntArray) -> tuple[float, float]:
        """Take a plan if it is in time and better; its time and energy. [s, J]"""
        seconds, joules = self.problem.cost(choices)
        if seconds <= self.limit_s and joules < self.best_joules:
            self.best, self.best_joules = choices.copy(), joules
        product = seconds * (joules - self.charge_watts * seconds)
        if seconds <= self.limit_s and product < self.best_product:
            self.best_product_plan, self.best_product = choices.copy(), product
        return seconds, joules

    @property
    def gap(self) -> float:
        """How much less a better plan could need at most, as a share."""
        return 1.0 if self.best is None else max(0.0, 1 - self.bound_joules / self.best_joules)


def by_prices(search: Search) -> None:
    """Find the price at which the cheapest plan is just in time; keep both plans beside it, and the bound."""
    problem = search.problem
    seconds, joules = problem.constant()
    held = np.where(seconds <= search.limit_s, joules, np.inf)
    if np.isfinite(held).any():
        search.offer(np.full(problem.n, int(held.argmin()), dtype=np.intp))
    mean_watts = float(np.median(joules / seconds))
    low, high = _looked_at(search, np.concatenate([[0.0], mean_watts * _RANGE]))
    while high is None and low < _STEEPEST * mean_watts:
        low, high = _looked_at(search, low * np.geomspace(4.0, 1e4, 4))
    if high is None:
        return
    for _ in range(_ROUNDS - 1):
        if (low == 0 and high == 0) or search.gap < _CLOSE / 20:
            break
        low, high = _narrowed(search, low, high)
    search.bracket = (low, high)
    _close(search)
    _bound_with_switches(search)


def _looked_at(search: Search, watts: Array) -> tuple[float, float | None]:
    """Plans at rising prices: the highest price that is too slow, and the lowest that is in time."""
    paths = best_paths(search.problem, watts)
    search.bound_joules = max(search.bound_joules, float(np.max(paths.values - watts * search.limit_s)))
    low = float(watts[0])
    for price, choices in zip(watts, paths.choices, strict=True):
        seconds, _ = search.offer(choices)
        if seconds <= search.limit_s:
            search.fast = choices
            return (low if search.slow is not None else 0.0), float(price)
        low, search.slow = float(price), choices
    return low, None


def _narrowed(search: Search, low: float, high: float) -> tuple[float, float]:
    if low == high == 0:
        return low, high
    inside = np.linspace(low, high, _PER_ROUND + 2)[1:-1]
    below, above = _looked_at(search, inside)
    if above is None:
        return below, high
    return (low if above == inside[0] else below), above


def _close(search: Search) -> None:
    """Try the best cyclic plans with the starts that the open plans have at their ends."""
    if search.problem.is_free:
        return
    prices, firsts = [], []
    for price, choices in zip(search.bracket, (search.slow, search.fast), strict=True):
        if choices is not None and choices[0] != choices[-1]:
            for first in (choices[0], choices[-1]):
                prices.append(price)
                firsts.append(int(first))
    if prices:
        for choices in best_paths(search.problem, np.array(prices), np.array(firsts, dtype=np.intp)).choices:
            search.offer(choices)


def _bound_with_switches(search: Search) -> None:
    """A higher bound: a plan is one choice all along, and the best of these is known, or it pays for two changes at least."""
    problem = search.problem
    if problem.is_free or search.gap < _CLOSE or search.bracket[1] == 0:
        return
    seconds, joules = problem.constant()
    one_choice = float(np.where(seconds <= search.limit_s, joules, np.inf).min())
    low, high = search.bracket[0] / 3, search.bracket[1] * 3
    for _ in range(_BOUND_ROUNDS):
        watts = np.linspace(low, high, _PER_ROUND)
        bounds = least_with_switches(problem, watts) - watts * search.limit_s
        top = int(bounds.argmax())
        low, high = float(watts[max(top - 1, 0)]), float(watts[min(top + 1, watts.size - 1)])
        search.bound_joules = max(search.bound_joules, min(one_choice, float(bounds[top])))
        if search.gap < _CLOSE:
            return
