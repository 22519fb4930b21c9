"""What a run would set and put back, and what would be refused, without setting anything."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace

from carbonreport.control.applied import refuse_foreign
from carbonreport.control.controller import BoardState, ControlError, Controller, ControlRefused, refusal
from carbonreport.control.controllers import dryrun
from carbonreport.control.holder import is_alive
from carbonreport.control.leases import Lease, Leases, control_folder, foreign_lease
from carbonreport.control.means import opened
from carbonreport.control.rights import Rights, rights
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.workflows.knobs import boards_here, wanted


def dry_run(
    asked: Knobs | Mapping[str, Knobs],
    environ: Mapping[str, str],
    say: Callable[[str], None],
    *,
    is_optional: bool = False,
    open_controller: Callable[[Mapping[str, str]], AbstractContextManager[Controller]] = opened,
    allowed: Callable[[int, Mapping[str, str]], Rights] = rights,
) -> None:
    """Say what would be set and put back. Nothing is set.

    Raises:
        CarbonreportError: The run would be refused; an optional setting is said to be left out instead.
    """
    try:
        _say_all(asked, environ, say, open_controller, allowed)
    except CarbonreportError as error:
        if not is_optional:
            raise
        say(f"would go on without it: {error}")


def _say_all(
    asked: Knobs | Mapping[str, Knobs],
    environ: Mapping[str, str],
    say: Callable[[str], None],
    open_controller: Callable[[Mapping[str, str]], AbstractContextManager[Controller]],
    allowed: Callable[[int, Mapping[str, str]], Rights],
) -> None:
    with open_controller(environ) as reader:
        controller = dryrun.create(reader, say)
        plan = wanted(asked, boards_here(environ))
        states = {device: _state(device, knobs, controller, environ, say) for device, knobs in plan.items()}
        for device, knobs in plan.items():
            controller.set(device, knobs)
        for device, knobs in plan.items():
            controller.restore(device, states[device].limit_watts, knobs)
    found = allowed(os.getuid(), environ)
    say(f"this user may set it {found.way}" if found.way else f"this user may not set it: {found.remedy}")


def _state(device: str, knobs: Knobs, controller: Controller, environ: Mapping[str, str], say: Callable[[str], None]) -> BoardState:
    """The board as the run would find it; refused as the run would be."""
    refuse_foreign(foreign_lease(device, os.getuid(), environ))
    lease, state = _lease(device, environ), controller.read(device)
    if lease is not None:
        alive = [holder for holder in lease.holders if is_alive(holder)]
        if alive and lease.knobs != knobs:
            raise ControlError(f"{state.label} is held by another run (process {alive[0].pid}) with {lease.knobs.in_words()}")
        if not alive and lease.before_watts is not None:
            say(
                f"would first put {state.label} back to {lease.before_watts:g} W, which a run that died left at {state.limit_watts or 0:g} W"
            )
        state = _with_limit(state, lease.before_watts)
    why = refusal(state, knobs)
    if why:
        raise ControlRefused(f"{why}; nothing would be set on any GPU")
    return state


def _with_limit(state: BoardState, watts: float | None) -> BoardState:
    return state if watts is None else replace(state, limit_watts=watts)


def _lease(device: str, environ: Mapping[str, str]) -> Lease | None:
    leases = Leases(control_folder(os.getuid(), environ), os.getuid(), is_made=False)
    if not leases.exists():
        return None
    with leases.turn() as turn:
        return turn.read(device)
