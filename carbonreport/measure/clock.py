"""Three clocks: one that counts suspends, one that does not, and the wall's, which people set."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from carbonreport.units import seconds_from_nanoseconds


class Clock(Protocol):
    """The operating system's clocks, or a test's."""

    def boot_ns(self) -> int:
        """Nanoseconds on a clock that goes on while the machine sleeps and that nobody sets."""

    def awake_ns(self) -> int:
        """Nanoseconds on a clock that stands still while the machine sleeps."""

    def wall_ns(self) -> int:
        """Nanoseconds since 1970, UTC, as the machine believes."""


_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


# CLOCK_BOOTTIME where the system has it, else the monotonic clock. [ns] A partial: a span's edge reads it, and a frame costs as much.
boot_ns: Callable[[], int] = time.monotonic_ns if _BOOT is None else partial(time.clock_gettime_ns, _BOOT)


class SystemClock:
    """The machine's own clocks."""

    boot_ns = staticmethod(boot_ns)

    def awake_ns(self) -> int:
        """See Clock."""
        return time.monotonic_ns()

    def wall_ns(self) -> int:
        """See Clock."""
        return time.time_ns()


@dataclass(frozen=True, slots=True)
class Jump:
    """What the clocks did since the last look. [s]

    Attributes:
        slept_s: Time in which the machine was suspended.
        stepped_s: How far the wall clock was set, forward positive.
    """

    slept_s: float
    stepped_s: float


class RunClock:
    """Offsets since the start of a run, on the clock that counts suspends, paired with the wall's at each look."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._boot0, self._awake, self._wall = clock.boot_ns(), clock.awake_ns(), clock.wall_ns()
        self._boot = self._boot0
        self.started_s = seconds_from_nanoseconds(self._wall)

    def offset_s(self) -> float:
        """Seconds since the start."""
        return seconds_from_nanoseconds(self.clock.boot_ns() - self._boot0)

    def offset_of_boot_s(self, at_boot_ns: int) -> float:
        """Seconds from the start to a reading of `boot_ns`."""
        return seconds_from_nanoseconds(at_boot_ns - self._boot0)

    def offset_of_wall_s(self, unix_s: float) -> float:
        """Seconds from the start to a wall-clock stamp, by the pairing of the last look."""
        return seconds_from_nanoseconds(self._boot - self._boot0) + unix_s - seconds_from_nanoseconds(self._wall)

    def look(self) -> Jump:
        """Pair the clocks again; say how long the machine slept and how far the wall clock was set meanwhile."""
        boot, awake, wall = self.clock.boot_ns(), self.clock.awake_ns(), self.clock.wall_ns()
        passed = boot - self._boot
        jump = Jump(
            slept_s=seconds_from_nanoseconds(passed - (awake - self._awake)),
            stepped_s=seconds_from_nanoseconds((wall - self._wall) - passed),
        )
        self._boot, self._awake, self._wall = boot, awake, wall
        return jump
