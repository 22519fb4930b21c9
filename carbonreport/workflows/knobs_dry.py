"""What a run would set and put back, and what would be refused, without setting anything."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

from carbonreport.control.applied import refuse_foreign
from carbonreport.control.controller import BoardState, ControlError, Controller, ControlRefused, is_same_limit, refusal
from carbonreport.control.controllers import dryrun
from carbonreport.control.giveback import GivenBack, Rule, give_back_one
from carbonreport.control.holder import is_alive, pid_namespace
from carbonreport.control.leases import Lease, Leases, boot_id, control_folder, foreign_lease
from carbonreport.control.means import opened
from carbonreport.control.rights import Rights, rights
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.workflows.knobs_asked import boards_here, wanted

Say = Callable[[str], None]


def dry_run(
    asked: Knobs | Mapping[str, Knobs],
    environ: Mapping[str, str],
    say: Say,
    *,
    is_optional: bool = False,
    open_controller: Callable[[Mapping[str, str]], AbstractContextManager[Controller]] = opened,
    find_boards: Callable[[Mapping[str, str]], list[tuple[int, str]]] = boards_here,
    allowed: Callable[[int, Mapping[str, str]], Rights] = rights,
) -> None:
    """Say what would be set and put back. Nothing is set.

    Raises:
        CarbonreportError: The run would be refused; an optional setting is said to be left out instead.
    """
    try:
        with nullcontext() if is_optional else said_as_would_be(), open_controller(environ) as reader:
            _say_all(wanted(asked, find_boards(environ)), dryrun.create(reader, say), environ, say)
    except CarbonreportError as error:
        if not is_optional:
            raise
        say(f"would go on without it: {error}")
        return
    found = allowed(os.getuid(), environ)
    say(f"this user may set it {found.way}" if found.way else f"this user may not set it: {found.remedy}")


@contextmanager
def said_as_would_be() -> Iterator[None]:
    """What refuses a run only would refuse it here, and says so."""
    try:
        yield
    except ControlError as error:
        raise type(error)(f"would be refused: {error}") from error


def _say_all(plan: Mapping[str, Knobs], controller: Controller, environ: Mapping[str, str], say: Say) -> None:
    states = {device: _state(device, knobs, controller, environ, say) for device, knobs in plan.items()}
    for device, knobs in plan.items():
        controller.set(device, knobs)
    for device, knobs in plan.items():
        controller.restore(device, states[device].limit_watts, knobs)


def _state(device: str, knobs: Knobs, controller: Controller, environ: Mapping[str, str], say: Say) -> BoardState:
    """The board as the run would find it; refused as the run would be (`carbonreport.control.applied`)."""
    refuse_foreign(foreign_lease(device, os.getuid(), environ))
    left, lease = _left(device, controller, environ)
    if left.outcome in ("failed", "refused"):
        raise ControlError(f"an earlier run's settings cannot be taken back: {left.text}")
    state = controller.read(device)
    if lease is not None and left.outcome == "still-held":
        _refuse_held(lease, knobs, state.label)
        _refuse_out_of_range(state, knobs)  # as the board is now: somebody may have lowered its limit since
        state = state if lease.before_watts is None else replace(state, limit_watts=lease.before_watts)
    if lease is not None and left.outcome == "would-restore":
        state = _put_back(lease, state, say)
    _refuse_out_of_range(state, knobs)
    return state


def _refuse_out_of_range(state: BoardState, knobs: Knobs) -> None:
    why = refusal(state, knobs)
    if why:
        raise ControlRefused(f"{why}; nothing would be set on any GPU")


def _left(device: str, controller: Controller, environ: Mapping[str, str]) -> tuple[GivenBack, Lease | None]:
    """What would become of what another run has set there, and its lease."""
    leases = Leases(control_folder(os.getuid(), environ), os.getuid(), is_made=False)
    if not leases.exists():
        return GivenBack(device, "as-before", f"nothing is set on {device}"), None
    with leases.turn() as turn:
        left = give_back_one(turn, device, controller, Rule(boot_id(), is_dry=True))
        return left, turn.read(device) if left.outcome in ("still-held", "would-restore") else None


def _refuse_held(lease: Lease, knobs: Knobs, label: str) -> None:
    """A board is shared only with runs that hold the same, and never with one that turns its clocks. What is tried here turns none."""
    if lease.pid_namespace not in ("", pid_namespace()):
        raise ControlError(f"{label} is held by a run in another container with {lease.knobs.in_words()}; wait for its end")
    holder = next((one for one in lease.holders if is_alive(one)), lease.holders[0])
    held = f"{label} is held by another run (process {holder.pid}) with {lease.knobs.in_words()}"
    if lease.is_turned:
        raise ControlError(f"{held}: clocks that are turned have one owner at a time; wait for its end")
    if lease.knobs != knobs:
        raise ControlError(f"{held}, so that {knobs.in_words()} cannot be set; wait for its end, or ask for the same")


def _put_back(lease: Lease, state: BoardState, say: Say) -> BoardState:
    """The board without what a run that died has left on it; a limit that somebody else has set since stays."""
    cap, before = lease.knobs.power_cap_watts, lease.before_watts
    if lease.knobs.has_clocks:
        say(f"would first unlock the clocks of {state.label}, which a run that died left locked")
    if cap is None or before is None or (state.limit_watts is not None and not is_same_limit(state.limit_watts, cap)):
        return state
    now = "a limit that it does not say" if state.limit_watts is None else f"{state.limit_watts:g} W"
    say(f"would first put {state.label} back to {before:g} W, which a run that died left at {now}")
    return replace(state, limit_watts=before)
