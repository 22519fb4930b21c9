"""Slices put together by the hour. Pure."""

import numpy as np

from carbonreport.model.footprint import ChargedRun
from carbonreport.model.series import Array
from carbonreport.units import SECONDS_PER_HOUR


def hour_of(c: ChargedRun) -> Array:
    """POSIX second of the UTC hour in which each slice begins. Shape (n,)."""
    return np.floor(c.edges_s[:-1] / SECONDS_PER_HOUR) * SECONDS_PER_HOUR


def by_hour(starts: Array, amounts: Array) -> tuple[Array, Array]:
    """Distinct hours, rising, and the sum of each."""
    hours, index = np.unique(starts, return_inverse=True)
    sums: Array = np.bincount(index, weights=amounts, minlength=hours.size).astype(np.float64)
    return hours, sums
