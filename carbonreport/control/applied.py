"""Holds knobs on boards for the length of a block; what was there before is put back however the block ends."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from carbonreport.control.controller import BoardState, ControlError, Controller, ControlRefused, is_same_limit, refusal
from carbonreport.control.giveback import IS_DONE, GivenBack, Rule, give_back_one
from carbonreport.control.holder import Holder, is_alive
from carbonreport.control.leases import FORMAT_VERSION, Lease, Leases, Turn
from carbonreport.model.knobs import Knobs


@dataclass(slots=True)
class Applied:
    """What is set on boards while the block lasts.

    Attributes:
        before: State of each board before, by UUID.
        after: Its state once it was set.
        given_back: What became of each board; filled when the block ends.
    """

    before: dict[str, BoardState] = field(default_factory=dict)
    after: dict[str, BoardState] = field(default_factory=dict)
    given_back: list[GivenBack] = field(default_factory=list)

    @property
    def is_all_back(self) -> bool:
        """Whether every board is as this run found it, or as others want it."""
        return all(done.outcome in IS_DONE or done.outcome == "still-held" for done in self.given_back)


# Starts the process that puts everything back where this one dies. Entered before the first board is set, left after the last one is back;
# it asks then whether all of them are.
Guard = Callable[[Callable[[], bool]], AbstractContextManager[None]]


@contextmanager
def applied(
    controller: Controller,
    wanted: Mapping[str, Knobs],
    leases: Leases,
    owner: Holder,
    boot_id: str,
    guard: Guard,
    foreign: Callable[[str], Lease | None] = lambda device: None,
) -> Iterator[Applied]:
    """Hold knobs on boards.

    Args:
        controller: Sets boards.
        wanted: Knobs by UUID.
        leases: The journal.
        owner: The process that holds them: this one.
        boot_id: The kernel's name of this boot.
        guard: The guardian.
        foreign: Another user's lease of a board, where there is one.

    Raises:
        ControlRefused: A board cannot take its knobs, or took them without keeping them; nothing is set on any board.
        ControlDenied: This user may not set them.
        ControlError: Another run holds a board with other knobs; the journal cannot be written; a board does not answer.
    """
    here = Applied()
    with ExitStack() as undo:
        undo.enter_context(guard(lambda: here.is_all_back))
        undo.callback(_give_all_back, here, leases, controller, owner, boot_id, os.getpid())
        with leases.turn() as turn:
            for device, knobs in wanted.items():
                _refuse_foreign(foreign(device), boot_id)
                here.before[device] = _ready(turn, device, knobs, controller, boot_id)
            for device, knobs in wanted.items():
                here.after[device] = _set_one(turn, here.before[device], knobs, controller, owner, boot_id, leases.uid)
        yield here


def _refuse_foreign(lease: Lease | None, boot_id: str) -> None:
    """Two users' runs do not know each other's journals, so that neither could put back rightly."""
    alive = [] if lease is None or lease.boot_id != boot_id else [holder for holder in lease.holders if is_alive(holder)]
    if lease is not None and alive:
        raise ControlError(
            f"{lease.device} is held by a run of user {lease.uid} (process {alive[0].pid}) with {lease.knobs.in_words()}; wait for its end"
        )


def _ready(turn: Turn, device: str, knobs: Knobs, controller: Controller, boot_id: str) -> BoardState:
    """The board's state, what dead runs left on it put back; refused where it cannot take the knobs or is held otherwise."""
    left = give_back_one(turn, device, controller, Rule(boot_id))
    if left.outcome in ("failed", "refused"):
        raise ControlError(f"an earlier run's settings could not be taken back: {left.text}; see `carbonreport restore`")
    state = controller.read(device)
    why = refusal(state, knobs)
    if why:
        raise ControlRefused(f"{why}; nothing was set on any GPU")
    lease = turn.read(device)
    if lease is not None and lease.knobs != knobs:
        raise ControlError(
            f"{state.label} is held by another run (process {lease.holders[0].pid}) with {lease.knobs.in_words()}, so that {knobs.in_words()} cannot be set; "
            "wait for its end, or ask for the same"
        )
    return state


def _set_one(turn: Turn, before: BoardState, knobs: Knobs, controller: Controller, owner: Holder, boot_id: str, uid: int) -> BoardState:
    device = before.uuid
    held = turn.read(device)
    if held is not None:
        holders = (*(holder for holder in held.holders if is_alive(holder)), owner)
        turn.write(Lease(FORMAT_VERSION, device, boot_id, held.uid, held.before_watts, knobs, holders))
    else:
        turn.write(Lease(FORMAT_VERSION, device, boot_id, uid, before.limit_watts, knobs, (owner,)))
    controller.set(device, knobs)
    after = controller.read(device)
    if knobs.power_cap_watts is not None and not is_same_limit(after.limit_watts, knobs.power_cap_watts):
        now = "does not say its limit" if after.limit_watts is None else f"still has {after.limit_watts:g} W"
        raise ControlRefused(
            f"{before.label} took {knobs.in_words()} without an error and {now}: the driver ignores it; nothing was set on any GPU"
        )
    return after


def _give_all_back(here: Applied, leases: Leases, controller: Controller, owner: Holder, boot_id: str, pid: int) -> None:
    """Every board of the block, whichever fails; what fails stays in the journal for the guardian and `carbonreport restore`."""
    if os.getpid() != pid:  # a fork in which the block's end is collected: its parent still holds the boards
        return
    try:
        with leases.turn() as turn:
            here.given_back += [give_back_one(turn, device, controller, Rule(boot_id, owner)) for device in here.before]
    except ControlError as error:
        here.given_back += [GivenBack(device, "failed", str(error)) for device in here.before]
