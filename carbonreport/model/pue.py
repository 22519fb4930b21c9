"""Power usage effectiveness: facility energy over IT energy. Stdlib only: the tracer validates it at its start."""

import math
from dataclasses import dataclass

from carbonreport.errors import BadPue
from carbonreport.model.origin import Origin


@dataclass(frozen=True, slots=True)
class PueProfile:
    """PUE of one facility.

    Attributes:
        value: Annual ratio of facility energy to IT energy, 1 or more.
        low: Lower end of its 90 % range.
        high: Upper end of its 90 % range.
        origin: "reported" where somebody gave it for this facility, "assumed" for a class.
        source: Where it comes from, for the statement.
        has_range: Whether low and high were given (a bare number gets the seasonal error of an annual value instead).
    """

    value: float
    low: float
    high: float
    origin: Origin
    source: str
    has_range: bool = True

    def __post_init__(self) -> None:
        if not all(math.isfinite(x) for x in (self.low, self.value, self.high)):
            raise BadPue(f"PUE {self.value:g} is no number; give facility energy / IT energy, such as --pue 1.2")
        if not self.low <= self.value <= self.high:
            raise BadPue(f"PUE {self.value:g} lies outside its own range {self.low:g} to {self.high:g}")
        if self.low < 1.0:
            raise BadPue(
                f"PUE {self.low:g} is below 1: a facility cannot use less than its computers do; give facility energy / IT energy, such as --pue 1.2"
            )
        if not self.high < 20.0:
            raise BadPue(f"PUE {self.high:g} is not plausible; give facility energy / IT energy, such as --pue 1.2")


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
        raise BadPue(f"unknown PUE {name!r}: give a number (1.2), a range (1.1:1.5) or a class ({', '.join(PUE_CLASSES)})")
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
