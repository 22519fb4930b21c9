"""A run as it was recorded: devices, energy over time, spans, place. Stdlib only: the tracer starts without numpy."""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from carbonreport.model.knobs import KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.model.origin import Origin
from carbonreport.model.pue import PueProfile
from carbonreport.model.sums import SpanSums

Method = Literal["anchored", "counter", "instant", "averaged", "reported", "model"]
DeviceKind = Literal["gpu", "cpu", "dram", "node", "other"]
RunKind = Literal["training", "inference", "evaluation", "search", "preliminary", "failed", "other"]

METHODS: tuple[Method, ...] = ("anchored", "counter", "instant", "averaged", "reported", "model")
DEVICE_KINDS: tuple[DeviceKind, ...] = ("gpu", "cpu", "dram", "node", "other")
RUN_KINDS: tuple[RunKind, ...] = ("training", "inference", "evaluation", "search", "preliminary", "failed", "other")

ORIGIN_OF_METHOD: dict[Method, Origin] = {
    "anchored": "measured",
    "counter": "measured",
    "instant": "measured",
    "averaged": "measured",
    "reported": "reported",
    "model": "estimated",
}

_LONGEST_S = 100 * 365.25 * 86400.0
_LATEST_START_S = 7_258_118_400.0  # 2200-01-01
_LAST_READING_S = 60.0  # a slow driver's last reading comes after the end
_MOST_EDGE_JOULES = 1e12


@dataclass(frozen=True, slots=True)
class Device:
    """One thing whose energy is known.

    Attributes:
        id: GPU UUID, "cpu-package-0", "host-model".
        name: What the vendor calls it.
        kind: gpu, cpu (package), dram, node (a whole host's meter) or other.
        method: How its energy is known, decided once.
        gain_low: Lower end of the 90 % interval of true / reading.
        gain_high: Upper end of the 90 % interval of true / reading.
        edge_joules: 90 % error of the energy at each end of the run. [J]
        source: Meter or model in words, for the statement.
        origin: How it is known; follows from the method unless the record says weaker ("assumed").
        count: Equal devices that are known only together; 1 for anything that was measured.
    """

    id: str
    name: str
    kind: DeviceKind
    method: Method
    gain_low: float
    gain_high: float
    source: str
    edge_joules: float = 0.0
    origin: Origin = "measured"
    count: int = 1

    def __post_init__(self) -> None:
        if not 0 < self.gain_low <= 1 <= self.gain_high < math.inf:
            raise ValueError(f"gain interval {self.gain_low!r} to {self.gain_high!r} of {self.id} must contain 1")
        if not 0 <= self.edge_joules < _MOST_EDGE_JOULES:
            raise ValueError(f"edge_joules of {self.id} is {self.edge_joules!r}")
        if self.count < 1:
            raise ValueError(f"count of {self.id} is {self.count!r}; it must be 1 or more")


@dataclass(frozen=True, slots=True)
class EnergyTrace:
    """Cumulative energy of one device since the start of the run: straight between points, flat over gaps.

    Attributes:
        device: Id of the device.
        offsets_s: Seconds since the start, rising.
        joules: Energy since the start at each offset, never falling. [J]
        gaps: Periods without a reading (from_s, to_s), inside which the curve is flat.
    """

    device: str
    offsets_s: tuple[float, ...]
    joules: tuple[float, ...]
    gaps: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if len(self.offsets_s) != len(self.joules):
            raise ValueError(f"{len(self.offsets_s)} offsets for {len(self.joules)} energies of {self.device}")
        for name, values in (("offsets", self.offsets_s), ("energies", self.joules)):
            if any(not math.isfinite(v) for v in values) or any(b < a for a, b in pairwise(values)):
                raise ValueError(f"{name} of {self.device} are not finite and rising")

    def joules_at(self, offset_s: float) -> float:
        """Energy since the start at one offset, the ends held. [J]"""
        if not self.offsets_s:
            return 0.0
        i = bisect_right(self.offsets_s, offset_s)
        if i == 0:
            return self.joules[0]
        if i == len(self.offsets_s):
            return self.joules[-1]
        t0, t1, e0, e1 = self.offsets_s[i - 1], self.offsets_s[i], self.joules[i - 1], self.joules[i]
        return e0 + (e1 - e0) * (offset_s - t0) / (t1 - t0)


