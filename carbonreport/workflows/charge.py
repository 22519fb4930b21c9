"""Records and a place to footprints: reads files, finds each run's grid and PUE, adds up."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.combine.nested import counted_runs
from carbonreport.errors import CarbonreportError, GridError
from carbonreport.grid.sources.csv import create as csv_grid
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.run import RunRecord
from carbonreport.model.series import IntensitySeries
from carbonreport.site import Site
from carbonreport.store import load
from carbonreport.workflows.place import PlaceOptions, RenderPlace, rendering_place, site_of

EMBEDDED = "embedded"
_SeriesOf = Callable[[RunRecord, RenderPlace], IntensitySeries]


@dataclass(frozen=True, slots=True, eq=False)
class Charged:
    """Runs with their places and footprint, ready for words.

    Attributes:
        runs: As charged, in the order of the records.
        places: Place of each run.
        site: Content of the site file.
        footprint: Of all runs together.
    """

    runs: tuple[ChargedRun, ...]
    places: tuple[RenderPlace, ...]
    site: Site
    footprint: Footprint

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
        return total(runs, embodied=self.site.embodied, contract=self.site.contract)


def load_records(paths: Sequence[str | Path]) -> list[RunRecord]:
    """Read records.

    Raises:
        RecordError: One cannot be read.
        CarbonreportError: There is none.
    """
    if not paths:
        raise CarbonreportError("no record given: name the .jsonl files that `carbonreport run` wrote, such as runs/*.jsonl")
    return [load(path) for path in paths]


def charge_records(runs: Sequence[RunRecord], options: PlaceOptions, environ: Mapping[str, str] = os.environ) -> Charged:
    """Footprint of records at a place; each run at its own unless the options say otherwise.

    Raises:
        CarbonreportError: The place, the grid or the site file cannot be used.
    """
    site = site_of(options, environ, Path.cwd()) or Site()
    series_of = _series_source(options)
    places = tuple(rendering_place(run, options, site, environ) for run in runs)
    is_file = options.grid not in (None, EMBEDDED)
    charged = tuple(_charged(run, place, series_of, is_file=is_file) for run, place in zip(runs, places, strict=True))
    return Charged(charged, places, site, total(charged, embodied=site.embodied, contract=site.contract))


def _charged(run: RunRecord, place: RenderPlace, series_of: _SeriesOf, *, is_file: bool) -> ChargedRun:
    result = charge(run, grid=series_of(run, place), pue=place.pue, time_zone=place.time_zone)
    notes = [note for note in place.notes if not (is_file and note.slug in ("zone-unknown", "zone-guessed"))]  # the file says where
    return replace(result, notes=(*result.notes, *notes))


def _series_source(options: PlaceOptions) -> _SeriesOf:
    """How to find a run's intensities: the embedded profiles, or a CSV whose gaps those fill."""
    embedded = EmbeddedGrid()

    def typical(run: RunRecord, place: RenderPlace) -> IntensitySeries:
        return embedded.series(place.zone, run.started_s, run.ended_s, guessed=place.is_guessed)

    if options.grid is None or options.grid == EMBEDDED:
        return typical
    if not Path(options.grid).is_file():
        raise GridError(f"--grid {options.grid!r} is neither 'embedded' nor a file that exists; give a CSV with the columns time,g_per_kwh")
    source = csv_grid({"path": options.grid}, fill=lambda zone, start_s, end_s: embedded.series(zone, start_s, end_s))

    def from_file(run: RunRecord, place: RenderPlace) -> IntensitySeries:
        return source.series("" if place.is_guessed else place.zone, run.started_s, run.ended_s)

    return from_file
