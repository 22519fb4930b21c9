"""NVML's calls to one board in house units, and the power sources that stand on them. The binding comes in as an argument."""

from dataclasses import dataclass
from typing import Any

from carbonreport.errors import DeviceLost
from carbonreport.measure.anchor import Points
from carbonreport.measure.clock import RunClock
from carbonreport.sensors import ReadingKind
from carbonreport.units import joules_from_millijoules, seconds_from_microseconds, seconds_from_nanoseconds, watts_from_milliwatts

# Ids as own constants: their names come and go between versions of the binding.
TOTAL_POWER_SAMPLES = 0
FIELD_POWER_INSTANT = 186
FIELD_CAPPED_NS = 74  # time so far that the software power cap held the clocks down
ARCHITECTURE_AMPERE = 7
VALUE_MEMBERS = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}

# Boards with the GA100 chip: their "power usage" is instantaneous, unlike that of every other board since Ampere (NVML API reference).
GA100_NAMES = ("A100", "A100X", "A800", "A30", "A30X", "170HX")

BUFFER_PERIOD_S = 1.0  # H200: the buffer holds 119 samples of 20 ms
BUFFER_REACH_S = 60.0  # stamps older than this are empty slots, not samples
INSTANT_PERIOD_S = 0.1  # H200: a new value every 100 ms
AVERAGED_PERIOD_S = 0.5
TICK_S = 0.1  # the energy counter ticks on a strict lattice; a reading is the value of the last tick
TICK_SEARCH_S = 0.15
TICK_SEARCH_CALLS = 100

LOST = ("GpuIsLost", "ResetRequired", "DriverNotLoaded", "Uninitialized", "LibRmVersionMismatch")


@dataclass(frozen=True, slots=True)
class Calls:
    """NVML's calls to one board, in house units; None is "not here" or "not now", a lost board raises DeviceLost."""

    nvml: Any
    handle: Any
    label: str

    def counter_joules(self) -> float | None:
        """Energy since the driver was loaded, as of the counter's last tick. [J]"""
        millijoules = self.ask("nvmlDeviceGetTotalEnergyConsumption")
        return None if millijoules is None else joules_from_millijoules(millijoules)

    def capped_seconds(self) -> float | None:
        """Time so far at the software power limit. [s]"""
        nanoseconds = self._field(FIELD_CAPPED_NS)
        return None if nanoseconds is None else seconds_from_nanoseconds(nanoseconds)

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
        return _watts(self._field(FIELD_POWER_INSTANT))

    def _field(self, field: int) -> Any:
        fields = self.ask("nvmlDeviceGetFieldValues", [field])
        if fields is None or fields[0].nvmlReturn != 0:
            return None
        return getattr(fields[0].value, VALUE_MEMBERS[fields[0].valueType])

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


class TickingCounter:
    """The energy counter with the time of each value: that of its last tick, whose phase is looked for once.

    A reading taken at face value is up to a tenth of a second of power too old: 70 J at 700 W.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._tick_s: float | None = None
        self.age_sd_s = TICK_S / 12**0.5

    def find_tick(self, clock: RunClock) -> None:
        """Read until the value changes, which takes a tick at most; where it does not change, half a tick is taken for its age."""
        begin_s, before, calls = clock.offset_s(), self._calls.counter_joules(), 0
        asked_s = begin_s
        while before is not None and calls < TICK_SEARCH_CALLS and asked_s - begin_s < TICK_SEARCH_S:
            previous_s, asked_s = asked_s, clock.offset_s()
            now, calls = self._calls.counter_joules(), calls + 1
            if now is not None and now != before:
                answered_s = clock.offset_s()
                self._tick_s, self.age_sd_s = (previous_s + answered_s) / 2, (answered_s - previous_s) / 12**0.5
                return

    def read(self, clock: RunClock) -> tuple[float, float] | None:
        """When the value was true, and the value. (offset_s, joules)"""
        asked_s = clock.offset_s()
        joules = self._calls.counter_joules()
        if joules is None:
            return None
        if self._tick_s is None:
            return asked_s - TICK_S / 2, joules
        return asked_s - (asked_s - self._tick_s) % TICK_S, joules


class BufferedPower:
    """The driver's own buffer of power samples, with its stamps."""

    words = "NVML buffered power samples"
    kind: ReadingKind = "samples"
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
    kind: ReadingKind = "power"
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

    kind: ReadingKind = "power"

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
