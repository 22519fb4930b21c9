"""The lab's year: fills or opens the ledger, reconciles it, charges each hour at its own PUE and intensity, and hands figures to the report."""

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from carbonreport.audit.advice import SHORT_JOB_H, Shift, advise, shift_of
from carbonreport.audit.alike import alike_jobs
from carbonreport.audit.database import connect
from carbonreport.audit.engine import NOBODY, Engine
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.people import People, pseudonym, salt_of
from carbonreport.audit.sacct import Taken
from carbonreport.audit.season import season_advice
from carbonreport.audit.window import Window, window_of
from carbonreport.errors import CarbonreportError
from carbonreport.grid.zones import time_zone_of
from carbonreport.model.audit import Advice, Finding, Priced, agreed
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.series import QUALITIES, Array
from carbonreport.site import Price, Site
from carbonreport.units import JOULES_PER_KWH, US_PER_S, hours, hours_from_microseconds
from carbonreport.workflows.audit_before import LEAST_MONTHS, months_before
from carbonreport.workflows.audit_fill import Asked as Asked
from carbonreport.workflows.audit_fill import fill, keeping_of, what_was_read
from carbonreport.workflows.audit_inputs import swept_cap
from carbonreport.workflows.audit_price import check_board, priced_year
from carbonreport.workflows.ledger_keeping import Keeping
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of


@dataclass(frozen=True, slots=True, eq=False)
class Audited:
    """A year, ready for words.

    Attributes:
        window: Its edges.
        priced: Its figures.
        before: Those of the year before, or None where the ledger does not really hold it.
        months_before: In how many months of the year before the ledger has jobs that ended or readings; None where it has nothing of it.
        footprint: Of all its energy together, with notes, grids and intervals.
        site: Content of the site file.
        zone: Grid zone.
        price: Money for a kWh, or None.
        advice: What to do first.
        weekday_hours: IT energy by local weekday and hour. [J] Shape (7, 24).
        taken: What each file gave, and what not.
        repeated: Rows of the ledger that another file reports too.
        people: How people are written.
        asked_names: Whether names were asked for where the ledger holds pseudonyms.
    """

    window: Window
    priced: Priced
    before: Priced | None
    months_before: int | None
    footprint: Footprint
    site: Site
    zone: str
    price: Price | None
    advice: tuple[Advice, ...]
    weekday_hours: Array
    taken: tuple[tuple[str, Taken], ...]
    repeated: int
    people: People


def audit(
    asked: Asked, options: PlaceOptions, *, environ: Mapping[str, str] = os.environ, now_s: float | None = None, con: Any = None
) -> Audited:
    """Audit a year.

    Args:
        asked: What.
        options: Where.
        environ: Environment variables.
        now_s: Until when a year in progress goes; now by default. [s]
        con: A DuckDB, or None for one of its own.

    Raises:
        CarbonreportError: A file, the ledger or the place cannot be used, or there is nothing of the year.
    """
    site = site_of(options, environ, Path.cwd()) or Site()
    zone_name = _time_zone(options, site, environ)
    try:
        window = window_of(asked.year, zone_name, time.time() if now_s is None else now_s)
    except ValueError as error:
        raise CarbonreportError(str(error)) from error
    caps = [cap for path in asked.sweeps for cap in swept_cap(path)]
    price = site.price
    with tempfile.TemporaryDirectory(prefix="carbonreport-audit-") as scratch:
        db = con or connect(scratch=Path(scratch))
        keeping = keeping_of(asked, Path(scratch))
        taken = fill(asked, options, keeping, window, db, environ)
        ledger = Ledger(keeping.url)
        ledger.check_people(asked.people)
        year_before = window_of(asked.year - 1, zone_name, window.until_us / US_PER_S)
        repeated = sum(ledger.open(db, from_us=year_before.from_us, until_us=window.until_us).values())
        check_board(db, asked.gpu)
        alike = _alike(db)
        show = _shown(asked.people, keeping)
        audited = priced_year(db, window, options, site, price, environ, show, asked.gpu)
        if audited is None:
            raise CarbonreportError(
                f"the ledger has no job and no reading of {asked.year}; {what_was_read(taken)}fill it with --sacct, --meters, or carbonreport import --ledger"
            )
        priced, charged, engine = audited
        priced = replace(priced, year=replace(priced.year, findings=(*priced.year.findings, *alike)))
        season = season_advice([(group.name, group.energy) for group in priced.year.groups["month"]])
        others = advise(priced.year, engine.board_energy(), caps, _shift(engine, charged.runs[0]))
        advice = tuple(sorted((*others, *([season] if season else [])), key=lambda one: -(one.joules or 0.0)))
        weekday_hours = engine.weekday_hours(engine.hourly_joules())
        held = months_before(db, year_before)
        is_held = held is not None and held >= LEAST_MONTHS
        before = priced_year(db, year_before, options, site, price, environ, show, asked.gpu) if is_held else None
    return Audited(
        window,
        priced,
        None if before is None else before[0],
        held,
        charged.footprint,
        site,
        charged.places[0].zone,
        price,
        advice,
        weekday_hours,
        taken,
        repeated,
        asked.people,
    )


def _time_zone(options: PlaceOptions, site: Site, environ: Mapping[str, str]) -> str:
    place = recording_place(options, site, environ, None)
    return site.time_zone or (time_zone_of(place.zone) if place.zone else None) or "UTC"


def _alike(con: Any) -> tuple[Finding, ...]:
    count, gpu_us = alike_jobs(con)
    text = f"[job|jobs] that may be the same job under another id or cluster, {hours_from_microseconds(gpu_us):,.1f} GPU-hours; ask sacct for Cluster, JobIDRaw and JobID"
    return (Finding("may-be-same-job", agreed(text, count), count),) if count else ()


def _shown(people: People, keeping: Keeping) -> Callable[[str, bool], str]:
    """How a person of the ledger is written in the report: a ledger with names still gives pseudonyms, or none, where those are asked for."""
    salt: list[bytes] = []

    def show(person: str, is_pseudonym: bool) -> str:
        if people == "none" or person in ("", NOBODY):
            return ""
        if people == "names" or is_pseudonym:
            return person
        if not salt:
            salt.append(salt_of(keeping.salt_file()))
        return pseudonym(person, salt[0])

    return show


def _shift(engine: Engine, charged: ChargedRun) -> Shift | None:
    if not charged.edges_s.size > 1:
        return None
    hour = np.floor(hours(charged.edges_s[:-1])).astype(np.int64)
    weights = np.diff(charged.edges_s)
    index = hour - hour[0]
    rate = np.bincount(index, charged.pue * charged.grams_per_kwh * weights) / np.bincount(index, weights) / JOULES_PER_KWH
    is_typical = QUALITIES[int(np.bincount(charged.quality).argmax())] in ("typical", "annual")
    return shift_of(engine.hourly_joules(), rate, engine.short_jobs_share(SHORT_JOB_H), 0, is_typical=is_typical)
