"""A place where a job could run, over the time that is asked about: its clock, its hours, its PUE."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from carbonreport.cloud import is_region, pue_of_region
from carbonreport.combine.pue import pue_at, pue_edges
from carbonreport.errors import BadPue, FamilyMix, PlaceError
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import DATA, WORLD_ZONE
from carbonreport.model.run import Place, RunRecord
from carbonreport.model.series import IntensitySeries, SeasonalProfile
from carbonreport.recommend.rates import Rates
from carbonreport.units import hours
from carbonreport.workflows.ask import Ask
from carbonreport.workflows.grid import EMBEDDED, next_hours, open_source, providers
from carbonreport.workflows.place import PlaceOptions, RenderPlace, rendering_place, site_of


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A place over the time that is asked about.

    Attributes:
        place: Zone, PUE and time zone.
        series: Intensities.
        rates: What a joule costs there.
        pue_rates: PUE alone, for energy at the facility.
        profile: The zone's typical year.
        price: Price of a kWh and its currency, where the site file has one.
    """

    place: RenderPlace
    series: IntensitySeries
    rates: Rates
    pue_rates: Rates
    profile: SeasonalProfile
    price: tuple[float, str] | None


def candidate(
    ask: Ask, options: PlaceOptions, like: RunRecord | None, environ: Mapping[str, str] = os.environ, *, offline: bool = False
) -> Candidate:
    """The place that options name; a cloud region is its zone and, unless a PUE was given, its operator's PUE.

    Raises:
        PlaceError: Nobody says where.
        GridError: Its hours cannot be had.
        FamilyMix: They are marginal ones, which no footprint may hold.
    """
    place = place_of(options, like, environ)
    site = site_of(options, environ, Path.cwd())
    series = _series(place.zone, ask, options.grid, environ, offline)
    if series.family.signal == "marginal":
        raise FamilyMix("those of a footprint (average)", f"those of {series.source} ({series.family}); give them as --marginal")
    edges = np.union1d(series.edges_s, pue_edges(place.pue, place.time_zone, float(series.edges_s[0]), float(series.edges_s[-1])))
    edges = edges[(edges >= series.edges_s[0]) & (edges <= series.edges_s[-1])]
    grams = series.grams_per_kwh[np.clip(np.searchsorted(series.edges_s, edges[:-1], side="right") - 1, 0, series.grams_per_kwh.size - 1)]
    pue = pue_at(replace(place.pue, edges_s=(), values=()), place.time_zone, edges)
    price = None if site is None or site.price is None else (site.price.per_kwh, site.price.currency)
    return Candidate(place, series, Rates.of(edges, grams, pue), Rates(edges, pue), EmbeddedGrid().profile(place.zone), price)


def place_of(options: PlaceOptions, like: RunRecord | None = None, environ: Mapping[str, str] = os.environ) -> RenderPlace:
    """Zone, PUE and clock of the place that options name, else of the run that the job is like.

    Raises:
        PlaceError: Nobody says where.
    """
    options = with_region(options)
    record = like or RunRecord("when", "when", "other", "", 0.0, 0.0, (), (), place=Place())
    place = rendering_place(record, options, site_of(options, environ, Path.cwd()), environ)
    if place.zone == WORLD_ZONE:
        raise PlaceError("nobody says where the job would run: give --zone, or a site file; hours of the whole world mean nothing")
    return place


def with_region(options: PlaceOptions) -> PlaceOptions:
    """A zone that is a cloud region brings its operator's published PUE, unless one was given; without a published one nothing is known of it."""
    if options.zone is None or options.pue is not None or not is_region(options.zone):
        return options
    try:
        pue_of_region(options.zone)
    except BadPue:
        return replace(options, pue=options.zone.partition(":")[0].lower())  # the operator's mean, with the range of its regions
    return replace(options, pue=options.zone)


def elsewhere(options: PlaceOptions, zone: str) -> PlaceOptions:
    """Options of another zone: a cloud region has its own PUE, another zone that of home."""
    return replace(options, zone=zone, pue=None if is_region(zone) else options.pue)


@lru_cache(maxsize=1)
def months_missed() -> Mapping[str, tuple[float, int]]:
    """By zone: mean share by which its months were off when a year was held out, and which year."""
    path = DATA / "odbl" / "held_out.csv"
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {row["zone"]: (float(row["month_error_percent"]) / 100, int(row["test_year"])) for row in csv.DictReader(file)}


def _series(zone: str, ask: Ask, grid: str | None, environ: Mapping[str, str], offline: bool) -> IntensitySeries:
    span_h = hours(ask.latest_end_s - ask.earliest_s)
    if grid is None or grid == EMBEDDED or grid in providers():
        provider = grid if grid in providers() else None
        return next_hours(zone, span_h, provider, environ=environ, offline=offline, now_s=ask.earliest_s)
    return open_source(grid, environ=environ, offline=offline).series(zone, ask.earliest_s, ask.latest_end_s)
