"""A number that says how it is known."""

import math
from dataclasses import dataclass

from carbonreport.errors import UnitMix
from carbonreport.model.origin import Origin, weakest


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its 90 % interval, origin and source.

    Attributes:
        value: Central value, in `unit`.
        low: Lower end of the 90 % interval.
        high: Upper end of the 90 % interval.
        unit: "J", "gCO2e" or "gCO2" (CO2 alone), the same per kWh, "L" (water), "1" for ratios.
        origin: How the weakest part above a 1 % share is known.
        source: Name and version of the data or meter, for the statement.
        family: What may be added to it: "location-based" never meets "market-based".
    """

    value: float
    low: float
    high: float
    unit: str
    origin: Origin
    source: str
    family: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)):
            raise ValueError(f"not a finite quantity: {self.value!r} [{self.low!r}, {self.high!r}] {self.unit}")
        slack = 1e-9 * max(abs(self.value), abs(self.low), abs(self.high))
        if not self.low - slack <= self.value <= self.high + slack:
            raise ValueError(f"value {self.value!r} outside its interval [{self.low!r}, {self.high!r}] {self.unit}")

    def __add__(self, other: "Quantity") -> "Quantity":
        """Sum of two independent quantities of one unit and family; the margins add in quadrature.

        Raises:
            UnitMix: Units or families differ: location-based and market-based totals are never added.
        """
        for name in ("unit", "family"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise UnitMix(
                    f"cannot add {theirs or 'a quantity without family'} to {mine or 'a quantity without family'}: report them side by side"
                )
        value = self.value + other.value
        below = math.hypot(self.value - self.low, other.value - other.low)
        above = math.hypot(self.high - self.value, other.high - other.value)
        sources = self.source if self.source == other.source else f"{self.source}; {other.source}"
        return Quantity(value, value - below, value + above, self.unit, weakest(self.origin, other.origin), sources, self.family)
