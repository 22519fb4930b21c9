"""PLACE: the options that every command which charges a run has."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from carbonreport.workflows.place import PlaceOptions

F = TypeVar("F", bound=Callable[..., Any])

_PUE_HELP = (
    "Facility energy / IT energy: 1.2, a range 1.1:1.5, a file with time,pue, a cloud region such as aws:eu-central-1, "
    "or a class: desktop, hpc, aws, azure, gcp, meta, cloud, datacentre, server-room."
)


def place_options(*, with_grid: bool = True) -> Callable[[F], F]:
    """Add --zone, --pue, --grid and --site; the command gets them as `place`."""

    def decorate(function: F) -> F:
        def with_place(*args: Any, zone: str | None, pue: str | None, site: str | None, grid: str | None = None, **kwargs: Any) -> Any:
            return function(*args, place=PlaceOptions(zone, pue, grid, site), **kwargs)

        with_place.__doc__ = function.__doc__
        decorated: Any = with_place
        decorated.__click_params__ = getattr(function, "__click_params__", [])
        options = [
            click.option("--zone", metavar="ZONE", help="Grid zone, such as DE, US-CAL-CISO or IN-WE."),
            click.option("--pue", metavar="PUE", help=_PUE_HELP),
            click.option("--site", metavar="FILE", help="Site file; carbonreport.toml of the working folder by default."),
        ]
        if with_grid:
            options.append(
                click.option(
                    "--grid",
                    metavar="embedded|FILE.csv|SOURCE",
                    help="Intensities: the embedded profiles, a CSV with time,g_per_kwh, or electricitymaps, energycharts, uk. "
                    "By default a run's own hours where refresh fetched them, else the profiles.",
                )
            )
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate
