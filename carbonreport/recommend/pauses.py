"""The best schedule of a job that may pause: exact, by dynamic programming over slots. Pure.

State: slots of work done, and whether it ran in the slot before. A pause costs what writing and reading a checkpoint takes,
in time and energy, at the moment of going on; waiting and pausing draw idle power where equipment stays reserved.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.model.series import Array
from carbonreport.recommend.rates import Rates
from carbonreport.recommend.windows import Periods

_FINEST_S = 60
_MOST_STATES = 1e8


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job runs.

    Attributes:
        runs: (from_s, to_s) in POSIX seconds, each with its checkpoint at the begin but the first.
        grams: Emissions with pauses and waiting. [gCO2e]
        pauses: Number of pauses.
        overhead_joules: What the checkpoints and idle equipment take. [J]
    """

    runs: tuple[tuple[float, float], ...]
    grams: float
    pauses: int
    overhead_joules: float


def best_schedule(
    watts: float,
    seconds: float,
    rates: Rates,
    *,
    earliest_s: float,
    latest_end_s: float,
    most_pauses: int | None = None,
    pause_s: float = 300.0,
    idle_watts: float = 0.0,
    closed: Periods = (),
    slot_s: int | None = None,
) -> Schedule | None:
    """The schedule of least emissions; None where the job cannot end in time.

    Args:
        watts: Power of the running job. [W]
        seconds: Time that it needs. [s]
        rates: What a joule costs when.
        earliest_s: First moment. [s]
        latest_end_s: Deadline. [s]
        most_pauses: At most so many, or any number.
        pause_s: Time at full power that each pause costs when going on. [s]
        idle_watts: What reserved equipment draws while it waits or pauses. [W]
        closed: Periods in which it must not run.
        slot_s: Length of a slot; by default the longest that divides work, pause and a quarter of an hour. [s]
    """
    slot_s = slot_s or affordable(slot_of(seconds, pause_s), seconds, latest_end_s - earliest_s, most_pauses)
    work, overhead = math.ceil(seconds / slot_s - 1e-9), math.ceil(pause_s / slot_s - 1e-9)
    count = int((latest_end_s - earliest_s) / slot_s + 1e-9)
    if count < work:
        return None
    edges_s: Array = earliest_s + slot_s * np.arange(count + 1, dtype=np.float64)
    slot_cost = np.diff(rates.cumulative(edges_s))
    run_cost = np.where(_is_closed(edges_s, closed), np.inf, slot_cost * watts)
    idle_cost = slot_cost * idle_watts
    pauses = count if most_pauses is None else most_pauses
    tables = _Tables(run_cost, idle_cost, work, overhead, None if pauses >= work - 1 else pauses)
    found = tables.solve()
    if found is None:
        return None
    grams, slots = found
    runs = tuple((float(edges_s[a]), float(edges_s[b])) for a, b in slots)
    end_s = runs[-1][1]
    idle_s = end_s - earliest_s - sum(b - a for a, b in runs)
    overhead_joules = (len(runs) - 1) * overhead * slot_s * watts + idle_s * idle_watts
    return Schedule(runs, grams, len(runs) - 1, overhead_joules)


def slot_of(seconds: float, pause_s: float) -> int:
    """The longest slot that divides the work, a pause and a quarter of an hour, at least a minute. [s]"""
    parts = [round(x) for x in (seconds, pause_s) if x > 0]
    slot_s = math.gcd(900, *parts)
    return slot_s if slot_s >= _FINEST_S else math.gcd(900, max(_FINEST_S, round(pause_s / 60) * 60) if pause_s else 900)


def affordable(slot_s: int, seconds: float, span_s: float, most_pauses: int | None) -> int:
    """A slot, or one twice as long, and again, until the tables fit into memory. [s] Work and pauses are rounded up to it."""
    while (span_s / slot_s) * (seconds / slot_s) * _rows(math.ceil(seconds / slot_s - 1e-9), most_pauses) > _MOST_STATES:
        slot_s *= 2
    return slot_s


def _rows(work: int, most_pauses: int | None) -> int:
    """Rows of a table: the pauses so far, or one where their number is free, as work of so many slots has no more of them."""
    return 1 if most_pauses is None or most_pauses >= work - 1 else most_pauses + 1


