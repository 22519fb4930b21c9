"""The embedded profiles: typical month, hour and weekend at yearly levels, for every zone, without a network."""

import csv
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from carbonreport.combine.seasonal import expand
from carbonreport.errors import BadSeries, UnknownZone
from carbonreport.grid.zones import DATA, WORLD_ZONE, resolve_zone, sub_zones
from carbonreport.model.series import Array, Family, IntensitySeries, SeasonalProfile

# Time constants of the error terms, by column. [h]
TERM_HOURS = (("sd_fast_6h", 6.0), ("sd_synoptic_48h", 48.0), ("sd_slow_60d", 1440.0))
# Upper end [gCO2e/kWh], the three terms and the level: how far any hour of a zone with a yearly mean of that size is off.
# 75th percentiles of 123 zones with hours in 2022; the level after one year, over 352 zones.
ERRORS_BY_LEVEL: tuple[tuple[float, tuple[float, float, float], float], ...] = (
    (50.0, (0.120, 0.167, 0.207), 0.212),
    (150.0, (0.191, 0.343, 0.464), 0.319),
    (300.0, (0.210, 0.363, 0.258), 0.190),
    (500.0, (0.214, 0.171, 0.110), 0.128),
    (float("inf"), (0.107, 0.088, 0.055), 0.054),
)
# Below this share of the life-cycle intensity the hours of the direct one go their own way (56 % off in NO).
LEAST_DIRECT_SHARE = 0.65
# sd of ln(direct / (share x life-cycle)) of single hours, beside the life-cycle one's own error: the largest of 18 zones whose both
# kinds of hours are known for 2023 and 2024, by share; and one zone that is far worse than its share.
DIRECT_SDS = ((0.8, 0.074), (LEAST_DIRECT_SHARE, 0.115))
DIRECT_SD_OF = {"CA-ON": 0.31}
DIRECT_HOURS = 6.0
# Percentiles of the countries' levels that span the world's.
WORLD_SPAN = (5.0, 95.0)


def create(options: Mapping[str, str]) -> "EmbeddedGrid":
    """The embedded profiles; option "factor": lifecycle or direct.

    Raises:
        BadSeries: No such factor.
    """
    factor = options.get("factor", "lifecycle")
    if factor not in ("lifecycle", "direct"):
        raise BadSeries(f"factor {factor!r} is neither lifecycle nor direct")
    return EmbeddedGrid(factor=factor)


def available() -> str | None:
    """Why the embedded profiles cannot be used, or None."""
    return None if (DATA / "ember_yearly.csv").is_file() else "the package was installed without its data folder; reinstall carbonreport"


