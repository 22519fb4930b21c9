"""Records and a place to footprints: reads files, finds each run's grid and PUE, adds up."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.combine.nested import counted_runs
from carbonreport.errors import CarbonreportError, GridError
from carbonreport.grid.beside import path_beside
from carbonreport.grid.zones import WORLD_ZONE, resolve_zone
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.pue_model import is_modelled
from carbonreport.model.run import RunRecord
from carbonreport.render.words import listed
from carbonreport.site import Site
from carbonreport.store.tail import tail_path
from carbonreport.workflows.grid import EMBEDDED, Loaded, SeriesOf, kept_hours, series_source
from carbonreport.workflows.imports import runs_of
from carbonreport.workflows.place import PlaceOptions, RenderPlace, rendering_place, site_of
from carbonreport.workflows.pue import hourly_pue

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Charged:
    """Runs with their places and footprint, ready for words.

    Attributes:
        runs: As charged, in the order of the records.
        places: Place of each run.
        site: Content of the site file.
        footprint: Of all runs together.
        beside: File name and SHA-256 of what lay beside the records and was used.
    """

    runs: tuple[ChargedRun, ...]
    places: tuple[RenderPlace, ...]
    site: Site
    footprint: Footprint
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def counted(self) -> list[ChargedRun]:
        """Runs whose energy counts: those inside another one, and copies, are left out."""
        return counted_runs(self.runs)[0]

    def inner_of(self, runs: Sequence[ChargedRun]) -> list[ChargedRun]:
        """Runs that lie inside some of the counted ones; their spans belong to those."""
        ids = {c.run.id for c in runs}
        return [c for c in counted_runs(self.runs)[1] if c.run.parent in ids]

    def footprint_of(self, runs: Sequence[ChargedRun]) -> Footprint:
        """Footprint of some of the runs, with the same site."""
        return total(runs, embodied=self.site.embodied, contract=self.site.contract, water=self.site.water)


def load_records(paths: Sequence[str | Path], options: PlaceOptions | None = None) -> list[RunRecord]:
    """Read records, and the runs of any log that an importer knows. What lies beside a given record under its name is no record itself.

    Args:
        paths: Records and logs.
        options: The place, which dates local times of logs.

    Raises:
        RecordError: One cannot be read.
        CarbonreportError: There is none.
    """
    if not paths:
        raise CarbonreportError("no record given: name the .jsonl files that `carbonreport run` wrote, such as runs/*.jsonl")
    return Loaded((path, run) for path in _without_companions([Path(path) for path in paths]) for run in runs_of(path, options))


def _without_companions(paths: Sequence[Path]) -> list[Path]:
    """Paths without the tails and hours of records among them, which a pattern such as runs/* gives too."""
    beside = {place(path) for path in paths if path.suffix == ".jsonl" for place in (tail_path, path_beside)}
    return [path for path in paths if path not in beside]


def charge_records(runs: Sequence[RunRecord], options: PlaceOptions, environ: Mapping[str, str] = os.environ) -> Charged:
    """Footprint of records at a place; each run at its own unless the options say otherwise.

    Raises:
        CarbonreportError: The place, the grid or the site file cannot be used.
    """
    site = site_of(options, environ, Path.cwd()) or Site()
    series_of = series_source(options, runs, environ)
    places = tuple(rendering_place(run, options, site, environ) for run in runs)
    is_file = options.grid not in (None, EMBEDDED)
    charged, beside = [], {}
    for run, place in zip(runs, places, strict=True):
        kept = runs.kept(run) if isinstance(runs, Loaded) and (options.grid is None or is_modelled(place.pue)) else None
        pue, notes = hourly_pue(run, place, site, kept)
        charged.append(_charged(run, replace(place, pue=pue, notes=(*place.notes, *notes)), series_of, is_file=is_file))
        is_used = kept is not None and kept.pue is not None and kept.pue.model == place.pue.source
        if kept is not None and (is_used or kept_hours(run, runs, options, place) is kept):
            beside[kept.sha256] = kept.name
    _refuse_two_families(charged, places)
    footprint = total(charged, embodied=site.embodied, contract=site.contract, water=site.water)
    return Charged(tuple(charged), places, site, footprint, tuple((name, sha256) for sha256, name in beside.items()))


def _refuse_two_families(charged: Sequence[ChargedRun], places: Sequence[RenderPlace]) -> None:
    """Name the runs whose intensities cannot be added to those of the others, and the way out."""
    families = Counter(c.grid.family for c in charged)
    if len(families) < 2:
        return
    main = families.most_common(1)[0][0]
    pairs = list(zip(charged, places, strict=True))
    placeless = [(c, p) for c, p in pairs if p.zone == WORLD_ZONE]
    odd = placeless or [(c, p) for c, p in pairs if c.grid.family != main]
    zones = [p.zone for c, p in pairs if (c, p) not in odd]
    names = listed([c.run.source or c.run.name for c, _ in odd[:_MOST_NAMED]] + (["others"] if len(odd) > _MOST_NAMED else []))
    has, was = ("have", "were") if len(odd) > 1 else ("has", "was")
    source = f"{odd[0][0].grid.zone} by {odd[0][0].grid.source}"
    what = f"{has} no grid zone and {was} charged at the world average" if placeless else f"{was} charged in {source}"
    raise GridError(
        f"{names} {what} ({odd[0][0].grid.family}), which cannot be added to the others' ({next(f for f in families if f != odd[0][0].grid.family)}); "
        f"give the zone of all runs, such as --zone {zones[0] if zones else 'DE'}, or write two statements"
    )


def overruled(charged: Charged, options: PlaceOptions) -> list[str]:
    """What a site file that was asked for says in vain, since the records say it themselves: one line a field."""
    if options.site is None:
        return []
    site, lines = charged.site, []
    if site.zone is not None and options.zone is None:
        zone = resolve_zone(site.zone)
        runs = [c.run for c, p in zip(charged.runs, charged.places, strict=True) if p.zone != zone]
        lines += [_in_vain(site, runs, f"zone {zone}", "--zone")] if runs else []
    if site.pue is not None and options.pue is None:
        runs = [c.run for c, p in zip(charged.runs, charged.places, strict=True) if p.pue != site.pue]
        lines += [_in_vain(site, runs, f"PUE {site.pue.value:g}", "--pue")] if runs else []
    return lines


def _in_vain(site: Site, runs: Sequence[RunRecord], what: str, option: str) -> str:
    names = listed([run.source or run.name for run in runs[:_MOST_NAMED]] + (["others"] if len(runs) > _MOST_NAMED else []))
    return f"{site.path}: its {what} is not used for {names}, where the record has its own; {option} would overrule that"


def _charged(run: RunRecord, place: RenderPlace, series_of: SeriesOf, *, is_file: bool) -> ChargedRun:
    grid = series_of(run, place)
    result = charge(run, grid=grid, pue=place.pue, time_zone=place.time_zone)
    says_where = is_file or any(slug == "grid-refreshed" for slug, _ in grid.notes)
    notes = [note for note in place.notes if not (says_where and note.slug in ("zone-unknown", "zone-guessed"))]
    return replace(result, notes=(*result.notes, *notes))
