"""`carbonreport sweep`: boards, journal, trials and picture of one command, put together."""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from carbonreport.errors import CarbonreportError, MissingExtra
from carbonreport.measure.host import host_id
from carbonreport.model.knobs import Knobs
from carbonreport.plan.cap_choice import CapRule
from carbonreport.plan.cap_curve import Ratio
from carbonreport.render.formats.json import dumps
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.knobs_dry import dry_run
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.sweep import Sweep, SweepPlan
from carbonreport.workflows.sweep_boards import Board, checked_boards, most_watts, try_to_set
from carbonreport.workflows.sweep_files import check_writable, write_text
from carbonreport.workflows.sweep_journal import identity, opened_journal
from carbonreport.workflows.sweep_outcome import Outcome, outcome_object
from carbonreport.workflows.sweep_trial import CommandTrials

JOURNAL, DRY_JOURNAL = "sweep.jsonl", "sweep-dry-run.jsonl"


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What the user asks of a sweep.

    Attributes:
        caps: Caps. [W]
        repeats: How often each.
        slowdown: Share of the time that it may take longer; None: any time.
        eta: Weight of energy in Zeus's cost, or None.
        seed: Of the order.
        pairs: How often the choice is measured anew.
        settle_s: Pause between trials. [s]
        same_lines: Expression of lines that must not change, or None.
        is_dry: Whether nothing is set.
        interval_s: How often the meters are polled. [s]
        outputs: Files that are written at the end.
    """

    caps: tuple[float, ...]
    repeats: int = 3
    slowdown: float | None = 0.05
    eta: float | None = None
    seed: int = 0
    pairs: int = 2
    settle_s: float = 2.0
    same_lines: str | None = None
    is_dry: bool = False
    interval_s: float = 1.0
    outputs: tuple[Path, ...] = ()


def sweep_command(
    command: Sequence[str],
    options: SweepOptions,
    folder: Path,
    place: PlaceOptions,
    *,
    say: Callable[[str], None],
    say_set: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
) -> Outcome:
    """Sweep a command.

    Args:
        command: What is run.
        options: What is asked.
        folder: Records and journal.
        place: Where the host is.
        say: Takes a line of progress.
        say_set: Takes a line of what would be set.
        environ: Environment of the command.

    Raises:
        Stopped: A trial failed.
        CarbonreportError: Something that was asked cannot be, and nothing ran or was set; or a trial says nothing.
    """
    pattern = _pattern(options.same_lines)
    for path in options.outputs:
        check_writable(path)
    _check_run(options, folder, place, environ)
    boards = checked_boards(options.caps, environ)
    plan = SweepPlan(
        caps=options.caps,
        repeats=options.repeats,
        rule=_rule(options, boards),
        seed=options.seed,
        pairs=options.pairs,
        settle_s=options.settle_s,
        is_dry=options.is_dry,
        boards=tuple((board.name, board.limit_watts) for board in boards),
    )
    same = identity(
        command,
        options.caps,
        seed=options.seed,
        same_lines=options.same_lines,
        is_dry=options.is_dry,
        boards=[(board.uuid, board.limit_watts) for board in boards],
        host=host_id(),
        interval_s=options.interval_s,
    )
    with opened_journal(folder / (DRY_JOURNAL if options.is_dry else JOURNAL), same) as journal:
        if options.is_dry:
            for cap in options.caps:
                dry_run(Knobs(power_cap_watts=cap), environ, say_set)
        else:
            try_to_set(max(options.caps), environ)
        trials = CommandTrials(command, folder, place, options.interval_s, pattern, environ, time.time)
        return Sweep(plan, trials, journal, say).run()


def _check_run(options: SweepOptions, folder: Path, place: PlaceOptions, environ: Mapping[str, str]) -> None:
    """Refuse what every trial would refuse: interval, place, site file. Raises CarbonreportError."""
    plan_run("sweep", kind="search", folder=folder, options=place, interval_s=options.interval_s, meters=None, environ=environ)


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise CarbonreportError(f"--same-lines {text!r} is no regular expression: {error}") from error


def _rule(options: SweepOptions, boards: Sequence[Board]) -> CapRule:
    if options.eta is None:
        return CapRule(options.slowdown)
    watts = most_watts(boards)
    if watts is None:
        raise CarbonreportError("--eta needs the power limit of each board, and one does not say its own; use --slowdown")
    return CapRule(options.slowdown, options.eta, watts)


def write_outcome(outcome: Outcome, path: Path) -> None:
    """Write the outcome as JSON. Raises OutputError."""
    write_text(dumps(outcome_object(outcome)), path)


def write_picture(outcome: Outcome, path: Path) -> None:
    """Draw the curve as SVG.

    Raises:
        MissingExtra: matplotlib is not installed.
        CarbonreportError: No cap was tried.
        OutputError: The file cannot be written.
    """
    from carbonreport.render.plots_sweep import SweepNumbers, sweep_picture

    curve = outcome.curve
    if not curve.points:
        raise CarbonreportError("--plot: no cap was tried, there is nothing to draw")
    limits = [watts for _, watts in outcome.boards if watts is not None]
    chosen = outcome.choice
    numbers = SweepNumbers(
        caps_watts=np.array([point.cap_watts for point in curve.points]),
        times=np.array([_with_ends(point.time) for point in curve.points]),
        energies=np.array([_with_ends(point.energy) for point in curve.points]),
        is_dominated=np.array([point.is_dominated for point in curve.points]),
        fitted=np.array([point.fitted for point in curve.points]),
        chosen_watts=None if chosen is None else chosen.cap_watts,
        limit_watts=min(limits, default=None),
        most_time=None if outcome.rule.slowdown is None else 1 + outcome.rule.slowdown,
    )
    svg = sweep_picture(numbers).svg
    write_text(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), path)


def check_plot(path: Path | None) -> None:
    """Refuse a picture that could not be drawn, before hours of trials. Raises MissingExtra."""
    from carbonreport.render.plots import is_available

    if path is not None and not is_available():
        raise MissingExtra("a picture", "plots")


def _with_ends(ratio: Ratio) -> tuple[float, float, float]:
    nan = float("nan")
    return ratio.value, nan if ratio.low is None else ratio.low, nan if ratio.high is None else ratio.high
