"""Local and global choice of clocks as published, without the cost of switches: Spaan, Chen and Varbanescu, arXiv 2601.08539. Pure.

Local: each kernel takes the least energy among clocks at which it is not slower than the limit allows. Global: the sum of times counts alone. Under EDP
each kernel takes its own least energy times time (local), or the sums make the product (global).
"""

import numpy as np
from numpy.typing import NDArray

from carbonreport.plan.prices import SLACK
from carbonreport.plan.result import Objective
from carbonreport.plan.table import Array, IntArray, PlanError, PlanTable


def open_cells(table: PlanTable, slowdown: float | None, objective: Objective) -> NDArray[np.bool_]:
    """Cells that a kernel may take on its own; unlocked is always one. Shape (rows, pairs)."""
    if objective == "waste":
        base = table.seconds[:, [table.unlocked]]
        with np.errstate(invalid="ignore"):
            is_open = table.seconds <= base * ((np.inf if slowdown is None else 1 + slowdown) + SLACK)
    else:
        product = np.where(np.isnan(table.seconds), np.inf, table.seconds * table.joules)
        is_open = product == product.min(axis=1, keepdims=True)
    is_open[:, table.unlocked] = True
    return np.asarray(is_open)


def local_choices(table: PlanTable, slowdown: float, objective: Objective = "waste") -> IntArray:
    """The pair of clocks that each kernel takes for itself. Shape (rows,).

    Raises:
        PlanError: A kernel has no clocks that are so fast.
    """
    with np.errstate(invalid="ignore"):
        is_fast = table.seconds <= table.seconds[:, [table.unlocked]] * (1 + slowdown + SLACK)
    if objective == "waste":
        score = np.where(is_fast, table.joules, np.inf)
    else:
        score = np.where(np.isnan(table.seconds), np.inf, table.seconds * table.joules)
    slowest = np.flatnonzero(~np.isfinite(score).any(axis=1))
    if slowest.size:
        raise PlanError(f"{table.names[slowest[0]]} has no clocks at which it takes {100 * slowdown:+g} % of time")
    return np.asarray(score.argmin(axis=1), dtype=np.intp)


def ratios(table: PlanTable, choices: IntArray) -> tuple[float, float]:
    """Time and energy of one pair a kernel over unlocked, without switches."""
    rows = np.arange(len(table.names))
    seconds, joules = (float(table.counts @ cells[rows, choices]) for cells in (table.seconds, table.joules))
    return seconds / table.baseline_seconds, joules / table.baseline_joules


def least_at(time_percent: Array, energy_percent: Array, allowed_percent: float) -> float:
    """Least change of energy on a curve of plans at a slowdown of at most so much: a plan that is faster than it must be counts too. [%]"""
    in_time = energy_percent[time_percent <= allowed_percent + 1e-9]
    if in_time.size == 0:
        raise PlanError(f"no plan of the curve takes {allowed_percent:+g} % of time")
    return float(in_time.min())
