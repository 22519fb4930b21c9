"""The grids that runs were charged on: their intervals, their origin, and each zone's part."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.hourly import by_hour, hour_of
from carbonreport.combine.intervals import EXACT, Factors, grid_sd, independent_sum, log_normal, product
from carbonreport.combine.origins import weakest
from carbonreport.model.footprint import ChargedRun, GridUse
from carbonreport.model.origin import Origin
from carbonreport.model.quantity import Quantity
from carbonreport.model.series import QUALITIES, Array, GridErrors, Quality
from carbonreport.units import kwh

_ORIGIN_OF_QUALITY: dict[Quality, Origin] = {
    "measured": "reported",
    "estimated": "estimated",
    "typical": "estimated",
    "annual": "estimated",
    "forecast": "estimated",
}


class ZoneGrids:
    """Zones of runs.

    Args:
        runs: Charged runs.
        slice_facility: Facility energy of each slice of each run. [J]
        slice_grams: Emissions of the same. [g]
    """

    def __init__(self, runs: Sequence[ChargedRun], slice_facility: Sequence[Array], slice_grams: Sequence[Array]) -> None:
        self.runs, self.slice_facility, self.slice_grams = runs, slice_facility, slice_grams
        self.facility_joules = float(sum(s.sum() for s in slice_facility))
        self.mass_unit = f"g{runs[0].grid.family.gas}"  # CO2e, or CO2 alone

    def _zones(self) -> dict[str, list[int]]:
        zones: dict[str, list[int]] = defaultdict(list)
        for i, c in enumerate(self.runs):
            zones[f"{c.grid.zone} {c.grid.source}"].append(i)
        return zones

    def interval(self) -> Factors:
        """Interval of the emissions from that of the intensities; errors of two zones are apart."""
        return independent_sum(
            (float(sum(self.slice_grams[i].sum() for i in runs)), self.interval_of(runs)) for runs in self._zones().values()
        )

    def interval_of(self, runs: Sequence[int]) -> Factors:
        """Interval of the mean intensity of one zone over all its runs together."""
        grams = float(sum(self.slice_grams[i].sum() for i in runs))
        if grams <= 0:
            return EXACT
        grid = self.runs[runs[0]].grid
        kinds = []
        for quality in QUALITIES:
            hours, weights = self._hourly(runs, QUALITIES.index(quality))
            if weights.size:
                errors = _widest([self.runs[i].grid.errors[quality] for i in runs if quality in self.runs[i].grid.errors])
                kinds.append(log_normal(grid_sd(hours, weights / grams, errors)))
        if grid.bounds is not None:
            kinds.append(Factors(min(grid.bounds[0], 1.0), max(grid.bounds[1], 1.0)))
        return product(*kinds)

    def _hourly(self, runs: Sequence[int], quality: int) -> tuple[Array, Array]:
        """Hours and grams charged in them with intensities of one quality."""
        starts = np.concatenate([hour_of(self.runs[i])[self.runs[i].quality == quality] for i in runs])
        grams = np.concatenate([self.slice_grams[i][self.runs[i].quality == quality] for i in runs])
        return by_hour(starts, grams)

    def origin(self) -> Origin:
        """How the intensities are known."""
        parts = []
        for c, grams in zip(self.runs, self.slice_grams, strict=True):
            for i, quality in enumerate(QUALITIES):
                if np.any(_qualities(c) == i):
                    origin: Origin = "assumed" if c.grid.bounds is not None else _ORIGIN_OF_QUALITY[quality]
                    parts.append((origin, float(grams[c.quality == i].sum())))
        return weakest(parts)

    def uses(self) -> tuple[GridUse, ...]:
        """Each zone with its mean intensity and its part of the energy."""
        rows = []
        for runs in self._zones().values():
            grid = self.runs[runs[0]].grid
            facility = float(sum(self.slice_facility[i].sum() for i in runs))
            grams = float(sum(self.slice_grams[i].sum() for i in runs))
            mean = (
                grams / kwh(facility)
                if facility
                else float(
                    np.mean(
                        np.concatenate([self.runs[i].grams_per_kwh for i in runs])
                        if any(self.runs[i].grams_per_kwh.size for i in runs)
                        else grid.grams_per_kwh
                    )
                )
            )
            qualities = tuple((q, share) for k, q in enumerate(QUALITIES) if (share := self._quality_share(runs, k, facility)) > 0)
            factors = self.interval_of(runs)
            intensity = Quantity(mean, mean * factors.low, mean * factors.high, f"{self.mass_unit}/kWh", self.origin(), grid.source)
            rows.append(
                GridUse(
                    grid.zone,
                    intensity,
                    facility / self.facility_joules if self.facility_joules else 1.0 / len(self.runs),
                    qualities,
                    grid.family,
                    grid.source,
                )
            )
        return tuple(rows)

    def _quality_share(self, runs: Sequence[int], quality: int, facility: float) -> float:
        energy = sum(float(self.slice_facility[i][self.runs[i].quality == quality].sum()) for i in runs)
        if facility:
            return energy / facility
        return float(np.mean([np.mean(_qualities(self.runs[i]) == quality) for i in runs]))


def _widest(errors: Sequence[GridErrors]) -> GridErrors:
    """The error model of runs of one zone; where they were corrected by several observed hours, or not all, as if by none."""
    widest = max(errors, key=lambda e: e.level_sd)
    return widest if len({e.observed_s for e in errors}) == 1 else replace(widest, observed_s=None)


def _qualities(c: ChargedRun) -> NDArray[np.int8]:
    """Quality of each slice; of the series where a run without length has no slice. Shape (n,)."""
    return c.quality if c.quality.size else c.grid.quality
