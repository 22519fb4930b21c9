"""What was set on GPUs, in one sentence: cap, limit before, whether it held and how long it was at work; clocks, and those that were seen."""

from collections.abc import Sequence

from carbonreport.model.footprint import ChargedRun
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import percent
from carbonreport.render.words import count_in_words, listed

_MOST_SETTINGS = 3


def settings_of(runs: Sequence[ChargedRun]) -> list[Sentence]:
    """What was set, or nothing where nothing was."""
    held = [(charged, one) for charged in runs for one in charged.run.knobs]
    if not held:
        return []
    by_knobs: dict[tuple[Knobs, str], list[KnobsHeld]] = {}
    for _, one in held:
        by_knobs.setdefault((one.requested, one.plan if one.switches is not None else ""), []).append(one)
    texts = [_in_words(knobs, plan, some) for (knobs, plan), some in list(by_knobs.items())[:_MOST_SETTINGS]]
    with_knobs = sum(1 for charged in runs if charged.run.knobs)
    who = "The GPUs" if with_knobs == len(runs) else f"The GPUs of {count_in_words(with_knobs)} of the {count_in_words(len(runs))} runs"
    return [Sentence(f"{who} ran under {listed(texts)}; {_taken_back([one.requested for _, one in held])} at the end.")]


def _taken_back(all_knobs: Sequence[Knobs]) -> str:
    """Locked clocks of before cannot be read, so that clocks are unlocked and not put back."""
    limits = "the limits of before were set again" if any(knobs.power_cap_watts is not None for knobs in all_knobs) else ""
    clocks = "their clocks were unlocked" if any(knobs.has_clocks for knobs in all_knobs) else ""
    return " and ".join(part for part in (limits, clocks) if part)


def _in_words(knobs: Knobs, plan: str, some: Sequence[KnobsHeld]) -> str:
    parts = [_before(some), _held(some), _at_work(some)] if knobs.power_cap_watts is not None else []
    parts += [_turned(some), _seen(some)] if knobs.has_clocks else []
    told = [part for part in parts if part]
    name = plan or knobs.in_words()
    return f"{name} ({'; '.join(told)})" if told else name


def _turned(some: Sequence[KnobsHeld]) -> str:
    counts = [one.switches for one in some if one.switches is not None]
    return f"other clocks asked for {max(counts):,} times" if counts else ""


def _seen(some: Sequence[KnobsHeld]) -> str:
    """Medians of what boards really had; a lock has no getter, so that this is the only proof."""
    parts = []
    for name, clocks in (("cores", [one.sm_clock_mhz for one in some]), ("memory", [one.mem_clock_mhz for one in some])):
        known = sorted(mhz for mhz in clocks if mhz is not None)
        if known:
            parts.append(f"{name} at {known[0]:g} MHz" if known[0] == known[-1] else f"{name} at {known[0]:g} to {known[-1]:g} MHz")
    return f"seen while busy, in the median: {', '.join(parts)}" if parts else "which clocks the boards had was not seen"


def _before(some: Sequence[KnobsHeld]) -> str:
    watts = sorted({one.before_watts for one in some if one.before_watts is not None})
    if not watts:
        return ""
    return f"before: {watts[0]:g} W" if len(watts) == 1 else f"before: {watts[0]:g} to {watts[-1]:g} W"


def _held(some: Sequence[KnobsHeld]) -> str:
    if any(one.is_held is False for one in some):
        return "not kept to the end by every board"
    return "kept to the end" if all(one.is_held for one in some) else "whether it was kept is not known of every board"


def _at_work(some: Sequence[KnobsHeld]) -> str:
    known = [(one.capped_seconds, one.seconds) for one in some if one.capped_seconds is not None and one.seconds]
    if not known:
        return "how long clocks were lowered for it is not known"
    share = sum(capped for capped, _ in known) / sum(seconds for _, seconds in known)
    return f"clocks lowered for it in {percent(min(share, 1.0))} of the time"