def _is_closed(edges_s: Array, closed: Periods) -> NDArray[np.bool_]:
    is_closed = np.zeros(edges_s.size - 1, bool)
    for from_s, to_s in closed:
        is_closed |= (edges_s[:-1] < to_s - 1e-6) & (edges_s[1:] > from_s + 1e-6)
    return is_closed


def _sums(costs: Array, width: int) -> list[float]:
    """Sum of so many costs from each slot on, as far as they fit."""
    if width == 0:
        return [0.0] * (costs.size + 1)
    if width > costs.size:
        return []
    sums: list[float] = np.lib.stride_tricks.sliding_window_view(costs, width).sum(axis=1).tolist()
    return sums


class _Tables:
    """Costs forward in time; where each came from is kept as one bit a state.

    At a slot's begin the job is running (it ran in the slot before, or goes on here) or resting. Axes of a table: pauses so far
    (one row where their number is free), slots of work done.
    """

    def __init__(self, run_cost: Array, idle_cost: Array, work: int, overhead: int, most_pauses: int | None) -> None:
        self.run_cost, self.idle_cost, self.work, self.overhead = run_cost, idle_cost, work, overhead
        self.next_row = 0 if most_pauses is None else 1
        self.shape = (1 if most_pauses is None else most_pauses + 1, work + 1)
        self.count = run_cost.size
        self.checkpoint_cost = _sums(run_cost, overhead)
        self.has_begun = np.zeros((self.count + 1, *self.shape), bool)  # the running state began here, it did not run before
        self.has_stopped = np.zeros((self.count + 1, *self.shape), bool)  # the resting state ran in the slot before

    def solve(self) -> tuple[float, list[tuple[int, int]]] | None:
        """Least cost, and (first, after last) slot of each run, checkpoints included."""
        running, resting = np.full(self.shape, np.inf), np.full(self.shape, np.inf)
        resting[0, 0] = 0.0
        arriving: dict[int, Array] = {}
        best, best_at = np.inf, (0, 0)
        for i in range(self.count + 1):
            self._begin(i, running, resting, arriving)
            row = int(running[:, self.work].argmin())
            if running[row, self.work] < best:
                best, best_at = float(running[row, self.work]), (i, row)
            if i < self.count:
                self._slot(i, running, resting)
        return (best, self._traced(*best_at)) if np.isfinite(best) else None

    def _begin(self, i: int, running: Array, resting: Array, arriving: dict[int, Array]) -> None:
        """What may be running from here on: the first start, and what goes on after a pause and its checkpoint."""
        if resting[0, 0] < running[0, 0]:
            running[0, 0] = resting[0, 0]
            self.has_begun[i, 0, 0] = True
        end = i + self.overhead
        if end <= self.count and (cost := self.checkpoint_cost[i]) < math.inf:
            arriving[end] = resting[:, 1:] + cost
        came = arriving.pop(i, None)
        if came is None:
            return
        target = running[self.next_row :, 1:]
        is_better = came[: target.shape[0]] < target
        target[is_better] = came[: target.shape[0]][is_better]
        self.has_begun[i, self.next_row :, 1:] |= is_better

    def _slot(self, i: int, running: Array, resting: Array) -> None:
        """Run or rest through one slot, in place."""
        np.less(running, resting, out=self.has_stopped[i + 1])
        np.minimum(running, resting, out=resting)
        resting += self.idle_cost[i]
        resting[:, self.work] = np.inf  # done is done
        running[:, 1:] = running[:, :-1] + self.run_cost[i]
        running[:, 0] = np.inf

    def _traced(self, i: int, row: int) -> list[tuple[int, int]]:
        runs, done, end = [], self.work, i
        while True:
            while not self.has_begun[i, row, done]:
                i, done = i - 1, done - 1
            if done == 0:
                runs.append((i, end))
                return runs[::-1]
            i, row = i - self.overhead, row - self.next_row
            runs.append((i, end))
            while not self.has_stopped[i, row, done]:
                i -= 1
            i -= 1
            end = i
