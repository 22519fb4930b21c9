"""The boards of a sweep: what they take is asked, and that they may be set is tried, before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carbonreport.control.controller import BoardState, ControlRefused, refusal
from carbonreport.control.means import opened
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.knobs_asked import boards_here, wanted


@dataclass(frozen=True, slots=True)
class Board:
    """A board of a sweep.

    Attributes:
        name: "GPU 0 (NVIDIA H200)".
        limit_watts: Its power limit without a cap of ours; None where it does not say. [W]
        uuid: "GPU-…".
    """

    name: str
    limit_watts: float | None
    uuid: str


def checked_boards(caps: Sequence[float], environ: Mapping[str, str]) -> tuple[Board, ...]:
    """The boards, which take all these caps.

    Raises:
        CarbonreportError: There is no board, or one does not take a cap; nothing was set.
    """
    with opened(environ) as controller:
        states = [controller.read(uuid) for uuid in wanted(Knobs(), boards_here(environ))]
    for state in states:
        for cap in caps:
            _refuse(state, cap)
    return tuple(Board(state.label, state.limit_watts, state.uuid) for state in states)


def _refuse(state: BoardState, cap: float) -> None:
    why = refusal(state, Knobs(power_cap_watts=cap))
    if why is None and state.limit_watts is not None and cap >= state.limit_watts:
        why = f"{state.label} has a power limit of {state.limit_watts:g} W: a cap of {cap:g} W is none; leave it out, for no cap is always tried"
    if why is not None:
        raise ControlRefused(f"{why}; nothing was set on any GPU")


def try_to_set(cap: float, environ: Mapping[str, str]) -> None:
    """Set a cap on all boards and put them back at once: a refusal after an hour of trials would come too late.

    Raises:
        CarbonreportError: It may not be set, or the driver ignores it, or it could not be put back.
    """
    knobs = RunKnobs(Knobs(power_cap_watts=cap), is_optional=False, environ=environ)
    knobs.start()
    _, notes = knobs.stop()
    left = next((note for note in notes if note.slug == "knobs-not-restored"), None)
    if left is not None:
        raise CarbonreportError(left.text)


def most_watts(boards: Sequence[Board]) -> float | None:
    """Limit of all boards together; None where one does not say. [W]"""
    limits = [board.limit_watts for board in boards if board.limit_watts is not None]
    return sum(limits) if len(limits) == len(boards) else None
