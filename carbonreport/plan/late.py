"""The milder cost of a switch: nothing waits, but kernels go on at the clocks before until the new ones are in force. Pure."""

import numpy as np

from carbonreport.plan.problem import Problem
from carbonreport.plan.table import IntArray

_LAPS = 3  # until the pattern of a cycle has settled
_TINY = 1e-15


def late_cost(problem: Problem, requests: IntArray) -> tuple[float, float, int]:
    """Time, energy and changes of one iteration in which each invocation asks for clocks as it begins. [s, J]

    Requests are served one at a time; a newer one takes the place of one that waits. A kernel's progress under clocks is time over its time there.
    """
    current = int(requests[-1])
    served: int | None = None
    waiting: int | None = None
    now = due = 0.0
    seconds = joules = 0.0
    changes = 0
    asked = [int(choice) for choice in requests]
    rows = [int(row) for row in problem.rows]
    for _ in range(_LAPS):
        seconds = joules = 0.0
        changes = 0
        for row, want in zip(rows, asked, strict=True):
            if served is not None:
                waiting = want
            elif want != current:
                served, due = want, now + _wait(problem, current, want)
            left = 1.0
            while left > _TINY:
                if served is not None and due <= now + _TINY:
                    changes += served != current
                    current, served = served, None
                    if waiting is not None and waiting != current:
                        served, due = waiting, now + _wait(problem, current, waiting)
                    waiting = None
                    continue
                full_s = float(problem.seconds[row, current])
                spent = left * full_s if served is None else min(left * full_s, due - now)
                part = spent / full_s
                joules += part * float(problem.joules[row, current])
                seconds += spent
                now += spent
                left -= part
    return seconds, joules, changes


def _wait(problem: Problem, before: int, after: int) -> float:
    is_near = problem.memory[before] == problem.memory[after]
    return float(problem.near_s[after] if is_near else problem.far_s[after])


def asked_early(problem: Problem, choices: IntArray) -> IntArray:
    """Requests that send each change ahead by its latency, as far as the begins of kernels allow, so that it lands where it is wanted."""
    seconds = problem.seconds[problem.rows, choices]
    length = float(seconds.sum())
    begins = np.concatenate([[0.0], np.cumsum(seconds)[:-1]])
    ahead = begins + problem.near_s[choices].max()
    at = np.searchsorted(begins, ahead % length, side="right") - 1
    return np.asarray(choices[at], dtype=np.intp)