@dataclass(frozen=True, slots=True)
class EmbeddedGrid:
    """Typical profiles out of a data folder.

    Attributes:
        data: Folder with ember_yearly.csv and, where the package was built with them, zones.csv, shapes.csv.gz, weekends.csv and direct.csv in odbl/.
        factor: lifecycle, or direct: the same shape at the direct level.
    """

    data: Path = DATA
    factor: str = "lifecycle"

    def profile(self, zone: str) -> SeasonalProfile:
        """The typical year of a zone; of its country by Ember's yearly mean where the zone itself is not in the tables.

        Raises:
            UnknownZone: Neither table has it.
            BadSeries: Direct intensities were asked for where the life-cycle ones say too little of them.
        """
        code = resolve_zone(zone, self.data)
        row = _zone_rows(self.data).get(code)
        profile = self._zone_profile(row) if row else self._country_profile(code)
        return profile if self.factor == "lifecycle" else self._direct(profile)

    def direct_share(self, zone: str) -> float | None:
        """Direct over life-cycle intensity of a zone, or None where it is not known."""
        return _direct_shares(self.data).get(zone)

    def _direct(self, profile: SeasonalProfile) -> SeasonalProfile:
        """The same hours at the direct level (method, section 3, rule 6)."""
        share = self.direct_share(profile.zone)
        if share is None:
            raise BadSeries(f"the direct intensity of {profile.zone} is not known; take life-cycle intensities, or a file")
        if share < LEAST_DIRECT_SHARE:
            text = f"{profile.zone} emits {share * 100:.0f} % of its life-cycle intensity directly, too little to tell its hours from those"
            raise BadSeries(f"{text} (under {LEAST_DIRECT_SHARE * 100:.0f} %); take life-cycle intensities, or a file of direct ones")
        sd = DIRECT_SD_OF.get(profile.zone) or next(sd for least, sd in DIRECT_SDS if share >= least)
        return replace(
            profile,
            levels={year: level * share for year, level in profile.levels.items()},
            terms=(*profile.terms, (sd, DIRECT_HOURS)),
            family=replace(profile.family, factor="direct"),
            source=f"{profile.source}, direct share of 2024",
        )

    def series(self, zone: str, start_s: float, end_s: float, *, guessed: bool = False) -> IntensitySeries:
        """The typical profile over a period, POSIX seconds.

        Args:
            zone: Zone, or "WORLD" where nobody knows it: the world's yearly mean, with bounds that span the countries.
            start_s: Begin.
            end_s: End.
            guessed: Whether the zone is a country taken from the host's time zone: the bounds then span the zones inside it.

        Raises:
            UnknownZone: Neither table has it.
        """
        profile = self.profile(zone)
        series = expand(profile, start_s, end_s)
        if profile.zone == WORLD_ZONE:
            return replace(
                series,
                bounds=self._world_bounds(),
                notes=(("annual-level", f"every hour is charged at Ember's mean of the world in {max(profile.levels)}"),),
            )
        if profile.zone not in _zone_rows(self.data):
            text = f"{zone} is charged at Ember's mean of {profile.name} in {max(profile.levels)}, production-based, every hour alike"
            series = replace(series, notes=(("grid-yearly-fallback", text),))
        return replace(series, bounds=self._country_bounds(profile)) if guessed else series

    def _zone_profile(self, row: Mapping[str, str]) -> SeasonalProfile:
        levels = {int(name.removeprefix("level_")): float(value) for name, value in row.items() if name.startswith("level_") and value}
        hours = f", hours of {row['dataset'].replace('-', '–')}" if row["dataset"] else ""
        return SeasonalProfile(
            zone=row["zone"],
            name=row["name"],
            time_zone=row["time_zone"],
            levels=levels,
            shape=_shape(self.data, row["zone"]),
            terms=tuple((float(row[name]), time_constant) for name, time_constant in TERM_HOURS if float(row[name]) > 0),
            level_sd_per_year=float(row["sd_level_per_sqrt_year"]),
            family=Family("lifecycle", "consumption", "average"),
            source=f"Electricity Maps (ODbL-1.0), yearly means {min(levels)}–{max(levels)}{hours}",
            marks=tuple(row["marks"].split()),
            successor=row["successor"],
            weekend_ratio=_weekend_ratios(self.data).get(row["zone"]),
        )

    def _country_profile(self, country: str) -> SeasonalProfile:
        row = next((row for row in _ember_rows(self.data) if row["iso2"] == country), None)
        if row is None:
            raise UnknownZone(country)
        level = float(row["g_per_kwh"])
        terms, level_sd = next((terms, level_sd) for upper, terms, level_sd in ERRORS_BY_LEVEL if level < upper)
        return SeasonalProfile(
            zone=country,
            name=row["name"],
            time_zone="UTC",  # without a shape only the turn of the year depends on it
            levels={int(row["year"]): level},
            shape=None,
            terms=tuple((sd, time_constant) for sd, (_, time_constant) in zip(terms, TERM_HOURS, strict=True)),
            level_sd_per_year=level_sd,
            family=Family("lifecycle", "production", "average"),
            source=f"Ember (CC BY 4.0), yearly mean {row['year']}",
        )

    def _world_bounds(self) -> tuple[float, float]:
        """5th and 95th percentile of the countries' levels, each country counted once, over the world's level."""
        rows = _ember_rows(self.data)
        world = next(float(row["g_per_kwh"]) for row in rows if row["iso2"] == WORLD_ZONE)
        low, high = np.percentile([float(row["g_per_kwh"]) for row in rows if row["iso2"] != WORLD_ZONE], WORLD_SPAN)
        return float(low) / world, float(high) / world

    def _country_bounds(self, country: SeasonalProfile) -> tuple[float, float]:
        """Lowest and highest newest level of the zones inside a country over its own; (1, 1) where it is one zone."""
        level = _newest(country)
        inside = [_newest(self.profile(zone)) / level for zone in sub_zones(country.zone, self.data)]
        return min([1.0, *inside]), max([1.0, *inside])


def _newest(profile: SeasonalProfile) -> float:
    """Level of the newest year, in gCO2e/kWh."""
    return profile.levels[max(profile.levels)]


@lru_cache(maxsize=4)
def _zone_rows(data: Path) -> dict[str, dict[str, str]]:
    """The table of zones by code; empty where a package was built without it."""
    return {row["zone"]: row for row in _read(data / "odbl" / "zones.csv")}


@lru_cache(maxsize=4)
def _ember_rows(data: Path) -> tuple[dict[str, str], ...]:
    return tuple(_read(data / "ember_yearly.csv"))


def _read(path: Path) -> Iterator[dict[str, str]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)


@lru_cache(maxsize=4)
def _direct_shares(data: Path) -> dict[str, float]:
    return {row["zone"]: float(row["direct_share"]) for row in _read(data / "odbl" / "direct.csv")}


@lru_cache(maxsize=4)
def _weekend_ratios(data: Path) -> dict[str, Array]:
    """Weekends over workdays by local hour, of the zones where they are known to differ. Each (24,)."""
    ratios = {row.pop("zone"): np.array(list(row.values()), dtype=np.float64) for row in _read(data / "odbl" / "weekends.csv")}
    for ratio in ratios.values():
        ratio.setflags(write=False)  # shared by everybody who asks
    return ratios


@lru_cache(maxsize=64)
def _shape(data: Path, zone: str) -> Array | None:
    """Relative intensity of local month and hour, or None where the zone has no hours worth a curve. Shape (12, 24)."""
    path = data / "odbl" / "shapes.csv.gz"
    if not path.is_file():
        return None
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        line = next((line for line in lines if line.startswith(f"{zone},")), None)
    if line is None:
        return None
    shape = np.array(line.split(",")[1:], dtype=np.float64).reshape(12, 24)
    shape.setflags(write=False)  # shared by everybody who asks
    return shape
