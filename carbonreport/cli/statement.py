"""`carbonreport statement RECORD… -o FILE`."""

from pathlib import Path

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("statement")
@click.argument("records", nargs=-1, required=True, metavar="RECORD…")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write it: .tex, .md or .json; may be given several times. Markdown on standard output by default.",
)
@click.option("--style", default="plain", show_default=True, help="Words and layout.")
@click.option("--bib", metavar="FILE.bib", type=click.Path(path_type=Path), help="Write the references too, and cite them.")
@click.option("--force", is_flag=True, help="Replace files that carbonreport did not write.")
@place_options()
def command(records: tuple[str, ...], outputs: tuple[Path, ...], style: str, bib: Path | None, force: bool, place: PlaceOptions) -> None:
    """Write the energy statement of records: carbonreport statement runs/*.jsonl -o energy.tex."""
    from carbonreport.workflows.charge import charge_records, load_records
    from carbonreport.workflows.statement import statement_text, write_statement

    charged = charge_records(load_records(records), place)
    if not outputs and bib is None:
        click.echo(statement_text(charged, "md", style=style), nl=False)
        return
    for path in write_statement(charged, outputs, style=style, bib=bib, force=force):
        click.echo(f"wrote {path}", err=True)
