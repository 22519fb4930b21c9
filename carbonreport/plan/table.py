"""What kernels cost under each pair of clocks: the table that a plan is made from. Pure."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.errors import CarbonreportError

Array = NDArray[np.float64]
IntArray = NDArray[np.intp]
_LEAST, _MOST_MHZ = 1, 100_000


class PlanError(CarbonreportError):
    """A table, trace or plan that cannot be used as given."""


@dataclass(frozen=True, slots=True, order=True)
class ClockPair:
    """Locked clocks; None leaves a clock to the board's own governor.

    Attributes:
        sm_mhz: Clock of the cores. [MHz]
        mem_mhz: Clock of the memory. [MHz]
    """

    sm_mhz: int | None = None
    mem_mhz: int | None = None

    def __post_init__(self) -> None:
        for mhz in (self.sm_mhz, self.mem_mhz):
            if mhz is not None and not _LEAST <= mhz <= _MOST_MHZ:
                raise ValueError(f"a clock of {mhz} MHz cannot be; it is {_LEAST} to {_MOST_MHZ}")

    def __str__(self) -> str:
        if self == UNLOCKED:
            return "unlocked"
        return f"SM {'auto' if self.sm_mhz is None else self.sm_mhz}, memory {'auto' if self.mem_mhz is None else self.mem_mhz}"


UNLOCKED = ClockPair()
"""No clock is locked: the baseline, and always a choice."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanTable:
    """Time and energy of each kernel under each pair of clocks, and the order in which they run in one iteration.

    Attributes:
        names: One a row. Shape (rows,).
        sequence: Row of each invocation in launch order; the iteration repeats. Shape (n,).
        pairs: Pairs of clocks; UNLOCKED is one of them. Shape (pairs,).
        seconds: Of one invocation; NaN where nobody measured. [s] Shape (rows, pairs).
        joules: Of one invocation; NaN where nobody measured. [J] Shape (rows, pairs).
        passes: Pass (forward, backward …) of each invocation, or nothing. Shape (n,) or (0,).
        seconds_sd: Standard deviation of each mean; NaN or None where unknown. [s] Shape (rows, pairs).
        joules_sd: The same of the energy. [J] Shape (rows, pairs).
        whole: The same iteration measured pass by pass under one pair each, or None: a coarse table with its own baseline.
        repeats: How many measurements each mean is of, 0 where nobody measured; None where nobody says. Shape (rows, pairs).
    """

    names: tuple[str, ...]
    sequence: IntArray
    pairs: tuple[ClockPair, ...]
    seconds: Array
    joules: Array
    passes: tuple[str, ...] = ()
    seconds_sd: Array | None = None
    joules_sd: Array | None = None
    whole: "PlanTable | None" = None
    repeats: IntArray | None = None

    def __post_init__(self) -> None:
        shape = (len(self.names), len(self.pairs))
        for name, known in (("seconds_sd", self.seconds_sd), ("joules_sd", self.joules_sd), ("repeats", self.repeats)):
            if known is not None and known.shape != shape:
                raise PlanError(f"{name} has the shape {known.shape}, not {shape} (kernels, pairs of clocks)")
        for name, cells in (("seconds", self.seconds), ("joules", self.joules)):
            if cells.shape != shape:
                raise PlanError(f"{name} has the shape {cells.shape}, not {shape} (kernels, pairs of clocks)")
            bad = ~(np.isnan(cells) | ((cells > 0) & np.isfinite(cells)))
            if bad.any():
                row, pair = np.argwhere(bad)[0]
                raise PlanError(f"{name} of {self.names[row]} at {self.pairs[pair]} is {cells[row, pair]:g}; it must be above 0")
        if np.any(np.isnan(self.seconds) != np.isnan(self.joules)):
            raise PlanError("a cell has seconds without joules, or joules without seconds; leave out both, or give both")
        if len(set(self.pairs)) != len(self.pairs):
            raise PlanError("a pair of clocks is in the table twice")
        if UNLOCKED not in self.pairs or np.isnan(self.seconds[:, self.pairs.index(UNLOCKED)]).any():
            missing = [] if UNLOCKED not in self.pairs else np.flatnonzero(np.isnan(self.seconds[:, self.pairs.index(UNLOCKED)])).tolist()
            whose = self.names[missing[0]] if missing else "any kernel"
            raise PlanError(f"no time and energy of {whose} with unlocked clocks (auto, auto); nothing can be compared without it")
        if self.sequence.size == 0 or self.sequence.min() < 0 or self.sequence.max() >= len(self.names):
            raise PlanError(f"the sequence must name rows 0 to {len(self.names) - 1}, at least one")
        if self.passes and len(self.passes) != self.sequence.size:
            raise PlanError(f"{len(self.passes)} passes for {self.sequence.size} invocations")

    @property
    def unlocked(self) -> int:
        """Column of the baseline."""
        return self.pairs.index(UNLOCKED)

    @property
    def counts(self) -> IntArray:
        """How often each row runs in one iteration. Shape (rows,)."""
        return np.bincount(self.sequence, minlength=len(self.names))

    @property
    def baseline_seconds(self) -> float:
        """One iteration with unlocked clocks. [s]"""
        return float(self.counts @ self.seconds[:, self.unlocked])

    @property
    def baseline_joules(self) -> float:
        """Energy of one iteration with unlocked clocks. [J]"""
        return float(self.counts @ self.joules[:, self.unlocked])

    @property
    def baseline_watts(self) -> float:
        """Mean power with unlocked clocks. [W]"""
        return self.baseline_joules / self.baseline_seconds
