"""The form of a typical year, out of whole years of hours: a local month x hour shape, and how weekends differ from workdays.

The day of each month is that of the newest year: the sun that was added since the years before would be missing in a mean of all. How large a month is, one
year's weather tells badly, so that its mean is that of all years. Weekends are told by all years too, as a hundred of them a year are few:
one ratio to the workdays of the same week for each local hour, drawn towards 1 as far as the scatter of the weeks alone could have made it.
Nothing in either was set by hand. Holidays are not known; they count as the day of the week that they are.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.seasonal import calendar, day_factors, is_weekend, offsets

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

QUARTERS_AN_HOUR = 4
QUARTER_S = 900
SECONDS_A_DAY = 86400
WHOLE_YEAR_H = 8760
# Quarter hours of more than six and a half days: a week whose clock changed is whole, a part of a week is not.
_WHOLE_WEEK = 6.5 * 24 * QUARTERS_AN_HOUR
_MONDAY = 4  # days from the first of 1970, a Thursday, to a Monday
_LEAST = 0.5  # hours of nothing have no logarithm [gCO2e/kWh]


def begin_s(year: int) -> float:
    """Begin of a UTC year, POSIX seconds."""
    return datetime(year, 1, 1, tzinfo=UTC).timestamp()


def whole_years(start_s: float, grams: Array) -> dict[int, Array]:
    """Consecutive UTC hours cut into those calendar years that are whole. [gCO2e/kWh]"""
    found = {}
    year = datetime.fromtimestamp(start_s, UTC).year
    while (first := round((begin_s(year) - start_s) / 3600)) < grams.size:
        after = round((begin_s(year + 1) - start_s) / 3600)
        if first >= 0 and min(after, grams.size) - first >= WHOLE_YEAR_H:
            found[year] = grams[first:after]
        year += 1
    return found


def typical_shape(time_zone: str, years: Mapping[int, Array]) -> Array:
    """The day of each month as in the newest year, at that month's mean over all years, each year at its own level. Shape (12, 24)."""
    by_year = {year: shape(time_zone, begin_s(year), years[year]) for year in sorted(years)}
    months = np.mean([form.mean(axis=1) for form in by_year.values()], axis=0)
    newest = by_year[max(years)]
    return np.asarray(newest * (months / newest.mean(axis=1))[:, None], dtype=np.float64)


