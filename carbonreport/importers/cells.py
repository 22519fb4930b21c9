"""What a cell says: a number, its unit, or nothing."""

import re
from functools import lru_cache

from carbonreport.units import JOULES_PER_KWH, SECONDS_PER_HOUR

WATTS = {
    "w": 1.0,
    "watt": 1.0,
    "watts": 1.0,
    "mw": 1e-3,
    "milliwatt": 1e-3,
    "milliwatts": 1e-3,
    "kw": 1e3,
    "uw": 1e-6,
    "µw": 1e-6,
    "microwatts": 1e-6,
}
JOULES = {
    "j": 1.0,
    "joule": 1.0,
    "joules": 1.0,
    "mj": 1e-3,
    "millijoules": 1e-3,
    "uj": 1e-6,
    "µj": 1e-6,
    "kj": 1e3,
    "wh": SECONDS_PER_HOUR,
    "mwh": SECONDS_PER_HOUR * 1e-3,
    "kwh": JOULES_PER_KWH,
}
SECONDS = {
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "seconds": 1.0,
    "second": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "ns": 1e-9,
    "min": 60.0,
    "h": SECONDS_PER_HOUR,
}

_MISSING = {
    "",
    "-",
    "--",
    "n/a",
    "na",
    "nan",
    "none",
    "null",
    "unknown",
    "err!",
    "inf",
    "+inf",
    "-inf",
    "infinity",
    "not supported",
    "not available",
}
_QUANTITY = re.compile(r"([+-]?(?:\d[\d.,]*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)", re.IGNORECASE | re.DOTALL)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")


def joules_from_kwh(kilowatt_hours: float) -> float:
    """Joules from the kilowatt-hours that most tools write."""
    return kilowatt_hours * JOULES_PER_KWH


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value: blank, a dash, [N/A], NaN, [Not Supported], any text in brackets."""
    text = cell.strip()
    return (text.startswith("[") and text.endswith("]")) or text.strip("[]<> ").casefold() in _MISSING


def number(cell: str, *, comma_is_point: bool = False) -> float | None:
    """The number in a cell, without its unit; None where there is none or it could be read in two ways."""
    return quantity(cell, comma_is_point=comma_is_point)[0]


@lru_cache(maxsize=4096)
def quantity(cell: str, *, comma_is_point: bool = False) -> tuple[float | None, str]:
    """Number and unit of a cell; (None, "") where there is none. A comma before three digits is ambiguous and refused.

    Args:
        cell: "33.09 W", "26,11", "1.5e3".
        comma_is_point: Whether the table separates by something else, so that commas are decimal.
    """
    text = cell.strip()
    if is_missing(text) or "_" in text:  # float() would take 1_0 for 10
        return None, ""
    try:
        return _finite(float(text)), ""
    except ValueError:
        pass
    found = _QUANTITY.fullmatch(text)
    if found is None:
        return None, ""
    return _value(found.group(1), comma_is_point), found.group(2).strip()


def _value(digits: str, comma_is_point: bool) -> float | None:
    if "," in digits:
        if "." in digits and digits.rindex(".") > digits.rindex(","):
            digits = digits.replace(",", "")
        elif "." in digits or comma_is_point:
            digits = digits.replace(".", "").replace(",", ".")
        elif _THOUSANDS.fullmatch(digits):
            return None
        else:
            digits = digits.replace(",", ".")
    try:
        return _finite(float(digits))
    except ValueError:
        return None


def _finite(value: float) -> float | None:
    return value if abs(value) < 1e300 else None  # NaN fails too
