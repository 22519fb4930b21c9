"""`carbonreport run -- COMMAND`."""

import os
from pathlib import Path

import click

from carbonreport.cli.place import place_options
from carbonreport.errors import CarbonreportError
from carbonreport.model.run import RUN_KINDS, RunKind
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.run import Finished, run_command


@click.command("run", context_settings={"ignore_unknown_options": False})
@click.option("--name", metavar="NAME", help="What the run is called; the script's name by default.")
@click.option("--kind", type=click.Choice(RUN_KINDS), default="training", show_default=True, help="What the run is.")
@click.option("--out", metavar="DIR", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of the record.")
@click.option("--interval", metavar="S", default=1.0, show_default=True, type=float, help="Seconds between polls, 0.1 to 2.")
@click.option("--share-gpus", is_flag=True, help="Split NVIDIA boards that others use too by use of their cores: an estimate.")
@click.option(
    "--power-cap",
    metavar="W",
    help="Power cap of every NVIDIA GPU of the run, or by board 0=300,1=250; put back at the end. Refused, COMMAND does not start.",
)
@click.option("--cap-if-allowed", metavar="W", help="The same; refused, COMMAND runs without it and the record says so.")
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="Hold the clocks of a plan (carbonreport plan solve -o) on every NVIDIA GPU of the run; unlocked at the end. Refused, COMMAND does not start.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be set and put back; set nothing and start nothing.")
@click.option("--quiet", is_flag=True, help="No summary at the end.")
@place_options()
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    name: str | None,
    kind: RunKind,
    out: Path,
    interval: float,
    share_gpus: bool,
    power_cap: str | None,
    cap_if_allowed: str | None,
    plan: Path | None,
    dry_run: bool,
    quiet: bool,
    command: tuple[str, ...],
    place: PlaceOptions,
) -> int:
    """Run COMMAND and measure its energy: carbonreport run -- python train.py.

    Standard output is untouched, signals and the exit code are passed through; a summary comes on standard error.
    """
    if power_cap is not None and cap_if_allowed is not None:
        raise click.UsageError("--power-cap and --cap-if-allowed are two ways of one thing: give one")
    cap = power_cap if power_cap is not None else cap_if_allowed
    if cap is not None and plan is not None:
        raise click.UsageError("--power-cap and --plan are two answers to one question: give one")
    if dry_run:
        return _say_what_would_be_set(cap, plan, is_optional=power_cap is None)
    finished = run_command(
        command,
        name=name,
        kind=kind,
        folder=out,
        options=place,
        interval_s=interval,
        share_gpus=share_gpus,
        power_cap=cap,
        is_cap_optional=power_cap is None,
        clock_plan=plan,
    )
    if finished.message:
        click.echo(f"carbonreport: error: {finished.message}", err=True)
    elif not quiet:
        _summarise(finished, place)
    return finished.code


def _say_what_would_be_set(cap: str | None, plan: Path | None, *, is_optional: bool) -> int:
    if plan is not None:
        from carbonreport.workflows.plan_apply import dry_run_plan

        dry_run_plan(plan, os.environ, click.echo)
        return 0
    if cap is None:
        raise click.UsageError("--dry-run says what would be set on GPUs: give --power-cap or --plan")
    from carbonreport.workflows.knobs_asked import asked_caps
    from carbonreport.workflows.knobs_dry import dry_run

    dry_run(asked_caps(cap), os.environ, click.echo, is_optional=is_optional)
    return 0


def _summarise(finished: Finished, place: PlaceOptions) -> None:
    """The summary; what is wrong with the place of rendering must not change the command's exit code."""
    if finished.record is None:
        return
    if finished.result is None:
        click.echo(
            f"carbonreport: a driver did not answer at the end; the record is kept as an unfinished one: {finished.record}", err=True
        )
        return
    from carbonreport.workflows.summary import summary_lines

    try:
        lines = summary_lines(finished.record, place, finished.code)
    except CarbonreportError as error:
        lines = [f"carbonreport: no summary: {error}", f"carbonreport: record {finished.record}"]
    for line in lines:
        click.echo(line, err=True)
