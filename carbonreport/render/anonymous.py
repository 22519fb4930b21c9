"""Double-blind review: countries for places, months for dates, numbers for names. The energy and the emissions stay as they are."""

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.notes import SLUGS, Note
from carbonreport.model.origin import Origin
from carbonreport.model.run import Device, Place, RunRecord
from carbonreport.model.statement import Facts

WITHHELD = "withheld for review"
GIVEN = "given by the author"
_PUBLISHED = "published by the operator"
_MODELLED = "a model of the facility by the weather"
_PUBLIC_GRIDS = ("Electricity Maps (", "Electricity Maps API", "Ember (")
# Classes of facilities whose defaults name no operator: class -> source.
_CLASSES = {
    "desktop": "no facility around a desktop or laptop",
    "hpc": "range of liquid-cooled HPC centres",
    "cloud": "average of public clouds",
    "datacentre": "survey of data centres, unknown data centre",
    "server-room": "average of on-premises server rooms",
}
_KEPT_ENVIRONMENT = ("driver", "cpu", "python")
_SHORTEST_NAME = 3  # of what is looked for inside other texts
_SHORTEST_WORD = 4  # of a site's name


class Masks:
    """Replaces what tells who, where and when; the same text always by the same other."""

    def __init__(self, runs: Sequence[ChargedRun], sites: Sequence[str]) -> None:
        """Look through all runs and sites for what must not appear."""
        self._names = _names(runs, sites)
        self._secrets = self._names | _words(sites)
        self._ids: dict[tuple[str, str], str] = {}
        self._paths = {span.path for c in runs for span in c.run.spans}

    def run(self, c: ChargedRun) -> ChargedRun:
        """A charged run without names; its zone and its times stay until the numbers are added up."""
        ids = {device.id: self._numbered(device.kind, device.id) for device in c.run.devices}
        return replace(
            c,
            run=self._record(c.run, ids),
            grid=replace(c.grid, source=grid_source(c.grid.source), notes=()),
            devices=tuple(self._device(device, ids) for device in c.devices),
            pue_source=pue_source(c.pue_source, c.pue_origin),
            notes=_notes(c.notes),
        )

    def facts(self, facts: Facts) -> Facts:
        """The author's facts; a place, and texts that name the site, are withheld."""
        unit = facts.functional_unit
        return replace(
            facts,
            model=self._kept(facts.model),
            training_type=self._kept(facts.training_type),
            storage=self._kept(facts.storage),
            geographical_location=None,
            functional_unit=self._path(unit) if unit in self._paths and unit is not None else self._kept(unit),
        )

    def _record(self, run: RunRecord, ids: Mapping[str, str]) -> RunRecord:
        label = "run" if run.kind == "other" else run.kind
        return replace(
            run,
            id=self._numbered("record", run.id),
            name=self._numbered(label, run.name).replace("-", " "),
            host=self._numbered("host", run.host),
            parent=None if run.parent is None else self._numbered("record", run.parent),
            devices=tuple(self._device(device, ids) for device in run.devices),
            traces=tuple(replace(trace, device=ids[trace.device]) for trace in run.traces),
            spans=tuple(
                replace(span, path=self._path(span.path), joules={ids.get(d, d): j for d, j in span.joules.items()}) for span in run.spans
            ),
            place=Place(),
            environment={k: v for k, v in run.environment.items() if k in _KEPT_ENVIRONMENT and not self._tells(v)},
            notes=_notes(run.notes),
            source="",
            sha256="",
        )

    def _device(self, device: Device, ids: Mapping[str, str]) -> Device:
        name = device.name if device.kind == "gpu" and not _is_in(device.name, self._names) else device.kind
        source = "its own meter" if _is_in(device.source, self._names) or "/" in device.source else device.source
        return replace(device, id=ids[device.id], name=name, source=source)

    def _path(self, path: str) -> str:
        """A span's path; the parts that tell are numbered."""
        return "/".join(self._numbered("span", part).replace("-", " ") if self._tells(part) else part for part in path.split("/"))

    def _kept(self, text: str | None) -> str | None:
        return WITHHELD if text is not None and self._tells(text) else text

    def _tells(self, text: str) -> bool:
        return _is_in(text, self._secrets)

    def _numbered(self, label: str, text: str) -> str:
        """The first text of a label becomes label-1, the next label-2."""
        if (label, text) not in self._ids:
            self._ids[label, text] = f"{label}-{sum(1 for known, _ in self._ids if known == label) + 1}"
        return self._ids[label, text]


def _is_in(text: str, secrets: Set[str]) -> bool:
    folded = text.casefold()
    return any(secret in folded for secret in secrets)


def _names(runs: Sequence[ChargedRun], sites: Sequence[str]) -> set[str]:
    """Folded names that must not appear inside other texts: sites, sub-zones, hosts, ids, files."""
    texts = {*sites}
    for c in runs:
        zones = (c.grid.zone, c.run.place.zone or "")
        texts |= {c.run.id, c.run.host, c.run.source, c.run.source.rpartition(".")[0], *(zone for zone in zones if "-" in zone)}
        texts |= {c.run.place.site or ""}
    return {text.casefold() for text in texts if len(text) >= _SHORTEST_NAME}


def _words(sites: Sequence[str]) -> set[str]:
    """Folded words of the sites' names."""
    return {word.casefold() for site in sites for word in re.split(r"\W+", site) if len(word) >= _SHORTEST_WORD}


def grid_source(source: str) -> str:
    """Where intensities come from, without the name of a file, or of a provider that knows one country alone."""
    if source.startswith(_PUBLIC_GRIDS):
        return source
    return "a file of intensities" if source.startswith("file ") else "an online provider of intensities"


def pue_source(source: str, origin: Origin) -> str:
    """Where a PUE comes from, without the name of a site or an operator."""
    if origin == "assumed":
        name = source.removeprefix("class ").partition(":")[0]
        return _CLASSES.get(name, _PUBLISHED)
    if origin == "estimated":
        return _MODELLED
    return GIVEN if source == GIVEN or source.startswith("site file") else _PUBLISHED


def at_country(c: ChargedRun, country_of: Callable[[str], str]) -> ChargedRun:
    """The run on the grid of its country, for words."""
    return replace(c, grid=replace(c.grid, zone=country_of(c.grid.zone)))


def without_places(footprint: Footprint, country_of: Callable[[str], str]) -> Footprint:
    """A footprint whose grids are those of countries, whose hours count from the first one, and whose notes name nothing."""
    hours = footprint.hours
    start_s = hours.start_s - hours.start_s[0] if hours.start_s.size else hours.start_s
    return replace(
        footprint,
        grids=tuple(replace(grid, zone=country_of(grid.zone)) for grid in footprint.grids),
        hours=replace(hours, start_s=start_s),
        notes=_notes(footprint.notes),
    )


def _notes(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Each slug once, with its general meaning in place of what happened where."""
    return tuple(dict.fromkeys(Note(note.slug, SLUGS[note.slug]) for note in notes))
