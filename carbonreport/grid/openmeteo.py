"""Hourly temperatures of a place without a key: Open-Meteo (CC BY 4.0), its archive for what is past, its forecast for the newest days.

The place is the one that the site file gives, in hundredths of a degree; nobody looks it up. Two pure functions, as providers of
intensities have them, and the fetcher and cache of those.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import numpy as np

from carbonreport.errors import BadAnswer, FetchError
from carbonreport.fetch import Fetcher
from carbonreport.grid.answers import DAY_S, decoded, short
from carbonreport.grid.cache import Found, GridCache, Key, Known, default_folder
from carbonreport.grid.readings import ESTIMATED, FORECAST, MEASURED
from carbonreport.model.weather import COLDEST_CELSIUS, WARMEST_CELSIUS, Bulb, Weather
from carbonreport.request import Fetch, Request, is_offline
from carbonreport.units import SECONDS_PER_HOUR

ARCHIVE, AHEAD = "https://archive-api.open-meteo.com/v1/archive", "https://api.open-meteo.com/v1/forecast"
TITLE = "Open-Meteo"
SOURCE = "Open-Meteo (CC BY 4.0)"
VARIABLES: dict[Bulb, str] = {"dry-bulb": "temperature_2m", "wet-bulb": "wet_bulb_temperature_2m"}
# The archive lags by some days; the forecast knows so many days back and ahead.
ARCHIVE_LAG_S = 6 * DAY_S
MOST_BACK_DAYS, MOST_AHEAD_DAYS = 92, 16
# The answer is of the middle of a cell of the weather model.
FARTHEST_DEGREES = 0.6
WAY_OUT = 'give weather = "FILE.csv" in the site file'


@dataclass(frozen=True, slots=True)
class Spot:
    """Whose weather: degrees north and east, and which thermometer."""

    latitude: float
    longitude: float
    bulb: Bulb

    @property
    def code(self) -> str:
        """Its name in the cache, and what is told to the provider."""
        return f"{self.latitude:.2f},{self.longitude:.2f}"


def requests(spot: Spot, start_s: float, end_s: float, now_s: float, archive: str = ARCHIVE, ahead: str = AHEAD) -> tuple[Request, ...]:
    """What to ask for: whole UTC days, of the archive up to some days ago, of the forecast from there on."""
    latitude, longitude = spot.code.split(",")
    # GMT and POSIX seconds: "auto" would give local times at one fixed offset, wrong over a change of the clocks.
    common = (
        ("latitude", latitude),
        ("longitude", longitude),
        ("hourly", VARIABLES[spot.bulb]),
        ("timezone", "GMT"),
        ("timeformat", "unixtime"),
        ("temperature_unit", "celsius"),
    )
    border_s = now_s - ARCHIVE_LAG_S
    asked = []
    if start_s < border_s:
        period = (("start_date", _date(start_s)), ("end_date", _date(min(end_s, border_s) - 1)))
        asked.append(Request(archive, (*common, *period), way_out=WAY_OUT))
    if end_s > border_s:
        back = min(max(int(np.ceil((now_s - max(start_s, border_s)) / DAY_S)), 0), MOST_BACK_DAYS)
        until = min(max(int(np.ceil((end_s - now_s) / DAY_S)) + 1, 1), MOST_AHEAD_DAYS)
        period = (("past_days", str(back)), ("forecast_days", str(until)))
        asked.append(Request(ahead, (*common, *period), way_out=WAY_OUT))
    return tuple(asked)


def parse(spot: Spot, body: bytes) -> tuple[list[float], list[float]]:
    """Begins, POSIX seconds, and temperatures of one answer [°C]; hours without one are left out.

    Raises:
        BadAnswer: It cannot be believed: another place, unit or clock than was asked for.
    """
    answer = decoded(body, _Answer, TITLE)
    if answer.error:
        raise BadAnswer(f"{TITLE} refused the request: {short(answer.reason)}")
    if not all(abs(a - b) <= FARTHEST_DEGREES for a, b in ((answer.latitude, spot.latitude), (answer.longitude, spot.longitude))):
        raise BadAnswer(f"{TITLE} answered for {answer.latitude:g}, {answer.longitude:g}, not for {spot.code}")
    if answer.utc_offset_seconds != 0:
        raise BadAnswer(f"{TITLE} answered in a local time, {answer.utc_offset_seconds:g} s from UTC")
    variable = VARIABLES[spot.bulb]
    times, found, units = answer.hourly.get("time", []), answer.hourly.get(variable, []), answer.hourly_units
    if units.get("time") != "unixtime" or units.get(variable) != "°C":
        raise BadAnswer(f"{TITLE} answered in {short(str(units.get(variable)))}, which is not known here (°C is)")
    if len(times) != len(found) or any(t is None for t in times):
        raise BadAnswer(f"{TITLE} gave {len(times)} times for {len(found)} temperatures")
    rows = [(float(t), c) for t, c in zip(times, found, strict=True) if t is not None and c is not None]
    if any(b[0] <= a[0] for a, b in pairwise(rows)):
        raise BadAnswer(f"{TITLE} gave times that do not rise")
    if odd := next((c for _, c in rows if not COLDEST_CELSIUS <= c <= WARMEST_CELSIUS), None):
        raise BadAnswer(f"{TITLE} gave {odd:g} °C, which no place on earth has; it may be another unit")
    return [t for t, _ in rows], [c for _, c in rows]


class _Answer(msgspec.Struct):
    latitude: float = 0.0
    longitude: float = 0.0
    utc_offset_seconds: float = 0.0
    hourly_units: dict[str, str] = {}
    hourly: dict[str, list[float | None]] = {}
    error: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class OpenMeteo:
    """The provider, with a way to ask it and a memory.

    Attributes:
        fetch: Asks.
        cache: What was asked before, or None.
        now_s: The wall clock, POSIX seconds.
        archive: Address of its archive.
        ahead: Address of its forecast.
    """

    fetch: Fetch
    cache: GridCache | None = None
    now_s: Callable[[], float] = time.time
    archive: str = ARCHIVE
    ahead: str = AHEAD

    def weather(self, spot: Spot, start_s: float, end_s: float) -> Weather:
        """Temperatures of a period, whole hours; those that it lacks are absent.

        Raises:
            FetchError: It could not be asked.
        """
        now_s, key = self.now_s(), Key("open-meteo", spot.code, spot.bulb)
        start_s, end_s = _hours(start_s, end_s)
        found = None if self.cache is None else self.cache.read(key, start_s, end_s, now_s)
        missing = [(start_s, end_s)] if found is None else found.missing
        if not missing and found is not None:
            return self._of_cache(spot, found)
        try:
            asked = self._asked(spot, key, missing[0][0], missing[-1][1], now_s)
        except FetchError:
            stale = None if self.cache is None else self.cache.read(key, start_s, end_s, now_s, also_stale=True)
            if stale is None or stale.missing:
                raise
            return self._of_cache(spot, stale)
        parts = [asked] if found is None else [Known(found.starts_s, found.ends_s, found.values, found.quality), asked]
        return _weather(spot, _merged(parts, start_s, end_s), _day(now_s))

    def _asked(self, spot: Spot, key: Key, start_s: float, end_s: float, now_s: float) -> Known:
        """Answers to a question, in whole days, checked and kept."""
        begin_s, until_s = _days(start_s, end_s)
        parts = []
        for request in requests(spot, begin_s, until_s, now_s, self.archive, self.ahead):
            starts, celsius = parse(spot, self.fetch(request))
            at = np.array(starts, dtype=np.float64)
            old = MEASURED if request.url == self.archive else ESTIMATED
            quality = np.where(at > now_s, FORECAST, old).astype(np.int8)
            parts.append(Known(at, at + SECONDS_PER_HOUR, np.array(celsius, dtype=np.float64), quality))
        known = _merged(parts, begin_s, until_s)
        if self.cache is not None:
            self.cache.keep(key, known, (begin_s, until_s), now_s)
        return known

    def _of_cache(self, spot: Spot, found: Found) -> Weather:
        return _weather(spot, Known(found.starts_s, found.ends_s, found.values, found.quality), _day(found.oldest_s))


def create(environ: Mapping[str, str], *, offline: bool = False) -> OpenMeteo:
    """Open-Meteo with the usual fetcher and cache."""
    return OpenMeteo(Fetcher(offline=offline or is_offline(environ)), GridCache(default_folder(environ)))


def _merged(parts: Sequence[Known], start_s: float, end_s: float) -> Known:
    """All parts within a period; where two know the same hour the earlier part wins: the archive before the forecast."""
    starts = np.concatenate([part.starts_s for part in parts] or [np.empty(0)])
    _, first = np.unique(starts, return_index=True)
    first = first[(starts[first] >= start_s) & (starts[first] < end_s)]
    ends, values = (np.concatenate([getattr(part, name) for part in parts] or [np.empty(0)])[first] for name in ("ends_s", "values"))
    quality = np.concatenate([part.quality for part in parts] or [np.empty(0, np.int8)])[first]
    return Known(starts[first], ends, values, quality)


def _weather(spot: Spot, known: Known, day: str) -> Weather:
    columns = (known.starts_s, known.ends_s, known.values)
    starts, ends, celsius = (tuple(column.tolist()) for column in columns)
    return Weather(spot.bulb, starts, ends, celsius, SOURCE, day)


def _hours(start_s: float, end_s: float) -> tuple[float, float]:
    return (
        float(np.floor(start_s / SECONDS_PER_HOUR) * SECONDS_PER_HOUR),
        float(np.ceil(max(end_s, start_s + 1) / SECONDS_PER_HOUR) * SECONDS_PER_HOUR),
    )


def _days(start_s: float, end_s: float) -> tuple[float, float]:
    return float(np.floor(start_s / DAY_S) * DAY_S), float(np.ceil(end_s / DAY_S) * DAY_S)


def _date(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d")


def _day(time_s: float) -> str:
    return _date(time_s) if np.isfinite(time_s) else ""
