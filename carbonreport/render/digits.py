"""How many digits a number deserves: they follow its interval.

Half the interval to one significant digit (two if it begins with 1), the value to the same place, three digits at most. Where the
interval spans more than a factor of two, one digit (two if it begins with 1) and the range in front; beyond ten "about" stands before
it, and from a hundred on only the order of magnitude is left. A PUE is a published datum: it keeps its two decimals.
"""

import math
from dataclasses import dataclass

from carbonreport.model.quantity import Quantity
from carbonreport.units import JOULES_PER_KWH, SECONDS_PER_HOUR, hours

_ENERGY_UNITS = (
    ("GWh", 1e6 * JOULES_PER_KWH),
    ("MWh", 1e3 * JOULES_PER_KWH),
    ("kWh", JOULES_PER_KWH),
    ("Wh", 1e-3 * JOULES_PER_KWH),
    ("J", 1.0),
    ("mJ", 1e-3),
)
_MASS_UNITS = (("tCO₂e", 1e6), ("kgCO₂e", 1e3), ("gCO₂e", 1.0), ("mgCO₂e", 1e-3))
_CO2_UNITS = (("tCO₂", 1e6), ("kgCO₂", 1e3), ("gCO₂", 1.0), ("mgCO₂", 1e-3))
_WATER_UNITS = (("m³", 1e3), ("L", 1.0), ("mL", 1e-3))
_SCALES = {
    "J": _ENERGY_UNITS,
    "gCO2e": _MASS_UNITS,
    "gCO2": _CO2_UNITS,
    "gCO2e/kWh": (("gCO₂e/kWh", 1.0),),
    "gCO2/kWh": (("gCO₂/kWh", 1.0),),
    "L": _WATER_UNITS,
    "1": (("", 1.0),),
}
_UNITS_OF_ZERO = ("kWh", "gCO₂e", "gCO₂", "gCO₂e/kWh", "gCO₂/kWh", "L", "")

_WIDE = 2.0  # high / low above which one digit and the range in front are all that is honest
_VERY_WIDE = 10.0  # above which the digit is no more than "about"
_BOUNDLESS = 100.0 * (1 - 1e-9)  # from which on only the order of magnitude is honest
_RATIO, _DECIMALS_OF_RATIO = "1", 2
_MOST_DIGITS = 3
_SMALLEST_PART = 0.1  # of a unit: a smaller part is not written in the unit of the whole
_LEAST_SHARE = 0.005  # a smaller one would be printed as 0 %
_SPACE = "\u00a0"  # a number and its unit stay on one line


@dataclass(frozen=True, slots=True)
class Shown:
    """A quantity as text.

    Attributes:
        value: Rounded value without unit.
        low: Rounded lower end.
        high: Rounded upper end.
        unit: Unit of all three, or "".
        is_range: Whether the range says more than the value.
    """

    value: str
    low: str
    high: str
    unit: str
    is_range: bool

    @property
    def with_unit(self) -> str:
        """15.1 kWh."""
        return _with_unit(self.value, self.unit)

    @property
    def interval(self) -> str:
        """14.9–16.3, or nothing where the value is exact."""
        return "" if self.low == self.value == self.high else f"{self.low}–{self.high}"

    @property
    def sentence(self) -> str:
        """15.1 kWh [14.9, 16.3]; or 5–15 kgCO₂e (central value 8)."""
        if self.is_range:
            return f"{_with_unit(self.interval, self.unit)} (central value {self.value})"
        return f"{self.with_unit} [{self.low}, {self.high}]" if self.interval else self.with_unit

    def with_aside(self, aside: str) -> str:
        """The sentence with a remark, in the brackets that it has already or in its own."""
        return f"{self.sentence[:-1]}; {aside})" if self.is_range else f"{self.sentence} ({aside})"

    @property
    def compact(self) -> str:
        """15.1 (14.9–16.3) kWh, for a cell."""
        return _with_unit(f"{self.value} ({self.interval})", self.unit) if self.interval else self.with_unit


def shown(quantity: Quantity, *, beside: Quantity | None = None) -> Shown:
    """A quantity in the unit that suits its size, with the digits that its interval allows.

    Args:
        quantity: What to print.
        beside: The whole that it is printed beside: a part that is not tiny takes its unit.
    """
    unit, size = _unit_for(quantity)
    if beside is not None:
        unit_beside, size_beside = _unit_for(beside)
        if abs(quantity.value) >= _SMALLEST_PART * size_beside:
            unit, size = unit_beside, size_beside
    value, low, high = quantity.value / size, quantity.low / size, quantity.high / size
    if low == value == high == 0:
        return Shown("0", "0", "0", unit, False)
    if quantity.unit == _RATIO:
        value_text, low_text, high_text = (_at(x, _DECIMALS_OF_RATIO) for x in (value, low, high))
        return Shown(value_text, low_text, high_text, unit, False)
    if _is_wide(quantity):
        return Shown(_central(value, low, high), _rough(low), _rough(high), unit, True)
    place = _place((high - low) / 2, value)
    return Shown(_at(value, place), _at(low, place), _at(high, place), unit, False)


