"""The milder cost of a switch: nothing waits, but kernels go on at the clocks before until the new ones are in force. Pure."""

import math
from dataclasses import dataclass

import numpy as np

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import IntArray

_MOST_LAPS, _MOST_STEPS = 400, 400_000  # until what happens in an iteration must have come again
_LEAST_LAPS = 8
_TINY = 1e-12  # of an invocation
_SAME = 1e-9  # of an iteration: waits that differ by less are the same


@dataclass(slots=True)
class _Clocks:
    """Clocks in force, and what was asked for.

    Attributes:
        current: In force.
        served: Asked for and on its way, or None.
        due_s: Until it is in force. [s]
        waiting: Asked for after it, or None.
        changes: How often clocks changed so far.
    """

    current: int
    served: int | None = None
    due_s: float = 0.0
    waiting: int | None = None
    changes: int = 0


def late_cost(problem: Problem, requests: IntArray) -> tuple[float, float, int] | None:
    """Mean time, energy and changes of iterations in which each invocation asks for clocks as it begins; None where no pattern settles. [s, J]

    Requests are served one at a time; a newer one takes the place of one that waits. A kernel's progress under clocks is time over its time there.
    A change that is on its way as an iteration ends reaches into the next one, so that iterations differ: they are run until one begins as an
    earlier one did, and those between the two are what the plan comes to.
    """
    clocks = _Clocks(int(requests[-1]))
    steps = list(zip(problem.rows.tolist(), requests.tolist(), strict=True))
    grain_s = _SAME * float(problem.seconds[problem.rows, requests].sum())
    seen: dict[tuple[int, int | None, int | None, int], int] = {}
    sums = [(0.0, 0.0, 0)]
    for lap in range(max(_LEAST_LAPS, min(_MOST_LAPS, _MOST_STEPS // problem.n))):
        state = (clocks.current, clocks.served, clocks.waiting, round(clocks.due_s / grain_s))
        first = seen.setdefault(state, lap)
        if first < lap:
            laps = lap - first
            seconds, joules, changes = (now - then for now, then in zip(sums[lap], sums[first], strict=True))
            return seconds / laps, joules / laps, math.ceil(changes / laps)
        seconds, joules = _lap(problem, steps, clocks)
        sums.append((sums[-1][0] + seconds, sums[-1][1] + joules, clocks.changes))
    return None


def _lap(problem: Problem, steps: list[tuple[int, int]], clocks: _Clocks) -> tuple[float, float]:
    """Time and energy of one iteration; the clocks are left as they are at its end. [s, J]"""
    seconds = joules = 0.0
    for row, want in steps:
        if clocks.served is not None:
            clocks.waiting = want
        elif want != clocks.current:
            _serve(problem, clocks, want)
        left = 1.0
        while left > _TINY:
            if clocks.served is not None and clocks.due_s <= 0:
                _arrive(problem, clocks)
                continue
            full_s = float(problem.seconds[row, clocks.current])
            is_cut = clocks.served is not None and clocks.due_s < left * full_s
            spent_s = clocks.due_s if is_cut else left * full_s
            joules += spent_s / full_s * float(problem.joules[row, clocks.current])
            seconds += spent_s
            left = left - spent_s / full_s if is_cut else 0.0
            clocks.due_s = 0.0 if is_cut else max(clocks.due_s - spent_s, 0.0)
    return seconds, joules


def _serve(problem: Problem, clocks: _Clocks, want: int) -> None:
    is_near = problem.memory[clocks.current] == problem.memory[want]
    clocks.served, clocks.due_s = want, float(problem.near_s[want] if is_near else problem.far_s[want])


def _arrive(problem: Problem, clocks: _Clocks) -> None:
    """What was on its way is in force; what waited is on its way, if it is anything else."""
    assert clocks.served is not None
    clocks.current, clocks.served, clocks.changes = clocks.served, None, clocks.changes + 1
    if clocks.waiting is not None and clocks.waiting != clocks.current:
        _serve(problem, clocks, clocks.waiting)
    clocks.waiting = None


def asked_early(problem: Problem, choices: IntArray) -> IntArray:
    """Requests that send each change ahead by its latency, as far as the begins of kernels allow, so that it lands where it is wanted."""
    seconds = problem.seconds[problem.rows, choices]
    length = float(seconds.sum())
    begins = np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    ahead = begins + problem.near_s[choices].max()
    at = np.searchsorted(begins, ahead % length, side="right") - 1
    return np.asarray(choices[at], dtype=np.intp)
