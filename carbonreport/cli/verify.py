"""`carbonreport verify FILE RECORD…`."""

from pathlib import Path

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("verify")
@click.argument("statement", metavar="FILE", type=click.Path(path_type=Path))
@click.argument("records", nargs=-1, required=True, metavar="RECORD…")
@click.option(
    "--style", metavar="NAME|./FOLDER", help="The statement's style, where the file does not say it itself: a folder of your own."
)
@click.option("--facts", metavar="FILE.toml", help="The facts it was made with, where no JSON beside it names them.")
@click.option("--anonymous", is_flag=True, help="It was written for a blind review, where the file does not say so itself.")
@place_options()
def command(statement: Path, records: tuple[str, ...], style: str | None, facts: str | None, anonymous: bool, place: PlaceOptions) -> int:
    """Recompute a statement from its records and name every line that differs: carbonreport verify energy.tex runs/*.jsonl.

    The options are taken from the call, else from the JSON written beside it (statement -o energy.tex -o energy.json).
    """
    from carbonreport.workflows.verify import Asked, verify

    differences = verify(statement, records, Asked(place, style, facts, anonymous))
    for line in differences:
        click.echo(line)
    if differences:
        return 1
    click.echo(f"{statement}: every figure agrees with {len(records)} record{'s' if len(records) > 1 else ''}")
    return 0
