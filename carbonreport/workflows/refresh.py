"""The hours as they were, of the grid and of the weather, fetched for a run that had no network: kept beside the record, which stays as it is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.combine.pue_fit import by_hours
from carbonreport.errors import CarbonreportError, PlaceError
from carbonreport.grid import GridSource
from carbonreport.grid.beside import write_beside
from carbonreport.grid.openmeteo import OpenMeteo
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE
from carbonreport.model.pue import PueProfile
from carbonreport.model.pue_model import PueHours, is_modelled
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import RunRecord
from carbonreport.model.series import QUALITIES, IntensitySeries, Quality
from carbonreport.site import Site
from carbonreport.store import load
from carbonreport.units import hours
from carbonreport.workflows.grid import EMBEDDED, open_source, provider_for
from carbonreport.workflows.place import PlaceOptions, RenderPlace, rendering_place, site_of
from carbonreport.workflows.pue import fetched_hours


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What fetching the hours of a run changed.

    Attributes:
        record: The record.
        path: Where its hours are kept now.
        run: Its name.
        series: Its hours.
        hours_by_quality: How many of its hours are of which quality. [h]
        before: Emissions by the typical profile, at the annual PUE. [gCO2e]
        after: Emissions by its own hours. [gCO2e]
        was_family: What kind of intensity the profile is.
        pue: PUE of its hours by the weather, or None.
        mean_pue: Their mean over time with the annual value where no weather is known; None with them.
        without_pue: Why there is none although the PUE follows a model, or "".
    """

    record: Path
    path: Path
    run: str
    series: IntensitySeries
    hours_by_quality: tuple[tuple[Quality, float], ...]
    before: Quantity
    after: Quantity
    was_family: str
    pue: PueHours | None = None
    mean_pue: PueProfile | None = None
    without_pue: str = ""

    @property
    def is_same_family(self) -> bool:
        """Whether the two figures are of one kind, so that one replaces the other."""
        return str(self.series.family) == self.was_family

    @property
    def moved(self) -> float | None:
        """Change of the figure as a share of the one before; None where there was nothing."""
        return self.after.value / self.before.value - 1 if self.before.value else None


def refresh(
    record: str | Path,
    options: PlaceOptions,
    *,
    environ: Mapping[str, str] = os.environ,
    offline: bool = False,
    source: GridSource | None = None,
    weather: OpenMeteo | None = None,
) -> Refreshed:
    """Fetch the hours of a run, and the weather where the site has a PUE model, and keep them beside its record.

    Weather that cannot be had keeps nobody from the intensities: it is said in `without_pue`.

    Args:
        record: The record.
        options: Place as for a statement; `grid` names the provider, else one is chosen by zone and key.
        environ: Keys, cache, and defaults of the place.
        offline: Whether only what was fetched before may be used.
        source: Whom to ask, instead of the one that `options.grid` names.
        weather: Whom to ask for the weather, instead of Open-Meteo with the usual cache.

    Raises:
        PlaceError: Nobody said where the run was.
        GridError: The hours cannot be had; then nothing was written.
        OutputError: They cannot be kept.
    """
    path = Path(record)
    run = load(path)
    site = site_of(options, environ, Path.cwd()) or Site()
    place = rendering_place(run, options, site, environ)
    if place.zone == WORLD_ZONE or place.is_guessed:
        guess = f", such as --zone {place.zone}, its guess by the time zone" if place.is_guessed else ""
        raise PlaceError(f"{run.source}: nobody said where it ran; give --zone{guess}")
    embedded = EmbeddedGrid()
    if source is None:
        name = options.grid if options.grid not in (None, EMBEDDED) else provider_for(place.zone, environ)
        source = open_source(str(name), fill=True, environ=environ, offline=offline)
    series = source.series(place.zone, run.started_s, run.ended_s)
    typical = embedded.series(place.zone, run.started_s, run.ended_s)
    pue, without_pue = _pue(run, place, site, environ, offline=offline, source=weather)
    mean_pue = None if pue is None else by_hours(place.pue, pue, run.started_s, run.ended_s)[0]
    before, after = _grams(run, typical, place), _grams(run, series, place if mean_pue is None else replace(place, pue=mean_pue))
    return Refreshed(
        record=path,
        path=write_beside(path, run.id, series, pue),
        run=run.name,
        series=series,
        hours_by_quality=_hours_by_quality(series),
        before=before,
        after=after,
        was_family=str(typical.family),
        pue=pue,
        mean_pue=mean_pue,
        without_pue=without_pue,
    )


def _pue(
    run: RunRecord, place: RenderPlace, site: Site, environ: Mapping[str, str], *, offline: bool, source: OpenMeteo | None
) -> tuple[PueHours | None, str]:
    """PUE of the run's hours where its PUE follows a model, and why there is none, or ""."""
    if not is_modelled(place.pue):
        has_own = site.pue_model is not None
        return None, f"its record has a PUE of its own, {place.pue.value:.2f}; the site's model is not used" if has_own else ""
    if site.pue_model is None or site.pue != place.pue:
        return None, f"its PUE is that of a {place.pue.source}; give --site FILE with these numbers and the place, which no record holds"
    try:
        found = fetched_hours(run, site.pue_model, environ, offline=offline, source=source)
    except CarbonreportError as error:
        return None, f"{error}"
    return (found, "") if found.values else (None, f"{found.weather} has no weather of its hours")


def _grams(run: RunRecord, series: IntensitySeries, place: RenderPlace) -> Quantity:
    charged = charge(run, grid=series, pue=place.pue, time_zone=place.time_zone)
    return total([replace(charged, notes=())]).grams


def _hours_by_quality(series: IntensitySeries) -> tuple[tuple[Quality, float], ...]:
    lengths = np.diff(series.edges_s)
    sums = [(quality, hours(float(lengths[series.quality == i].sum()))) for i, quality in enumerate(QUALITIES)]
    return tuple((quality, length) for quality, length in sums if length > 0)
