"""`carbonreport wait -- COMMAND`: start a command when the grid is at its best within a time."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from carbonreport.cli.moments import Seconds
from carbonreport.cli.place import place_options
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.wait import clock, in_words, run_at_window, signals_blocked

if TYPE_CHECKING:
    from carbonreport.workflows.when import Answer

_DEFAULT_HOURS = 1.0


@click.command("wait", context_settings={"ignore_unknown_options": False})
@click.option("--max", "longest", type=Seconds(), required=True, metavar="12h", help="After so long it starts, whatever the grid is like.")
@click.option("--like", type=click.Path(path_type=Path), metavar="RECORD", help="A job like this run: its length and its power over time.")
@click.option("--hours", type=float, metavar="H", help="Length of the job. [default: 1]")
@click.option("--kw", type=float, metavar="P", help="Its mean power at the IT equipment. [default: 1; it does not move the window]")
@click.option("--dry-run", is_flag=True, help="Say what it would wait for, and end.")
@place_options()
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(
    longest: float,
    like: Path | None,
    hours: float | None,
    kw: float | None,
    dry_run: bool,
    command: tuple[str, ...],
    place: PlaceOptions,
) -> int:
    """Start COMMAND when the window opens: carbonreport wait --zone DE --max 12h -- python train.py.

    The hours are read again every hour (give --grid electricitymaps or another source for more than a typical day). It starts by --max whatever
    happens, at once where waiting is not worth it, and its exit code is passed on.
    """
    if like is not None and (hours is not None or kw is not None):
        raise click.UsageError("--like already says length and power; leave out --hours and --kw")
    if place.zone and "," in place.zone:
        raise click.UsageError("wait starts the command here: give one --zone")
    if like is None and hours is None:
        say("nobody said how long it runs: one hour is taken; give --hours or --like")
    if dry_run:
        return _dry_run(_reader(longest, like, hours, kw), longest, place)
    with signals_blocked() as blocked:
        read = _reader(longest, like, hours, kw)
        code, message = run_at_window(
            command,
            lambda now_s: read(now_s, place),
            lambda now_s: read(now_s, replace(place, grid=None)),
            longest_s=longest,
            blocked=blocked,
            say=say,
        )
    if message:
        click.echo(f"carbonreport: error: {message}", err=True)
    return code


def say(line: str) -> None:
    """One line on standard error."""
    click.echo(f"carbonreport: {line}", err=True)


def _reader(longest: float, like: Path | None, hours: float | None, kw: float | None) -> "Callable[[float, PlaceOptions], Answer]":
    """Prices the starts between a moment and the last one."""
    from carbonreport.workflows.ask import Ask, job_like, job_of
    from carbonreport.workflows.when import plan

    if like is not None:
        job, record = job_like(like)
    else:
        job, record = job_of(_DEFAULT_HOURS if hours is None else hours, 1.0 if kw is None else kw), None
    last_s = time.time() + longest

    def read(now_s: float, options: PlaceOptions) -> "Answer":
        return plan(Ask(job=job, earliest_s=now_s, latest_end_s=max(last_s, now_s) + job.seconds), options, like=record)

    return read


def _dry_run(read: "Callable[[float, PlaceOptions], Answer]", longest: float, place: PlaceOptions) -> int:
    now_s = time.time()
    answer = read(now_s, place)
    best = answer.shift
    if best is None or not best.is_advised:
        say(f"would start now: {best.because if best else answer.because}")
    else:
        say(f"would wait for {in_words(best)}, at most to {clock(now_s + longest, best.time_zone)}")
    return 0
