"""A table and the cost of switches as plain arrays: what the search works on, and what one plan of it costs. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.plan.switching import Switching
from carbonreport.plan.table import Array, IntArray, PlanTable

_NEVER = 1000.0  # times the baseline: what an unmeasured cell costs, so that no plan takes it and sums stay exact


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One cyclic iteration: an invocation i costs seconds[rows[i], c] under choice c, and a change of choice costs too.

    Attributes:
        rows: Row of each invocation. Shape (n,).
        seconds: Shape (rows, choices). [s]
        joules: Shape (rows, choices). [J]
        near_s: A change to each choice that keeps the memory clock. [s] Shape (choices,).
        far_s: A change to each choice that changes it. [s] Shape (choices,).
        memory: Group of the memory clock of each choice. Shape (choices,).
        stall_watts: Power during a change. [W]
    """

    rows: IntArray
    seconds: Array
    joules: Array
    near_s: Array
    far_s: Array
    memory: IntArray
    stall_watts: float

    @classmethod
    def of(cls, table: PlanTable, switching: Switching, allowed: NDArray[np.bool_] | None = None) -> "Problem":
        """The problem of a table; cells that are not allowed count as unmeasured."""
        is_open = ~np.isnan(table.seconds) if allowed is None else ~np.isnan(table.seconds) & allowed
        seconds = np.where(is_open, table.seconds, _NEVER * table.baseline_seconds)
        joules = np.where(is_open, table.joules, _NEVER * table.baseline_joules)
        near, far = switching.seconds_to(table.pairs)
        clocks = [-1 if pair.mem_mhz is None else pair.mem_mhz for pair in table.pairs]
        memory = np.unique(clocks, return_inverse=True)[1].astype(np.intp)
        return cls(table.sequence.astype(np.intp), seconds, joules, near, far, memory, switching.stall_watts)

    @property
    def n(self) -> int:
        """How many invocations an iteration has."""
        return int(self.rows.size)

    @property
    def is_free(self) -> bool:
        """Whether switches cost nothing."""
        return bool(self.far_s.max() == 0)

    @property
    def has_memory(self) -> bool:
        """Whether a change of the memory clock costs more than one of the cores alone."""
        return bool(np.any(self.far_s > self.near_s))

    def switch_s(self, before: IntArray, after: IntArray) -> Array:
        """Latency of each change, 0 where nothing changes. [s]"""
        cost = np.where(self.memory[before] == self.memory[after], self.near_s[after], self.far_s[after])
        return np.where(before == after, 0.0, cost)

    def cost(self, choices: IntArray) -> tuple[float, float]:
        """Time and energy of plans of one iteration, switches and the one back to its start included. [s, J] Shape (n,)."""
        waits = self.switch_s(np.roll(choices, 1), choices)
        stalled = float(waits.sum())
        return float(self.seconds[self.rows, choices].sum()) + stalled, float(
            self.joules[self.rows, choices].sum()
        ) + stalled * self.stall_watts

    def constant(self) -> tuple[Array, Array]:
        """Time and energy of each choice held all along. [s, J] Shapes (choices,)."""
        counts = np.bincount(self.rows, minlength=len(self.seconds))
        return np.asarray(counts @ self.seconds), np.asarray(counts @ self.joules)

    def only(self, choices: IntArray) -> "Problem":
        """The same problem with some of the choices."""
        return Problem(
            self.rows,
            self.seconds[:, choices],
            self.joules[:, choices],
            self.near_s[choices],
            self.far_s[choices],
            self.memory[choices],
            self.stall_watts,
        )


def switches_of(choices: IntArray) -> int:
    """How many changes one iteration has, the one back to its start included."""
    return int(np.count_nonzero(choices != np.roll(choices, 1)))
