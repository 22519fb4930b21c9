"""What is set on a board, what was there before, and whether it held. Stdlib only: the tracer starts without numpy."""

import math
from dataclasses import dataclass

LEAST_SHARE_THAT_BITES = 0.01  # of the run's time; below it the board was at its cap for a start-up at most


@dataclass(frozen=True, slots=True)
class Knobs:
    """What a run asks of a board; None leaves a knob as it is.

    Attributes:
        power_cap_watts: Power limit. [W]
        sm_clock_mhz: Highest core clock. [MHz]
        mem_clock_mhz: Highest memory clock. [MHz]
    """

    power_cap_watts: float | None = None
    sm_clock_mhz: int | None = None
    mem_clock_mhz: int | None = None

    def __post_init__(self) -> None:
        for name in ("power_cap_watts", "sm_clock_mhz", "mem_clock_mhz"):
            value = getattr(self, name)
            if value is not None and not (0 < value < math.inf):
                raise ValueError(f"{name} is {value!r}; it must be above 0")

    @property
    def has_clocks(self) -> bool:
        """Whether a clock is asked for."""
        return self.sm_clock_mhz is not None or self.mem_clock_mhz is not None

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is asked for."""
        return self.power_cap_watts is None and not self.has_clocks

    def in_words(self) -> str:
        """A cap of 300 W, core clock at most 1410 MHz."""
        parts = [
            "" if self.power_cap_watts is None else f"a power cap of {self.power_cap_watts:g} W",
            "" if self.sm_clock_mhz is None else f"a core clock of at most {self.sm_clock_mhz} MHz",
            "" if self.mem_clock_mhz is None else f"a memory clock of at most {self.mem_clock_mhz} MHz",
        ]
        return " and ".join(part for part in parts if part) or "nothing"


@dataclass(frozen=True, slots=True)
class KnobsHeld:
    """What was set on a board during a run, and what became of it.

    Attributes:
        device: GPU UUID.
        requested: What the run asked for.
        before_watts: Power limit that was asked of the board before, and was put back; None where it gave none. [W]
        enforced_watts: Limit that was in force once it was set: lower where somebody else caps the board lower. [W]
        is_held: Whether the board still had it at the end; None where the run broke off, or the board did not say.
        capped_seconds: Time in which the board's clocks were lowered to stay under its power limit; None where it does not count. [s]
        seconds: Time over which that was counted. [s]
        plan: The clock plan that turned clocks during the run, in words; "" where what was requested held all along.
        sm_clock_mhz: Median core clock while the board was busy; None where nobody looked, or it never was. [MHz]
        mem_clock_mhz: The same of the memory. [MHz]
        switches: How often a plan asked for other clocks; None without one.
    """

    device: str
    requested: Knobs
    before_watts: float | None
    enforced_watts: float | None
    is_held: bool | None = None
    capped_seconds: float | None = None
    seconds: float | None = None
    plan: str = ""
    sm_clock_mhz: float | None = None
    mem_clock_mhz: float | None = None
    switches: int | None = None

    def __post_init__(self) -> None:
        for name in ("before_watts", "enforced_watts", "capped_seconds", "seconds", "sm_clock_mhz", "mem_clock_mhz", "switches"):
            value = getattr(self, name)
            if value is not None and not (0 <= value < math.inf):
                raise ValueError(f"{name} of {self.device} is {value!r}; it must be 0 or more")

    @property
    def is_capped_elsewhere(self) -> bool:
        """Whether another owner's lower cap was in force instead."""
        cap, enforced = self.requested.power_cap_watts, self.enforced_watts
        return cap is not None and enforced is not None and enforced < cap - 1

    @property
    def has_bitten(self) -> bool | None:
        """Whether the cap held the board back at all; None where the board does not say."""
        if self.capped_seconds is None or not self.seconds:
            return None
        return self.capped_seconds >= LEAST_SHARE_THAT_BITES * self.seconds
