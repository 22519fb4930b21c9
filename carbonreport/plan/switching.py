"""What a change of clocks costs: how long until it is in force, by the clocks that are asked for, and what is drawn meanwhile. Pure."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from carbonreport.plan.table import Array, ClockPair, PlanError

Effect = Literal["stalls", "late"]
Which = Literal["low", "value", "high"]


@dataclass(frozen=True, slots=True)
class Latency:
    """Time from the request of clocks until they are in force.

    Attributes:
        value_s: What is planned with. [s]
        low_s: Shortest that is likely. [s]
        high_s: Longest that is likely. [s]
        source: Who measured or assumed it.
    """

    value_s: float
    low_s: float
    high_s: float
    source: str

    def __post_init__(self) -> None:
        if not 0 <= self.low_s <= self.value_s <= self.high_s < math.inf:
            raise PlanError(f"a latency of {self.value_s:g} s within {self.low_s:g} to {self.high_s:g} s cannot be")

    @classmethod
    def exactly(cls, seconds: float, source: str = "given") -> "Latency":
        """One figure without a range."""
        return cls(seconds, seconds, seconds, source)

    def at(self, which: Which) -> float:
        """Its low, likely or high end. [s]"""
        return {"low": self.low_s, "value": self.value_s, "high": self.high_s}[which]


FREE = Latency.exactly(0.0, "no cost of switching")


@dataclass(frozen=True, slots=True)
class Switching:
    """Cost of switches on one board.

    Attributes:
        latency: Of a change to any pair that has no entry of its own.
        stall_watts: Power while the board waits for its clocks. [W]
        memory: Of a change that changes the memory clock too, where it takes longer; None where it takes no longer.
        targets: Latency by the pair that is asked for: it depends on that more than on the one before (arXiv 2502.20075).
        effect: "stalls": nothing runs until the clocks are in force, the safe assumption; "late": kernels go on at the clocks before.
    """

    latency: Latency = FREE
    stall_watts: float = 0.0
    memory: Latency | None = None
    targets: tuple[tuple[ClockPair, Latency], ...] = ()
    effect: Effect = "stalls"

    def __post_init__(self) -> None:
        if not 0 <= self.stall_watts < math.inf:
            raise PlanError(f"a stall power of {self.stall_watts:g} W cannot be")

    def seconds_to(self, pairs: tuple[ClockPair, ...], which: Which = "value") -> tuple[Array, Array]:
        """Latency of a change to each pair that keeps the memory clock, and of one that changes it. [s] Shapes (pairs,)."""
        own = dict(self.targets)
        near = np.array([own.get(pair, self.latency).at(which) for pair in pairs])
        return near, near if self.memory is None else np.maximum(near, self.memory.at(which))


def stalled_s(pairs: tuple[ClockPair, ...], switching: Switching, which: Which = "value") -> float:
    """Latencies of all changes in one cycle of clocks. [s]"""
    distinct = tuple(dict.fromkeys(pairs))
    if len(distinct) < 2:
        return 0.0
    near, far = switching.seconds_to(distinct, which)
    index = {pair: i for i, pair in enumerate(distinct)}
    changes = [(before, after) for before, after in zip((pairs[-1], *pairs[:-1]), pairs, strict=True) if before != after]
    return float(sum((near if before.mem_mhz == after.mem_mhz else far)[index[after]] for before, after in changes))


FREE_SWITCHING = Switching()
"""What published plans assume."""
