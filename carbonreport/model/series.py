"""Grid intensity over time: a series, or a seasonal profile that expands to one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Quality = Literal["measured", "estimated", "typical", "annual", "forecast"]
QUALITIES: tuple[Quality, ...] = ("measured", "estimated", "typical", "annual", "forecast")


@dataclass(frozen=True, slots=True)
class Family:
    """What kind of intensity a number is; two kinds never meet in one sum.

    Attributes:
        factor: "lifecycle", "direct" or "not stated".
        accounting: "consumption", "production" or "not stated".
        signal: "average" or "marginal".
        gas: "CO2e", or "CO2" where the other greenhouse gases are left out.
    """

    factor: str = "lifecycle"
    accounting: str = "consumption"
    signal: str = "average"
    gas: str = "CO2e"

    def __str__(self) -> str:
        return f"{self.signal}, {self.factor}, {self.accounting}-based" + ("" if self.gas == "CO2e" else f", {self.gas} alone")


@dataclass(frozen=True, slots=True)
class GridErrors:
    """How far an intensity is off, as standard deviations of ln(true / stated).

    Attributes:
        terms: Pairs (sd, hours): a part that is forgotten exponentially with that time constant.
        level_sd: A part that is common to all hours.
        observed_s: Begin of an observed hour by which those after it were corrected, POSIX seconds, or None; their error is smaller
            than the other two say, by what `combine/intervals.py` takes off.
    """

    terms: tuple[tuple[float, float], ...] = ()
    level_sd: float = 0.0
    observed_s: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class IntensitySeries:
    """Grid intensity of one zone, constant within each interval.

    Attributes:
        zone: Grid zone, as its source spells it.
        edges_s: Interval edges, POSIX seconds, rising. Shape (n + 1,).
        grams_per_kwh: Intensity of each interval. [gCO2e/kWh] Shape (n,).
        quality: Index into QUALITIES of each interval. Shape (n,).
        errors: Error model of each quality that occurs.
        family: Life-cycle or direct, consumption or production, average or marginal.
        source: Name and version of the data, for the statement.
        retrieved_on: Date on which the data were fetched, ISO, or "".
        bounds: Lowest and highest factor that the true mean may have where the zone itself was guessed, else None.
        notes: Slug and text of what the statement must say of it.
    """

    zone: str
    edges_s: Array
    grams_per_kwh: Array
    quality: NDArray[np.int8]
    errors: Mapping[Quality, GridErrors]
    family: Family
    source: str
    retrieved_on: str = ""
    bounds: tuple[float, float] | None = None
    notes: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.edges_s.shape != (self.grams_per_kwh.size + 1,) or self.quality.shape != self.grams_per_kwh.shape:
            raise ValueError(f"{self.edges_s.size} edges for {self.grams_per_kwh.size} intensities of {self.zone}")
        if not np.all(np.diff(self.edges_s) > 0):
            raise ValueError(f"edges of {self.zone} do not rise")
        if not np.all(np.isfinite(self.grams_per_kwh)) or np.any(self.grams_per_kwh < 0):
            raise ValueError(f"intensities of {self.zone} are not finite and positive")


@dataclass(frozen=True, slots=True, eq=False)
class SeasonalProfile:
    """A zone's typical year: yearly levels times a relative local month x hour shape, and how weekends differ from workdays.

    Attributes:
        zone: Grid zone as Electricity Maps spells it.
        name: The zone in words.
        time_zone: IANA name of the zone whose local month and hour the shape follows.
        levels: Mean intensity by year. [gCO2e/kWh]
        shape: Intensity of local month and hour over the level. Shape (12, 24); None where only the level is known.
        terms: Error terms of the shape, pairs (sd of ln, hours).
        level_sd_per_year: sd of ln(level) after one year; grows with the square root of the age.
        family: What kind of intensity it is.
        source: Name and version of the data.
        retrieved_on: Date of the data, ISO, or "".
        marks: "constant", "estimated", "retired": what the reader must know of the zone.
        successor: Zone that took a retired one's place, or "".
        weekend_ratio: Intensity of local Saturdays and Sundays over that of workdays, by local hour, a ratio; the shape is that of the mean
            of seven days. Shape (24,); None where it is not known, and all days are alike.
    """

    zone: str
    name: str
    time_zone: str
    levels: Mapping[int, float]
    shape: Array | None
    terms: tuple[tuple[float, float], ...]
    level_sd_per_year: float
    family: Family
    source: str
    retrieved_on: str = ""
    marks: tuple[str, ...] = field(default=())
    successor: str = ""
    weekend_ratio: Array | None = None

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError(f"zone {self.zone} has no yearly level")
        if self.shape is not None and self.shape.shape != (12, 24):
            raise ValueError(f"shape of {self.zone} is {self.shape.shape}, not (12, 24)")
        if self.weekend_ratio is None:
            return
        if self.shape is None:
            raise ValueError(f"zone {self.zone} has weekends but no shape for them to divide")
        if self.weekend_ratio.shape != (24,) or not np.all(np.isfinite(self.weekend_ratio) & (self.weekend_ratio > 0)):
            raise ValueError(f"weekends of {self.zone} over workdays are {self.weekend_ratio}, not 24 positive ratios")
