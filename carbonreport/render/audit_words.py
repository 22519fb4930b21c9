"""Small words and numbers of a report of a year."""

import re

from carbonreport.model.audit import Dimension, Energy, Group, outcome_words
from carbonreport.render.digits import plain, scaled, share_in_words
from carbonreport.units import JOULES_PER_KWH, MJ_PER_J, hours_from_microseconds

UNKNOWN = "unknown"
_LOOSE = re.compile(r"(?<=[0-9]) (?=(?:%|[kMG]?W|[kMG]?Wh|[kMG]?J|h|s|g|GPU-hours)(?![A-Za-z-]))")


def tied(text: str) -> str:
    """Prose whose numbers stay with their units at the end of a line."""
    return _LOOSE.sub("\u00a0", text)


def known_in_words(energy: Energy) -> str:
    """66 % measured, 34 % estimated."""
    parts = [(energy.measured_mj, "measured"), (energy.reported_mj, "reported"), (energy.estimated_mj, "estimated")]
    there = [(mj, word) for mj, word in parts if mj]
    if len(there) == 1:
        return there[0][1]
    return ", ".join(f"{share(mj, energy.it_mj)} {word}" for mj, word in there)


def share(part: float, whole: float) -> str:
    """A part of a whole: 64 %."""
    return share_in_words(part / whole) if whole else "0\u00a0%"


def coverage(group: Group) -> str:
    """How much of the GPU time has measured or reported energy."""
    return share(group.known_gpu_us, group.gpu_us) if group.gpu_us else "no GPU-hours"


def energy_text(millijoules: int) -> str:
    """Energy in the unit that suits its size."""
    return scaled(millijoules / MJ_PER_J, "J") if millijoules else "0\u00a0kWh"


def origin_or_nothing(energy: Energy | None) -> str:
    """How an energy is known; nothing of one that is not."""
    return "" if energy is None else known_in_words(energy)


def hours_text(gpu_us: float) -> str:
    """GPU-hours of GPU-microseconds."""
    hours = hours_from_microseconds(gpu_us)
    return f"{hours:,.0f}" if hours >= 100 else plain(hours)


def money(amount: float, currency: str) -> str:
    """An amount with its currency, three digits."""
    return f"{plain(amount)}\u00a0{currency}"


def table_unit(most_joules: float) -> tuple[str, float]:
    """The unit of a whole table: kWh or MWh."""
    return ("MWh", 1e3 * JOULES_PER_KWH) if most_joules >= 1e4 * JOULES_PER_KWH else ("kWh", JOULES_PER_KWH)


def label_of(name: str, dimension: Dimension) -> str:
    """The name of a group as it is printed."""
    return outcome_words(name) if dimension == "outcome" else name
