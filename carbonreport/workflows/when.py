"""When and where to run a job: now, at another start, in pieces, elsewhere, or not worth it."""

import csv
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from carbonreport.combine.pue import pue_at, pue_edges
from carbonreport.errors import CarbonreportError, PlaceError
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE
from carbonreport.model.option import Option, OptionAction
from carbonreport.model.run import Place, RunRecord
from carbonreport.model.series import IntensitySeries
from carbonreport.recommend.pauses import best_schedule
from carbonreport.recommend.rates import Job, Rates
from carbonreport.recommend.windows import Periods, starts
from carbonreport.recommend.worth import Runs, Saving, Verdict, apart_sd, difference_sd, is_typical, reason_against, saving_of
from carbonreport.store import load
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR, hours
from carbonreport.workflows.grid import EMBEDDED, next_hours, open_source, providers
from carbonreport.workflows.place import PlaceOptions, RenderPlace, rendering_place, site_of

DEFAULT_SLACK_H = 24.0
STEP_S = 900.0
WATTS_PER_KILOWATT = 1000.0
_MOST_AHEAD_H = 24.0 * 366


@dataclass(frozen=True, slots=True)
class Ask:
    """What somebody wants to run, and what is allowed.

    Attributes:
        job: Its power over its own time.
        earliest_s: First moment. [POSIX s]
        latest_end_s: By when it must have ended. [POSIX s]
        zones: Other zones where it could run.
        allowed_hours: (from, to) local hours of a day between which it may run; None for all.
        most_pauses: How often it may pause; 0 for never.
        pause_s: What a pause costs at full power. [s]
        idle_watts: What reserved equipment draws while it waits. [W]
        closed: Periods in which it must not run.
    """

    job: Job
    earliest_s: float
    latest_end_s: float
    zones: tuple[str, ...] = ()
    allowed_hours: tuple[int, int] | None = None
    most_pauses: int = 0
    pause_s: float = 300.0
    idle_watts: float = 0.0
    closed: Periods = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What could be done.

    Attributes:
        now: Running at once.
        options: The others, best first; those that cannot be are left out.
        verdict: worth-it, not-worth-it, or unknown where the place is not known.
        because: One sentence.
        source: Where the intensities are from.
        notes: What a reader must know: (slug, text).
        start_grams: Emissions of every start in the home zone: (POSIX s, gCO2e), for a picture.
    """

    now: Option
    options: tuple[Option, ...]
    verdict: Verdict
    because: str
    source: str
    notes: tuple[tuple[str, str], ...] = ()
    start_grams: tuple[tuple[float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Site:
    """A place over the time that is asked about."""

    place: RenderPlace
    series: IntensitySeries
    rates: Rates
    pue_rates: Rates
    marks: tuple[str, ...]


def job_like(record: Path) -> tuple[Job, RunRecord]:
    """The job of a record: its power by the quarter hour.

    Raises:
        RecordError: It cannot be read.
        CarbonreportError: It has no length or no energy.
    """
    run = load(record)
    if run.duration_s <= 0 or not any(trace.offsets_s for trace in run.traces):
        raise CarbonreportError(f"{record} has no energy over time; give --hours and --kw instead")
    edges = np.append(np.arange(0.0, run.duration_s, QUARTER_HOUR_S), run.duration_s)
    joules = np.zeros(edges.size - 1)
    for trace in run.traces:
        joules += np.diff([trace.joules_at(float(edge)) for edge in edges])
    return Job(edges, joules / np.diff(edges)), run


def plan(
    ask: Ask,
    options: PlaceOptions,
    *,
    like: RunRecord | None = None,
    environ: Mapping[str, str] = os.environ,
    offline: bool = False,
) -> Answer:
    """Price every start and every schedule, and say what is worth it.

    Raises:
        CarbonreportError: Place, grid or time make no sense.
    """
    if ask.latest_end_s - ask.earliest_s > _MOST_AHEAD_H * SECONDS_PER_HOUR:
        raise CarbonreportError("a deadline of over a year ahead: no profile says anything of it")
    home = _site(ask, options, like, environ, offline)
    closed = (*ask.closed, *_closed_hours(ask, home.place.time_zone))
    priced = starts(
        ask.job,
        home.rates,
        earliest_s=ask.earliest_s,
        latest_end_s=ask.latest_end_s,
        step_s=STEP_S,
        closed=closed,
        idle_watts=ask.idle_watts,
    )
    now_runs = ((ask.earliest_s, ask.earliest_s + ask.job.seconds),)
    now_cost = float(starts(ask.job, home.rates, earliest_s=ask.earliest_s, latest_end_s=ask.latest_end_s).grams[0])
    now = _option("none", home, now_runs, now_cost, ask, Saving(0.0, 0.0, 0.0, 0.5), now_runs, "", is_advised=False)
    found: list[Option] = []
    if priced.best is not None:
        start_s = float(priced.at_s[priced.best])
        found.append(_on_the_same_grid("shift", home, ask, now, ((start_s, start_s + ask.job.seconds),), float(priced.grams[priced.best])))
    if ask.most_pauses:
        found += _paused(home, ask, now, closed)
    for zone in ask.zones:
        found += _elsewhere(zone, home, ask, now, options, environ, offline)
    found.sort(key=lambda option: option.grams)
    verdict, because = _verdict(found, home)
    curve = tuple((float(t), float(g)) for t, g in zip(priced.at_s, priced.grams, strict=True) if not math.isnan(g))
    return Answer(now, tuple(found), verdict, because, home.series.source, home.series.notes, curve)


def _site(ask: Ask, options: PlaceOptions, like: RunRecord | None, environ: Mapping[str, str], offline: bool) -> _Site:
    site = site_of(options, environ, Path.cwd())
    record = like or RunRecord("when", "when", "other", "", ask.earliest_s, 0.0, (), (), place=Place())
    place = rendering_place(record, options, site, environ)
    if place.zone == WORLD_ZONE:
        raise PlaceError("nobody says where the job would run: give --zone, or a site file; hours of the whole world mean nothing")
    series = _series(place.zone, ask, options.grid, environ, offline)
    edges = np.union1d(series.edges_s, pue_edges(place.pue, place.time_zone, float(series.edges_s[0]), float(series.edges_s[-1])))
    edges = edges[(edges >= series.edges_s[0]) & (edges <= series.edges_s[-1])]
    grams = series.grams_per_kwh[np.clip(np.searchsorted(series.edges_s, edges[:-1], side="right") - 1, 0, series.grams_per_kwh.size - 1)]
    pue = pue_at(replace(place.pue, edges_s=(), values=()), place.time_zone, edges)
    profile = EmbeddedGrid().profile(place.zone)
    return _Site(place, series, Rates.of(edges, grams, pue), Rates(edges, pue), profile.marks)


def _series(zone: str, ask: Ask, grid: str | None, environ: Mapping[str, str], offline: bool) -> IntensitySeries:
    span_h = hours(ask.latest_end_s - ask.earliest_s)
    if grid is None or grid == EMBEDDED or grid in providers():
        provider = grid if grid in providers() else None
        return next_hours(zone, span_h, provider, environ=environ, offline=offline, now_s=ask.earliest_s)
    return open_source(grid, environ=environ, offline=offline).series(zone, ask.earliest_s, ask.latest_end_s)


def _closed_hours(ask: Ask, time_zone: str) -> Periods:
    """Periods outside the hours of the day that are allowed, by the zone's clock."""
    if ask.allowed_hours is None:
        return ()
    begin_h, end_h = ask.allowed_hours
    zone = ZoneInfo(time_zone)
    day = datetime.fromtimestamp(ask.earliest_s, UTC).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(
        days=1
    )
    periods = []
    while day.timestamp() < ask.latest_end_s:
        shut = day.replace(hour=end_h % 24)
        opens = day.replace(hour=begin_h % 24)
        if opens <= shut:
            opens = opens.replace(tzinfo=None) + timedelta(days=1)
            opens = opens.replace(tzinfo=zone)
        periods.append((shut.timestamp(), opens.timestamp()))
        day = (day.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    return tuple(periods)


def _option(
    action: OptionAction, site: _Site, runs: Runs, grams: float, ask: Ask, saving: Saving, now_runs: Runs, because: str, *, is_advised: bool
) -> Option:
    work_s = sum(to_s - from_s for from_s, to_s in runs)
    idle_s = runs[-1][1] - ask.earliest_s - work_s
    it_joules = ask.job.joules + max(0.0, work_s - ask.job.seconds) * ask.job.mean_watts + idle_s * ask.idle_watts
    mean_pue = sum(_between(site.pue_rates, from_s, to_s) for from_s, to_s in runs) / work_s
    return Option(
        action=action,
        zone=site.place.zone,
        time_zone=site.place.time_zone,
        runs=tuple(runs),
        grams=grams,
        it_joules=it_joules,
        facility_joules=it_joules * mean_pue,
        saving=saving.value,
        low=saving.low,
        high=saving.high,
        chance=saving.chance,
        waits_h=hours(runs[-1][1] - now_runs[-1][1]),
        is_advised=is_advised,
        because=because,
    )


def _between(rates: Rates, from_s: float, to_s: float) -> float:
    before, after = rates.cumulative(np.array([from_s, to_s]))
    return float(after - before)


def _on_the_same_grid(action: OptionAction, home: _Site, ask: Ask, now: Option, runs: Runs, grams: float) -> Option:
    """An option whose hours are of the same grid as now: the level cancels."""
    rests_on_typical = is_typical(home.series)
    if tuple(runs) == now.runs:
        return _option(
            action, home, runs, grams, ask, Saving(0.0, 0.0, 0.0, 0.5), now.runs, "now is the best that is allowed", is_advised=False
        )
    saving = saving_of(now.grams, grams, difference_sd(home.series, now.runs, runs), is_typical=rests_on_typical)
    against = reason_against(saving, length_h=hours(ask.job.seconds), rests_on_typical=rests_on_typical, marks=home.marks)
    because = against or ("a typical day of the month names it" if rests_on_typical else "the hours of the grid name it")
    return _option(action, home, runs, grams, ask, saving, now.runs, because, is_advised=not against)


def _paused(home: _Site, ask: Ask, now: Option, closed: Periods) -> list[Option]:
    schedule = best_schedule(
        ask.job.mean_watts,
        ask.job.seconds,
        home.rates,
        earliest_s=ask.earliest_s,
        latest_end_s=ask.latest_end_s,
        most_pauses=ask.most_pauses,
        pause_s=ask.pause_s,
        idle_watts=ask.idle_watts,
        closed=closed,
    )
    if schedule is None or not schedule.pauses:
        return []
    return [_on_the_same_grid("pause", home, ask, now, schedule.runs, schedule.grams)]


def _elsewhere(
    zone: str, home: _Site, ask: Ask, now: Option, options: PlaceOptions, environ: Mapping[str, str], offline: bool
) -> list[Option]:
    """The same job at its best start in another zone, at the same PUE unless the zone says otherwise."""
    there = _site(ask, replace(options, zone=zone), None, environ, offline)
    closed = (*ask.closed, *_closed_hours(ask, there.place.time_zone))
    priced = starts(ask.job, there.rates, earliest_s=ask.earliest_s, latest_end_s=ask.latest_end_s, step_s=STEP_S, closed=closed)
    if priced.best is None:
        return []
    start_s = float(priced.at_s[priced.best])
    runs = ((start_s, start_s + ask.job.seconds),)
    grams = float(priced.grams[priced.best])
    saving = saving_of(now.grams, grams, apart_sd(home.series, now.runs, there.series, runs), is_typical=False)
    against = reason_against(saving, length_h=hours(ask.job.seconds), rests_on_typical=False)
    because = against or (
        "the mean intensity is lower there; on marginal factors the direction of such moves differs in two cases of five, "
        "and data and people move with the job"
    )
    return [_option("move", there, runs, grams, ask, saving, now.runs, because, is_advised=not against)]


def _verdict(found: Sequence[Option], home: _Site) -> tuple[Verdict, str]:
    if home.place.is_guessed:
        return "unknown", f"the zone {home.place.zone} was only guessed: give --zone"
    advised = [option for option in found if option.is_advised]
    if advised:
        best = max(advised, key=lambda option: option.saving)
        return "worth-it", best.because
    reasons = [option.because for option in found if option.because]
    return "not-worth-it", reasons[0] if reasons else "there is no other time in which it could run"


def job_of(hours_: float, kw: float) -> Job:
    """A job of constant power.

    Raises:
        CarbonreportError: A length or a power that is none.
    """
    if not 0 < hours_ < _MOST_AHEAD_H or not 0 < kw < 1e6:
        raise CarbonreportError(f"a job of {hours_:g} h at {kw:g} kW: both must be above 0, under a year and under a million kW")
    return Job.steady(kw * WATTS_PER_KILOWATT, hours_ * SECONDS_PER_HOUR)


def busy_periods(path: Path) -> Periods:
    """Periods of a CSV with the columns from and to, ISO times with a zone.

    Raises:
        CarbonreportError: It cannot be read; the message names the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise CarbonreportError(f"cannot read {path}: {error}") from error
    return tuple(_period(path, number, row) for number, row in enumerate(rows, start=2))


def _period(path: Path, number: int, row: Mapping[str, str | None]) -> tuple[float, float]:
    try:
        moments = [datetime.fromisoformat(row[name] or "") for name in ("from", "to")]
    except (KeyError, ValueError) as error:
        raise CarbonreportError(
            f"{path}, line {number}: columns from and to with times such as 2026-12-20T18:00+01:00 are needed"
        ) from error
    if any(moment.tzinfo is None for moment in moments):
        raise CarbonreportError(f"{path}, line {number}: a time without its zone; write 2026-12-20T18:00+01:00 or …Z")
    return moments[0].timestamp(), moments[1].timestamp()
