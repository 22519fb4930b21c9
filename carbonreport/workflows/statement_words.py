"""Words and numbers of a statement, with names or blind."""

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from carbonreport import __version__
from carbonreport.errors import UnknownZone
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE, name_of_zone
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.run import RUN_KINDS, RunKind
from carbonreport.model.statement import Facts, Inputs, Sentence, Statement
from carbonreport.render.anonymous import GIVEN, Masks, at_country, without_places
from carbonreport.render.compose import Group, Setting, compose
from carbonreport.render.rerun import rerun
from carbonreport.render.words import clock_name, listed
from carbonreport.site import Site
from carbonreport.workflows.charge import Charged
from carbonreport.workflows.rerun import clock_of, largest, rerun_advice

MADE_BY = f"carbonreport {__version__}"
_MOST_NAMES = 20  # rows of a table that fits on a page
# Zones that say no place: of a run of which nobody knows where it was, and of a file of intensities that names none.
_UNSTATED = "not stated"
_NOWHERE = {WORLD_ZONE: "the world’s average grid", _UNSTATED: "its grid"}


@dataclass(frozen=True, slots=True)
class Telling:
    """What the author adds to the records, and what he holds back.

    Attributes:
        facts: Of the project; None for those of the site file.
        is_anonymous: Whether names, places and dates are taken out for a blind review.
        asked: Options as they were given, kept in the JSON for whoever makes the statement again.
    """

    facts: Facts | None = None
    is_anonymous: bool = False
    asked: tuple[tuple[str, str], ...] = ()


AS_RECORDED = Telling()


def told(charged: Charged, telling: Telling) -> tuple[Statement, Footprint]:
    """Words and numbers, both anonymous where that is asked."""
    setting = _setting(charged, telling.facts or charged.site.facts)
    if telling.is_anonymous:
        words, footprint = _told_anonymously(charged, setting)
    else:
        words, footprint = compose(charged.footprint, charged.counted, _groups(charged), setting), charged.footprint
    inputs = None if telling.is_anonymous else _inputs(charged, telling)
    advice = () if telling.is_anonymous else _rerun(charged)  # it names the hour at which the run began
    return replace(words, rerun=advice, inputs=inputs), footprint


def _inputs(charged: Charged, telling: Telling) -> Inputs:
    """Records, the hours kept beside them, and options; the order of the records does not matter."""
    records = sorted({(c.run.source, c.run.sha256) for c in charged.runs if c.run.sha256}, key=lambda pair: pair[1])
    beside = sorted(charged.beside, key=lambda pair: pair[1])
    joined = "\n".join(sorted(sha256 for _, sha256 in (*records, *beside)))
    return Inputs(tuple(records), hashlib.sha256(joined.encode()).hexdigest(), telling.asked, tuple(beside))


def _rerun(charged: Charged) -> tuple[Sentence, ...]:
    """When to run the largest run again, or that it is not worth it."""
    found = largest(charged.runs, charged.places)
    if found is None:
        return ()
    run, place = found
    started = datetime.fromtimestamp(run.run.started_s, UTC).astimezone(clock_of(place))
    return rerun(rerun_advice(run, place), several=len(charged.counted) > 1, clock=clock_name(started))


def _told_anonymously(charged: Charged, setting: Setting) -> tuple[Statement, Footprint]:
    """The same numbers, told of countries, months and numbered names."""
    masks = Masks(charged.runs, [place.site for place in charged.places if place.site])
    blind = replace(charged, runs=tuple(masks.run(c) for c in charged.runs), site=_anonymous_site(charged.site))
    footprint = without_places(blind.footprint_of(blind.runs), _country_of)
    groups = [
        replace(
            group,
            runs=tuple(at_country(c, _country_of) for c in group.runs),
            footprint=without_places(group.footprint, _country_of),
        )
        for group in _groups(blind)
    ]
    names = {grid.zone: _name_of_country(grid.zone) for grid in footprint.grids if grid.zone not in _NOWHERE}
    blank = replace(setting, zone_names=names, site=None, facts=masks.facts(setting.facts), is_anonymous=True)
    return compose(footprint, [at_country(c, _country_of) for c in blind.counted], groups, blank), footprint


def _anonymous_site(site: Site) -> Site:
    """A site file without the names of suppliers and sources."""
    contract = None if site.contract is None else replace(site.contract, instrument=GIVEN)
    water = None if site.water is None else replace(site.water, source=GIVEN)
    return msgspec.structs.replace(site, contract=contract, water=water, embodied=tuple(replace(e, source=GIVEN) for e in site.embodied))


def _country_of(zone: str) -> str:
    """The country of a zone; of a text that is no zone, nothing."""
    if zone in _NOWHERE:
        return zone
    country = zone.split("-")[0]
    return country if _name_of_country(country) else _UNSTATED


@lru_cache
def _name_of_country(country: str) -> str:
    """A country in words, "" where it is none."""
    if name := name_of_zone(country):
        return name
    try:
        return EmbeddedGrid().profile(country).name
    except UnknownZone:
        return ""


def _setting(charged: Charged, facts: Facts) -> Setting:
    zones = [grid.zone for grid in charged.footprint.grids]
    sites = list(dict.fromkeys(place.site for place in charged.places if place.site))
    return Setting(
        zone_names={zone: name_of_zone(zone) or zone for zone in zones if zone not in _NOWHERE},
        nowhere=_NOWHERE,
        time_zone=charged.places[0].time_zone,
        site=listed(sites) or None,
        made_by=MADE_BY,
        facts=facts,
    )


def _groups(charged: Charged) -> list[Group]:
    """Runs by name and kind: training first, then in the order of time. Too many names for a table are put together by kind."""
    ordered = sorted(charged.counted, key=lambda c: (RUN_KINDS.index(c.run.kind), c.run.started_s))
    keys = {(c.run.name, c.run.kind) for c in ordered}
    by_name: dict[tuple[str, RunKind], list[ChargedRun]] = {}
    for c in ordered:
        by_name.setdefault((c.run.name if len(keys) <= _MOST_NAMES else "", c.run.kind), []).append(c)
    return [
        Group(
            name,
            kind,
            tuple(runs),
            charged.footprint_of([*runs, *charged.inner_of(runs)]),
            names=len({c.run.name for c in runs}),
        )
        for (name, kind), runs in by_name.items()
    ]
