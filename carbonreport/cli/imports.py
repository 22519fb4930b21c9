"""`carbonreport import FILE…`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
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
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the runs as records into this folder too.")
def command(
    files: tuple[Path, ...],
    as_json: bool,
    time_zone: str | None,
    format_name: str | None,
    mapping: tuple[str, ...],
    start: str | None,
    out: Path | None,
) -> None:
    """Read energy logs of other tools: carbonreport import emissions.csv --time-zone Europe/Berlin.

    Each energy is IT energy: a PUE that a tool put in is taken out. What cannot be used is listed with its line and reason.
    """
    from carbonreport.errors import RecordError
    from carbonreport.workflows.imports import Asked, import_file, mapping_of, save_runs

    options = mapping_of(mapping) | ({"time_zone": time_zone} if time_zone else {})
    reasons = []
    has_energy = False
    for path in files:
        try:
            found = import_file(path, Asked(format_name, options, start))
        except RecordError as error:
            reasons.append(str(error))
            if as_json and len(files) > 1:
                click.echo(_dumps(_unreadable(path, str(error))), nl=False)
            continue
        has_energy = has_energy or found.it_joules is not None
        if found.why_not is not None:
            reasons.append(f"{path}, a log of {found.format}: {found.why_not}")
        if as_json:
            click.echo(_dumps(_object(path, found)), nl=False)
        else:
            _print(path, found)
        if out is not None:
            for record in save_runs(found, out):
                click.echo(f"wrote {record}", err=True)
            if found.undated:
                way_out = "--time-zone" if found.is_local else "--start"
                click.echo(f"carbonreport: {path}: {len(found.undated)} runs without a date were not written; give {way_out}", err=True)
    if not has_energy:
        raise RecordError(reasons[0] if len(reasons) == 1 else f"no energy in any of {len(files)} files; {reasons[0]}")
    if not as_json:
        for reason in reasons:
            click.echo(f"carbonreport: {reason}", err=True)


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
    click.echo(f"{path}: {found.format}, {energy}, {runs} run{'s' * (runs != 1)}, {found.rows} rows, {len(found.rejected)} not used")
    for note in found.notes:
        click.echo(f"  {note.slug}: {note.text}")
    for line, why in found.rejected[:_MOST_LINES]:
        click.echo(f"  line {line}: {why}")
    if len(found.rejected) > _MOST_LINES:
        click.echo(f"  … and {len(found.rejected) - _MOST_LINES} more; --json lists them")
