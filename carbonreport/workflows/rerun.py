"""When to run the largest of the runs again: the embedded profile of its zone, its own power and its facility's PUE."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from carbonreport.errors import UnknownZone
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE, time_zone_of
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.recommendation import Recommendation
from carbonreport.recommend.when import month, start_grams, start_hour
from carbonreport.render.pictures import Picture
from carbonreport.render.pictures_when import StartNumbers
from carbonreport.workflows.place import RenderPlace, is_time_zone


def rerun_advice(run: ChargedRun, place: RenderPlace) -> list[Recommendation]:
    """Advice on the start hour, by the zone's own clock, and where the PUE is known by month on the season; nothing where the place is not known."""
    if place.zone == WORLD_ZONE or place.is_guessed:
        return []
    try:
        profile = EmbeddedGrid().profile(place.zone)
    except UnknownZone:
        return []
    asked = (start_hour(run.run, profile, place.pue, place.time_zone), month(run.run, profile, place.pue, place.time_zone))
    return [_by_the_zones_clock(advice, run, place) for advice in asked if advice is not None]


def rerun_pictures(runs: Sequence[ChargedRun], places: tuple[RenderPlace, ...]) -> list[Picture]:
    """What each start of the largest run's own day would cost; nothing where no advice on it is given. Needs matplotlib."""
    found = largest(runs, places)
    if found is None or found[1].zone == WORLD_ZONE or found[1].is_guessed:
        return []
    run, place = found
    try:
        profile = EmbeddedGrid().profile(place.zone)
    except UnknownZone:
        return []
    starts, grams = start_grams(run.run, profile, place.pue, place.time_zone)
    if not starts:
        return []
    from carbonreport.render.plots_when import starts_picture

    return [
        starts_picture(StartNumbers(np.array(starts), np.array(grams), f"a typical day of the month, {profile.source}", mass_unit=None))
    ]


def clock_of(place: RenderPlace) -> ZoneInfo:
    """The clock by which hours are advised: that of the zone, whatever the host's says."""
    return ZoneInfo(next((name for name in (time_zone_of(place.zone), place.time_zone) if name and is_time_zone(name)), "UTC"))


def _by_the_zones_clock(advice: Recommendation, run: ChargedRun, place: RenderPlace) -> Recommendation:
    if advice.unit != "hour":
        return advice
    own = datetime.fromtimestamp(run.run.started_s, UTC).astimezone(clock_of(place))
    shift = (advice.best - advice.own) % 24
    return replace(advice, own=own.hour, best=(own.hour + shift) % 24)


def largest(runs: Sequence[ChargedRun], places: tuple[RenderPlace, ...]) -> tuple[ChargedRun, RenderPlace] | None:
    """The run of the most energy, with its place."""
    pairs = [(c, p) for c, p in zip(runs, places, strict=True) if c.it_joules.sum() > 0]
    return max(pairs, key=lambda pair: float(pair[0].it_joules.sum()), default=None)
