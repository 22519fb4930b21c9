"""PUE over time: months and hours of the facility's local time, or a measured series."""

import numpy as np

from carbonreport.combine.seasonal import calendar, local_hours
from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import Array


def pue_edges(profile: PueProfile, time_zone: str, start_s: float, end_s: float) -> Array:
    """Moments within a period at which the PUE may change, POSIX seconds."""
    if profile.edges_s:
        return np.array(profile.edges_s)
    if not profile.varies or end_s <= start_s:
        return np.empty(0)
    return local_hours(time_zone, start_s, end_s)[0]


def pue_at(profile: PueProfile, time_zone: str, edges_s: Array) -> Array:
    """PUE of each slice; slices must not reach over an edge of `pue_edges`. Shape (n,); (1,) with the profile's value where there is no slice.

    Months and hours given together multiply: month x hour / mean of the hours.

    Raises:
        BadPue: A series that does not cover the slices.
    """
    starts = edges_s[:-1]
    if not starts.size:
        return np.array([profile.value])
    if profile.edges_s:
        return _of_series(profile, edges_s)
    if not profile.varies:
        return np.full(starts.size, profile.value)
    known_s, local_s = local_hours(time_zone, float(edges_s[0]), float(edges_s[-1]))
    _, months, hours = calendar(local_s)
    index = np.searchsorted(known_s, starts, side="right") - 1
    by_month = np.array(profile.months)[months - 1] if profile.months else np.ones(months.size)
    by_hour = np.array(profile.hours)[hours] if profile.hours else np.ones(hours.size)
    if profile.months and profile.hours:
        by_hour = by_hour / np.mean(profile.hours)
    return np.maximum(by_month * by_hour, 1.0)[index]


def _of_series(profile: PueProfile, edges_s: Array) -> Array:
    if edges_s.size > 1 and (edges_s[0] < profile.edges_s[0] or edges_s[-1] > profile.edges_s[-1]):
        raise BadPue(f"the PUE series ({profile.source}) does not cover the run; give one that does, or a number")
    index = np.searchsorted(np.array(profile.edges_s), edges_s[:-1], side="right") - 1
    return np.array(profile.values)[index]