def shape(time_zone: str, start_s: float, grams: Array) -> Array:
    """Mean of each local month and hour over the mean of all hours. Shape (12, 24).

    Each UTC hour is split into quarter hours, and each of those counts in the local hour that it lies in: +5:30 and +5:45 come out right.

    Args:
        time_zone: IANA name.
        start_s: Begin of the first hour, POSIX seconds.
        grams: Intensity of consecutive UTC hours. [gCO2e/kWh] Shape (n,).
    """
    local_s = _local_quarters(time_zone, start_s, grams.size)
    months = local_s.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64) % 12
    means = _cell_means(months * 24 + local_s // 3600 % 24, grams, 288)[0]
    return np.asarray(means / (math.fsum(grams) / grams.size), dtype=np.float64).reshape(12, 24)


def weekend_ratio(time_zone: str, years: Mapping[int, Array]) -> Array:
    """Intensity of Saturdays and Sundays over that of workdays, by local hour. Shape (24,).

    The mean of ln(ratio) over all whole weeks, times 1 - noise / size (Stein's positive part): size is the mean square of the 24 means, noise
    the mean square of their standard errors.
    """
    logs = np.concatenate([week_logs(time_zone, begin_s(year), years[year]) for year in sorted(years)])
    means = logs.mean(axis=0)
    noise, size = float((logs.var(axis=0, ddof=1) / len(logs)).mean()), float((means**2).mean())
    kept = max(0.0, 1 - noise / size) if size > 0 else 0.0
    return np.asarray(np.exp(kept * means), dtype=np.float64)


def week_logs(time_zone: str, start_s: float, grams: Array) -> Array:
    """Logarithm of the mean of a weekend over that of the workdays before it, by local hour, in each whole week. Shape (weeks, 24)."""
    local_s = _local_quarters(time_zone, start_s, grams.size)
    weeks = (local_s // SECONDS_A_DAY - _MONDAY) // 7
    weeks -= weeks[0]
    cells = weeks * 48 + is_weekend(local_s.astype(np.float64)) * 24 + local_s // 3600 % 24
    means, counts = (part.reshape(-1, 2, 24) for part in _cell_means(cells, np.maximum(grams, _LEAST), 48 * (int(weeks[-1]) + 1)))
    is_whole = counts.sum(axis=(1, 2)) > _WHOLE_WEEK
    return np.asarray(np.log(means[is_whole, 1] / means[is_whole, 0]), dtype=np.float64)


def typical_relative(time_zone: str, year: int, years: Mapping[int, Array]) -> Array:
    """Relative intensity of a year's UTC hours by the typical year that others make, of mean one. Shape (hours of the year,)."""
    hours = laid_on(time_zone, year, typical_shape(time_zone, years), weekend_ratio(time_zone, years))
    return np.asarray(hours / hours.mean(), dtype=np.float64)


def misses(time_zone: str, years: Mapping[int, Array]) -> tuple[float, float]:
    """Mean absolute error, as shares, of the last year's months at its own level, and of the hours of its months, by the shape of the years before."""
    last = max(years)
    told = typical_shape(time_zone, {year: hours for year, hours in years.items() if year < last})
    seen = shape(time_zone, begin_s(last), years[last])
    months = [form.mean(axis=1, keepdims=True) for form in (told, seen)]
    by_month = (months[0] / told.mean()) / (months[1] / seen.mean()) - 1
    by_hour = (told / months[0]) / (seen / months[1]) - 1
    return float(np.abs(by_month).mean()), float(np.abs(by_hour).mean())


def laid_on(time_zone: str, year: int, shape: Array, ratio: Array) -> Array:
    """Relative intensity of each UTC hour of a year, by a shape and the ratio of weekends to workdays."""
    months, hours = cells(time_zone, year)
    return np.asarray(shape[months, hours] * day_factors(ratio)[is_weekend(_local_middles(time_zone, year)), hours], dtype=np.float64)


def cells(time_zone: str, year: int) -> tuple[Ints, Ints]:
    """Local month (from 0) and hour at the middle of each UTC hour of a year."""
    _, months, hours = calendar(_local_middles(time_zone, year))
    return months - 1, hours


def _local_middles(time_zone: str, year: int) -> Array:
    """Local wall time at the middle of each UTC hour of a year, seconds since 1970."""
    start, end = begin_s(year), begin_s(year + 1)
    at = start + 3600.0 * np.arange(round((end - start) / 3600)) + 1800.0
    local = at.copy()
    for begin, until, offset in offsets(time_zone, start, end):
        local[(at >= begin) & (at < until)] += offset
    return np.asarray(local, dtype=np.float64)


def _local_quarters(time_zone: str, start_s: float, hours: int) -> Ints:
    """Local wall time of each quarter hour, seconds since 1970. Shape (4 hours,)."""
    quarters_s = int(start_s) + QUARTER_S * np.arange(hours * QUARTERS_AN_HOUR, dtype=np.int64)
    local_s = quarters_s.copy()
    for since_s, until_s, offset_s in offsets(time_zone, start_s, start_s + QUARTER_S * quarters_s.size):
        local_s[(quarters_s >= since_s) & (quarters_s < until_s)] += int(offset_s)
    return local_s


def _cell_means(cells: Ints, grams: Array, count: int) -> tuple[Array, Ints]:
    """Mean intensity of the quarter hours in each cell, NaN in an empty one, and how many there are. Each (count,)."""
    # bincount adds in order, and so does fsum exactly: the last digit does not depend on the processor.
    sums = np.bincount(cells, weights=np.repeat(grams, QUARTERS_AN_HOUR), minlength=count)
    counts = np.bincount(cells, minlength=count)
    return np.divide(sums, counts, out=np.full(count, np.nan), where=counts > 0), counts
