"""What the sampler asks of a meter: devices once, then cumulative joules at each poll."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from carbonreport.measure.clock import RunClock
from carbonreport.model.notes import Note
from carbonreport.model.run import Device
from carbonreport.model.sensor import Sensor


@dataclass(frozen=True, slots=True)
class Reading:
    """Cumulative energy of one device at one moment.

    Attributes:
        device: Id of the device.
        offset_s: Seconds since the start of the run; negative where a buffer reaches back before it.
        joules: Energy since the meter's own zero, never falling. [J]
    """

    device: str
    offset_s: float
    joules: float


@dataclass(frozen=True, slots=True)
class Gap:
    """A period in which a device could not be read; the curve is flat across it."""

    device: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Samples:
    """Power of one device at single moments, for the energy of short spans.

    Attributes:
        device: Id of the device.
        sensor: How the samples follow the power.
        points: (offset_s, watts) on the sensor's lattice, rising.
        limited_seconds: Time so far that the device spent at its power limit; None where it does not say. [s]
    """

    device: str
    sensor: Sensor
    points: tuple[tuple[float, float], ...]
    limited_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll of a meter brought.

    Attributes:
        readings: New points of each device, in rising order per device.
        gains: For anchored devices: counter energy over sample energy so far, for the whole run.
        gaps: Periods without a reading that ended in this poll.
        notes: What the reader of the record must know.
        samples: New power samples of devices that have them.
        periods_s: Time between two readings of a device's power sensor. [s]
        unseen_joules: Half-width of the 90 % interval of what a device drew while its sensor did not look, for the whole run. [J]
        is_used: Whether the run was seen on a board so far; empty where all boards count, and a board that does not say is absent.
    """

    readings: tuple[Reading, ...]
    gains: Mapping[str, float] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    notes: tuple[Note, ...] = ()
    samples: tuple[Samples, ...] = ()
    periods_s: Mapping[str, float] = field(default_factory=dict)
    unseen_joules: Mapping[str, float] = field(default_factory=dict)
    is_used: Mapping[str, bool] = field(default_factory=dict)


class Meter(Protocol):
    """Reads energy. `open`, `poll` and `close` run on the sampler's thread only."""

    @property
    def period_s(self) -> float | None:
        """How often it must be polled at least, or None where the sampler's interval will do. [s]"""

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """Find the devices and take the first reading.

        Raises:
            MeterError: It cannot be used here; the message says why and what would help.
        """

    def poll(self, *, is_last: bool) -> Poll:
        """Everything since the previous poll; the last one closes the totals."""

    def close(self) -> None:
        """Release the driver."""
