"""`carbonreport estimate --gpu NAME --count N --hours H --start T`."""

import os
from pathlib import Path

import click

from carbonreport.cli.place import place_options
from carbonreport.model.run import RUN_KINDS, RunKind
from carbonreport.workflows.place import PlaceOptions


class AllMissing(click.Command):
    """Names every option that is missing at once, not the first alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click.Command."""
        given = list(args)  # parsing takes them away
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter:
            values, _, _ = self.make_parser(ctx).parse_args(given)
            missing = [param.opts[0] for param in self.params if param.required and param.name not in values]
            if len(missing) < 2:
                raise
            raise click.UsageError(f"Missing options {', '.join(missing)}", ctx) from None


@click.command("estimate", cls=AllMissing)
@click.option("--gpu", required=True, metavar="NAME", help='Board, such as "A100-SXM4-80GB".')
@click.option("--count", required=True, type=int, metavar="N", help="How many boards.")
@click.option("--hours", required=True, type=float, metavar="H", help="Wall-clock hours.")
@click.option("--mean-watts", type=float, metavar="W", help="Mean power of one board, where you know it.")
@click.option("--start", required=True, metavar="T", help="When it began: 2026-01-14T18:20+01:00, or a local time of the zone.")
@click.option("--name", default="estimate", show_default=True, help="What the run is called.")
@click.option("--kind", type=click.Choice(RUN_KINDS), default="training", show_default=True, help="What the run was.")
@click.option("--out", metavar="DIR", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of the record.")
@click.option("--quiet", is_flag=True, help="No summary.")
@place_options()
def command(
    gpu: str,
    count: int,
    hours: float,
    mean_watts: float | None,
    start: str,
    name: str,
    kind: RunKind,
    out: Path,
    quiet: bool,
    place: PlaceOptions,
) -> None:
    """Write the record of a run that nobody measured, labelled as an estimate with a wide range."""
    from carbonreport.grid.zones import time_zone_of
    from carbonreport.model.run import Place
    from carbonreport.workflows.estimate import Job, estimate
    from carbonreport.workflows.place import recording_place, site_of
    from carbonreport.workflows.summary import summary_lines

    site = site_of(place, os.environ, Path.cwd())
    said = recording_place(place, site, os.environ, None)  # nothing is guessed: the run was elsewhere
    time_zone = (site.time_zone if site else None) or (time_zone_of(said.zone) if said.zone else None)
    where = Place(said.zone, said.zone_source, time_zone, said.pue, said.site)
    record = estimate(Job(gpu, count, hours, mean_watts, start), name=name, kind=kind, place=where, folder=out, options=place)
    click.echo(record)
    if not quiet:
        for line in summary_lines(record, place):
            click.echo(line, err=True)
