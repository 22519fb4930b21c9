"""Charged records to files: composes words, renders each format, and never overwrites what it did not write."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from carbonreport import __version__
from carbonreport.errors import CarbonreportError, OutputError, UnknownZone
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import WORLD_ZONE, name_of_zone
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.run import RUN_KINDS, RunKind
from carbonreport.model.statement import Facts, Inputs, Sentence, Statement
from carbonreport.plugins import load as load_plugin
from carbonreport.plugins import names
from carbonreport.render.anonymous import GIVEN, Masks, at_country, without_places
from carbonreport.render.compose import Group, Setting, compose
from carbonreport.render.engine import style_folder
from carbonreport.render.formats.tex import bibliography
from carbonreport.render.pictures import Picture, pictures_of
from carbonreport.render.plots import draw
from carbonreport.render.rerun import rerun
from carbonreport.render.words import clock_name, listed
from carbonreport.site import Site
from carbonreport.workflows.charge import Charged, charge_records, load_records
from carbonreport.workflows.facts import facts_for
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.rerun import clock_of, largest, rerun_advice, rerun_pictures

MADE_BY = f"carbonreport {__version__}"
_MOST_NAMES = 20  # rows of a table that fits on a page
_HEAD = 400  # bytes of a line that are looked at
_MARK = "written by carbonreport"
# Zones that say no place: of a run of which nobody knows where it was, and of a file of intensities that names none.
_UNSTATED = "not stated"
_NOWHERE = {WORLD_ZONE: "the world’s average grid", _UNSTATED: "its grid"}
_JSON_MARK = '"written_by": "carbonreport'
_PDF_MARK = b"<xmp:CreatorTool>carbonreport "


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


_AS_RECORDED = Telling()


def statement(
    records: str | Path | Sequence[str | Path],
    outputs: str | Path | Sequence[str | Path],
    *,
    zone: str | None = None,
    pue: float | str | None = None,
    grid: str | None = None,
    site: str | Path | None = None,
    style: str = "plain",
    bib: str | Path | None = None,
    force: bool = False,
    facts: str | Path | None = None,
    anonymous: bool = False,
) -> list[Path]:
    """Write the energy statement of records: the suffix of each output says its format (.tex, .md, .html, .pdf, .json, .yaml).

    Args:
        records: Record files, or one.
        outputs: Files to write, or one.
        zone: Grid zone of all runs.
        pue: PUE of all runs: a number, a range or a class.
        grid: "embedded" or a CSV file of intensities.
        site: Site file.
        style: A built-in style, or a folder of one's own such as "./mine".
        bib: File for the references, which are cited then.
        force: Whether files that carbonreport did not write are replaced.
        facts: TOML file of what no record knows, over [facts] of the site file.
        anonymous: Whether names, places and dates are taken out for a blind review.

    Raises:
        CarbonreportError: A record, the place or an output cannot be used; then nothing was written.
    """
    options = PlaceOptions(zone=zone, pue=None if pue is None else str(pue), grid=grid, site=None if site is None else str(site))
    charged = charge_records(load_records(_several(records), options), options)
    telling = Telling(facts_for(charged, facts), anonymous, asked(options, style, facts))
    references = None if bib is None else Path(bib)
    return write_statement(charged, [Path(o) for o in _several(outputs)], style=style, bib=references, force=force, telling=telling)


def _several(paths: str | Path | Sequence[str | Path]) -> Sequence[str | Path]:
    """One path or many as many: a text is one path, not a list of letters."""
    return [paths] if isinstance(paths, str | Path) else paths


def asked(options: PlaceOptions, style: str, facts: str | Path | None) -> tuple[tuple[str, str], ...]:
    """The options that change a statement, as texts; those that nobody gave are absent."""
    given = (
        ("zone", options.zone),
        ("pue", options.pue),
        ("grid", options.grid),
        ("site", options.site),
        ("style", style),
        ("facts", facts),
    )
    return tuple((name, str(text)) for name, text in given if text is not None)


def write_statement(
    charged: Charged, outputs: Sequence[Path], *, style: str, bib: Path | None, force: bool, telling: Telling = _AS_RECORDED
) -> list[Path]:
    """Render first, write last: a failure leaves nothing half done. Raises as `statement` does.

    The one exception is a format whose packages or libraries are missing: the other files are written, then it raises.
    """
    style_folder(style)  # a wrong name is refused for formats without a style too
    words, footprint = _told(charged, telling)
    formats = {path: load_plugin("format", _format_of(path)) for path in outputs}
    missing = _take_out_missing(formats)
    pictures = _pictures(charged, words) if any(_wants_pictures(form) for form in formats.values()) else None
    texts: dict[Path, str | bytes] = {}
    for path, form in formats.items():
        drawn = {"pictures": pictures} if _wants_pictures(form) else {}
        texts[path] = form.render(words, footprint, style, has_bib=bib is not None, **drawn)
    if bib is not None:
        if bib.suffix.lower() != ".bib":
            raise OutputError(f"the references cannot be written to {bib}: BibTeX wants the suffix .bib")
        texts[bib] = f"% {_MARK} {__version__}\n\n{bibliography(words.works)}"
    for path in texts:
        _refuse_foreign(path, force)
    _write_all(texts)
    if missing is not None:
        raise missing
    return list(texts)


def statement_text(charged: Charged, format_name: str, *, style: str, telling: Telling = _AS_RECORDED, has_bib: bool = False) -> str:
    """The statement as text, nothing written."""
    form = load_plugin("format", format_name)
    words, footprint = _told(charged, telling)
    drawn = {"pictures": _pictures(charged, words)} if _wants_pictures(form) else {}
    return str(form.render(words, footprint, style, has_bib=has_bib, **drawn))


def statement_of(charged: Charged, telling: Telling = _AS_RECORDED) -> Statement:
    """The words of a charged set of runs."""
    return _told(charged, telling)[0]


def _told(charged: Charged, telling: Telling) -> tuple[Statement, Footprint]:
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


def _take_out_missing(formats: dict[Path, Any]) -> CarbonreportError | None:
    """Take out the formats that lack something of this machine, and return the first one's error."""
    first = None
    for path, form in list(formats.items()):
        try:
            getattr(form, "require", _nothing)()
        except CarbonreportError as error:
            first = first or error
            del formats[path]
    return first


