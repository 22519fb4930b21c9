"""Typical years that `advice.py` can be asked to try beside the shipped one, and a typical year corrected by the last observed hour.

The shipped one has the days of the newest year, months of all years, and weekends (`scripts/grid_shapes.py`). The variants: the mean
shape of all years, the shape of the newest year alone, and all days alike. All use only what is known before the year of the test.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from grid_coverage import Held
from numpy.typing import NDArray

from grid_shapes import begin_s, laid_on, shape, typical_shape, weekend_ratio  # isort: skip

from carbonreport.combine.forecast import shares
from carbonreport.model.series import IntensitySeries
from carbonreport.units import SECONDS_PER_HOUR

Array = NDArray[np.float64]
_LEAST = 0.5  # as everywhere in these benchmarks: hours of nothing have no logarithm [gCO2e/kWh]


@dataclass(frozen=True, slots=True)
class Variant:
    """Which typical year.

    Attributes:
        all_years: The mean shape of all years, days and months alike.
        newest: The shape of the newest year, its months too.
        days_alike: Without weekends.
        observed: Whether the last whole hour before "now" is known and corrects it.
    """

    all_years: bool = False
    newest: bool = False
    days_alike: bool = False
    observed: bool = False

    def hours(self, series: Held, year: int, others: Sequence[int]) -> Array:
        """Relative intensity of a year's hours by the profile of others. Shape (hours of the year,)."""
        known = {other: series.years[other] for other in others}
        form = typical_shape(series.time_zone, {max(known): known[max(known)]} if self.newest else known)
        if self.all_years:
            form = np.mean([shape(series.time_zone, begin_s(other), known[other]) for other in sorted(known)], axis=0)
        ratio = np.ones(24) if self.days_alike else weekend_ratio(series.time_zone, known)
        return laid_on(series.time_zone, year, form, ratio)


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
