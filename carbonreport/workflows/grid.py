"""Opening what `--grid` names: the embedded profiles, a file, a provider, or a plug-in from outside; and what they say of runs and of tomorrow."""

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from carbonreport.combine.forecast import ahead
from carbonreport.errors import FamilyMix, GridError, KeyRefused, PlaceError
from carbonreport.fetch import Fetcher
from carbonreport.grid import GridSource
from carbonreport.grid.beside import Kept, path_beside, read_beside
from carbonreport.grid.cache import GridCache, default_folder
from carbonreport.grid.online import OnlineGrid
from carbonreport.grid.readings import Fill
from carbonreport.grid.sources.csv import CsvGrid
from carbonreport.grid.sources.csv import create as csv_grid
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE
from carbonreport.model.run import RunRecord
from carbonreport.model.series import IntensitySeries
from carbonreport.plugins import load, module, names
from carbonreport.request import is_offline
from carbonreport.units import SECONDS_PER_HOUR
from carbonreport.workflows.place import PlaceOptions, RenderPlace

EMBEDDED = "embedded"
SeriesOf = Callable[[RunRecord, RenderPlace], IntensitySeries]
# Sources without a network; every other file of the folder is a provider.
_LOCAL = ("embedded", "csv")
# Sources with life-cycle and direct numbers: "embedded:direct".
_BOTH_FACTORS = ("embedded", "electricitymaps")
_FACTORS = ("lifecycle", "direct")
# Providers of the same kind of number as the embedded profiles (life-cycle CO2e), best first; others only by name.
_LIKE_EMBEDDED = ("electricitymaps", "energycharts")


def open_source(text: str, *, fill: bool = False, environ: Mapping[str, str] = os.environ, offline: bool = False) -> GridSource:
    """The source that a text names.

    Args:
        text: "embedded", a file, a provider, one of the two with a factor ("embedded:direct"), or "package.module:create".
        fill: Whether hours that it lacks are taken from the embedded profiles.
        environ: Keys, cache folder and whether the network may be used.
        offline: Whether it must not be used.

    Raises:
        GridError: It is none of them.
    """
    name, _, factor = text.partition(":")
    is_known = factor == "" or (name in _BOTH_FACTORS and factor in _FACTORS)
    embedded = EmbeddedGrid(factor=factor or _FACTORS[0]) if is_known else EmbeddedGrid()
    if name == EMBEDDED and is_known:
        return embedded
    if name in providers() and is_known:
        return open_provider(text, fill=embedded.series if fill else None, environ=environ, offline=offline)
    if Path(text).is_file():
        return csv_grid({"path": text}, fill=embedded.series if fill else None)
    if factor and name not in names("source"):
        return _from_outside(text)
    kinds = f"{EMBEDDED}, {', '.join(providers())}"
    raise GridError(f"--grid {text!r} is neither one of {kinds} nor a file that exists; give a CSV with the columns time,g_per_kwh")


def open_provider(text: str, *, fill: Fill | None = None, environ: Mapping[str, str] = os.environ, offline: bool = False) -> OnlineGrid:
    """A provider, with the fetcher and cache of this environment; whether its key is there shows when it is asked."""
    name, _, factor = text.partition(":")
    fetch, cache = Fetcher(offline=offline or is_offline(environ)), GridCache(default_folder(environ))
    options = {"factor": factor} if factor else {}
    source: OnlineGrid = module("source", name).create(options, fill=fill, fetch=fetch, cache=cache, environ=environ)
    return source


def providers() -> tuple[str, ...]:
    """Names of the sources that answer from the network."""
    return tuple(name for name in names("source") if name not in _LOCAL)


def _from_outside(text: str) -> GridSource:
    """A source of another package.

    Raises:
        GridError: There is no such module or function.
    """
    try:
        source: GridSource = load("source", text)
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # what importing a text that is no module can raise
        raise GridError(f"--grid {text!r} is neither a file that exists nor package.module:create of something installed") from error
    return source


