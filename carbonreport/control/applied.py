"""Holds knobs on boards for the length of a block; what was there before is put back however the block ends."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from carbonreport.control.controller import BoardState, ControlError, Controller, ControlRefused, is_same_limit, refusal
from carbonreport.control.giveback import IS_DONE, GivenBack, Rule, give_back_from_memory, give_back_one
from carbonreport.control.holder import Holder, is_alive, pid_namespace
from carbonreport.control.leases import FORMAT_VERSION, BadLease, Lease, Leases, Turn
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


@dataclass(frozen=True, slots=True)
class Terms:
    """How a run holds its boards.

    Attributes:
        is_turned: Whether it turns their clocks while it holds them, so that nobody else may hold them.
        job: Equal for the ranks of one job; "" where it is a rank of none.
    """

    is_turned: bool = False
    job: str = ""


class TurnedByRank(ControlError):
    """Another rank of the same job turns the board's clocks: this one has nothing to set."""


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
    terms: Terms = Terms(),
) -> Iterator[Applied]:
    """Hold knobs on boards.

    Args:
        controller: Sets boards.
        wanted: Knobs by UUID.
        leases: The journal.
        owner: The process that holds them: this one.
        boot_id: The kernel's name of this boot.
        guard: The guardian.
        foreign: Another user's lease of a board from this boot, where there is one.
        terms: Whether others may hold the boards too, and whose ranks they are.

    Raises:
        TurnedByRank: Another rank of this job turns a board's clocks.
        ControlRefused: A board cannot take its knobs, or took them without keeping them; nothing is set on any board.
        ControlDenied: This user may not set them.
        ControlError: Another run holds a board with other knobs; the journal cannot be written; a board does not answer.
    """
    here = Applied()
    with ExitStack() as undo:
        undo.enter_context(guard(lambda: here.is_all_back))
        undo.callback(_give_all_back, here, wanted, leases, controller, owner, boot_id, os.getpid())
        with leases.turn() as turn:
            for device, knobs in wanted.items():
                refuse_foreign(foreign(device))
                here.before[device] = _ready(turn, device, knobs, controller, boot_id, terms)
            for device, knobs in wanted.items():
                here.after[device] = _set_one(turn, here.before[device], knobs, controller, owner, boot_id, leases.uid, terms)
        yield here


def refuse_foreign(lease: Lease | None) -> None:
    """Two users' runs do not know each other's journals, so that neither could put back rightly."""
    if lease is None:
        return
    alive = [holder for holder in lease.holders if is_alive(holder)]
    if alive:
        raise ControlError(
            f"{lease.device} is held by a run of user {lease.uid} (process {alive[0].pid}) with {lease.knobs.in_words()}; wait for its end"
        )
    raise ControlError(
        f"{lease.device} was left with {lease.knobs.in_words()} by a run of user {lease.uid} that died; as that user `carbonreport restore`, or as root with --user {lease.uid}, puts it back"
    )


def _ready(turn: Turn, device: str, knobs: Knobs, controller: Controller, boot_id: str, terms: Terms) -> BoardState:
    """The board's state before the first run that holds it; refused where it cannot take the knobs or is held otherwise.

    What dead runs left on it is put back first.
    """
    left = give_back_one(turn, device, controller, Rule(boot_id))
    if left.outcome in ("failed", "refused"):
        raise ControlError(f"an earlier run's settings could not be taken back: {left.text}")
    lease = turn.read(device)
    if lease is not None and lease.pid_namespace not in ("", pid_namespace()):
        raise ControlError(f"{device} is held by a run in another container with {lease.knobs.in_words()}; wait for its end")
    if lease is not None and (terms.is_turned or lease.is_turned):
        raise _taken(lease, terms)
    if lease is not None and lease.knobs != knobs:
        raise ControlError(
            f"{device} is held by another run (process {lease.holders[0].pid}) with {lease.knobs.in_words()}, so that {knobs.in_words()} cannot be set; "
            "wait for its end, or ask for the same"
        )
    state = controller.read(device)
    why = refusal(state, knobs)
    if why:
        raise ControlRefused(f"{why}; nothing was set on any GPU")
    return state if lease is None else replace(state, limit_watts=lease.before_watts)


def _taken(lease: Lease, terms: Terms) -> ControlError:
    """Clocks that are turned have one owner at a time."""
    holder = lease.holders[0]
    if lease.is_turned and terms.is_turned and terms.job and lease.job == terms.job:
        return TurnedByRank(f"another rank of this job (process {holder.pid}) turns the clocks of {lease.device}")
    return ControlError(
        f"{lease.device} is held by another run (process {holder.pid}) with {lease.knobs.in_words()}: clocks that are turned have one owner at a time; "
        "wait for its end"
    )


def _set_one(
    turn: Turn, before: BoardState, knobs: Knobs, controller: Controller, owner: Holder, boot_id: str, uid: int, terms: Terms
) -> BoardState:
    device = before.uuid
    held = turn.read(device)
    if held is not None:
        holders = (*(holder for holder in held.holders if is_alive(holder)), owner)
        turn.write(Lease(FORMAT_VERSION, device, boot_id, held.uid, held.before_watts, knobs, holders, pid_namespace()))
    else:
        how = (pid_namespace(), terms.is_turned, terms.job)
        turn.write(Lease(FORMAT_VERSION, device, boot_id, uid, before.limit_watts, knobs, (owner,), *how))
    controller.set(device, knobs)
    after = controller.read(device)
    if knobs.power_cap_watts is not None and not is_same_limit(after.limit_watts, knobs.power_cap_watts):
        now = "does not say its limit" if after.limit_watts is None else f"still has {after.limit_watts:g} W"
        raise ControlRefused(
            f"{before.label} took {knobs.in_words()} without an error and {now}: the driver ignores it; nothing was set on any GPU"
        )
    return after


def _give_all_back(
    here: Applied, wanted: Mapping[str, Knobs], leases: Leases, controller: Controller, owner: Holder, boot_id: str, pid: int
) -> None:
    """Every board of the block, whichever fails; what fails stays in the journal for the guardian and `carbonreport restore`."""
    if os.getpid() != pid:  # a fork in which the block's end is collected: its parent still holds the boards
        return
    known = {
        device: Lease(FORMAT_VERSION, device, boot_id, leases.uid, here.before[device].limit_watts, wanted[device], (owner,))
        for device in here.after
    }
    try:
        with leases.turn() as turn:
            for device in here.before:
                here.given_back.append(_give_one_back(turn, device, controller, Rule(boot_id, owner), known.get(device)))
    except ControlError:
        rest = [device for device in known if device not in {done.device for done in here.given_back}]
        here.given_back += [give_back_from_memory(known[device], controller) for device in rest]


def _give_one_back(turn: Turn, device: str, controller: Controller, rule: Rule, known: Lease | None) -> GivenBack:
    """By the journal; by what this process knows where that was lost or spoilt since."""
    try:
        is_lost = known is not None and turn.read(device) is None
    except BadLease:
        is_lost = known is not None
    if known is None or not is_lost:
        return give_back_one(turn, device, controller, rule)
    done = give_back_from_memory(known, controller)
    if done.outcome in IS_DONE:
        turn.remove(device)
    return done
