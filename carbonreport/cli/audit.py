"""`carbonreport audit`."""

from pathlib import Path

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("audit")
@click.argument("records", nargs=-1, metavar="[RECORD…]")
@click.option(
    "--year",
    type=click.IntRange(1990, 2200),  # FIRST_YEAR and LAST_YEAR of audit/window.py
    required=True,
    metavar="Y",
    help="Which year, in the site's time zone; one in progress goes up to now.",
)
@click.option(
    "--ledger", metavar="URL", help="Folder or URL of the ledger, which keeps what is read; without one it is thrown away afterwards."
)
@click.option(
    "--sacct",
    "sacct",
    multiple=True,
    metavar="FILE|live",
    help="Jobs: a file of sacct (examples/slurm/pull.sh), or live to ask Slurm here.",
)
@click.option(
    "--meters",
    "meters",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Power or energy samples: CSV or Parquet with device, time, watts or counter.",
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The lab's own sweeps of power caps, as carbonreport sweep writes them.",
)
@click.option(
    "--people",
    type=click.Choice(["names", "pseudonyms", "none"]),
    default="pseudonyms",
    show_default=True,
    help="How people are written, in the ledger and in the report.",
)
@click.option(
    "--salt",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Salt of the pseudonyms; beside a local ledger by default, made where there is none.",
)
@click.option("--time-zone", metavar="Z", help="Time zone of local times in the files, such as Europe/Berlin.")
@click.option("--gpu", default="", metavar="BOARD", help="Board of jobs whose GPU type sacct does not say, such as H200-SXM.")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write it: .html, .pdf, .csv or .json; may be given several times.",
)
@click.option("--force", is_flag=True, help="Replace files that carbonreport did not write.")
@place_options()
def command(
    records: tuple[str, ...],
    year: int,
    ledger: str | None,
    sacct: tuple[str, ...],
    meters: tuple[Path, ...],
    sweeps: tuple[Path, ...],
    people: str,
    salt: Path | None,
    time_zone: str | None,
    gpu: str,
    outputs: tuple[Path, ...],
    force: bool,
    place: PlaceOptions,
) -> None:
    """Audit a lab's year: carbonreport audit --year 2026 --sacct jobs.txt --meters dcgm.parquet --zone DE -o audit.html.

    By month, project, person and GPU model; measured, estimated and idle energy; both scope 2 figures; what to do first.
    """
    from carbonreport.errors import CarbonreportError
    from carbonreport.workflows.audit import Asked, audit
    from carbonreport.workflows.audit_report import check_outputs, summary, write_audit

    if not (ledger or sacct or meters or records):
        raise CarbonreportError("nothing to audit: give --ledger, --sacct, --meters or records")
    check_outputs(outputs, force=force)
    mode = next(word for word in ("names", "pseudonyms", "none") if word == people)
    audited = audit(Asked(year, ledger, sacct, meters, records, mode, salt, time_zone, sweeps, gpu), place)
    click.echo(summary(audited), nl=False)
    for path in write_audit(audited, outputs, force=force):
        click.echo(f"wrote {path}", err=True)