@dataclass(frozen=True, slots=True)
class Span:
    """What happened under one path within one UTC quarter hour, nested spans excluded.

    Attributes:
        path: "train/step/forward".
        quarter_s: POSIX second at which the quarter hour begins.
        count: Spans that ended in it.
        seconds: Time spent in it, without the time of nested spans. [s]
        items: Samples, tokens or queries that those spans counted; None where nobody counted.
        joules: Energy by device id, without that of nested spans. [J]
    """

    path: str
    quarter_s: float
    count: int
    seconds: float
    items: float | None
    joules: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run happened, as far as anybody said.

    Attributes:
        zone: Grid zone as Electricity Maps spells it, or None.
        zone_source: Who said so: "option", "site file", "environment", "guessed from the time zone Europe/Berlin".
        time_zone: IANA name of the host's zone, for the dates of the statement.
        pue: PUE of the facility, or None.
        site: Name of the site, or None.
    """

    zone: str | None = None
    zone_source: str = ""
    time_zone: str | None = None
    pue: PueProfile | None = None
    site: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """Everything that is kept of a run; it can be rendered again years later.

    Attributes:
        id: Random id of the run.
        name: What its author calls it.
        kind: training, inference, …
        host: Salted id of the host: two runs of one host share it, nobody can read it back.
        parent: Id of the run around it whose energy contains this one's, or None.
        job: Salted hash of the distributed job that it belongs to, or None.
        rank: Number of the process that measured it among those of the job, or None.
        world_size: Number of processes of the job, where the launcher said.
        started_s: POSIX second of the start.
        duration_s: Seconds from start to end on a clock that counts suspends and ignores steps.
        is_complete: Whether the run ended cleanly.
        place: Where it ran.
        devices: Devices with a trace.
        traces: One a device.
        spans: By path and quarter hour.
        sums: What each device's power samples say of the spans; empty where there were no spans or no known sensor.
        knobs: What was set on boards during the run, and what became of it.
        unused: Ids of visible boards on which no process of the run was seen; they were read and do not count.
        environment: Versions and hardware in words: driver, cpu, python, carbonreport.
        notes: What a reader must know of how it was recorded.
        source: Name of the file it came from, or "".
        sha256: Hash of that file, or "".
    """

    id: str
    name: str
    kind: RunKind
    host: str
    started_s: float
    duration_s: float
    devices: tuple[Device, ...]
    traces: tuple[EnergyTrace, ...]
    spans: tuple[Span, ...] = ()
    sums: tuple[SpanSums, ...] = ()
    knobs: tuple[KnobsHeld, ...] = ()
    unused: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    parent: str | None = None
    job: str | None = None
    rank: int | None = None
    world_size: int | None = None
    is_complete: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    source: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.duration_s < _LONGEST_S:
            raise ValueError(f"duration_s is {self.duration_s!r}; a run lasts between 0 s and 100 years")
        if not 0 <= self.started_s < _LATEST_START_S:
            raise ValueError(f"started is {self.started_s!r} s after 1970, which is not before 2200")
        known = {device.id for device in self.devices}
        for device_id in self.unused:
            if device_id not in known:
                raise ValueError(f"unknown device {device_id!r} is called unused")
        for trace in self.traces:
            if trace.device not in known:
                raise ValueError(f"trace of unknown device {trace.device!r}")
            if trace.offsets_s and trace.offsets_s[-1] > self.duration_s + _LAST_READING_S:
                raise ValueError(
                    f"trace of {trace.device} ends {trace.offsets_s[-1]!r} s after the start, the run after {self.duration_s!r} s"
                )

    @property
    def ended_s(self) -> float:
        """POSIX second of the end."""
        return self.started_s + self.duration_s
