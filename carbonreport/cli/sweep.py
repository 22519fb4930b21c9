"""`carbonreport sweep --caps 200,300,400 -- COMMAND`."""

import math
from pathlib import Path
from typing import Any

import click

from carbonreport.cli.place import place_options
from carbonreport.cli.plan import Percent
from carbonreport.workflows.place import PlaceOptions

_DEFAULT_SLOWDOWN = 0.05


class Finite(click.FloatRange):
    """A number in a range; NaN, which is in every range, and infinity are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See click.ParamType."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no number that can be used", param, ctx)
        return number


class Caps(click.ParamType):  # type: ignore[type-arg]
    """Power caps such as 200,300,400. [W]"""

    name = "caps"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, ...]:
        """See click.ParamType."""
        if isinstance(value, tuple):
            return value
        caps = []
        for part in str(value).split(","):
            try:
                caps.append(float(part.strip().removesuffix("W")))
            except ValueError:
                self.fail(f"{part!r} is no power cap; write watts, such as 200,300,400", param, ctx)
        if not all(0 < cap < float("inf") for cap in caps) or len(set(caps)) < len(caps):
            self.fail(f"{value!r}: caps are above 0 W, each once", param, ctx)
        return tuple(sorted(caps))


@click.command("sweep", context_settings={"ignore_unknown_options": False})
@click.option("--caps", type=Caps(), required=True, metavar="W,W,…", help="Power caps to try, of each board; no cap is always tried.")
@click.option("--repeats", type=click.IntRange(1, 100), default=3, show_default=True, help="How often each; once has no interval.")
@click.option(
    "--slowdown", type=Percent(), metavar="5%", help="How much longer it may take, kept with 90 % confidence. [default: 5%; any with --eta]"
)
@click.option("--eta", type=Finite(0, 1), metavar="X", help="Choose by Zeus's cost X E + (1 - X) P T instead of energy alone.")
@click.option(
    "--confirm", type=click.IntRange(0, 100), default=2, show_default=True, metavar="N", help="How often the choice is measured anew."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Of the order of trials.")
@click.option("--settle", type=Finite(0), default=2.0, show_default=True, metavar="S", help="Seconds between two trials.")
@click.option("--same-lines", metavar="REGEX", help="Lines of COMMAND's standard output that must be the same under every cap.")
@click.option("--out", type=click.Path(path_type=Path), default="sweep", show_default=True, metavar="DIR", help="Records and journal.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), metavar="FILE.json", help="Write the outcome, for `when --sweep`.")
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE.svg", help="Draw energy against time.")
@click.option("--interval", metavar="S", default=1.0, show_default=True, type=Finite(0.1, 2), help="Seconds between polls.")
@click.option("--dry-run", is_flag=True, help="Say what would be set, set nothing, and run COMMAND without a cap alone.")
@place_options()
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    caps: tuple[float, ...],
    repeats: int,
    slowdown: float | None,
    eta: float | None,
    confirm: int,
    seed: int,
    settle: float,
    same_lines: str | None,
    out: Path,
    json_path: Path | None,
    plot: Path | None,
    interval: float,
    dry_run: bool,
    command: tuple[str, ...],
    place: PlaceOptions,
) -> int:
    """Run COMMAND under each power cap, repeats mixed with runs without a cap, and say which cap is worth it, if any.

    Boards are put back after every trial. The same command line goes on with a sweep that was stopped.
    """
    from carbonreport.cli.sweep_table import sweep_sentences, sweep_table
    from carbonreport.workflows.sweep import Stopped
    from carbonreport.workflows.sweep_command import SweepOptions, check_plot, sweep_command, write_outcome, write_picture

    budget = slowdown if slowdown is not None or eta is not None else _DEFAULT_SLOWDOWN
    outputs = tuple(path for path in (json_path, None if dry_run else plot) if path is not None)
    options = SweepOptions(caps, repeats, budget, eta, seed, confirm, settle, same_lines, dry_run, interval, outputs)
    if not dry_run:
        check_plot(plot)
    try:
        outcome = sweep_command(command, options, out, place, say=_say, say_set=lambda line: click.echo(line, err=True))
    except Stopped as stopped:
        way_on = f"; the same command line goes on with the sweep in {out}" if stopped.may_go_on else ""
        click.echo(f"carbonreport: error: {stopped.message}{way_on}", err=True)
        return stopped.code
    click.echo(sweep_table(outcome), nl=False)
    for line in sweep_sentences(outcome):
        click.echo(line)
    if outcome.choice is not None:
        click.echo(f"next: carbonreport run --power-cap {outcome.choice.cap_watts:g} -- …")
    if json_path is not None:
        write_outcome(outcome, json_path)
    if plot is not None and outcome.curve.points:
        write_picture(outcome, plot)
    return 0


def _say(line: str) -> None:
    click.echo(f"carbonreport: {line}", err=True)
