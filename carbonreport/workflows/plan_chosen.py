"""Which way of a plan is taken: the plan itself where it can be followed, else the best way of its table that never changes clocks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from carbonreport.control.hooks.follow import Follow, rows
from carbonreport.model.knobs import Knobs
from carbonreport.model.notes import Note
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.plan_file import PlanFile, WithoutSwitches
from carbonreport.workflows.plan_pairs import envelope, knobs_of


@dataclass(frozen=True, slots=True)
class Chosen:
    """The way of a plan that is taken.

    Attributes:
        knobs: What is set at the start, and what is in the journal.
        in_words: For record and statement.
        follow: Phases to follow, or None where one setting is held all along.
        notes: Why it is not the plan itself.
        why_not: The same in short; "" where it is.
    """

    knobs: Knobs
    in_words: str
    follow: Follow | None = None
    notes: tuple[Note, ...] = ()
    why_not: str = ""


def chosen(plan: PlanFile, why_not_followed: str = "") -> Chosen:
    """The plan itself where it can be followed and its latency was measured, else the best way of its table that never switches.

    Args:
        plan: What was planned.
        why_not_followed: Why phases cannot be followed here; "" where they can.
    """
    if plan.kind == "cap":
        return Chosen(Knobs(power_cap_watts=plan.cap_watts), "a power cap")
    if plan.kind == "none":
        return Chosen(Knobs(), "", notes=(_nothing("the plan says to leave the clocks alone"),))
    pairs = [ClockPair(*pair) for pair in plan.pairs]
    if not plan.switches:
        return Chosen(knobs_of(pairs[0]), "one pair of clocks")
    why = why_not_followed or _why_not(plan)
    if why:
        return _without_switches(plan, why)
    follow = _follow(plan, pairs)
    return Chosen(envelope([*pairs, follow.rest]), f"a clock plan of {plan.switches} changes a step", follow)


def _follow(plan: PlanFile, pairs: Sequence[ClockPair]) -> Follow:
    """Phases of the order, or passes where there is none; until they come, the best way without changes is held."""
    sequence, members = rows(plan.sequence)
    named = dict(zip(sequence, plan.sequence, strict=True)) or dict.fromkeys(plan.phases)
    clocks = {first: pairs[plan.phases[name or first]] for first, name in named.items()}
    return Follow(clocks, sequence, _pair(plan.without_switches), members)


def _pair(way: WithoutSwitches | None) -> ClockPair:
    return UNLOCKED if way is None or way.kind in ("none", "cap") else ClockPair(way.sm_mhz, way.mem_mhz)


def _why_not(plan: PlanFile) -> str:
    if not plan.latency.was_measured:
        return f"its latency of {1000 * plan.latency.value_s:g} ms was not measured ({plan.latency.source})"
    if not plan.phases:
        return "no name of it always has the same clocks, so that no phase of a program can be followed"
    several = next((name for name in plan.sequence if name not in plan.phases), None)
    if several is not None:
        return f"{several} has other clocks in one place than in another, and a phase is followed by its name"
    if plan.kind == "kernel" and not plan.sequence:
        return f"it is of {plan.invocations:,} kernels, too many to be phases of a program"
    return ""


def _without_switches(plan: PlanFile, why: str) -> Chosen:
    other = plan.without_switches
    begin = f"the plan of {plan.switches} changes a step was not followed: {why}"
    if other is None or other.kind == "none":
        return Chosen(Knobs(), "", notes=(Note("plan-not-followed", f"{begin}; no clocks were set"),), why_not=begin)
    knobs = replace(knobs_of(ClockPair(other.sm_mhz, other.mem_mhz)), power_cap_watts=other.cap_watts)
    note = Note("plan-not-followed", f"{begin}; the best way without changes was held: {knobs.in_words()}")
    return Chosen(knobs, "one setting", notes=(note,), why_not=begin)


def _nothing(why: str) -> Note:
    return Note("plan-sets-nothing", f"nothing was set: {why}")
