"""Typical years that `advice.py` can be asked to try beside the shipped one, and a typical year corrected by the last observed hour.

The shipped shape is the mean of all years. The variants: the shape of the newest year alone; and a factor by hour of the day for workdays and one
for weekends, the mean of ln(true / shape) over all months of the years before. Both use only what is known before the year of the test.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from grid_coverage import Held, begin_s, cells, shape
from numpy.typing import NDArray

from carbonreport.combine.forecast import shares
from carbonreport.combine.seasonal import offsets
from carbonreport.model.series import IntensitySeries
from carbonreport.units import SECONDS_PER_HOUR

Array = NDArray[np.float64]
_SECONDS_A_DAY = 24 * SECONDS_PER_HOUR
_THURSDAY, _SATURDAY, _DAYS_A_WEEK = 3, 5, 7  # 1970 began on a Thursday
_LEAST = 0.5  # as everywhere in these benchmarks: hours of nothing have no logarithm [gCO2e/kWh]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which typical year.

    Attributes:
        newest: The newest year's shape instead of the mean of all.
        weekends: With factors for workdays and weekends.
        observed: Whether the last whole hour before "now" is known and corrects it.
    """

    newest: bool = False
    weekends: bool = False
    observed: bool = False

    @property
    def is_shipped(self) -> bool:
        """Whether the typical year is made as the shipped ones are."""
        return not (self.newest or self.weekends)

    def relative(self, series: Held, year: int, others: Sequence[int]) -> Array:
        """Relative intensity of a year's hours by the shape of others, of mean one. Shape (hours of the year,)."""
        if self.is_shipped:
            return series.relative(year, others)
        shapes = [shape(series.time_zone, begin_s(other), series.years[other]) for other in sorted(others)]
        hours = (shapes[-1] if self.newest else np.mean(shapes, axis=0))[cells(series.time_zone, year)]
        if self.weekends:
            hours = hours * np.exp(_weekend_logs(series, others)[is_weekend(series.time_zone, year), cells(series.time_zone, year)[1]])
        return np.asarray(hours / hours.mean(), dtype=np.float64)


def is_weekend(time_zone: str, year: int) -> NDArray[np.int64]:
    """Whether the middle of each UTC hour of a year is on a local Saturday or Sunday, 0 or 1."""
    start_s = begin_s(year)
    at = start_s + SECONDS_PER_HOUR * (np.arange(cells(time_zone, year)[0].size) + 0.5)
    local = at.copy()
    for begin, until, offset in offsets(time_zone, start_s, begin_s(year + 1)):
        local[(at >= begin) & (at < until)] += offset
    return np.asarray((local // _SECONDS_A_DAY + _THURSDAY) % _DAYS_A_WEEK >= _SATURDAY, dtype=np.int64)


def _weekend_logs(series: Held, years: Sequence[int]) -> Array:
    """Mean ln(true / shape) by workday or weekend, and local hour. Shape (2, 24)."""
    sums, counts = np.zeros((2, 24)), np.zeros((2, 24))
    for year in years:
        grams = series.years[year]
        months, hours = (part[: grams.size] for part in cells(series.time_zone, year))
        typical = grams.mean() * shape(series.time_zone, begin_s(year), grams)[months, hours]
        where = is_weekend(series.time_zone, year)[: grams.size], hours
        np.add.at(sums, where, np.log(np.maximum(grams, _LEAST) / typical))
        np.add.at(counts, where, 1.0)
    return np.asarray(sums / counts, dtype=np.float64)


def corrected(typical: IntensitySeries, truth: Array, now_s: float) -> IntensitySeries:
    """A typical year as it looks when the last whole hour before a moment has been observed, as `combine/forecast.py` corrects it."""
    errors = typical.errors["typical"]
    last = int((now_s - float(typical.edges_s[0])) // SECONDS_PER_HOUR) - 1
    if last < 0:
        return typical
    off = math.log(max(float(truth[last]), _LEAST) / float(typical.grams_per_kwh[last]))
    leads_h = (typical.edges_s[:-1] - typical.edges_s[last]) / SECONDS_PER_HOUR
    share = np.where(leads_h >= 0, shares(errors, np.maximum(leads_h, 0.0)), 0.0)
    known = replace(errors, observed_s=float(typical.edges_s[last]))
    return replace(typical, grams_per_kwh=typical.grams_per_kwh * np.exp(share * off), errors={"typical": known})
