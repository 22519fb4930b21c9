"""What the energy was for: an item, runs that prepared others, and the whole project beside these runs."""

from collections.abc import Sequence

from carbonreport.model.footprint import Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import RunKind
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import counted, percent, plain, scaled, shown
from carbonreport.render.setting import Group, Setting, is_too_short, is_unread
from carbonreport.render.words import capital, in_scale, listed, shortened
from carbonreport.units import hours

_NOBREAK = "\u00a0"
_PREPARATION: tuple[RunKind, ...] = ("search", "preliminary", "failed")
_MOST_SPANS = 3


def per_item(groups: Sequence[Group]) -> list[Sentence]:
    """Energy of an item in each span that counts some."""
    texts = []
    for group in groups:
        for span in sorted(group.footprint.spans, key=lambda s: s.path.count("/")):
            if span.items and span.has_item_energy and not is_too_short(span):
                texts.append(f"{item_energy(group, span)} per item in “{shortened(span.path, 40)}” ({counted(span.items)} items)")
    return [Sentence(f"IT energy was {listed(texts[:_MOST_SPANS])}.")] if texts else []


def item_energy(group: Group, span: SpanEnergy, items: float = 1.0) -> str:
    """IT energy of so many items, with the digits that the interval of the span's energy allows; in words where it is not known."""
    joules_per_item = span.joules_per_item
    if is_unread(group.footprint) or joules_per_item is None:
        return "not known"
    if is_too_short(span):
        return "too short to read"
    whole, joules = group.footprint.it_joules, joules_per_item * items
    if not span.it_joules or span.it_joules_low is None or span.it_joules_high is None:
        return scaled(joules, "J")
    low, high = joules * span.it_joules_low / span.it_joules, joules * span.it_joules_high / span.it_joules
    return shown(Quantity(joules, low, high, "J", whole.origin, whole.source)).with_unit


def preparation_shares(groups: Sequence[Group]) -> tuple[list[RunKind], float, float]:
    """Kinds of preparation among the groups, their facility energy, and that of all groups. [J]"""
    joules = {group.kind: 0.0 for group in groups}
    for group in groups:
        joules[group.kind] += group.footprint.facility_joules.value
    kinds = [kind for kind in _PREPARATION if kind in joules]
    return kinds, sum(joules[kind] for kind in kinds), sum(joules.values())


def preparation(groups: Sequence[Group]) -> list[Sentence]:
    """Search, failed and preliminary runs beside the reported ones."""
    kinds, before, whole = preparation_shares(groups)
    if not kinds or before in (0, whole):
        return []
    return [
        Sentence(
            f"Of the energy, {percent(before / whole)} went into {listed(kinds)} runs: the whole is {plain(whole / (whole - before), 2)} times that of the reported runs."
        )
    ]


def project(footprint: Footprint, setting: Setting) -> list[Sentence]:
    """The whole project beside these runs, where the author gave it."""
    return [] if setting.facts.project_gpu_hours is None else [Sentence(f"{capital(project_hours(footprint, setting))}.")]


def project_hours(footprint: Footprint, setting: Setting) -> str:
    """The author's GPU-hours of the whole project beside those of these runs, without a full stop."""
    facts = setting.facts
    runs = f" in {counted(facts.runs)} run{'s' if facts.runs != 1 else ''}" if facts.runs else ""
    if facts.project_gpu_hours is None:
        return f"whether the whole project{runs} used more compute than these runs: not given"
    used = f"the whole project{runs} used {in_scale(facts.project_gpu_hours)}{_NOBREAK}GPU-hours"
    if not footprint.gpu_seconds:
        return used
    return f"{used}, {plain(facts.project_gpu_hours / hours(footprint.gpu_seconds), 2)} times those of these runs"
