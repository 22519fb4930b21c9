"""Puts boards back as they were before. Safe to repeat; sets nothing that the board's own state does not support."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from carbonreport.control.controller import BoardState, ControlError, Controller, is_same_limit
from carbonreport.control.holder import Holder, is_alive, is_gone, pid_namespace
from carbonreport.control.leases import BadLease, Lease, Turn

Outcome = Literal["restored", "as-before", "restarted", "changed-by-others", "still-held", "refused", "failed", "would-restore"]

IS_DONE: frozenset[Outcome] = frozenset({"restored", "as-before", "restarted", "changed-by-others"})


@dataclass(frozen=True, slots=True)
class GivenBack:
    """What became of a board.

    Attributes:
        device: Its UUID.
        outcome: restored; as-before (nothing was to do); restarted (the host was, which loses every setting); changed-by-others (somebody set another
            limit since, which stays); still-held (its run lives); refused (the journal cannot be believed); failed; would-restore (nothing may be set).
        text: The same in words.
        is_from_memory: Whether the journal was lost, so that the owner did it by what it knew.
    """

    device: str
    outcome: Outcome
    text: str
    is_from_memory: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """By what a board counts as free to be put back.

    Attributes:
        boot_id: The kernel's name of this boot.
        leaving: A process that no longer wants what it holds, alive or not.
        is_dry: Whether nothing may be set, and no journal changed.
        is_alive: Whether a holder still runs.
        pid_namespace: In which this process counts numbers of processes.
        is_gone: Whether no process of another such namespace is left, as far as can be seen.
    """

    boot_id: str
    leaving: Holder | None = None
    is_dry: bool = False
    is_alive: Callable[[Holder], bool] = is_alive
    pid_namespace: str = field(default_factory=pid_namespace)
    is_gone: Callable[[str], bool] = is_gone


def give_back(turn: Turn, controller: Controller, rule: Rule) -> list[GivenBack]:
    """Put back every board that no living process holds any more, whichever of them fails."""
    return [give_back_one(turn, device, controller, rule) for device in turn.devices()]


def give_back_one(turn: Turn, device: str, controller: Controller, rule: Rule) -> GivenBack:
    """The same for one board."""
    try:
        lease = turn.read(device)
        if lease is None:
            return GivenBack(device, "as-before", f"nothing is set on {device}")
        done = _judged(turn, lease, controller, rule)
        if done.outcome in IS_DONE and not rule.is_dry:
            turn.remove(device)
        return done
    except BadLease as error:
        return GivenBack(
            device, "refused", f"{error}; look at the board's limit (nvidia-smi -q -d POWER), set it as it should be, and delete that file"
        )
    except ControlError as error:
        return GivenBack(device, "failed", f"{device} could not be put back: {error}")


def give_back_from_memory(lease: Lease, controller: Controller) -> GivenBack:
    """The same by what the owner itself knows, where its journal was lost or cannot be read any more."""
    try:
        done = _put_back(lease, controller, is_dry=False)
    except ControlError as error:
        return GivenBack(lease.device, "failed", f"{lease.device} could not be put back: {error}")
    return GivenBack(lease.device, done.outcome, done.text, is_from_memory=True)


def _judged(turn: Turn, lease: Lease, controller: Controller, rule: Rule) -> GivenBack:
    device = lease.device
    if lease.boot_id != rule.boot_id:
        return GivenBack(device, "restarted", f"the host was started again since {device} was set, which loses every setting")
    if lease.pid_namespace not in ("", rule.pid_namespace):
        if not rule.is_gone(lease.pid_namespace):
            return GivenBack(
                device, "still-held", f"{device} was set in another container, whose processes cannot be seen from here; put it back there"
            )
        return _put_back(lease, controller, is_dry=rule.is_dry)
    left = _staying(lease.holders, rule)
    if not left:
        return _put_back(lease, controller, is_dry=rule.is_dry)
    if left != lease.holders and not rule.is_dry:
        turn.write(_held_by(lease, left))
    return GivenBack(device, "still-held", f"{device} is still held by process {left[0].pid} with {lease.knobs.in_words()}")


def _staying(holders: tuple[Holder, ...], rule: Rule) -> tuple[Holder, ...]:
    """Living holders without the one that leaves; a process that holds a board twice leaves once at a time."""
    staying = [holder for holder in holders if rule.is_alive(holder)]
    if rule.leaving in staying:
        staying.remove(rule.leaving)
    return tuple(staying)


def _put_back(lease: Lease, controller: Controller, *, is_dry: bool) -> GivenBack:
    device, knobs, before = lease.device, lease.knobs, lease.before_watts
    state = controller.read(device)
    absurd = _absurd(lease, state)
    if absurd:
        raise BadLease(f"the journal of {state.label}, {device}.json, {absurd}")
    has_limit = knobs.power_cap_watts is not None and before is not None
    if has_limit and is_same_limit(state.limit_watts, before) and not knobs.has_clocks:
        return GivenBack(device, "as-before", f"{state.label} has its power limit of {before:g} W")
    own = (knobs.power_cap_watts, before)
    is_foreign = has_limit and state.limit_watts is not None and not any(is_same_limit(state.limit_watts, watts) for watts in own)
    if is_dry:
        return GivenBack(device, "would-restore", f"{state.label}: {' and '.join(_words(lease))}")
    controller.restore(device, None if is_foreign else before, knobs)
    now = controller.read(device)
    if is_foreign:
        text = f"{state.label} has a power limit of {_watts(state.limit_watts)} that somebody else has set since; it was left alone"
        return GivenBack(device, "changed-by-others", text)
    if has_limit and not is_same_limit(now.limit_watts, before):
        raise ControlError(f"{state.label} was told a power limit of {before:g} W and has {_watts(now.limit_watts)}")
    return GivenBack(device, "restored", f"{state.label}: {' and '.join(_words(lease))}")


def _words(lease: Lease) -> list[str]:
    limit = [] if lease.before_watts is None or lease.knobs.power_cap_watts is None else [f"power limit back to {lease.before_watts:g} W"]
    return [*limit, *(["clocks unlocked"] if lease.knobs.has_clocks else [])]


def _absurd(lease: Lease, state: BoardState) -> str:
    """Why a board cannot have been so; "" where it can."""
    least, most = state.least_watts, state.most_watts
    for watts in (lease.before_watts, lease.knobs.power_cap_watts):
        if watts is not None and least is not None and most is not None and not least <= watts <= most:
            return f"says {watts:g} W, outside its range of {least:g} to {most:g} W"
    return ""


def _held_by(lease: Lease, holders: tuple[Holder, ...]) -> Lease:
    return msgspec.structs.replace(lease, holders=holders)


def _watts(watts: float | None) -> str:
    return "an unknown size" if watts is None else f"{watts:g} W"
