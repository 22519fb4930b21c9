"""Charged records to files: composes words, renders each format, and never overwrites what it did not write."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from carbonreport import __version__
from carbonreport.errors import OutputError
from carbonreport.grid.zones import WORLD_ZONE, name_of_zone
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.run import RUN_KINDS, RunKind
from carbonreport.model.statement import Statement
from carbonreport.plugins import load as load_plugin
from carbonreport.plugins import names
from carbonreport.render.compose import Group, Setting, compose
from carbonreport.render.formats.tex import bibliography
from carbonreport.render.words import listed
from carbonreport.workflows.charge import Charged, charge_records, load_records
from carbonreport.workflows.place import PlaceOptions

MADE_BY = f"carbonreport {__version__}"
_MOST_NAMES = 20  # rows of a table that fits on a page
_HEAD = 400  # bytes of a line that are looked at
_MARK = "written by carbonreport"
# Zones that say no place: of a run of which nobody knows where it was, and of a file of intensities that names none.
_NOWHERE = {WORLD_ZONE: "the world’s average grid", "not stated": "its grid"}
_JSON_MARK = '"written_by": "carbonreport'


def statement(
    records: Sequence[str | Path],
    outputs: Sequence[str | Path],
    *,
    zone: str | None = None,
    pue: float | str | None = None,
    grid: str | None = None,
    site: str | Path | None = None,
    style: str = "plain",
    bib: str | Path | None = None,
    force: bool = False,
) -> list[Path]:
    """Write the energy statement of records: the suffix of each output says its format (.tex, .md, .json).

    Raises:
        CarbonreportError: A record, the place or an output cannot be used; then nothing was written.
    """
    options = PlaceOptions(zone=zone, pue=None if pue is None else str(pue), grid=grid, site=None if site is None else str(site))
    charged = charge_records(load_records(records), options)
    return write_statement(charged, [Path(o) for o in outputs], style=style, bib=None if bib is None else Path(bib), force=force)


def write_statement(charged: Charged, outputs: Sequence[Path], *, style: str, bib: Path | None, force: bool) -> list[Path]:
    """Render first, write last: a failure leaves nothing half done. Raises as `statement` does."""
    words = statement_of(charged)
    formats = {path: load_plugin("format", _format_of(path)) for path in outputs}
    texts = {path: str(form.render(words, charged.footprint, style, has_bib=bib is not None)) for path, form in formats.items()}
    if bib is not None:
        if bib.suffix.lower() != ".bib":
            raise OutputError(f"the references cannot be written to {bib}: BibTeX wants the suffix .bib")
        texts[bib] = f"% {_MARK} {__version__}\n\n{bibliography(words.works)}"
    for path in texts:
        _refuse_foreign(path, force)
    _write_all(texts)
    return list(texts)


def statement_text(charged: Charged, format_name: str, *, style: str) -> str:
    """The statement as text, nothing written."""
    form = load_plugin("format", format_name)
    return str(form.render(statement_of(charged), charged.footprint, style, has_bib=False))


def statement_of(charged: Charged) -> Statement:
    """The words of a charged set of runs."""
    return compose(charged.footprint, charged.counted, _groups(charged), _setting(charged))


def _setting(charged: Charged) -> Setting:
    zones = [grid.zone for grid in charged.footprint.grids]
    sites = list(dict.fromkeys(place.site for place in charged.places if place.site))
    return Setting(
        zone_names={zone: name_of_zone(zone) or zone for zone in zones if zone not in _NOWHERE},
        nowhere=_NOWHERE,
        time_zone=charged.places[0].time_zone,
        site=listed(sites) or None,
        made_by=MADE_BY,
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
    """Whether a file is empty or says in its first two lines that carbonreport wrote it."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.readline(_HEAD) + file.readline(_HEAD)
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    return not head.strip() or any(line.lstrip("% <!-").startswith((_MARK, _JSON_MARK)) for line in head.splitlines())


def _write_all(texts: Mapping[Path, str]) -> None:
    """Write every file beside its target, and move them into place when all of them are there."""
    beside = {path: path.resolve().with_name(f".{path.name}.{os.getpid()}") for path in texts}
    path = next(iter(texts), Path())
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            beside[path].write_text(text, encoding="utf-8")
        for path in texts:
            beside[path].replace(path.resolve())
    except OSError as error:
        for left in beside.values():
            with suppress(OSError):
                left.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