def next_hours(
    zone: str,
    ahead_h: float,
    grid: str | None,
    *,
    environ: Mapping[str, str] = os.environ,
    offline: bool = False,
    source: OnlineGrid | None = None,
    now_s: float | None = None,
) -> IntensitySeries:
    """What a zone's grid is going to be: a provider's forecast as far as it reaches, then typical hours, corrected by the last observed one.

    Args:
        zone: Any of its names.
        ahead_h: How far. [h]
        grid: Provider; None for typical hours alone.
        environ: Keys and cache.
        offline: Whether only what was fetched before may be used.
        source: A provider that is open already.
        now_s: Begin, POSIX seconds; now by default.

    Raises:
        GridError: The provider cannot be asked, or gives another kind of number than the profiles.
        UnknownZone: No such zone.
    """
    profile = EmbeddedGrid().profile(zone)
    begin_s = time.time() if now_s is None else now_s
    end_s = begin_s + ahead_h * SECONDS_PER_HOUR
    if grid is None and source is None:
        return ahead(profile, begin_s, end_s)
    if grid is not None and grid not in providers():
        raise GridError(f"{grid!r} forecasts nothing; there are {', '.join(providers())}")
    source = source or open_provider(str(grid), environ=environ, offline=offline)
    if source.provider.family != profile.family:
        raise FamilyMix(f"{profile.source} ({profile.family})", f"{source.provider.title} ({source.provider.family})")
    observed = source.latest(profile.zone).stretch(is_last=True)
    try:
        forecast = source.forecast(profile.zone, ahead_h * SECONDS_PER_HOUR).stretch(is_last=False)
    except KeyRefused as error:  # plans with the last day and without forecasts are common
        result = ahead(profile, begin_s, end_s, observed=observed)
        return replace(result, notes=(*result.notes, ("typical-profile", f"no forecast: {error}")))
    return ahead(profile, begin_s, end_s, observed=observed, forecast=forecast)


class Loaded(list[RunRecord]):
    """Records, with the files that they came from: beside a file the run's own hours may lie."""

    def __init__(self, runs: Iterable[tuple[Path, RunRecord]]) -> None:
        pairs = list(runs)
        super().__init__(run for _, run in pairs)
        self._files = {(run.id, run.source): path for path, run in pairs}
        self._kept: dict[tuple[str, str], Kept | None] = {}

    def kept(self, run: RunRecord) -> Kept | None:
        """What lies beside the record of a run, read once.

        Raises:
            GridError: It is of another run, or damaged.
        """
        key = (run.id, run.source)
        if key not in self._kept:
            path = path_beside(self._files[key]) if key in self._files else None
            self._kept[key] = read_beside(path, run.id) if path is not None and path.is_file() else None
        return self._kept[key]


def series_source(options: PlaceOptions, runs: Sequence[RunRecord], environ: Mapping[str, str]) -> SeriesOf:
    """How to find a run's intensities: what `--grid` names, else the hours kept beside its record, else the embedded profiles.

    Raises:
        GridError: `--grid` names nothing.
    """
    embedded = EmbeddedGrid()

    def typical(run: RunRecord, place: RenderPlace) -> IntensitySeries:
        return embedded.series(place.zone, run.started_s, run.ended_s, guessed=place.is_guessed)

    def own_or_typical(run: RunRecord, place: RenderPlace) -> IntensitySeries:
        kept = kept_hours(run, runs, options, place)
        return typical(run, place) if kept is None else kept.series

    if options.grid is None:
        return own_or_typical
    if options.grid == EMBEDDED:
        return typical
    source = open_source(options.grid, fill=True, environ=environ)
    is_file = isinstance(source, CsvGrid)

    def from_source(run: RunRecord, place: RenderPlace) -> IntensitySeries:
        if not is_file and (place.is_guessed or place.zone == WORLD_ZONE):
            raise PlaceError(f"{run.source or run.name}: nobody said where it ran, so {options.grid} cannot be asked; give --zone")
        return source.series("" if place.is_guessed else place.zone, run.started_s, run.ended_s)

    return from_source


def kept_hours(run: RunRecord, runs: Sequence[RunRecord], options: PlaceOptions, place: RenderPlace) -> Kept | None:
    """What lies beside a run's record, where its intensities are wanted: not if `--grid` names others, or `--zone` another place."""
    kept = runs.kept(run) if options.grid is None and isinstance(runs, Loaded) else None
    is_elsewhere = kept is not None and options.zone is not None and place.zone != kept.series.zone
    return None if is_elsewhere else kept


def provider_for(zone: str, environ: Mapping[str, str]) -> str:
    """The provider to ask for a zone when nobody names one: one of life-cycle CO2e, as the embedded profiles are.

    Raises:
        GridError: None can be asked without the user's help.
    """
    from carbonreport.grid.sources import electricitymaps, energycharts

    if environ.get(electricitymaps.KEY, "").strip():
        return _LIKE_EMBEDDED[0]
    if zone in energycharts.COUNTRIES:
        return _LIKE_EMBEDDED[1]
    uk = "; or take --grid uk, which is direct CO2 alone" if zone == "GB" else ""
    raise GridError(f"no provider of {zone} answers without a key: set {electricitymaps.KEY}, or give --grid FILE.csv{uk}")
