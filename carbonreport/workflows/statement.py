"""Charged records to files: composes words, renders each format, and never overwrites what it did not write."""

import os
from collections.abc import Sequence
from pathlib import Path

from carbonreport import __version__
from carbonreport.errors import OutputError
from carbonreport.grid.zones import name_of_zone
from carbonreport.model.run import RunKind
from carbonreport.model.statement import Statement
from carbonreport.plugins import load as load_plugin
from carbonreport.plugins import names
from carbonreport.render.compose import Group, Setting, compose
from carbonreport.render.formats.tex import bibliography
from carbonreport.workflows.charge import Charged, charge_records, load_records
from carbonreport.workflows.place import PlaceOptions

MADE_BY = f"carbonreport {__version__}"
_MARK = "written by carbonreport"
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
    texts = {path: form.render(words, charged.footprint, style, has_bib=bib is not None) for path, form in formats.items()}
    if bib is not None:
        texts[bib] = f"% {_MARK} {__version__}\n\n{bibliography(words.works)}"
    for path in texts:
        _refuse_foreign(path, force)
    for path, text in texts.items():
        _write(path, text)
    return list(texts)


def statement_text(charged: Charged, format_name: str, *, style: str) -> str:
    """The statement as text, nothing written."""
    form = load_plugin("format", format_name)
    return str(form.render(statement_of(charged), charged.footprint, style, has_bib=False))


def statement_of(charged: Charged) -> Statement:
    """The words of a charged set of runs."""
    setting = Setting(
        zone_names={grid.zone: name_of_zone(grid.zone) or grid.zone for grid in charged.footprint.grids},
        time_zone=charged.places[0].time_zone,
        site=next((place.site for place in charged.places if place.site), None),
        made_by=MADE_BY,
    )
    return compose(charged.footprint, charged.counted, _groups(charged), setting)


def _groups(charged: Charged) -> list[Group]:
    """Runs by name and kind, in the order of their first appearance."""
    by_name: dict[tuple[str, RunKind], list[int]] = {}
    for i, c in enumerate(charged.counted):
        by_name.setdefault((c.run.name, c.run.kind), []).append(i)
    groups = []
    for (name, kind), members in by_name.items():
        runs = tuple(charged.counted[i] for i in members)
        with_inner = [*runs, *charged.inner_of(runs)]
        groups.append(Group(name, kind, runs, charged.footprint_of(with_inner)))
    return groups


def _format_of(path: Path) -> str:
    name = path.suffix.removeprefix(".").lower()
    known = names("format")
    if name not in known:
        raise OutputError(f"cannot tell the format of {path}: its suffix must be one of {', '.join('.' + n for n in known)}")
    return name


def _refuse_foreign(path: Path, force: bool) -> None:
    if path.is_dir():
        raise OutputError(f"{path} is a folder; give a file name such as {path / 'energy.tex'}")
    if force or not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        head = file.read(400)
    if head.strip() and _MARK not in head and _JSON_MARK not in head:
        raise OutputError(f"{path} was not written by carbonreport; choose another name, or --force to replace it")


def _write(path: Path, text: str) -> None:
    """Write beside the target and move into place."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
