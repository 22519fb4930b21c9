"""Charged records to files: composes words, renders each format, and never overwrites what it did not write."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carbonreport import __version__
from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.model.statement import Statement
from carbonreport.plugins import load as load_plugin
from carbonreport.render.engine import style_folder
from carbonreport.render.formats.tex import bibliography
from carbonreport.render.pictures import Picture, pictures_of
from carbonreport.render.plots import draw
from carbonreport.workflows.charge import Charged, charge_records, load_records
from carbonreport.workflows.facts import facts_for
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.rerun import rerun_pictures
from carbonreport.workflows.statement_files import MARK, format_of, refuse_foreign, write_all
from carbonreport.workflows.statement_words import AS_RECORDED, Telling, told


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
    charged: Charged, outputs: Sequence[Path], *, style: str, bib: Path | None, force: bool, telling: Telling = AS_RECORDED
) -> list[Path]:
    """Render first, write last: a failure leaves nothing half done. Raises as `statement` does.

    The one exception is a format whose packages or libraries are missing: the other files are written, then it raises.
    """
    style_folder(style)  # a wrong name is refused for formats without a style too
    words, footprint = told(charged, telling)
    formats = {path: load_plugin("format", format_of(path, style)) for path in outputs}
    missing = _take_out_missing(formats)
    pictures = _pictures(charged, words) if any(_wants_pictures(form) for form in formats.values()) else None
    texts: dict[Path, str | bytes] = {}
    for path, form in formats.items():
        drawn = {"pictures": pictures} if _wants_pictures(form) else {}
        texts[path] = form.render(words, footprint, style, has_bib=bib is not None, **drawn)
    if bib is not None:
        if bib.suffix.lower() != ".bib":
            raise OutputError(f"the references cannot be written to {bib}: BibTeX wants the suffix .bib")
        texts[bib] = f"% {MARK} {__version__}\n\n{bibliography(words.works)}"
    for path in texts:
        refuse_foreign(path, force)
    write_all(texts)
    if missing is not None:
        raise missing
    return list(texts)


def statement_text(charged: Charged, format_name: str, *, style: str, telling: Telling = AS_RECORDED, has_bib: bool = False) -> str:
    """The statement as text, nothing written."""
    form = load_plugin("format", format_name)
    words, footprint = told(charged, telling)
    drawn = {"pictures": _pictures(charged, words)} if _wants_pictures(form) else {}
    return str(form.render(words, footprint, style, has_bib=has_bib, **drawn))


def statement_of(charged: Charged, telling: Telling = AS_RECORDED) -> Statement:
    """The words of a charged set of runs."""
    return told(charged, telling)[0]


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
