"""What planning answers with: the plan, what else there was, and how far from the best it can be at most. Pure."""

from dataclasses import dataclass
from typing import Literal

from carbonreport.plan.table import ClockPair, PlanError

Kind = Literal["none", "static", "cap", "pass", "kernel"]
KINDS: tuple[Kind, ...] = ("none", "static", "cap", "pass", "kernel")  # the simplest first: of equals it is taken
Objective = Literal["waste", "edp"]
Aggregation = Literal["global", "local"]


@dataclass(frozen=True, slots=True)
class Cap:
    """A power cap, measured over the whole work, against none.

    Attributes:
        cap_watts: Of each board. [W]
        time_ratio: Time over that without the cap.
        energy_ratio: Energy over that without the cap.
        time_ends: 90 % interval of the time, or None where the sweep did not say.
        energy_ends: The same of energy.
    """

    cap_watts: float
    time_ratio: float
    energy_ratio: float
    time_ends: tuple[float, float] | None = None
    energy_ends: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not (self.cap_watts > 0 and 0 < self.time_ratio < 100 and 0 < self.energy_ratio < 100):
            raise PlanError(
                f"a cap of {self.cap_watts:g} W with time ratio {self.time_ratio:g} and energy ratio {self.energy_ratio:g} cannot be"
            )


@dataclass(frozen=True, slots=True)
class Way:
    """One way to run an iteration.

    Attributes:
        kind: Nothing, one pair of clocks all along, a power cap, a pair a pass, or pairs kernel by kernel.
        pairs: Clocks of each invocation; nothing for a cap. Shape (n,) or (0,).
        time_ratio: Time over that with unlocked clocks, switches included.
        energy_ratio: The same of the energy.
        switches: Changes of clocks in one iteration, the one back to its start included.
        cap_watts: The cap, where it is one. [W]
        is_whole: Whether the iteration was measured as a whole under it, and not put together from kernels.
    """

    kind: Kind
    pairs: tuple[ClockPair, ...]
    time_ratio: float
    energy_ratio: float
    switches: int = 0
    cap_watts: float | None = None
    is_whole: bool = False

    @property
    def time_percent(self) -> float:
        """How much longer than unlocked. [%]"""
        return 100 * (self.time_ratio - 1)

    @property
    def energy_percent(self) -> float:
        """How much more energy than unlocked; negative where it saves. [%]"""
        return 100 * (self.energy_ratio - 1)

    def score(self, objective: Objective) -> float:
        """What is made small: energy, or energy times time."""
        return self.energy_ratio if objective == "waste" else self.energy_ratio * self.time_ratio


@dataclass(frozen=True, slots=True)
class Plan:
    """The best way, and what it was compared with.

    Attributes:
        way: The best one.
        others: The best of each kind that is in time, the chosen one among them, the simplest first.
        slowdown: Share by which an iteration may be longer; None without a limit.
        objective: What was made small: energy in that time, or energy times time (EDP).
        bound: No plan of the table has a lower score, as far as is proved.
        is_exact: Whether every plan was looked at.
        stall_watts: Power during switches that was planned with. [W]
    """

    way: Way
    others: tuple[Way, ...]
    slowdown: float | None
    objective: Objective
    bound: float
    is_exact: bool
    stall_watts: float

    @property
    def kind(self) -> Kind:
        """Kind of the best way."""
        return self.way.kind

    @property
    def pairs(self) -> tuple[ClockPair, ...]:
        """Clocks of each invocation."""
        return self.way.pairs

    @property
    def time_ratio(self) -> float:
        """Time over that with unlocked clocks."""
        return self.way.time_ratio

    @property
    def energy_ratio(self) -> float:
        """Energy over that with unlocked clocks."""
        return self.way.energy_ratio

    @property
    def switches(self) -> int:
        """Changes of clocks in one iteration."""
        return self.way.switches

    @property
    def gap_percent(self) -> float:
        """How much better another plan of the table could be at most. [%]"""
        return max(0.0, 100 * (1 - self.bound / self.way.score(self.objective)))

    def of(self, kind: Kind) -> Way | None:
        """The best way of one kind that is in time."""
        return next((way for way in self.others if way.kind == kind), None)
