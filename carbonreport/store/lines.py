"""The lines of a record as they are typed: what each must hold."""

from datetime import datetime
from typing import Literal

import msgspec

from carbonreport.model.knobs import KnobsHeld
from carbonreport.model.origin import Origin
from carbonreport.model.run import DeviceKind, Method, RunKind
from carbonreport.store.sums_reader import SumsLine


class PueField(msgspec.Struct):
    """A PUE as `run` holds it."""

    value: float
    low: float
    high: float
    origin: Origin
    source: str
    has_range: bool
    months: tuple[float, ...] = ()
    hours: tuple[float, ...] = ()
    edges_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()


class PlaceField(msgspec.Struct):
    """Where a run was."""

    zone: str | None
    zone_source: str
    time_zone: str | None
    pue: PueField | None
    site: str | None


class RunLine(msgspec.Struct, tag_field="type", tag="run"):
    """The first line: what ran, where and when."""

    carbonreport: int
    id: str
    name: str
    kind: RunKind
    host: str
    parent: str | None
    started: datetime
    place: PlaceField
    environment: dict[str, str]
    job: str | None = None
    rank: int | None = None
    world_size: int | None = None


class DeviceLine(msgspec.Struct, tag_field="type", tag="device"):
    """A device, and how it is measured. [J]"""

    id: str
    name: str
    kind: DeviceKind
    method: Method
    gain_low: float
    gain_high: float
    source: str
    edge_joules: float
    origin: Origin
    count: int = 1


class PointsLine(msgspec.Struct, tag_field="type", tag="points"):
    """Readings of a device. [s, J]"""

    device: str
    offsets_s: list[float]
    joules: list[float]


class GapLine(msgspec.Struct, tag_field="type", tag="gap"):
    """Time of a device without readings. [s]"""

    device: str
    from_s: float
    to_s: float


SpanRow = tuple[str, float, int, float, float | None, list[float]]


class SpansLine(msgspec.Struct, tag_field="type", tag="spans"):
    """Spans of a quarter hour."""

    batch: int
    devices: list[str]
    spans: list[SpanRow]


class KnobsLine(msgspec.Struct, tag_field="type", tag="knobs"):
    """Only what kind of line it is: the line is decoded once more as KnobsHeld, which msgspec does not take into a union of structs."""


class NoteLine(msgspec.Struct, tag_field="type", tag="note"):
    """What a reader must know."""

    slug: str
    text: str


class EnvironmentLine(msgspec.Struct, tag_field="type", tag="environment"):
    """Versions and hardware that were known late."""

    facts: dict[str, str]


class EndLine(msgspec.Struct, tag_field="type", tag="end"):
    """The end of a run that ended. [s]"""

    duration_s: float
    gains: dict[str, float]
    unseen: dict[str, float] = {}
    unused: list[str] = []


class Tail(msgspec.Struct):
    """What a run that was killed had not written as lines."""

    sequence: int
    offset_s: float
    batch: int
    devices: list[str]
    points: list[tuple[str, list[float], list[float]]]
    spans: list[SpanRow]
    gains: dict[str, float]
    unseen: dict[str, float] = {}
    unused: list[str] = []


Line = RunLine | DeviceLine | PointsLine | GapLine | SpansLine | SumsLine | KnobsLine | NoteLine | EnvironmentLine | EndLine
LINE = msgspec.json.Decoder(Line)
HELD = msgspec.json.Decoder(KnobsHeld)
TAIL = msgspec.json.Decoder(Tail)


class Probe(msgspec.Struct):
    """Whether a file is a record at all."""

    carbonreport: int | None = None
    type: Literal["run"] | str | None = None
