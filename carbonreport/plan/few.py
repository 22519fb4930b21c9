"""The best plan of few steps, proved, however many clocks there are: begun plans are dropped that no end makes better. Pure.

What a begun plan costs at least until it is back at its start is known at several prices of time, for each start and each choice. Of begun plans with
the same start and the same last choice those are kept that no other beats in time and energy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.plan.problem import Problem
from carbonreport.plan.result import Objective
from carbonreport.plan.table import Array, IntArray

MOST_STEPS = 8
_MOST_TABLE, _MOST_BEGUN, _MOST_TRIED, _CHUNK = 40_000_000, 300_000, 60_000_000, 200_000
_PRICES = np.array([0.25, 0.5, 0.8, 1.0, 1.25, 2.0, 4.0])  # times the one that is near the best
_SAME = 1e-10  # of the score: what is better by less is not looked for


@dataclass(frozen=True, slots=True, eq=False)
class _Aim:
    """What a plan must be to be better than the best that is known.

    Attributes:
        objective: Energy, or energy times time.
        limit_s: Longest time. [s]
        score: To be beaten.
        watts: Prices of time, rising from 0. Shape (prices,).
    """

    objective: Objective
    limit_s: float
    score: float
    watts: Array

    def is_open(self, values: Array) -> NDArray[np.bool_]:
        """Whether a plan may be better whose priced costs, and whose time in the last line, are at least these. Shape (prices + 1, …) to (…)."""
        least_s = values[-1]
        if self.objective == "waste":
            over = values[:-1] - _beside(self.watts, values) * min(self.limit_s, 1e300) if np.isfinite(self.limit_s) else values[:1]
            return np.asarray((least_s <= self.limit_s) & (over.max(axis=0) < self.score))
        reach = least_s.copy()
        for price, value in zip(self.watts[:0:-1], values[-2:0:-1], strict=True):  # the steepest first: it rules out the shortest times
            root = np.sqrt(np.maximum(value**2 - 4 * price * self.score, 0.0))
            is_ruled_out = (value - root <= 2 * price * reach) & (root > 0)
            reach = np.where(is_ruled_out, np.maximum(reach, (value + root) / (2 * price)), reach)
        with np.errstate(over="ignore"):
            return np.asarray((reach <= self.limit_s) & (reach * values[0] < self.score))


def _beside(watts: Array, values: Array) -> Array:
    return watts.reshape(-1, *(1,) * (values.ndim - 1))


def best_of_few(
    problem: Problem, limit_s: float, objective: Objective, known: IntArray | None, price: float
) -> tuple[IntArray | None, bool]:
    """The best plan, and whether that is proved; the known one where it takes too long to look.

    Args:
        problem: Of few steps.
        limit_s: Longest time, with room for rounding. [s]
        objective: Energy, or energy times time.
        known: A good plan in time, or None.
        price: A price of time near that of the best plan; the nearer, the less is looked at. [W]
    """
    k = problem.near_s.size
    watts = np.unique(np.concatenate([[0.0], price * _PRICES]))
    if problem.n > MOST_STEPS or (watts.size + 1) * k * k * problem.n > _MOST_TABLE:
        return known, False
    score = np.inf
    if known is not None:
        seconds, joules = problem.cost(known)
        score = (joules if objective == "waste" else joules * seconds) * (1 - _SAME)
    aim = _Aim(objective, limit_s, score, watts)
    costs = _Costs(problem, watts)
    to_go = costs.to_go()
    opens = costs.open_choices(to_go, aim)
    if any(choices.size == 0 for choices in opens):
        return known, True
    return _grown(problem, costs, to_go, opens, aim, known)


class _Costs:
    """Priced costs of steps and changes: one line a price, and one of time alone. Shape of one step (prices + 1, choices)."""

    def __init__(self, problem: Problem, watts: Array) -> None:
        of_energy, of_time = np.append(np.ones_like(watts), 0.0), np.append(watts, 1.0)
        self.of_energy, self.of_time = of_energy, of_time
        self.steps = [of_energy[:, None] * problem.joules[row] + of_time[:, None] * problem.seconds[row] for row in problem.rows]
        self.per_wait = of_time + of_energy * problem.stall_watts
        self.near, self.far = (self.per_wait[:, None] * waits for waits in (problem.near_s, problem.far_s))
        choices = np.arange(problem.near_s.size)
        self.waits_s = problem.switch_s(choices[:, None], choices[None, :])
        self.members = [np.flatnonzero(problem.memory == group) for group in np.unique(problem.memory)]

    def to_go(self) -> list[Array]:
        """Least cost after each step until the plan is back at its start. Shapes (prices + 1, starts, choices)."""
        tables = [self.per_wait[:, None, None] * self.waits_s.T[None]]
        for step in self.steps[:0:-1]:
            entered = step[:, None, :] + tables[-1]
            least = np.minimum(entered, (entered + self.far[:, None, :]).min(axis=2, keepdims=True))
            for group in self.members:
                mates = (entered[:, :, group] + self.near[:, None, group]).min(axis=2, keepdims=True)
                least[:, :, group] = np.minimum(least[:, :, group], mates)
            tables.append(least)
        return tables[::-1]

    def open_choices(self, to_go: list[Array], aim: _Aim) -> list[IntArray]:
        """Choices of each step that a better plan may have."""
        k = self.waits_s.shape[0]
        so_far = np.where(np.eye(k, dtype=bool)[None], self.steps[0][:, :, None], np.inf)
        found = []
        for i, table in enumerate(to_go):
            if i:
                left = so_far
                so_far = np.minimum(left, left.min(axis=2, keepdims=True) + self.far[:, None, :])
                for group in self.members:
                    mates = left[:, :, group].min(axis=2, keepdims=True) + self.near[:, None, group]
                    so_far[:, :, group] = np.minimum(so_far[:, :, group], mates)
                so_far = so_far + self.steps[i][:, None, :]
            found.append(np.flatnonzero(aim.is_open(np.asarray((so_far + table).min(axis=1)))))
        return found


def _grown(
    problem: Problem, costs: _Costs, to_go: list[Array], opens: list[IntArray], aim: _Aim, known: IntArray | None
) -> tuple[IntArray | None, bool]:
    """Plans grown step by step from every start."""
    start = last = opens[0]
    seconds, joules = problem.seconds[problem.rows[0], start], problem.joules[problem.rows[0], start]
    held = [(np.arange(start.size), last)]
    tried = 0
    for i in range(1, problem.n):
        row, choices = problem.rows[i], opens[i]
        tried += start.size * choices.size
        if tried > _MOST_TRIED or start.size > _MOST_BEGUN:
            return known, False
        parts = []
        for chunk in np.array_split(np.arange(start.size), 1 + start.size * choices.size // _CHUNK):
            waits = costs.waits_s[last[chunk][:, None], choices[None]]
            s = seconds[chunk][:, None] + waits + problem.seconds[row, choices]
            j = joules[chunk][:, None] + waits * problem.stall_watts + problem.joules[row, choices]
            ends = to_go[i][:, start[chunk][:, None], choices[None]]
            values = costs.of_energy[:, None, None] * j + costs.of_time[:, None, None] * s + ends
            at, which = np.nonzero(aim.is_open(values))
            parts.append((chunk[at], choices[which], s[at, which], j[at, which]))
        parent, last, seconds, joules = (np.concatenate(values) for values in zip(*parts, strict=True))
        kept = _unbeaten(start[parent] * costs.waits_s.shape[0] + last, seconds, joules)
        parent, last, seconds, joules = parent[kept], last[kept], seconds[kept], joules[kept]
        start = start[parent]
        held.append((parent, last))
    if start.size == 0:
        return known, True
    waits = costs.waits_s[last, start]
    seconds, joules = seconds + waits, joules + waits * problem.stall_watts
    scores = np.where(seconds <= aim.limit_s, joules if aim.objective == "waste" else joules * seconds, np.inf)
    best = int(scores.argmin())
    return (_traced(held, best), True) if scores[best] < aim.score else (known, True)


def _unbeaten(groups: IntArray, seconds: Array, joules: Array) -> IntArray:
    """Those of each group with less energy than all faster ones."""
    order = np.lexsort((joules, seconds, groups))
    if order.size == 0:
        return order
    rank = np.cumsum(np.append(0, np.diff(groups[order]) != 0))
    lowered = joules[order] - rank * 2 * float(joules.max())
    before = np.append(np.inf, np.minimum.accumulate(lowered)[:-1])
    return np.asarray(order[lowered < before], dtype=np.intp)


def _traced(held: list[tuple[IntArray, IntArray]], at: int) -> IntArray:
    choices = []
    for parent, last in reversed(held):
        choices.append(int(last[at]))
        at = int(parent[at])
    return np.array(choices[::-1], dtype=np.intp)
