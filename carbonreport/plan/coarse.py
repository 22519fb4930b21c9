"""A problem whose steps are passes: all invocations of a stretch take the same clocks. Pure."""

from dataclasses import replace

import numpy as np

from carbonreport.plan.problem import Problem
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
