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
    help="Where to write it: .tex, .md, .html, .pdf, .json, or .yaml for a model card; may be given several times. Markdown on standard output by default.",
)
@click.option("--style", default="plain", show_default=True, metavar="NAME|./FOLDER", help="Words and layout: see carbonreport styles.")
@click.option("--bib", metavar="FILE.bib", type=click.Path(path_type=Path), help="Write the references too, and cite them.")
@click.option(
    "--facts", metavar="FILE.toml", help="What no record knows: parameters, memory_gb, functional_unit, …; over [facts] of the site file."
)
@click.option("--anonymous", is_flag=True, help="For a double-blind review: no site, host, file or date, and the country alone.")
@click.option("--force", is_flag=True, help="Replace files that carbonreport did not write.")
@place_options()
def command(
    records: tuple[str, ...],
    outputs: tuple[Path, ...],
    style: str,
    bib: Path | None,
    facts: str | None,
    anonymous: bool,
    force: bool,
    place: PlaceOptions,
) -> None:
    """Write the energy statement of records: carbonreport statement runs/*.jsonl -o energy.tex."""
    from carbonreport.workflows.charge import charge_records, load_records, overruled
    from carbonreport.workflows.facts import facts_for
    from carbonreport.workflows.statement import asked, statement_text, write_statement
    from carbonreport.workflows.statement_words import Telling

    charged = charge_records(load_records(records, place), place)
    for line in overruled(charged, place):
        click.echo(f"carbonreport: {line}", err=True)
    telling = Telling(facts_for(charged, facts), anonymous, asked(place, style, facts))
    if not outputs and bib is None:
        click.echo(statement_text(charged, "md", style=style, telling=telling), nl=False)
        return
    for path in write_statement(charged, outputs, style=style, bib=bib, force=force, telling=telling):
        click.echo(f"wrote {path}", err=True)
