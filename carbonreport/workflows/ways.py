"""Ways to run a job, each priced: another start, in pieces, under a power cap."""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from carbonreport.model.notes import Note
from carbonreport.model.option import OptionAction
from carbonreport.recommend.caps import CapPoint, capped, choose
from carbonreport.recommend.pauses import affordable, best_schedule, slot_of
from carbonreport.recommend.rates import Job, Rates
from carbonreport.recommend.windows import Periods, Starts, starts
from carbonreport.recommend.worth import Runs
from carbonreport.units import hours
from carbonreport.workflows.ask import Ask
from carbonreport.workflows.candidate import Candidate

STEP_S = 900.0


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run, priced.

    Attributes:
        action: What is done.
        site: Where.
        job: What runs.
        runs: When.
        grams: Emissions. [gCO2e]
        cap: Power cap, or None.
    """

    action: OptionAction
    site: Candidate
    job: Job
    runs: Runs
    grams: float
    cap: CapPoint | None = None


def piece(start_s: float, job: Job) -> Runs:
    """A job in one piece."""
    return ((start_s, start_s + job.seconds),)


def every_start(ask: Ask, site: Candidate, job: Job) -> Starts:
    """Every start that is allowed there, priced."""
    return starts(
        job,
        site.rates,
        earliest_s=ask.earliest_s,
        latest_end_s=ask.latest_end_s,
        step_s=STEP_S,
        closed=_closed(ask, site),
        idle_watts=ask.idle_watts,
    )


def best_start(action: OptionAction, ask: Ask, site: Candidate, job: Job, cap: CapPoint | None = None) -> list[Way]:
    """The best start in one piece, if there is one."""
    priced = every_start(ask, site, job)
    if priced.best is None:
        return []
    return [Way(action, site, job, piece(float(priced.at_s[priced.best]), job), float(priced.grams[priced.best]), cap)]


def in_pieces(ask: Ask, home: Candidate) -> list[Way]:
    """The best schedule with pauses, if pausing is allowed and gains anything."""
    if not ask.most_pauses:
        return []
    schedule = best_schedule(
        ask.job.mean_watts,
        ask.job.seconds,
        home.rates,
        earliest_s=ask.earliest_s,
        latest_end_s=ask.latest_end_s,
        most_pauses=ask.most_pauses,
        pause_s=ask.pause_s,
        idle_watts=ask.idle_watts,
        closed=_closed(ask, home),
    )
    if schedule is None or not schedule.pauses:
        return []
    return [Way("pause", home, ask.job, schedule.runs, schedule.grams)]


def coarse_notes(ask: Ask) -> list[Note]:
    """A note where the schedule with pauses was searched in longer steps than work and pause ask for."""
    if not ask.most_pauses:
        return []
    wished_s = slot_of(ask.job.seconds, ask.pause_s)
    taken_s = affordable(wished_s, ask.job.seconds, ask.latest_end_s - ask.earliest_s, ask.most_pauses)
    if taken_s == wished_s:
        return []
    work_s, pause_s = (taken_s * math.ceil(length_s / taken_s - 1e-9) for length_s in (ask.job.seconds, ask.pause_s))
    text = (
        f"at most {ask.most_pauses} pauses within {hours(ask.latest_end_s - ask.earliest_s):.3g} h were placed in steps of {taken_s / 60:g} min, "
        f"not {wished_s / 60:g}, to fit into memory; the work counts as {hours(work_s):.4g} h and each pause as {pause_s / 60:g} min"
    )
    return [Note("pauses-coarse", text)]


def best_cap(ask: Ask) -> CapPoint | None:
    """The cap of least energy of the whole job that is quick enough."""
    in_time = (ask.latest_end_s - ask.earliest_s) / ask.job.seconds
    return choose(ask.caps, min(ask.most_time_ratio, in_time), gpu_share=ask.gpu_share)


def under_a_cap(ask: Ask, home: Candidate) -> list[Way]:
    """The cap alone, started now, and with the best start of the longer job."""
    cap = best_cap(ask)
    if cap is None:
        return []
    job = capped(ask.job, cap, ask.gpu_share)
    at_once = float(every_start(ask, home, job).grams[0])
    alone = [] if math.isnan(at_once) else [Way("cap", home, job, piece(ask.earliest_s, job), at_once, cap)]
    both = [way for way in best_start("cap+shift", ask, home, job, cap) if way.runs[0][0] > ask.earliest_s]
    return alone + both


def _closed(ask: Ask, site: Candidate) -> Periods:
    """Busy periods, and those outside the hours of the day that are allowed, by the zone's clock."""
    if ask.allowed_hours is None:
        return ask.closed
    begin_h, end_h = ask.allowed_hours
    zone = ZoneInfo(site.place.time_zone)
    first = datetime.fromtimestamp(ask.earliest_s, UTC).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    day = first - timedelta(days=1)
    periods = list(ask.closed)
    while day.timestamp() < ask.latest_end_s:
        shut = day.replace(hour=end_h % 24)
        opens = day.replace(hour=begin_h % 24)
        if opens <= shut:
            opens = opens.replace(tzinfo=None) + timedelta(days=1)
            opens = opens.replace(tzinfo=zone)
        periods.append((shut.timestamp(), opens.timestamp()))
        day = (day.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=zone)
    return tuple(periods)


def facility_joules(way: Way, ask: Ask) -> float:
    """Energy at the facility, pauses and waiting included. [J]"""
    return it_joules(way, ask) * _mean_pue(way)


def it_joules(way: Way, ask: Ask) -> float:
    """Energy at the IT equipment, the same included. [J]"""
    work_s = sum(to_s - from_s for from_s, to_s in way.runs)
    idle_s = way.runs[-1][1] - ask.earliest_s - work_s
    return way.job.joules + max(0.0, work_s - way.job.seconds) * way.job.mean_watts + idle_s * ask.idle_watts


def _mean_pue(way: Way) -> float:
    work_s = sum(to_s - from_s for from_s, to_s in way.runs)
    return sum(_between(way.site.pue_rates, from_s, to_s) for from_s, to_s in way.runs) / work_s


def _between(rates: Rates, from_s: float, to_s: float) -> float:
    before, after = rates.cumulative(np.array([from_s, to_s]))
    return float(after - before)
