"""Power usage effectiveness: facility energy over IT energy. Stdlib only: the tracer validates it at its start."""

import math
from dataclasses import dataclass

from carbonreport.errors import BadPue
from carbonreport.model.origin import Origin

MOST_YEARLY_PUE = 10.0  # server rooms reach 3; 12 and 15 are 1.2 and 1.5 without their point. Single hours of little load may be above


@dataclass(frozen=True, slots=True)
class PueProfile:
    """PUE of one facility.

    Attributes:
        value: Annual ratio of facility energy to IT energy, 1 or more.
        low: Lower end of its 90 % range.
        high: Upper end of its 90 % range.
        origin: "reported" where somebody gave it for this facility, "estimated" by a model of it, "assumed" for a class.
        source: Where it comes from, for the statement.
        has_range: Whether low and high were given (a bare number gets the seasonal error of an annual value instead).
        months: PUE of each local month, January first, or (); `value` is then their mean.
        hours: PUE of each local hour of the day, or (); with months its shape multiplies theirs.
        edges_s: Edges of a measured series, POSIX seconds, rising, or ().
        values: PUE within each of its intervals; one fewer than the edges.
    """

    value: float
    low: float
    high: float
    origin: Origin
    source: str
    has_range: bool = True
    months: tuple[float, ...] = ()
    hours: tuple[float, ...] = ()
    edges_s: tuple[float, ...] = ()
    values: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, given, count in (("months", self.months, 12), ("hours", self.hours, 24)):
            if given and len(given) != count:
                raise BadPue(f"PUE by {name} needs {count} values, not {len(given)}")
        if self.edges_s and len(self.edges_s) != len(self.values) + 1:
            raise BadPue(f"{len(self.edges_s)} edges for {len(self.values)} values of PUE")
        for value in (*self.months, *self.hours, *self.values):
            if not 1.0 <= value < 20.0:
                raise BadPue(f"PUE {value:g} is below 1 or not plausible; give facility energy / IT energy, such as 1.2")
        if not all(math.isfinite(x) for x in (self.low, self.value, self.high)):
            raise BadPue(f"PUE {self.value:g} is no number; give facility energy / IT energy, such as --pue 1.2")
        if not self.low <= self.value <= self.high:
            raise BadPue(f"PUE {self.value:g} lies outside its own range {self.low:g} to {self.high:g}")
        if self.low < 1.0:
            raise BadPue(
                f"PUE {self.low:g} is below 1: a facility cannot use less than its computers do; give facility energy / IT energy, such as --pue 1.2"
            )
        if not self.high < MOST_YEARLY_PUE:
            raise BadPue(
                f"PUE {self.high:g} is not plausible over a year, {MOST_YEARLY_PUE:g} and more; give facility energy / IT energy, such as --pue 1.2"
            )

    @property
    def varies(self) -> bool:
        """Whether it changes with time."""
        return bool(self.months or self.hours or self.edges_s)


# Published values and ranges, as collected in 2026: class -> (central, low, high, source).
PUE_CLASSES: dict[str, tuple[float, float, float, str]] = {
    "desktop": (1.00, 1.00, 1.10, "no facility around a desktop or laptop"),
    "hpc": (1.10, 1.03, 1.25, "liquid-cooled HPC centres (NREL ESIF 1.036, ORNL Summit by season)"),
    "aws": (1.14, 1.04, 1.46, "AWS global average 2025, range of its regions"),
    "azure": (1.17, 1.04, 1.46, "Microsoft fiscal year 2025, range of published regions"),
    "gcp": (1.10, 1.04, 1.46, "Google fleet average, range of published regions"),
    "meta": (1.08, 1.04, 1.46, "Meta fleet average, range of published regions"),
    "cloud": (1.25, 1.10, 1.60, "public cloud average (IDC, quoted by AWS)"),
    "datacentre": (1.54, 1.10, 2.00, "Uptime Institute survey 2025, unknown data centre"),
    "server-room": (1.63, 1.30, 2.50, "on-premises average (IDC, quoted by AWS)"),
}


def pue_of_class(name: str) -> PueProfile:
    """The published default of a class of facilities, with its range.

    Raises:
        BadPue: No such class.
    """
    if name not in PUE_CLASSES:
        raise BadPue(
            f"unknown PUE {name!r}: give a number (1.2), a range (1.1:1.5), a file (pue.csv), a region (aws:eu-central-1) or a class ({', '.join(PUE_CLASSES)})"
        )
    value, low, high, source = PUE_CLASSES[name]
    return PueProfile(value, low, high, "assumed", f"class {name}: {source}")


def pue_from_text(text: str, source: str = "given by the author") -> PueProfile:
    """PUE from "1.2", "1.1:1.5" (centre by the geometric mean), "1.1:1.2:1.5" (low, value, high) or a class name.

    Raises:
        BadPue: Not one of these, or below 1.
    """
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return pue_of_class(text)
    match numbers:
        case [value]:
            return PueProfile(value, value, value, "reported", source, has_range=False)
        case [low, high] if 0 < low <= high:
            return PueProfile((low * high) ** 0.5, low, high, "reported", source)
        case [low, value, high]:
            return PueProfile(value, low, high, "reported", source)
    raise BadPue(f"PUE {text!r} is not a number (1.2), a rising range (1.1:1.5) or a class ({', '.join(PUE_CLASSES)})")


SUMMER_MONTHS = (4, 5, 6, 7, 8, 9)
SUMMER_MONTHS_SOUTH = (10, 11, 12, 1, 2, 3)
DAY_HOURS = tuple(range(8, 20))


def pue_profile(
    months: tuple[float, ...] = (),
    hours: tuple[float, ...] = (),
    *,
    source: str,
    low: float | None = None,
    high: float | None = None,
) -> PueProfile:
    """PUE by local month, by local hour, or both; its value is the mean of what was given.

    Args:
        months: Twelve values, January first, or ().
        hours: Twenty-four values, midnight first, or ().
        source: Where they come from.
        low: Lower end of the 90 % range of the mean; the value's own where nobody gave one.
        high: Upper end of the same.

    Raises:
        BadPue: Wrong number of values, or one below 1.
    """
    given = months or hours
    if not given:
        raise BadPue("a PUE profile needs months or hours")
    value = sum(given) / len(given)
    return PueProfile(value, min(low or value, value), max(high or value, value), "reported", source, True, months, hours)


def two_seasons(summer: float, winter: float, *, is_south: bool = False) -> tuple[float, ...]:
    """Twelve months out of two numbers: the warm half of the year (April to September, in the south October to March) and the cold one."""
    warm = SUMMER_MONTHS_SOUTH if is_south else SUMMER_MONTHS
    return tuple(summer if month in warm else winter for month in range(1, 13))


def day_and_night(day: float, night: float) -> tuple[float, ...]:
    """Twenty-four hours out of two numbers: day from 8:00 to 20:00 local time, and night."""
    return tuple(day if hour in DAY_HOURS else night for hour in range(24))
