"""An NVML that runs on a fake clock: power by formula, a ticking counter, a sample buffer, and faults on demand."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Protocol

from carbonreport.measure.clock import Clock
from carbonreport.testing.clock import NANOSECONDS_PER_SECOND

SAMPLES_KEPT = 119
SAMPLE_NS = 20_000_000
TICK_NS = 100_000_000
STEPS_PER_TICK = 20
UNSIGNED_INT = 1
RESPONSE_STEPS = 200
RESPONSE_REACH = 8.0  # time constants; what is older weighs 0.03 %


class StampClock(Clock, Protocol):
    """A clock that remembers how the wall's was set, as FakeClock does."""

    def wall_ns_at(self, boot_ns: int) -> int:
        """What the wall clock showed at an earlier reading of `boot_ns`. [ns]"""


@dataclass(frozen=True, slots=True)
class LowPass:
    """A power sensor that follows power as a first-order low pass, some time later.

    Attributes:
        time_constant_s: Time after which 63 % of a step are seen. [s]
        delay_s: Time before any of it is seen. [s]
    """

    time_constant_s: float
    delay_s: float = 0.0

    def __post_init__(self) -> None:
        if not (self.time_constant_s > 0 and self.delay_s >= 0):
            raise ValueError(
                f"a time constant of {self.time_constant_s} s and a delay of {self.delay_s} s: the first must be above 0, the second not below"
            )

    def watts_at(self, watts: Callable[[float], float], at_s: float) -> float:
        """What the sensor shows at a time, from power as a function of time. [W]"""
        step = RESPONSE_REACH / RESPONSE_STEPS
        weights = [math.exp(-i * step) for i in range(RESPONSE_STEPS)]
        newest_s = at_s - self.delay_s - 0.5 * step * self.time_constant_s
        seen = (weight * watts(newest_s - i * step * self.time_constant_s) for i, weight in enumerate(weights))
        return sum(seen) / sum(weights)


