"""An audited year as files: page, paper, table, object."""

from collections.abc import Sequence
from pathlib import Path

from carbonreport import __version__
from carbonreport.errors import OutputError
from carbonreport.grid.zones import WORLD_ZONE, name_of_zone
from carbonreport.render.audit import compose
from carbonreport.render.audit_data import as_csv, as_json
from carbonreport.render.audit_facts import AuditFacts, Line
from carbonreport.render.audit_made import unused_notes
from carbonreport.render.audit_page import as_html, as_pdf
from carbonreport.render.formats.pdf import Pdf
from carbonreport.render.plots_audit import draw_audit
from carbonreport.units import US_PER_S
from carbonreport.workflows.audit import Audited

FORMATS = (".html", ".pdf", ".csv", ".json")
_MADE_BY = f"carbonreport {__version__}"


def facts_of(audited: Audited) -> AuditFacts:
    """Everything that a report is made of."""
    grid = audited.footprint.grids[0]
    return AuditFacts(
        year=audited.window.year,
        time_zone=audited.window.time_zone,
        until_s=audited.window.until_us / US_PER_S,
        in_progress=audited.window.in_progress,
        place="" if audited.zone == WORLD_ZONE else name_of_zone(audited.zone) or audited.zone,
        site=audited.site.name,
        family=str(grid.family),
        gas=audited.priced.location_grams.unit,
        is_direct=grid.family.factor == "direct",
        priced=audited.priced,
        before=audited.before,
        months_before=audited.months_before,
        contract=audited.site.contract,
        per_kwh=None if audited.price is None else (audited.price.per_kwh, audited.price.currency),
        advice=audited.advice,
        weekday_hours=audited.weekday_hours,
        files=tuple((name, taken.rows, taken.not_used, taken.noted) for name, taken in audited.taken),
        repeated=audited.repeated,
        people=audited.people,
        notes=(
            *((note.slug, note.text) for note in audited.footprint.notes),
            *unused_notes(audited.priced, audited.window.year),
        ),
        made_by=_MADE_BY,
    )


def check_outputs(paths: Sequence[Path], *, force: bool) -> None:
    """Refuse what cannot be written before anything is read.

    Raises:
        OutputError: An unknown suffix, a folder, a file of somebody else, or a PDF that cannot be made here.
        MissingExtra: A PDF's packages are not installed.
    """
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise OutputError(f"cannot tell the format of {path}: its suffix must be one of {', '.join(FORMATS)}")
        if path.is_dir():
            raise OutputError(f"{path} is a folder; give a file name such as {path / 'audit.html'}")
        if path.exists() and not force and not _is_ours(path):
            raise OutputError(f"{path} was not written by carbonreport; choose another name, or --force to replace it")
    if any(path.suffix.lower() == ".pdf" for path in paths):
        Pdf().require()


def _is_ours(path: Path) -> bool:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise OutputError(f"cannot read {path}: {error.strerror or error}") from error
    return not content.strip() or b"carbonreport" in content[:400] or (content.startswith(b"%PDF-") and b"carbonreport" in content)


def write_audit(audited: Audited, paths: Sequence[Path], *, force: bool = False) -> list[Path]:
    """Write the report in the formats that the suffixes name, each file whole or not at all.

    Raises:
        OutputError: A file cannot be written.
        MissingExtra: A format's packages are not installed.
    """
    check_outputs(paths, force=force)
    facts = facts_of(audited)
    report = compose(facts)
    pictures = draw_audit(facts) if any(path.suffix.lower() in (".html", ".pdf") for path in paths) else None
    texts: dict[Path, bytes] = {}
    for path in paths:
        match path.suffix.lower():
            case ".html":
                texts[path] = as_html(report, pictures).encode()
            case ".pdf":
                texts[path] = as_pdf(report, pictures)
            case ".csv":
                texts[path] = as_csv(facts).encode()
            case _:
                texts[path] = as_json(facts).encode()
    for path, content in texts.items():
        beside = path.with_name(f".{path.name}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(content)
            beside.replace(path)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    return list(texts)


def summary(audited: Audited) -> str:
    """The report in a screen of text."""
    report = compose(facts_of(audited))
    width = max(len(_label(line)) for line in report.lines)
    lines = [report.title, report.period, "", *report.lead, ""]
    for line in report.lines:
        interval = f" [{line.interval.replace('–', ', ')}]" if line.interval else ""
        known = ", ".join([*([line.known] if line.known else []), *([f"last year {line.before}"] if line.before else [])])
        lines.append(f"{_label(line):<{width}}  {line.value}{interval}{f' ({known})' if known else ''}")
    lines += ["", *report.under_lines] if report.under_lines else []
    lines += ["", "Do this first:"]
    lines += [f"  {task.title}: {task.size}\n    {task.because}" for task in report.tasks] or [f"  {report.no_tasks}"]
    if report.findings:
        lines += ["", "Found in the ledgers:", *(f"  {finding}" for finding in report.findings)]
    return "\n".join(lines) + "\n"


def _label(line: Line) -> str:
    """A part stands a little to the right of what it is a part of."""
    return f"  {line.label}" if line.is_part else line.label
