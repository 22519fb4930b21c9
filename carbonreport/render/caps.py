"""What was set on GPUs, in one sentence: cap, limit before, whether it held and how long it was at work."""

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
    by_knobs: dict[Knobs, list[KnobsHeld]] = {}
    for _, one in held:
        by_knobs.setdefault(one.requested, []).append(one)
    texts = [_in_words(knobs, some) for knobs, some in list(by_knobs.items())[:_MOST_SETTINGS]]
    with_knobs = sum(1 for charged in runs if charged.run.knobs)
    who = "The GPUs" if with_knobs == len(runs) else f"The GPUs of {count_in_words(with_knobs)} of the {count_in_words(len(runs))} runs"
    return [Sentence(f"{who} ran under {listed(texts)}; the limits of before were set again at the end.")]


def _in_words(knobs: Knobs, some: Sequence[KnobsHeld]) -> str:
    parts = [part for part in (_before(some), _held(some), _at_work(some)) if part] if knobs.power_cap_watts is not None else []
    return f"{knobs.in_words()} ({'; '.join(parts)})" if parts else knobs.in_words()


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