@dataclass(slots=True, eq=False)
class FakeBoard:
    """One board and what it can do.

    Attributes:
        uuid: "GPU-…".
        watts: Power at a time in seconds since the fake began; negative before that.
        name: Model.
        architecture: NVML's number: 5 Volta, 6 Turing, 7 Ampere, 9 Hopper.
        limit_watts: Power limit.
        counter_share: What the counter counts of each true joule.
        missing: Functions that answer NOT_SUPPORTED; "instant" stands for field 186.
        migs: UUIDs of MIG instances.
        processes: Who computes on it: SM utilisation in percent by process id, told anew each second.
        lost_from_call: Number of the call at which the board falls off the bus, counted from 1.
        frozen_from_s: Moment at which the sample buffer stops.
        sensor: How buffered samples and instant power follow power; None: they are power itself at that moment.
    """

    uuid: str
    watts: Callable[[float], float]
    name: str = "NVIDIA H200"
    architecture: int = 9
    limit_watts: float = 700.0
    counter_share: float = 1.0
    missing: frozenset[str] = frozenset()
    migs: tuple[str, ...] = ()
    processes: dict[int, int] = field(default_factory=dict)
    lost_from_call: int | None = None
    frozen_from_s: float = float("inf")
    sensor: LowPass | None = None
    calls: int = 0
    _tick_joules: list[float] = field(default_factory=lambda: [0.0])
    _zero_joules: float = 0.0

    def lose(self) -> None:
        """Fall off the bus now."""
        self.lost_from_call = 0

    def reset(self) -> None:
        """Start the counter again, as a driver reload does."""
        self._zero_joules = self._tick_joules[-1]

    def sensed_watts(self, at_s: float) -> float:
        """What the power sensor shows. [W]"""
        return self.watts(at_s) if self.sensor is None else self.sensor.watts_at(self.watts, at_s)

    def counter_joules(self, elapsed_ns: int) -> float:
        """What the counter shows: the energy up to the last tick. [J]"""
        step_s = TICK_NS / NANOSECONDS_PER_SECOND / STEPS_PER_TICK
        while len(self._tick_joules) <= elapsed_ns // TICK_NS:
            begin_s = (len(self._tick_joules) - 1) * STEPS_PER_TICK * step_s
            watts = (self.watts(begin_s + (i + 0.5) * step_s) for i in range(STEPS_PER_TICK))
            self._tick_joules.append(self._tick_joules[-1] + sum(watts) * step_s)
        return self.counter_share * (self._tick_joules[elapsed_ns // TICK_NS] - self._zero_joules)


class FakeNvml:
    """Stands in for the module `pynvml`; raises that module's own errors.

    Args:
        clock: Moves everything.
        boards: In PCI order.
        failures: Error to raise by function: {"nvmlInit": "DriverNotLoaded"}.
        returns_bytes: Names and UUIDs as old bindings give them.
    """

    def __init__(
        self,
        clock: StampClock,
        boards: Sequence[FakeBoard] = (),
        failures: Mapping[str, str] | None = None,
        *,
        returns_bytes: bool = False,
    ) -> None:
        self._clock, self._boards, self._failures = clock, list(boards), dict(failures or {})
        self._began_ns = clock.boot_ns()
        self._returns_bytes = returns_bytes
        self._errors = import_module("pynvml")
        self.calls: Counter[str] = Counter()
        self.users = 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("NVMLError"):
            return getattr(self._errors, name)
        raise AttributeError(name)

    def fail(self, function: str, error: str | None) -> None:
        """Let one function fail from now on, or work again."""
        self._failures.pop(function, None)
        if error is not None:
            self._failures[function] = error

    def nvmlInit(self) -> None:
        self._called("nvmlInit")
        self.users += 1

    def nvmlShutdown(self) -> None:
        self._called("nvmlShutdown")
        if not self.users:
            raise self._errors.NVMLError_Uninitialized
        self.users -= 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        self._called("nvmlSystemGetDriverVersion")
        return self._text("580.159.04")

    def nvmlDeviceGetCount(self) -> int:
        self._called("nvmlDeviceGetCount")
        return len(self._boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeBoard:
        return self._asked("nvmlDeviceGetHandleByIndex", self._boards[index])

    def nvmlDeviceGetUUID(self, handle: FakeBoard | str) -> str | bytes:
        return self._text(handle if isinstance(handle, str) else self._asked("nvmlDeviceGetUUID", handle).uuid)

    def nvmlDeviceGetName(self, handle: FakeBoard) -> str | bytes:
        return self._text(self._asked("nvmlDeviceGetName", handle).name)

    def nvmlDeviceGetPciInfo(self, handle: FakeBoard) -> SimpleNamespace:
        board = self._asked("nvmlDeviceGetPciInfo", handle)
        return SimpleNamespace(busId=self._text(f"00000000:{self._boards.index(board):02X}:00.0"))

    def nvmlDeviceGetArchitecture(self, handle: FakeBoard) -> int:
        return self._asked("nvmlDeviceGetArchitecture", handle).architecture

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: FakeBoard) -> int:
        return _thousandths(self._asked("nvmlDeviceGetEnforcedPowerLimit", handle).limit_watts)

    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: FakeBoard) -> list[SimpleNamespace]:
        board = self._asked("nvmlDeviceGetComputeRunningProcesses_v3", handle)
        return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in board.processes]

    def nvmlDeviceGetProcessUtilization(self, handle: FakeBoard, since_us: int) -> list[SimpleNamespace]:
        board = self._asked("nvmlDeviceGetProcessUtilization", handle)
        stamp_us = self._clock.wall_ns_at(self._began_ns + self._elapsed_ns() // NANOSECONDS_PER_SECOND * NANOSECONDS_PER_SECOND) // 1000
        if stamp_us <= since_us or not any(board.processes.values()):
            raise self._errors.NVMLError_NotFound
        return [SimpleNamespace(pid=pid, timeStamp=stamp_us, smUtil=percent) for pid, percent in board.processes.items() if percent]

    def nvmlDeviceGetMigMode(self, handle: FakeBoard) -> list[int]:
        return [int(bool(self._asked("nvmlDeviceGetMigMode", handle).migs))] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: FakeBoard) -> int:
        return len(self._asked("nvmlDeviceGetMaxMigDeviceCount", handle).migs)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: FakeBoard, index: int) -> str:
        return self._asked("nvmlDeviceGetMigDeviceHandleByIndex", handle).migs[index]

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: FakeBoard) -> int:
        return _thousandths(self._asked("nvmlDeviceGetTotalEnergyConsumption", handle).counter_joules(self._elapsed_ns()))

    def nvmlDeviceGetPowerUsage(self, handle: FakeBoard) -> int:
        board, now_s = self._asked("nvmlDeviceGetPowerUsage", handle), self._elapsed_ns() / NANOSECONDS_PER_SECOND
        return _thousandths(sum(board.watts(now_s - (i + 0.5) / 50) for i in range(50)) / 50)

    def nvmlDeviceGetFieldValues(self, handle: FakeBoard, fields: Sequence[int]) -> list[SimpleNamespace]:
        board = self._asked("nvmlDeviceGetFieldValues", handle)
        tick_s = self._elapsed_ns() // TICK_NS * TICK_NS / NANOSECONDS_PER_SECOND
        value = SimpleNamespace(uiVal=_thousandths(board.sensed_watts(tick_s)))
        code = self._errors.NVML_ERROR_NOT_SUPPORTED if "instant" in board.missing else 0
        return [SimpleNamespace(fieldId=one, nvmlReturn=code, valueType=UNSIGNED_INT, value=value) for one in fields]

    def nvmlDeviceGetSamples(self, handle: FakeBoard, kind: int, since_us: int) -> tuple[int, list[SimpleNamespace]]:
        board = self._asked("nvmlDeviceGetSamples", handle)
        newest = int(min(self._elapsed_ns(), board.frozen_from_s * NANOSECONDS_PER_SECOND)) // SAMPLE_NS
        slots = range(newest - SAMPLES_KEPT + 1, newest + 1)
        news = [(stamp_us, slot) for slot in slots if (stamp_us := self._stamp_us(slot)) > since_us]
        if not news:
            raise self._errors.NVMLError_NotFound
        return UNSIGNED_INT, [_sample(stamp_us, board.sensed_watts(slot * SAMPLE_NS / NANOSECONDS_PER_SECOND)) for stamp_us, slot in news]

    def _stamp_us(self, slot: int) -> int:
        return self._clock.wall_ns_at(self._began_ns + slot * SAMPLE_NS) // 1000

    def _asked(self, function: str, board: FakeBoard) -> FakeBoard:
        self._called(function)
        board.calls += 1
        if board.lost_from_call is not None and board.calls >= board.lost_from_call:
            raise self._errors.NVMLError_GpuIsLost
        if function in board.missing:
            raise self._errors.NVMLError_NotSupported
        return board

    def _called(self, function: str) -> None:
        self.calls[function] += 1
        if function in self._failures:
            raise getattr(self._errors, f"NVMLError_{self._failures[function]}")

    def _elapsed_ns(self) -> int:
        return self._clock.boot_ns() - self._began_ns

    def _text(self, text: str) -> str | bytes:
        return text.encode() if self._returns_bytes else text


def _sample(stamp_us: int, watts: float) -> SimpleNamespace:
    return SimpleNamespace(timeStamp=stamp_us, sampleValue=SimpleNamespace(uiVal=_thousandths(watts)))


def _thousandths(value: float) -> int:
    return round(value * 1000)
