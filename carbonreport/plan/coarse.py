"""A problem whose steps are passes: all invocations of a stretch take the same clocks. Pure."""

from dataclasses import replace

import numpy as np

from carbonreport.plan.prices import SLACK
from carbonreport.plan.problem import Problem
from carbonreport.plan.result import Objective
from carbonreport.plan.table import IntArray


def by_passes(problem: Problem, passes: tuple[str, ...]) -> tuple[Problem, IntArray]:
    """The problem with one step for each stretch of invocations of one pass, and the step of each invocation. Shape (n,).

    Stretches are what lies between two changes of the pass; the end of a cycle and its start are two.
    """
    names = np.array(passes)
    begins = np.concatenate([[0], np.flatnonzero(names[1:] != names[:-1]) + 1])
    steps = np.repeat(np.arange(begins.size), np.diff(np.append(begins, problem.n)))
    kinds = len(problem.seconds)
    counts = np.bincount(steps * kinds + problem.rows, minlength=begins.size * kinds).reshape(begins.size, kinds).astype(float)
    rows = np.arange(begins.size, dtype=np.intp)
    return replace(problem, rows=rows, seconds=counts @ problem.seconds, joules=counts @ problem.joules), steps


def best_pair_of_names(coarse: Problem, passes: tuple[str, ...], budget_s: float, objective: Objective) -> IntArray | None:
    """Of two passes by name, however often they alternate, the best pair of each out of all; None of one, of more, or where none is in time. Shape (steps,)."""
    names = np.array(passes)
    steps = names[np.concatenate([[0], np.flatnonzero(names[1:] != names[:-1]) + 1])]
    distinct = tuple(dict.fromkeys(steps.tolist()))
    if len(distinct) != 2:
        return None
    is_first = steps == distinct[0]
    sums = [[cells[coarse.rows[mine]].sum(axis=0) for mine in (is_first, ~is_first)] for cells in (coarse.seconds, coarse.joules)]
    turns = int(np.count_nonzero(is_first & ~np.roll(is_first, 1)))  # as often from the first to the second as back
    choices = np.arange(coarse.near_s.size)
    there = coarse.switch_s(choices[:, None], choices[None, :])
    waits = turns * (there + there.T)
    seconds, joules = (own[0][:, None] + own[1][None, :] for own in sums)
    seconds, joules = seconds + waits, joules + waits * coarse.stall_watts
    score = np.where(seconds <= budget_s * (1 + SLACK), joules if objective == "waste" else joules * seconds, np.inf)
    first, second = np.unravel_index(int(score.argmin()), score.shape)
    return np.where(is_first, first, second).astype(np.intp) if np.isfinite(score[first, second]) else None
