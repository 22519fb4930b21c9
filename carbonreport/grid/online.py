"""A provider on the network as a source of series: what the disk does not know is asked for, checked, kept."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from carbonreport.combine.intervals import grid_sd
from carbonreport.errors import FamilyMix, FetchError, GridError, PlaceError
from carbonreport.fetch import Fetcher
from carbonreport.grid.answers import Ask, Kind
from carbonreport.grid.cache import Found, GridCache, Key, default_folder
from carbonreport.grid.readings import FORECAST, Fill, Readings, joined
from carbonreport.grid.zones import resolve_zone
from carbonreport.model.series import Family, IntensitySeries
from carbonreport.request import Fetch, Request, is_offline
from carbonreport.units import SECONDS_PER_HOUR

LATEST_S = 24 * SECONDS_PER_HOUR
# How many standard deviations of a typical hour a mean may be off before it is called unusual.
UNUSUAL_SD = 3.3


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's two pure functions and what is true of all its answers.

    Attributes:
        name: Key in the cache and in `--grid`.
        title: Name in words.
        family: What kind of intensity it gives.
        source: For the statement, with the licence.
        requests: What to ask for, in pieces that the provider takes.
        parse: One answer, checked.
    """

    name: str
    title: str
    family: Family
    source: str
    requests: Callable[[Ask], tuple[Request, ...]]
    parse: Callable[[Ask, bytes], Readings]


@dataclass(frozen=True, slots=True)
class OnlineGrid:
    """A provider, with a way to ask it and a memory.

    Attributes:
        provider: Whom to ask.
        fetch: Asks.
        cache: What was asked before, or None.
        fill: Where hours that the provider lacks are taken from, or None.
        now_s: The wall clock, POSIX seconds.
    """

    provider: Provider
    fetch: Fetch
    cache: GridCache | None = None
    fill: Fill | None = None
    now_s: Callable[[], float] = time.time

    def series(self, zone: str, start_s: float, end_s: float) -> IntensitySeries:
        """The hours as they were; those that the provider lacks are filled aloud or refused.

        Raises:
            FetchError: The provider could not be asked.
            FamilyMix: Its signal is marginal, which no footprint may hold.
            GridGap: Hours are missing and cannot be filled.
            UnknownZone: Not a zone of this provider.
        """
        if self.provider.family.signal == "marginal":
            raise FamilyMix("those of a footprint (average)", f"those of {self.provider.title} ({self.provider.family})")
        code = resolve_zone(zone)
        readings = self.readings(code, start_s, max(end_s, start_s + 1.0))
        series = readings.series(code, start_s, end_s, self.fill)
        return replace(series, notes=(*series.notes, *self._unusual(series)))

    def readings(self, zone: str, start_s: float, end_s: float) -> Readings:
        """What the provider knows of a period, from the disk where it is there. Raises as `series` does."""
        now_s, key = self.now_s(), Key(self.provider.name, zone, self.provider.family)
        found = self._cached(key, start_s, end_s, now_s)
        parts = [] if found is None else [self._as_readings(zone, found)]
        missing = [(start_s, end_s)] if found is None else _together(found.missing)
        try:
            for begin_s, until_s in missing:
                if begin_s < now_s:
                    parts.append(self._asked(key, Ask(zone, "history", *_whole_hours(begin_s, until_s, now_s), now_s)))
        except FetchError:
            stale = self._cached(key, start_s, end_s, now_s, also_stale=True)
            if stale is None or stale.missing:
                raise
            return self._as_readings(zone, stale)
        return joined(parts or [self._nothing(zone)]).within(start_s, end_s)

    def latest(self, zone: str) -> Readings:
        """The last day up to the newest observed value; forecasts in it are left out. Its times are its own, not those of the asking."""
        found = self._recent(zone, "latest", LATEST_S, 0.0)
        observed = found.quality != FORECAST
        return replace(
            found,
            starts_s=found.starts_s[observed],
            ends_s=found.ends_s[observed],
            grams_per_kwh=found.grams_per_kwh[observed],
            quality=found.quality[observed],
        )

    def forecast(self, zone: str, ahead_s: float) -> Readings:
        """What the provider forecasts from now on; it may reach less far than asked for."""
        found = self._recent(zone, "forecast", 0.0, ahead_s)
        return replace(found, quality=np.full(found.quality.shape, FORECAST, dtype=np.int8))

    def _recent(self, zone: str, kind: Kind, back_s: float, ahead_s: float) -> Readings:
        """A question about now, answered by the disk if it was asked in the last half hour."""
        now_s = self.now_s()
        ask = Ask(resolve_zone(zone), kind, *_whole_hours(now_s - back_s, now_s + max(ahead_s, 1.0), None), now_s)
        key = Key(self.provider.name, ask.zone, self.provider.family, f"{kind}{ahead_s / SECONDS_PER_HOUR:.0f}h")
        found = self._cached(key, ask.start_s, ask.end_s, now_s)
        if found is not None and found.starts_s.size:
            return self._as_readings(ask.zone, found)
        return self._asked(key, ask).within(ask.start_s, ask.end_s)

    def _asked(self, key: Key, ask: Ask) -> Readings:
        """Answers to a question, checked and kept."""
        today = datetime.fromtimestamp(ask.now_s, UTC).strftime("%Y-%m-%d")
        parts = []
        for request in self.provider.requests(ask):
            parts.append(self.provider.parse(ask, self.fetch(request)))
            if self.cache is not None:  # a later piece may fail; what came is kept
                self.cache.write(key, parts[-1], (ask.start_s, ask.start_s), ask.now_s)
        readings = replace(joined([self._nothing(ask.zone), *parts]), retrieved_on=today, source=_last(parts, self.provider.source))
        if self.cache is not None:
            self.cache.write(key, readings, (ask.start_s, ask.end_s), ask.now_s)
        return readings

    def _cached(self, key: Key, start_s: float, end_s: float, now_s: float, *, also_stale: bool = False) -> Found | None:
        return None if self.cache is None else self.cache.read(key, start_s, end_s, now_s, also_stale=also_stale)

    def _as_readings(self, zone: str, found: Found) -> Readings:
        oldest = datetime.fromtimestamp(found.oldest_s, UTC).strftime("%Y-%m-%d") if np.isfinite(found.oldest_s) else ""
        return replace(
            self._nothing(zone),
            starts_s=found.starts_s,
            ends_s=found.ends_s,
            grams_per_kwh=found.values,
            quality=found.quality,
            retrieved_on=oldest,
        )

    def _nothing(self, zone: str) -> Readings:
        empty = np.empty(0)
        return Readings(
            zone, self.provider.title, self.provider.family, self.provider.source, empty, empty, empty, np.empty(0, dtype=np.int8)
        )

    def _unusual(self, series: IntensitySeries) -> tuple[tuple[str, str], ...]:
        """A note where the mean is far from what the zone usually has: another zone, another unit, or a fault of the data."""
        if self.fill is None:
            return ()
        try:
            usual = self.fill(series.zone, float(series.edges_s[0]), float(series.edges_s[-1]))
        except (GridError, PlaceError):  # no typical profile: nothing is usual
            return ()
        if usual.family != series.family:
            return ()
        ours, theirs = _mean(series), _mean(usual)
        errors = next(iter(usual.errors.values()))
        sd = grid_sd(usual.edges_s[:1], np.ones(1), errors)
        if ours > 0 and abs(np.log(ours / theirs)) < UNUSUAL_SD * sd:
            return ()
        return (("grid-unusual", f"{self.provider.title} gives {series.zone} {ours:.3g} g/kWh in the mean, where {theirs:.3g} is usual"),)


