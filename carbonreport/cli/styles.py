"""`carbonreport styles`."""

import click


@click.command("styles")
def command() -> None:
    """List the styles of a statement, with the suffixes that each has."""
    from rich.table import Table
    from rich.text import Text

    from carbonreport.cli.tables import Terminal
    from carbonreport.render.engine import about, style_folder, styles, writes

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("style", "suffixes", "what it is for"):
        table.add_column(column, overflow="fold")
    for name in styles():
        folder = style_folder(name)
        table.add_row(name, " ".join(writes(folder)), Text(about(folder)))
    Terminal().print(table)
