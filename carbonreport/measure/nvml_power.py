"""NVML's calls to one board in house units, and the power sources that stand on them. The binding comes in as an argument."""

from dataclasses import dataclass
from typing import Any

from carbonreport.errors import DeviceLost
from carbonreport.measure.anchor import Points
from carbonreport.measure.clock import RunClock
from carbonreport.units import joules_from_millijoules, seconds_from_microseconds, watts_from_milliwatts

# Ids as own constants: their names come and go between versions of the binding.
TOTAL_POWER_SAMPLES = 0
FIELD_POWER_INSTANT = 186
ARCHITECTURE_AMPERE = 7
VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}

# Boards with the GA100 chip: their "power usage" is instantaneous, unlike that of every other board since Ampere (NVML API reference).
GA100_NAMES = ("A100", "A100X", "A800", "A30", "A30X", "170HX")

BUFFER_PERIOD_S = 1.0  # H200: the buffer holds 119 samples of 20 ms
BUFFER_REACH_S = 60.0  # stamps older than this are empty slots, not samples
INSTANT_PERIOD_S = 0.1  # H200: a new value every 100 ms
AVERAGED_PERIOD_S = 0.5
COUNTER_AGE_S = 0.05  # the counter ticks every 0.1 s: what is read is half a tick old on average

LOST = ("GpuIsLost", "ResetRequired", "DriverNotLoaded", "Uninitialized", "LibRmVersionMismatch")


@dataclass(frozen=True, slots=True)
class Calls:
    """NVML's calls to one board, in house units; None is "not here" or "not now", a lost board raises DeviceLost."""

    nvml: Any
    handle: Any
    label: str

    def counter(self, clock: RunClock) -> tuple[float, float] | None:
        """Energy since the driver was loaded, and when. (offset_s, joules)"""
        offset_s = clock.offset_s() - COUNTER_AGE_S
        millijoules = self.ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else (offset_s, joules_from_millijoules(millijoules))

    def samples(self, since_us: int) -> list[tuple[int, float]]:
        """Buffered samples. (microseconds since 1970, watts)"""
        answer = self.ask("nvmlDeviceGetSamples", TOTAL_POWER_SAMPLES, since_us)
        if answer is None:
            return []
        member = VALUE_MEMBERS[answer[0]]
        read = [(sample.timeStamp, _watts(getattr(sample.sampleValue, member))) for sample in answer[1]]
        return [(stamp_us, watts) for stamp_us, watts in read if watts is not None]

    def instant_watts(self) -> float | None:
        """Power now. [W]"""
        fields = self.ask("nvmlDeviceGetFieldValues", [FIELD_POWER_INSTANT])
        if fields is None or fields[0].nvmlReturn != 0:
            return None
        return _watts(getattr(fields[0].value, VALUE_MEMBERS[fields[0].valueType]))

    def usage_watts(self) -> float | None:
        """Power now or its mean over a second, by `usage_is_instant`. [W]"""
        return _watts(self.ask("nvmlDeviceGetPowerUsage"))

    def usage_is_instant(self, name: str) -> bool:
        """Whether the power usage is a momentary value, as before Ampere and on GA100."""
        architecture = self.ask("nvmlDeviceGetArchitecture")
        is_ga100 = any(word in GA100_NAMES for word in name.replace("-", " ").split())
        return is_ga100 or (architecture is not None and architecture < ARCHITECTURE_AMPERE)

    def limit_watts(self) -> float | None:
        """The power limit that holds now. [W]"""
        return _watts(self.ask("nvmlDeviceGetEnforcedPowerLimit"))

    def ask(self, function: str, *arguments: Any) -> Any:
        """Answer of one function, or None."""
        try:
            return asked(self.nvml, function, self.handle, *arguments)
        except self.nvml.NVMLError as error:
            raise DeviceLost(f"{self.label} stopped answering ({error})") from error


class BufferedPower:
    """The driver's own buffer of power samples, with its stamps."""

    words = "NVML buffered power samples"
    period_s = BUFFER_PERIOD_S
    blur_s = 0.02
    is_averaged = False

    def __init__(self, calls: Calls) -> None:
        self._calls, self._newest_us = calls, 0

    def read(self, clock: RunClock) -> Points:
        """Samples that are newer than those of the previous call."""
        now_us, now_s = clock.clock.wall_ns() // 1000, clock.offset_s()
        since_us = self._newest_us if self._newest_us <= now_us else 0  # the wall clock was set back
        shift_s = clock.offset_of_wall_s(0.0)
        samples = sorted((us, watts) for us, watts in self._calls.samples(since_us) if us <= now_us)
        if samples:
            self._newest_us = samples[-1][0]
        points = ((shift_s + seconds_from_microseconds(us), watts) for us, watts in samples)
        return [point for point in points if point[0] >= now_s - BUFFER_REACH_S]


class InstantPower:
    """Momentary power, polled."""

    words = f"NVML instant power every {INSTANT_PERIOD_S} s"
    period_s = INSTANT_PERIOD_S
    blur_s = INSTANT_PERIOD_S
    is_averaged = False

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def read(self, clock: RunClock) -> Points:
        """Power now."""
        return _point(clock, self._calls.instant_watts())


class UsagePower:
    """Power usage, polled: momentary on old boards and GA100, else a mean over a second."""

    def __init__(self, calls: Calls, *, is_averaged: bool) -> None:
        self._calls, self.is_averaged = calls, is_averaged
        self.period_s = AVERAGED_PERIOD_S if is_averaged else INSTANT_PERIOD_S
        self.blur_s = 0.5 if is_averaged else INSTANT_PERIOD_S
        self.words = f"NVML {'one-second mean of power' if is_averaged else 'power usage'} every {self.period_s} s"

    def read(self, clock: RunClock) -> Points:
        """Power now."""
        return _point(clock, self._calls.usage_watts())


PowerSource = BufferedPower | InstantPower | UsagePower


def asked(nvml: Any, function: str, *arguments: Any) -> Any:
    """Answer of one function; None where binding, driver or board do not have it, or have nothing to say now."""
    call = getattr(nvml, function, None)
    if call is None:
        return None
    try:
        return call(*arguments)
    except nvml.NVMLError as error:
        if type(error).__name__.removeprefix("NVMLError_") in LOST:
            raise
        return None


def _watts(milliwatts: float | None) -> float | None:
    """Watts; None for zero, which a board that answers cannot draw: some report it for "unknown"."""
    return watts_from_milliwatts(milliwatts) if milliwatts else None


def _point(clock: RunClock, watts: float | None) -> Points:
    return [] if watts is None else [(clock.offset_s(), watts)]
