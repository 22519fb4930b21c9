"""A typical year made into a series: yearly level times the shape of the local month and hour, workdays and weekends apart where they are known."""

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from carbonreport.errors import BadTime
from carbonreport.model.series import QUALITIES, Array, GridErrors, IntensitySeries, Quality, SeasonalProfile
from carbonreport.units import SECONDS_PER_HOUR

Ints = NDArray[np.int64]
DAY = timedelta(days=1)
_THURSDAY, _SATURDAY, _DAYS_A_WEEK = 3, 5, 7  # from a Monday; 1970 began on a Thursday
# A run without length still has an intensity: that of the second at which it began.
SHORTEST_S = 1.0


def expand(profile: SeasonalProfile, start_s: float, end_s: float) -> IntensitySeries:
    """The profile over a period, with the edges it needs and no others.

    Edges lie where the local hour, the local year or the zone's offset from UTC changes, so that zones at
    +5:30 or +5:45 and days of 23 or 25 hours are exact. A zone without a shape changes with the local year only.

    Whether an hour lies on a workday or a weekend is told by the zone's own clock. Holidays are not known.

    The level is that of the local year, or of the nearest year in the table. The error of the level grows with the
    square root of the years to that table year (random walk); the oldest interval's age is taken for the whole series, which errs
    on the wide side for a period that lies partly in the table.

    Args:
        profile: The zone's typical year.
        start_s: Begin, POSIX seconds.
        end_s: End, POSIX seconds; a period shorter than a second is taken as one second.

    Raises:
        BadTime: The period runs backwards, or the time zone is not known to this machine.
    """
    if end_s < start_s:
        raise BadTime(f"the period ends before it starts: {start_s:.0f} to {end_s:.0f} POSIX seconds")
    end_s = max(end_s, start_s + SHORTEST_S)
    edges_s, local_s = local_hours(profile.time_zone, start_s, end_s)
    years, months, hours_of_day = calendar(local_s)
    levels, ages = _levels(profile, years)
    if profile.shape is None:
        keep = np.flatnonzero(np.append(True, np.diff(levels) != 0))
        edges_s, grams, quality = np.append(edges_s[keep], edges_s[-1]), levels[keep], _ANNUAL
    else:
        grams, quality = levels * profile.shape[months - 1, hours_of_day], _TYPICAL
        if profile.weekend_ratio is not None:
            grams = grams * day_factors(profile.weekend_ratio)[is_weekend(local_s), hours_of_day]
    oldest = int(ages.max())
    return IntensitySeries(
        zone=profile.zone,
        edges_s=edges_s,
        grams_per_kwh=grams,
        quality=np.full(grams.size, QUALITIES.index(quality), dtype=np.int8),
        errors={quality: GridErrors(profile.terms, profile.level_sd_per_year * math.sqrt(oldest))},
        family=profile.family,
        source=profile.source,
        retrieved_on=profile.retrieved_on,
        notes=_notes(profile, years, oldest),
    )


def local_hours(time_zone: str, start_s: float, end_s: float) -> tuple[Array, Array]:
    """Edges of the local hours within a period, and the local time at which each interval begins.

    Args:
        time_zone: IANA name.
        start_s: Begin, POSIX seconds.
        end_s: End, POSIX seconds, later than the begin.

    Returns:
        Edges, POSIX seconds, the first and last being the period's own (n + 1,), and seconds of local wall time since
        1970 at each begin (n,).
    """
    edges: list[Array] = []
    local: list[Array] = []
    for begin_s, until_s, offset_s in offsets(time_zone, start_s, end_s):
        first = math.floor((begin_s + offset_s) / SECONDS_PER_HOUR) + 1
        last = math.ceil((until_s + offset_s) / SECONDS_PER_HOUR)
        inner = np.arange(first, last, dtype=np.float64) * SECONDS_PER_HOUR - offset_s
        begins = np.concatenate(([begin_s], inner))
        edges.append(begins)
        local.append(begins + offset_s)
    return np.concatenate([*edges, [end_s]]), np.concatenate(local)


def offsets(time_zone: str, start_s: float, end_s: float) -> list[tuple[float, float, float]]:
    """Stretches of constant offset from UTC: (begin, end, offset), all in seconds.

    The offset is looked up once a day, and a day in which it changed is halved down to the second of the change.
    Two changes within 24 hours that undo each other would be missed; the tz database has none since 1970.

    Raises:
        BadTime: The time zone is not known to this machine.
    """
    zone = _zone(time_zone)
    found: list[tuple[float, float, float]] = []
    begin_s = at_s = start_s
    offset_s = _offset_s(zone, start_s)
    while at_s < end_s:
        next_s = min(at_s + DAY.total_seconds(), end_s)
        next_offset_s = _offset_s(zone, next_s)
        if next_offset_s != offset_s:
            change_s = _change_s(zone, at_s, next_s)
            found.append((begin_s, change_s, offset_s))
            begin_s, offset_s = change_s, _offset_s(zone, change_s)
            next_s = change_s
        at_s = next_s
    if begin_s < end_s:
        found.append((begin_s, end_s, offset_s))
    return found


