"""Boards held for measuring: their clocks are turned again and again, and unlocked however the block ends."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from carbonreport.control.controller import BoardState, ControlRefused, refusal
from carbonreport.control.hooks.follow import Follow
from carbonreport.control.hooks.switcher import Marks, Switcher
from carbonreport.control.means import opened
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.knobs_asked import boards_here
from carbonreport.workflows.plan_apply import kept
from carbonreport.workflows.plan_owners import refuse_other_owners
from carbonreport.workflows.plan_pairs import Turn, knobs_of
from carbonreport.workflows.plan_spans import Enter


def states_here(environ: Mapping[str, str], gpu: str | None = None) -> tuple[BoardState, ...]:
    """What the boards of this process say of their clocks.

    Args:
        environ: Environment that shows the boards.
        gpu: The begin of one board's UUID, or its number; None for all.

    Raises:
        CarbonreportError: There is no board, or no such one.
    """
    with opened(environ) as controller:
        boards = boards_here(environ)
        if gpu is not None:
            boards = [(number, uuid) for number, uuid in boards if gpu == str(number) or uuid.startswith(gpu)]
        if not boards:
            raise CarbonreportError(
                "no NVIDIA GPU is visible" if gpu is None else f"no visible NVIDIA GPU is {gpu!r}; give its number or UUID"
            )
        return tuple(controller.read(uuid) for _, uuid in boards)


def refuse_pairs(pairs: Sequence[ClockPair], states: Sequence[BoardState]) -> None:
    """Refuse clocks that are not in a board's range. Raises ControlRefused; nothing was set."""
    for state in states:
        for pair in pairs:
            why = None if pair == UNLOCKED else refusal(state, knobs_of(pair))
            if why is not None:
                raise ControlRefused(f"{why}; nothing was set on any GPU")


@contextmanager
def held(knobs: Knobs, devices: tuple[str, ...], environ: Mapping[str, str], say: Callable[[str], None]) -> Iterator[Turn]:
    """Hold clocks of boards; gives what turns them.

    Raises:
        ControlDenied: This user may not set them.
        ControlError: They are refused, or another owner is seen; nothing was set.
    """
    refuse_other_owners(devices, environ)
    run = RunKnobs(dict.fromkeys(devices, knobs), is_optional=False, environ=environ, is_turned=True)
    run.start()
    try:
        yield lambda pair: run.turn(knobs_of(pair))
    finally:
        for note in run.stop()[1]:
            say(f"{note.slug}: {note.text}")


@contextmanager
def followed(follow: Follow, turn: Callable[[ClockPair], None], marks: Marks | None) -> Iterator[tuple[Enter, Switcher]]:
    """Follow a plan's phases from a helper thread while the block lasts."""
    switcher = Switcher(follow, marks, turn, guard=kept)
    turn(follow.rest)
    switcher.start()
    try:
        yield switcher.enter, switcher
    finally:
        switcher.stop()
