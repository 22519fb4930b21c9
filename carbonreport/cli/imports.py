"""`carbonreport import FILE…`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from carbonreport.audit.people import People
    from carbonreport.importers.imported import Imported

_MOST_LINES = 5


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object a file, one a line.")
@click.option("--time-zone", metavar="Z", help="Time zone of local times, such as Europe/Berlin.")
@click.option("--format", "format_name", metavar="F", help="Name of the format; by the content by default.")
@click.option(
    "--mapping",
    multiple=True,
    metavar="KEY=VALUE",
    help="What the file does not say: time, power, energy, device or duration=COLUMN, columns=NAME,…, unit=mW, period_s=1, date_order=dmy|mdy, "
    "energy_is=counter|interval, pue=1.58; may be given several times.",
)
@click.option("--start", metavar="T", help="When runs without a date began: 2026-01-14T18:20+01:00.")
@click.option("--ledger", metavar="URL", help="Keep the runs, or sacct's jobs, in this ledger too: a folder, or a URL that fsspec knows.")
@click.option(
    "--people",
    type=click.Choice(["pseudonyms", "names", "none"]),
    default="pseudonyms",
    show_default=True,
    help="How the ledger names people.",
)
@click.option("--salt", metavar="FILE", type=click.Path(path_type=Path), help="Salt of the pseudonyms; beside a local ledger by default.")
@click.option("--project", metavar="NAME", default="", help="Project of runs whose log does not say one.")
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the runs as records into this folder too.")
def command(
    files: tuple[Path, ...],
    as_json: bool,
    time_zone: str | None,
    format_name: str | None,
    mapping: tuple[str, ...],
    start: str | None,
    ledger: str | None,
    people: "People",
    salt: Path | None,
    project: str,
    out: Path | None,
) -> None:
    """Read energy logs of other tools: carbonreport import emissions.csv --time-zone Europe/Berlin.

    Each energy is IT energy: a PUE that a tool put in is taken out. What cannot be used is listed with its line and reason.
    """
    from carbonreport.errors import RecordError
    from carbonreport.importers.imported import kind_in_words
    from carbonreport.workflows.imports import Asked, import_file, mapping_of, save_runs

    options = mapping_of(mapping) | ({"time_zone": time_zone} if time_zone else {})
    unread, without = [], []  # what could not be read, and what holds no energy: the reasons
    has_use = False
    keep = _keeper(ledger, people, salt, time_zone, project)
    for path in files:
        try:
            found = import_file(path, Asked(format_name, options, start))
        except RecordError as error:
            unread.append(str(error))
            if as_json and len(files) > 1:
                click.echo(_dumps(_unreadable(path, str(error))), nl=False)
            continue
        has_use = has_use or found.it_joules is not None
        if found.why_not is not None:
            without.append(f"{path}, {kind_in_words(found.format)}: {found.why_not}")
        if as_json:
            click.echo(_dumps(_object(path, found)), nl=False)
        else:
            _print(path, found)
        has_use = keep(path, found) > 0 or has_use
        if out is not None:
            for record in save_runs(found, out):
                click.echo(f"wrote {record}", err=True)
            if found.undated:
                way_out = "--time-zone" if found.is_local else "--start"
                click.echo(f"carbonreport: {path}: {len(found.undated)} runs without a date were not written; give {way_out}", err=True)
    _refuse(unread, without, of=len(files), has_use=has_use, is_told=as_json)


def _keeper(
    ledger: str | None, people: "People", salt: Path | None, time_zone: str | None, project: str
) -> "Callable[[Path, Imported], int]":
    """Keeps what was read of a file in the ledger, says how many rows that are and gives them back; nothing where there is none."""
    if ledger is None:
        return lambda path, found: 0
    from carbonreport.workflows.ledger import Keeping, keep_imported

    keeping = Keeping(ledger, people, salt, time_zone, project)

    def keep(path: Path, found: "Imported") -> int:
        if found.runs or found.format == "slurm":
            taken = keep_imported(found, path, keeping)
            click.echo(f"{path}: {taken.in_words('rows kept in ' + ledger)}", err=True)
            return taken.rows
        if found.undated:
            click.echo(f"carbonreport: {path}: runs without a date were not kept; give --start or --time-zone", err=True)
        return 0

    return keep


def _refuse(unread: list[str], without: list[str], *, of: int, has_use: bool, is_told: bool) -> None:
    """Say each reason once; exit with 1 where a file could not be read, or none has energy and nothing was kept.

    Args:
        unread: Why files could not be read.
        without: Why files have no energy.
        of: How many files there were.
        has_use: Whether any has, or rows of it are in the ledger: GPU-hours count there without it.
        is_told: Whether the reasons are on standard output already.
    """
    from carbonreport.errors import RecordError

    reasons = [*unread, *without]
    fails = bool(unread) or not has_use
    if fails and len(reasons) == 1:
        raise RecordError(reasons[0])
    if not is_told:
        for reason in reasons:
            click.echo(f"carbonreport: {reason}", err=True)
    more = f"; {reasons[0]}" if is_told and reasons else ""
    if unread:
        raise RecordError(f"{len(unread)} of {of} files could not be read{more}")
    if not has_use:
        raise RecordError(f"no energy in any of {of} files{more}")


def _object(path: Path, found: "Imported") -> dict[str, Any]:
    """What --json prints of a file."""
    from carbonreport.units import kwh

    joules = found.it_joules
    return {
        "file": str(path),
        "format": found.format,
        "it_kwh": None if joules is None else kwh(joules),
        "method": found.method,
        "rows": found.rows,
        "rejected": [[line, why] for line, why in found.rejected],
        "notes": [{"slug": note.slug, "text": note.text} for note in found.notes],
        "runs": len(found.runs),
        "undated": len(found.undated),
    }


def _unreadable(path: Path, why: str) -> dict[str, Any]:
    """The same of a file that no importer reads."""
    note = {"slug": "import-no-energy", "text": why}
    return {
        "file": str(path),
        "format": None,
        "it_kwh": None,
        "method": None,
        "rows": 0,
        "rejected": [],
        "notes": [note],
        "runs": 0,
        "undated": 0,
    }


def _dumps(value: dict[str, Any]) -> str:
    import msgspec

    return msgspec.json.encode(value).decode() + "\n"


def _print(path: Path, found: "Imported") -> None:
    """A line for the file, then what must be known of it."""
    from carbonreport.units import kwh

    joules = found.it_joules
    energy = "no energy" if joules is None else f"{kwh(joules):.6g} kWh ({found.method})"
    runs = len(found.runs) + len(found.undated)
    rows = f"{found.rows} row{'s' * (found.rows != 1)}"
    unused = "" if joules is None and not found.rejected else f", {len(found.rejected)} not used"  # without energy none is used
    click.echo(f"{path}: {found.format}, {energy}, {runs} run{'s' * (runs != 1)}, {rows}{unused}")
    for note in found.notes:
        if note.slug != "import-no-energy":  # its reason ends the report, on standard error
            click.echo(f"  {note.slug}: {note.text}")
    rejected = [text for line, why in found.rejected if (text := f"line {line}: {why}") != found.why_not]
    for text in rejected[:_MOST_LINES]:
        click.echo(f"  {text}")
    if len(rejected) > _MOST_LINES:
        click.echo(f"  … and {len(rejected) - _MOST_LINES} more; --json lists them")