_TYPICAL: Quality = "typical"
_ANNUAL: Quality = "annual"


def _zone(time_zone: str) -> ZoneInfo:
    try:
        return ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise BadTime(f"time zone {time_zone!r} is not in this machine's time zone data; pip install tzdata") from error


def _offset_s(zone: ZoneInfo, time_s: float) -> float:
    """Offset from UTC at one moment, in seconds."""
    offset = datetime.fromtimestamp(time_s, UTC).astimezone(zone).utcoffset()
    assert offset is not None  # a zone of zoneinfo always has one
    return offset.total_seconds()


def _change_s(zone: ZoneInfo, before_s: float, after_s: float) -> float:
    """First whole second with a new offset within (before, after]."""
    old = _offset_s(zone, before_s)
    low, high = math.floor(before_s), math.ceil(after_s)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset_s(zone, middle) == old:
            low = middle
        else:
            high = middle
    return float(high)


def calendar(local_s: Array) -> tuple[Ints, Ints, Ints]:
    """Year, month (1 to 12) and hour (0 to 23) of local wall times. Each (n,)."""
    whole_hours = np.floor_divide(local_s, SECONDS_PER_HOUR).astype(np.int64)
    months_since_1970 = whole_hours.astype("datetime64[h]").astype("datetime64[M]").astype(np.int64)
    return 1970 + months_since_1970 // 12, months_since_1970 % 12 + 1, whole_hours % 24


def is_weekend(local_s: Array) -> Ints:
    """Whether local wall times lie on a Saturday or Sunday, 0 or 1. Shape (n,)."""
    days = np.floor_divide(local_s, DAY.total_seconds()).astype(np.int64)
    return np.asarray((days + _THURSDAY) % _DAYS_A_WEEK >= _SATURDAY, dtype=np.int64)


def day_factors(weekend_ratio: Array) -> Array:
    """What a workday and a weekend day have over the mean of seven days, by local hour: five of the one and two of the other make seven. Shape (2, 24)."""
    workdays = _DAYS_A_WEEK / (_SATURDAY + (_DAYS_A_WEEK - _SATURDAY) * weekend_ratio)
    return np.stack([workdays, workdays * weekend_ratio])


def _levels(profile: SeasonalProfile, years: Ints) -> tuple[Array, Ints]:
    """Level of each interval [gCO2e/kWh] and the years between it and the table's year. Each (n,)."""
    distinct, index = np.unique(years, return_inverse=True)
    nearest = [_nearest_year(profile, int(year)) for year in distinct]
    levels = np.array([profile.levels[year] for year in nearest], dtype=np.float64)
    ages = np.abs(distinct - np.array(nearest, dtype=np.int64))
    return levels[index], ages[index]


def _nearest_year(profile: SeasonalProfile, year: int) -> int:
    """Year of the table that is nearest, the newer of two equally near."""
    return min(profile.levels, key=lambda known: (abs(known - year), -known))


def _notes(profile: SeasonalProfile, years: Ints, oldest: int) -> tuple[tuple[str, str], ...]:
    """What a reader must know of the series, with zone and year."""
    used = sorted({_nearest_year(profile, int(year)) for year in np.unique(years)})
    level = f"{used[0]}" if len(used) == 1 else f"{used[0]} to {used[-1]}"
    age = f", up to {oldest} years away" if oldest > 1 else ", one year away" if oldest == 1 else ""
    notes: list[tuple[str, str]] = []
    if "constant" in profile.marks:
        notes.append(
            ("grid-constant", f"the hourly data of {profile.zone} hardly change; its hours are charged at the mean of {level}{age}")
        )
    elif profile.shape is None:
        notes.append(("annual-level", f"{profile.zone} has no hourly data; every hour is charged at the mean of {level}{age}"))
    else:
        kind = "month and hour" if profile.weekend_ratio is None else "month, hour, and workday or weekend (holidays are not known)"
        notes.append(("typical-profile", f"hours of {profile.zone} are those of a typical {kind} at the level of {level}{age}"))
    if "estimated" in profile.marks:
        notes.append(
            ("grid-estimated", f"the provider estimated the hours behind the day curve of {profile.zone}; the level is that of {level}")
        )
    if "retired" in profile.marks:
        successor = f"; its successor is {profile.successor}" if profile.successor else ""
        notes.append(("zone-retired", f"{profile.zone} is no longer published; the level of {level} was used{successor}"))
    return tuple(notes)