def online(provider: Provider, fetch: Fetch | None, cache: GridCache | None, fill: Fill | None, environ: Mapping[str, str]) -> OnlineGrid:
    """A provider with the usual fetcher and cache where none are given."""
    fetch = fetch or Fetcher(offline=is_offline(environ))
    return OnlineGrid(provider, fetch, cache or GridCache(default_folder(environ)), fill)


def _mean(series: IntensitySeries) -> float:
    """Mean over time. [gCO2e/kWh]"""
    return float(np.average(series.grams_per_kwh, weights=np.diff(series.edges_s)))


def _whole_hours(start_s: float, end_s: float, now_s: float | None) -> tuple[float, float]:
    """The UTC hours that hold a period, none that begins after now: one question an hour, however often a run asks."""
    first, last = np.floor(start_s / SECONDS_PER_HOUR), np.ceil(end_s / SECONDS_PER_HOUR)
    if now_s is not None:
        last = max(min(last, np.ceil(now_s / SECONDS_PER_HOUR)), first + 1)
    return float(first * SECONDS_PER_HOUR), float(last * SECONDS_PER_HOUR)


def _together(missing: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    """Stretches less than a day apart in one question."""
    stretches: list[tuple[float, float]] = []
    for begin_s, end_s in missing:
        if stretches and begin_s - stretches[-1][1] < LATEST_S:
            stretches[-1] = (stretches[-1][0], end_s)
        else:
            stretches.append((begin_s, end_s))
    return stretches


def _last(parts: list[Readings], usual: str) -> str:
    """Source of the newest answer: it may name a version of the model."""
    return parts[-1].source if parts else usual