def _nothing() -> None:
    """What most formats require."""


def _wants_pictures(form: Any) -> bool:
    return getattr(form, "wants_pictures", False)


def _pictures(charged: Charged, words: Statement) -> list[Picture] | None:
    """Pictures of the counted runs; None where matplotlib is missing, and none for a blind review, since they show names and dates."""
    if words.is_anonymous:
        return []
    drawn = draw(pictures_of(charged.footprint, charged.counted))
    return None if drawn is None else [*rerun_pictures(charged.runs, charged.places), *drawn]


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


def _format_of(path: Path) -> str:
    name = path.suffix.removeprefix(".").lower()
    known = names("format")
    if name not in known:
        raise OutputError(f"cannot tell the format of {path}: its suffix must be one of {', '.join('.' + n for n in known)}")
    return name


def _refuse_foreign(path: Path, force: bool) -> None:
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give a file name such as {path / 'energy.tex'}")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is not a regular file; give a file name such as energy.tex")
    if not force and path.is_file() and not _is_ours(path):
        raise OutputError(f"{path} was not written by carbonreport; choose another name, or --force to replace it")


def _is_ours(path: Path) -> bool:
    """Whether a file is empty or says in its first two lines, a PDF in its metadata, that carbonreport wrote it."""
    try:
        if path.suffix.lower() == ".pdf":
            content = path.read_bytes()
            return not content.strip() or (content.startswith(b"%PDF-") and _PDF_MARK in content)
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline(_HEAD) + file.readline(_HEAD)
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    return not head.strip() or any(line.lstrip("% #<!-").startswith((_MARK, _JSON_MARK)) for line in head.splitlines())


def _write_all(texts: Mapping[Path, str | bytes]) -> None:
    """Write every file beside its target, and move them into place when all of them are there."""
    beside = {path: path.resolve().with_name(f".{path.name}.{os.getpid()}") for path in texts}
    path = next(iter(texts), Path())
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside[path].write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        for path in texts:
            beside[path].replace(path.resolve())
    except OSError as error:
        for left in beside.values():
            with suppress(OSError):
                left.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
