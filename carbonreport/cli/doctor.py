"""`carbonreport doctor [--json]`."""

from dataclasses import asdict

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="The same as JSON.")
@click.option(
    "--calibrate", is_flag=True, help="Load each NVIDIA GPU for 20 s through PyTorch and find how its power samples follow its power."
)
@place_options(with_grid=False)
def command(as_json: bool, calibrate: bool, place: PlaceOptions) -> None:
    """Say what this machine can measure, why not more, and the command that would help."""
    if calibrate:
        _calibrate()
        return
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


def _calibrate() -> None:
    from carbonreport.workflows.calibrate import calibrate, this_machine

    is_poor = False
    for found in calibrate(this_machine(), say=click.echo):
        sensor, fit = found.fit.sensor, found.fit
        click.echo(
            f"    {sensor.kernel}, {'time constant' if sensor.kernel == 'low-pass' else 'window'} {sensor.width_s * 1000:.1f} ms, "
            f"delay {sensor.delay_s * 1000:.1f} ms, a sample every {sensor.period_s * 1000:.0f} ms; "
            f"leaves {fit.residual_watts:.1f} W of a swing of {fit.swing_watts:.0f} W"
        )
        if found.kept is None:
            is_poor = True
            click.echo("    not kept: this does not explain the load; is anything else running on the board?", err=True)
        else:
            click.echo(f"    kept in {found.kept}")
    if is_poor:
        raise SystemExit(1)
