"""What a site says of its water."""

import math
from dataclasses import dataclass

_MOST_LITRES = 1000.0


@dataclass(frozen=True, slots=True)
class WaterUse:
    """Water usage effectiveness: litres that the facility uses for a kWh of IT energy (ISO/IEC 30134-9).

    Attributes:
        litres_per_kwh: Litres for each kWh of IT energy. [L/kWh]
        low: Lower end of its 90 % range, or None where nobody gave one. [L/kWh]
        high: Upper end, or None. [L/kWh]
        source: Where it comes from.
    """

    litres_per_kwh: float
    low: float | None
    high: float | None
    source: str

    def __post_init__(self) -> None:
        value = self.litres_per_kwh
        if not (math.isfinite(value) and 0 <= value < _MOST_LITRES):
            raise ValueError(f"wue_litres_per_kwh {value:g}: give litres for each kWh of IT energy, such as 0.3")
        low, high = self.ends
        if not (math.isfinite(high) and 0 <= low <= value <= high):
            raise ValueError(f"wue_litres_per_kwh {value:g} lies outside its own range {low:g} to {high:g}")

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the range; the value itself where nobody gave one. [L/kWh]"""
        return (self.litres_per_kwh if self.low is None else self.low, self.litres_per_kwh if self.high is None else self.high)
