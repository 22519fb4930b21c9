"""`carbonreport refresh RECORD…`."""

from typing import TYPE_CHECKING

import click

from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions

if TYPE_CHECKING:
    from carbonreport.workflows.refresh import Refreshed


@click.command("refresh")
@click.argument("records", nargs=-1, required=True, metavar="RECORD…")
@click.option("--offline", is_flag=True, help="Use only what was fetched before, as CARBONREPORT_OFFLINE=1 does.")
@place_options()
def command(records: tuple[str, ...], offline: bool, place: PlaceOptions) -> int:
    """Fetch the hours of runs that had no network, keep them in X.grid.json beside each record, and say how far the figure moves.

    Where the site file has a PUE model, the weather of those hours is fetched too and kept with them.

    Without --grid Electricity Maps is asked where ELECTRICITYMAPS_API_KEY holds a key, else Energy-Charts where it has the country.
    """
    from carbonreport.errors import CarbonreportError
    from carbonreport.workflows.refresh import refresh

    failed = 0
    for record in records:
        try:
            _tell(refresh(record, place, offline=offline))
        except CarbonreportError as error:
            if len(records) == 1:
                raise
            failed += 1
            click.echo(f"carbonreport: error: {record}: {error}", err=True)
    return 1 if failed else 0


def _tell(done: "Refreshed") -> None:
    """Two lines or more: what was fetched, how far the figure moved, what to look at."""
    from carbonreport.cli.main import one_line
    from carbonreport.render.digits import duration, shown
    from carbonreport.units import SECONDS_PER_HOUR

    parts = ", ".join(f"{duration(length * SECONDS_PER_HOUR)} {quality}" for quality, length in done.hours_by_quality)
    before, after = shown(done.before), shown(done.after)
    moved = "" if done.moved is None else f" ({done.moved * 100:+.0f} %)".replace("-", "−")
    click.echo(one_line(f"{done.run}: {parts}, {done.series.zone}, {done.series.source}; wrote {done.path}"))
    if done.is_same_family:
        click.echo(f"    {before.with_aside('typical profile')} → {after.with_aside('its own hours')}{moved}")
    else:
        kinds = f"{done.was_family} before, {done.series.family} now"
        click.echo(
            f"    {before.with_aside('typical profile')} → {after.with_aside('its own hours')}: another kind of figure, no update ({kinds})"
        )
    if done.pue is not None and done.mean_pue is not None:
        click.echo(one_line(f"    PUE {done.mean_pue.value:.2f} in the mean, {done.pue.model}, weather of {done.pue.weather}"))
    elif done.without_pue:
        click.echo(one_line(f"    pue-no-weather: the annual PUE stays: {done.without_pue}"))
    for slug, text in done.series.notes:
        click.echo(one_line(f"    {slug}: {text}"))
