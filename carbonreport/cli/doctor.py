"""`carbonreport doctor [--json]`."""

from dataclasses import asdict

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@place_options(with_grid=False)
def command(as_json: bool, place: PlaceOptions) -> None:
    """Say what this machine can measure, why not more, and the command that would help."""
    from carbonreport.workflows.doctor import diagnose

    diagnosis = diagnose(place)
    if as_json:
        from carbonreport.render.formats.json import dumps

        click.echo(dumps(asdict(diagnosis)), nl=False)
        return
    for finding in diagnosis.findings:
        click.echo(f"{finding.subject}: {finding.state}: {finding.text}")
        if finding.remedy:
            click.echo(f"    better with: {finding.remedy}")
    click.echo("The next statement will not be able to say:")
    for line in diagnosis.cannot_say:
        click.echo(f"    {line}")
