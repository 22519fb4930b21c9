"""Rows that add up: one unit and one last digit for all of them, so that what is shown adds up, too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from carbonreport.model.audit import Group, Priced
from carbonreport.model.quantity import Quantity
from carbonreport.render.digits import unit_of

_DIGITS, _MORE_DIGITS = 3, 2  # of the total at least; how many more where the shown parts would not add up
_ALIKE = 0.1  # of a unit: a total that is not much smaller is shown in it

Sum = tuple[float, Sequence[float]]  # a total and its parts


@dataclass(frozen=True, slots=True)
class Scale:
    """How the rows of a sum are shown.

    Attributes:
        unit: Its name.
        size: Of it. [J or g]
        place: Decimal places.
    """

    unit: str
    size: float
    place: int

    def number(self, value: float) -> str:
        """9.53 without its unit; "under 0.01" of a part too small for the last digit."""
        rounded = round(value / self.size, self.place)
        if value == 0:
            return "0"
        return f"{rounded:,.{self.place}f}" if rounded else f"under {10.0**-self.place:.{self.place}f}"

    def text(self, value: float) -> str:
        """9.53 MWh."""
        return f"{self.number(value)}\u00a0{self.unit}"

    def ends(self, quantity: Quantity) -> str:
        """10.7–13.1: the interval to two digits of its half width; nothing of an exact value."""
        low, high = quantity.low / self.size, quantity.high / self.size
        if low == high:
            return ""
        places = [1 - _exponent((high - low) / 2), *([-_exponent(low)] if low > 0 else [])]
        place = max(min(places[0], self.place), *places[1:], 0)
        return f"{low:,.{place}f}–{high:,.{place}f}"


def energy_scale(sums: Sequence[Sum], *, like: Scale | None = None, unit: tuple[str, float] | None = None) -> Scale:
    """The scale of energies that add up.

    Args:
        sums: Totals in joules with their parts; each total gets three digits at least, and the parts add up to it within its last one.
        like: The scale of the figures beside them, whose unit suits unless these are much smaller.
        unit: Name and size, where the table has one.
    """
    largest = max((abs(total) for total, _ in sums), default=0.0)
    if like is not None and largest >= _ALIKE * like.size:
        unit = like.unit, like.size
    return _scale(unit or unit_of("J", largest), sums)


def finest(scale: Scale, sums: Sequence[Sum]) -> Scale:
    """The same scale with as many more digits, up to two, as the parts need to add up."""
    shown = [(total / scale.size, [part / scale.size for part in parts]) for total, parts in sums]
    places = range(scale.place, scale.place + _MORE_DIGITS + 1)
    return replace(scale, place=next((place for place in places if all(_adds_up(one, place) for one in shown)), places[-1]))


def mass_scale(total: float, parts: Sequence[float], gas: str) -> Scale:
    """The scale of emissions that add up.

    Args:
        total: In grams.
        parts: In grams.
        gas: Such as "gCO2e".
    """
    return _scale(unit_of(gas, total), [(total, parts)])


def year_scale(priced: Priced, *, like: Scale | None = None) -> Scale:
    """The scale of a year's energies: those of jobs, idle and unattributed are the IT energy, and that with the overhead the facility's."""
    year, whole = priced.year, priced.year.whole
    parts = [year.jobs.energy.it_joules, year.idle.it_joules, *(energy.it_joules for _, energy in year.unattributed)]
    return energy_scale(
        [(whole.it_joules, parts), (whole.facility_joules, [whole.it_joules, overhead(whole.facility_joules, whole.it_joules)])], like=like
    )


def groups_scales(groups: Sequence[Group], unit: tuple[str, float], gas: str) -> tuple[Scale, Scale]:
    """The scales of energies and of emissions of groups of jobs."""
    energies = [group.energy for group in groups]
    it, facility, grams = (
        [energy.it_joules for energy in energies],
        [energy.facility_joules for energy in energies],
        [energy.grams for energy in energies],
    )
    return energy_scale([(sum(it), it), (sum(facility), facility)], unit=unit), mass_scale(sum(grams), grams, gas)


def overhead(facility_joules: float, it_joules: float) -> float:
    """What the facility uses beside the IT. [J]"""
    return max(facility_joules - it_joules, 0.0)


def _scale(unit: tuple[str, float], sums: Sequence[Sum]) -> Scale:
    name, size = unit
    least = min((abs(total) / size for total, _ in sums if total), default=0.0)
    return finest(Scale(name, size, max(_DIGITS - 1 - _exponent(least), 0) if least else 0), sums)


def _adds_up(one: Sum, place: int) -> bool:
    scaled = [round(value * 10.0**place) for value in (one[0], *one[1])]
    return abs(scaled[0] - sum(scaled[1:])) <= 1


def _exponent(value: float) -> int:
    return math.floor(math.log10(float(f"{value:.2e}")))
