"""How many digits a number deserves: they follow its interval (method, section 3)."""

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
_SCALES = {"J": _ENERGY_UNITS, "gCO2e": _MASS_UNITS, "gCO2e/kWh": (("gCO₂e/kWh", 1.0),), "1": (("", 1.0),)}

_WIDE = 2.0  # high / low above which one digit and the range in front are all that is honest
_VERY_WIDE = 10.0  # above which only the order of magnitude is
_MOST_DIGITS = 3
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
            return f"{_with_unit(f'{self.low}–{self.high}', self.unit)} (central value {self.value})"
        return self.with_unit if not self.interval else f"{self.with_unit} [{self.low}, {self.high}]"


def shown(quantity: Quantity) -> Shown:
    """A quantity in the unit that suits its size, with the digits that its interval allows."""
    unit, size = _unit_of(quantity.unit, quantity.value)
    value, low, high = quantity.value / size, quantity.low / size, quantity.high / size
    if low > 0 and high / low > _WIDE:
        text = _significant(value, _lead(value)) if high / low <= _VERY_WIDE else _order(value)
        return Shown(text, _significant(low, _lead(low)), _significant(high, _lead(high)), unit, True)
    place = _place((high - low) / 2, value)
    return Shown(_at(value, place), _at(low, place), _at(high, place), unit, False)


def plain(value: float, digits: int = 3) -> str:
    """A number without an interval, rounded to significant digits."""
    return _significant(value, digits)


def counted(items: float) -> str:
    """Items: whole numbers in full, with thousands separated."""
    return f"{items:,.0f}" if items == int(items) else f"{items:,.6g}"


def scaled(value: float, unit: str) -> str:
    """A value without an interval in the unit that suits its size: 0.73 J, 1.2 kWh."""
    name, size = _unit_of(unit, value)
    return _with_unit(_significant(value / size, _MOST_DIGITS), name)


def duration(seconds: float) -> str:
    """35 s, 42 min, 12.4 h."""
    if seconds < 120:
        return _with_unit(_significant(seconds, 2 if seconds >= 10 else 3) if seconds else "0", "s")
    if seconds < 2 * SECONDS_PER_HOUR:
        return _with_unit(_significant(seconds / 60, 2), "min")
    return _with_unit(_significant(hours(seconds), _MOST_DIGITS), "h")


def _with_unit(text: str, unit: str) -> str:
    return f"{text}{_SPACE}{unit}" if unit else text


def _unit_of(unit: str, value: float) -> tuple[str, float]:
    """Largest unit in which the value is at least 1; the smallest for anything below, the middle one for 0."""
    scale = _SCALES[unit]
    if value == 0:
        return next((name, size) for name, size in scale if name in ("kWh", "gCO₂e", "gCO₂e/kWh", ""))
    return next(((name, size) for name, size in scale if abs(value) >= 0.9995 * size), scale[-1])


def _place(half_width: float, value: float) -> int:
    """Decimal place of the last digit: half the interval to one digit, two if it begins with 1, at most three digits of the value."""
    most = _MOST_DIGITS - 1 - _exponent(value)
    if half_width <= abs(value) * 1e-9:
        return most
    return min(_lead(half_width) - 1 - _exponent(half_width), most)


def _lead(x: float) -> int:
    """Two digits for a number that begins with 1, else one."""
    return 2 if f"{abs(x):e}".startswith("1") else 1


def _exponent(x: float) -> int:
    return 0 if x == 0 else math.floor(math.log10(abs(x)))


def _at(x: float, place: int) -> str:
    """Rounded at a decimal place, with thousands separated: 1,289 or 0.30."""
    return f"{round(x, place):,.{max(place, 0)}f}"


def _significant(x: float, digits: int) -> str:
    if x == 0:
        return "0"
    place = digits - 1 - _exponent(x)
    rounded = round(x, place)
    return _at(rounded, digits - 1 - _exponent(rounded))


def _order(x: float) -> str:
    """The nearest power of ten."""
    return f"about {_at(10.0 ** round(math.log10(x)), 0 if x >= 1 else -round(math.log10(x)))}" if x > 0 else "0"
