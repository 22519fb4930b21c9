"""What a run, or many, used and emitted, with everything that a statement needs to say about it."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.model.notes import Note
from carbonreport.model.origin import Origin
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import Device, DeviceKind, Method, RunRecord
from carbonreport.model.series import QUALITIES, Array, Family, IntensitySeries, Quality


@dataclass(frozen=True, slots=True)
class DeviceEnergy:
    """One device's part, over all runs.

    Attributes:
        it_joules: Its energy. [J]
        grams: What was emitted for it, facility included. [gCO2e]
        share: Its part of the IT energy, 0 to 1.
        count: Equal devices that are known only together.
        host: Salted id of the host that had it.
        is_read: Whether it gave an energy at all; else its numbers are unknown, not 0.
    """

    id: str
    name: str
    kind: DeviceKind
    method: Method
    source: str
    it_joules: float
    grams: float
    share: float
    count: int
    host: str
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class SpanEnergy:
    """One span path's part, nested spans included.

    Attributes:
        path: Name, such as "train/step".
        count: How often it ran.
        seconds: Time inside it. [s]
        items: What it handled, or None where nobody counted.
        it_joules: Energy of the devices meanwhile; None where it is told with another path's. [J]
        it_joules_low: Lower end of its 90 % interval. [J]
        it_joules_high: Upper end. [J]
        grams: Emissions of that energy, facility included; None with it. [gCO2e]
        own_seconds: Time without nested spans. [s]
        own_it_joules: Energy without nested spans; None where it is told with another path's. [J]
        told_with: The path in whose energy it is contained, "" for the time outside spans; None where it has its own.
        because: Why it is not told apart, or "".
        includes: Other paths whose energy is contained in this one's.
    """

    path: str
    count: int
    seconds: float
    items: float | None
    it_joules: float | None
    it_joules_low: float | None
    it_joules_high: float | None
    grams: float | None
    own_seconds: float
    own_it_joules: float | None
    told_with: str | None = None
    because: str = ""
    includes: tuple[str, ...] = ()

    def without_nested(self) -> "SpanEnergy":
        """The same span without those nested in it; its interval and emissions in proportion."""
        if self.it_joules is None or self.own_it_joules is None:
            return replace(self, seconds=self.own_seconds)
        share = self.own_it_joules / self.it_joules if self.it_joules else 0.0
        low, high, grams = (None if value is None else value * share for value in (self.it_joules_low, self.it_joules_high, self.grams))
        return replace(self, seconds=self.own_seconds, it_joules=self.own_it_joules, it_joules_low=low, it_joules_high=high, grams=grams)

    @property
    def has_item_energy(self) -> bool:
        """Whether somebody counted what it handled, and its energy is its own."""
        return bool(self.items) and self.it_joules is not None

    @property
    def joules_per_item(self) -> float | None:
        """IT energy of one item, or None where nobody counted. [J]"""
        return self.it_joules / self.items if self.items and self.it_joules is not None else None

    @property
    def is_top_level(self) -> bool:
        """Whether no other span contains it."""
        return "/" not in self.path


@dataclass(frozen=True, slots=True, eq=False)
class Hours:
    """Energy by UTC hour; hours without energy in between are absent. All arrays have shape (n,).

    Attributes:
        start_s: POSIX second at which the hour begins.
        it_joules: IT energy in the hour. [J]
        facility_joules: Facility energy in the hour. [J]
        grams: Location-based emissions of the hour. [gCO2e]
        quality: Index into QUALITIES of the hour's intensity, the weakest of several.
    """

    start_s: Array
    it_joules: Array
    facility_joules: Array
    grams: Array
    quality: NDArray[np.int8]

    def quality_of(self, index: int) -> Quality:
        """Quality of one hour's intensity in words."""
        return QUALITIES[int(self.quality[index])]


@dataclass(frozen=True, slots=True)
class GridUse:
    """What one zone's grid contributed.

    Attributes:
        zone: Grid zone.
        grams_per_kwh: Mean intensity, weighted by facility energy.
        share: Part of the facility energy, 0 to 1.
        qualities: Share of the energy by quality of the intensity.
        family: Life-cycle or direct, consumption or production.
        source: Name and version of the data.
    """

    zone: str
    grams_per_kwh: Quantity
    share: float
    qualities: tuple[tuple[Quality, float], ...]
    family: Family
    source: str


@dataclass(frozen=True, slots=True)
class Embodied:
    """Emissions of making the hardware, spread over its life: a row of its own, outside scope 2.

    Attributes:
        grams: The runs' share. [gCO2e]
        basis: In words: figure, lifetime, use, source of each device.
    """

    grams: Quantity
    basis: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """Energy and emissions of a set of runs.

    Attributes:
        it_joules: Energy of the devices. [J]
        facility_joules: Energy at the facility's meter. [J]
        grams: Location-based emissions. [gCO2e]
        market_grams: Market-based emissions by contract, or None; never added to `grams`.
        embodied: Emissions of making the hardware, or None.
        water: Water that the facility used, or None where its use is not known; in no sum. [L]
        pue: Energy-weighted PUE.
        kinds: Energy by kind of device.
        devices: By device.
        spans: By path, nested spans included in their parents.
        rest_joules: Energy outside all spans. [J]
        rest_grams: Emissions outside all spans. [gCO2e]
        hours: By UTC hour.
        grids: By zone.
        covered: Part of the devices' time with a reading, 0 to 1.
        run_seconds: Wall-clock time of all counted runs. [s]
        gpu_seconds: The same times the GPUs of each. [s]
        notes: What the reader must know.
        log_widths: 90 % half widths of ln by kind: "gpu", "host", "pue", "grid": what to know better first.
        origins: Share of the IT energy by how it is known.
    """

    it_joules: Quantity
    facility_joules: Quantity
    grams: Quantity
    market_grams: Quantity | None
    embodied: Embodied | None
    water: Quantity | None
    pue: Quantity
    kinds: tuple[tuple[DeviceKind, Quantity], ...]
    devices: tuple[DeviceEnergy, ...]
    spans: tuple[SpanEnergy, ...]
    rest_joules: float
    rest_grams: float
    hours: Hours
    grids: tuple[GridUse, ...]
    covered: float
    run_seconds: float
    gpu_seconds: float
    notes: tuple[Note, ...]
    log_widths: tuple[tuple[str, float], ...]
    origins: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChargedRun:
    """A run with every slice at the PUE and intensity of its own time; n slices, d devices.

    Attributes:
        run: The record.
        grid: Intensities of its zone.
        edges_s: Slice edges, POSIX seconds, rising. Shape (n + 1,).
        devices: Devices that count, in the order of the rows of `it_joules`; a node's meter replaces those of its parts.
        it_joules: Energy of each of them in each slice. [J] Shape (d, n).
        pue: PUE of each slice. Shape (n,).
        pue_factors: Ends of its 90 % range, as factors on the value.
        pue_source: Where the PUE comes from.
        pue_origin: Whether it was reported, estimated by a model, or assumed.
        grams_per_kwh: Intensity of each slice. [gCO2e/kWh] Shape (n,).
        quality: Index into QUALITIES of each slice. Shape (n,).
        notes: What was assumed for it.
    """

    run: RunRecord
    grid: IntensitySeries
    edges_s: Array
    devices: tuple[Device, ...]
    it_joules: Array
    pue: Array
    pue_factors: tuple[float, float]
    pue_source: str
    pue_origin: Origin
    grams_per_kwh: Array
    quality: NDArray[np.int8]
    notes: tuple[Note, ...]