def spread_shown(mean: Quantity) -> Shown:
    """A mean with the least and the most that were seen. These are no interval: however wide they are, the mean keeps its digits.

    Args:
        mean: The mean, with the least and the most as its two ends.
    """
    if mean.high <= _WIDE * mean.low:
        return shown(mean)
    unit, size = unit_of(mean.unit, mean.value)
    value, low, high = mean.value / size, mean.low / size, mean.high / size
    place = _MOST_DIGITS - 1 - _exponent(value)
    low_text = _at(low, place) if low == 0 or round(low, place) else _rough(low)
    return Shown(_at(value, place), low_text, _at(high, place), unit, False)


def plain(value: float, digits: int = _MOST_DIGITS) -> str:
    """A number without an interval, rounded to significant digits."""
    return _significant(value, digits)


def counted(items: float) -> str:
    """Items with thousands separated; whole where they are whole but for the rounding of a sum, or too many for parts to matter."""
    is_whole = abs(items - round(items)) <= 1e-9 * abs(items)
    return f"{items:,.0f}" if is_whole or items >= 1000 else f"{items:,.6g}"


def percent(share: float) -> str:
    """0.64 as 64 %."""
    return f"{share * 100:.0f}{_SPACE}%"


def share_in_words(share: float) -> str:
    """64 %; under 1 % and over 99 % where rounding would make nothing, or all, of a part."""
    if 0 < share < _LEAST_SHARE:
        return f"under 1{_SPACE}%"
    if 1 - _LEAST_SHARE < share < 1:
        return f"over 99{_SPACE}%"
    return percent(share)


def scaled(value: float, unit: str) -> str:
    """A value without an interval in the unit that suits its size: 0.73 J, 1.2 kWh."""
    name, size = unit_of(unit, value)
    return _with_unit(_significant(value / size, _MOST_DIGITS), name)


def mass_name(unit: str) -> str:
    """A gram of what is counted, as it is printed: gCO₂e, or gCO₂ for CO2 alone."""
    return unit.replace("CO2", "CO₂")


def duration(seconds: float) -> str:
    """35 s, 42 min, 12.4 h."""
    if seconds < 120:
        return _with_unit(_significant(seconds, 2), "s")
    if seconds < 2 * SECONDS_PER_HOUR:
        return _with_unit(_significant(seconds / 60, 2), "min")
    return _with_unit(_significant(hours(seconds), _MOST_DIGITS), "h")


def _with_unit(text: str, unit: str) -> str:
    return f"{text}{_SPACE}{unit}" if unit else text


def _is_wide(quantity: Quantity) -> bool:
    return quantity.low > 0 and quantity.high / quantity.low > _WIDE


def _unit_for(quantity: Quantity) -> tuple[str, float]:
    """By the value; by the upper end where the range stands in front, so that it has no needless zeros."""
    return unit_of(quantity.unit, quantity.high if _is_wide(quantity) else quantity.value)


def unit_of(unit: str, value: float) -> tuple[str, float]:
    """Largest unit in which the value is at least 1; the smallest for anything below, the middle one for 0."""
    scale = _SCALES[unit]
    if value == 0:
        return next((name, size) for name, size in scale if name in _UNITS_OF_ZERO)
    return next(((name, size) for name, size in scale if abs(value) >= 0.9995 * size), scale[-1])


def _place(half_width: float, value: float) -> int:
    """Decimal place of the last digit: half the interval to one digit, two if it begins with 1, at most three digits of the value."""
    most = _MOST_DIGITS - 1 - _exponent(value)
    if half_width <= abs(value) * 1e-9:
        return most
    return min(_lead(half_width) - 1 - _exponent(half_width), most) if value else _lead(half_width) - 1 - _exponent(half_width)


def _lead(x: float) -> int:
    """Two digits for a number that begins with 1, else one."""
    return 2 if f"{abs(x):e}".startswith("1") else 1


def _exponent(x: float) -> int:
    """Power of ten of the first digit, as a number is printed: 0.99999999 counts as 1."""
    return int(f"{x:e}".partition("e")[2])


def _at(x: float, place: int) -> str:
    """Rounded at a decimal place, with thousands separated: 1,289 or 0.30."""
    rounded = round(x, place)
    return f"{rounded if rounded else 0.0:,.{max(place, 0)}f}"  # no minus before a zero


def _rough(x: float) -> str:
    """One significant digit, two if it begins with 1."""
    return _significant(x, _lead(x))


def _significant(x: float, digits: int) -> str:
    if x == 0:
        return "0"
    rounded = round(x, digits - 1 - _exponent(x))
    return _at(rounded, digits - 1 - _exponent(rounded))


def _central(x: float, low: float, high: float) -> str:
    """The value inside a wide interval."""
    if high / low <= _VERY_WIDE:
        return _rough(x)
    return f"about {_significant(x, 1)}" if high / low < _BOUNDLESS else _order(x, low, high)


def _order(x: float, low: float, high: float) -> str:
    """The power of ten nearest to x among those inside the interval, which spans one at least."""
    inside = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    power = min(inside, key=lambda n: abs(n - math.log10(x)))
    return f"about {_at(10.0**power, max(-power, 0))}"
