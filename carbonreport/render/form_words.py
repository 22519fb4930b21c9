"""Words that several forms share: what was not given, times, and the functional unit."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.model.footprint import Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.statement import Details
from carbonreport.render.digits import duration, plain
from carbonreport.render.setting import Group, Setting, is_timeless, is_too_short
from carbonreport.render.words import shortened
from carbonreport.units import hours

NOBREAK = "\u00a0"
NOT_GIVEN = "not given"


def unsaid(setting: Setting) -> str:
    """Why a site is not named."""
    return "withheld for review" if setting.is_anonymous else NOT_GIVEN


def said(text: str | None) -> str:
    """A fact on one line, or that nobody gave it."""
    return NOT_GIVEN if text is None else shortened(text, 120)


def time_in_words(footprint: Footprint) -> str:
    """12.4 h (49.6 GPU-hours)."""
    if is_timeless(footprint):
        return "a time that is not known"
    gpu_hours = f" ({plain(hours(footprint.gpu_seconds))}{NOBREAK}GPU-hours)" if footprint.gpu_seconds else ""
    return f"{duration(footprint.run_seconds)}{gpu_hours}"


def unanswered(details: Details) -> tuple[str, ...]:
    """What a form on compute resources asks for and nobody gave, each with the key that gives it."""
    memory, _, storage = details.memory.partition("; ")
    asked = (
        ("the cluster or cloud (site, in [place])", details.workers),
        ("memory of a worker (memory_gb)", memory),
        ("storage (storage)", storage),
        ("the compute of the whole project (project_gpu_hours)", details.project),
    )
    return tuple(what for what, text in asked if NOT_GIVEN in text)


# Functional unit


@dataclass(frozen=True, slots=True)
class FunctionalUnit:
    """What one use is, and what all of them together took.

    Attributes:
        name: "item of “answer”".
        items: How many were counted.
        facility_joules: Facility energy of the spans that counted them.
    """

    name: str
    items: float
    facility_joules: Quantity


def functional_unit(groups: Sequence[Group], setting: Setting) -> FunctionalUnit | None:
    """The items of the span that the functional unit names, by its path or the last part of it; None for a run."""
    unit = setting.facts.functional_unit
    if unit is None or unit.casefold() == "run":
        return None
    counting = [(group, span) for group in groups for span in group.footprint.spans if span.has_item_energy and not is_too_short(span)]
    named = [(group, span) for group, span in counting if span.path == unit]
    chosen = named or [(group, span) for group, span in counting if span.path.rpartition("/")[2] == unit]
    if len({span.path for _, span in chosen}) != 1:
        return None
    return FunctionalUnit(
        f"item of “{shortened(chosen[0][1].path, 40)}”", math.fsum(span.items or 0.0 for _, span in chosen), facility_part(chosen)
    )


def facility_part(chosen: Sequence[tuple[Group, SpanEnergy]]) -> Quantity:
    """Facility energy of spans; the errors of sensors and PUE are common to all of them, so that the ends add."""
    parts = [
        (group.footprint.facility_joules, (span.it_joules or 0.0) / group.footprint.it_joules.value)
        for group, span in chosen
        if group.footprint.it_joules.value
    ]
    value, low, high = (math.fsum(getattr(whole, end) * share for whole, share in parts) for end in ("value", "low", "high"))
    return Quantity(value, low, high, "J", "assumed", "use as in the records")
