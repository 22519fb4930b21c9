"""`carbonreport show RECORD…`."""

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("show")
@click.argument("records", nargs=-1, required=True, metavar="RECORD…")
@click.option("--json", "as_json", is_flag=True, help="All numbers as JSON.")
@click.option("--exclusive", is_flag=True, help="Spans without those nested in them.")
@place_options()
def command(records: tuple[str, ...], as_json: bool, exclusive: bool, place: PlaceOptions) -> None:
    """Show energy and emissions of records, together and by device, span and note."""
    from carbonreport.workflows.charge import charge_records, load_records, overruled

    charged = charge_records(load_records(records, place), place)
    for line in overruled(charged, place):
        click.echo(f"carbonreport: {line}", err=True)
    if as_json:
        from carbonreport.render.formats.json import dumps, footprint_object

        click.echo(dumps(footprint_object(charged.footprint)), nl=False)
        return
    from carbonreport.cli.tables import print_footprint

    print_footprint(charged.footprint, charged.counted, is_exclusive=exclusive)
