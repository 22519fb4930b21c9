"""Unit conversions. Inside the package everything is W, J, s, gCO2e and UTC."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from carbonreport.model.series import Array

JOULES_PER_KWH = 3.6e6
SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 24 * SECONDS_PER_HOUR
SECONDS_PER_YEAR = 365.0 * SECONDS_PER_DAY
QUARTER_HOUR_S = 900.0

# Whole microseconds and whole millijoules (mj, never megajoules), where sums must be exact.
US_PER_S, US_PER_MS, NS_PER_US = 1_000_000, 1_000, 1_000
MINUTE_US = 60 * US_PER_S
HOUR_US = 3_600 * US_PER_S
MJ_PER_J = 1_000
MJ_PER_KWH = MJ_PER_J * JOULES_PER_KWH
WATT_US_PER_MJ = US_PER_S // MJ_PER_J

# A float or an array: everything with it is elementwise.
N = TypeVar("N", float, "Array")


def kwh(joules: N) -> N:
    """Kilowatt-hours from joules."""
    return joules / JOULES_PER_KWH


def hours(seconds: N) -> N:
    """Hours from seconds."""
    return seconds / SECONDS_PER_HOUR


def days(seconds: N) -> N:
    """Days from seconds."""
    return seconds / SECONDS_PER_DAY


def hours_from_microseconds(microseconds: float) -> float:
    """Hours, such as GPU-hours, from microseconds."""
    return microseconds / HOUR_US


def kwh_from_millijoules(millijoules: float) -> float:
    """Kilowatt-hours from millijoules."""
    return millijoules / MJ_PER_KWH


def mwh(joules: N) -> N:
    """Megawatt-hours from joules."""
    return joules / (1e3 * JOULES_PER_KWH)


def watts_from_milliwatts(milliwatts: float) -> float:
    """Watts from the milliwatts that NVML reports."""
    return milliwatts * 1e-3


def joules_from_millijoules(millijoules: float) -> float:
    """Joules from the millijoules that NVML reports."""
    return millijoules * 1e-3


def joules_from_microjoules(microjoules: float) -> float:
    """Joules from the microjoules that powercap reports."""
    return microjoules * 1e-6


def seconds_from_microseconds(microseconds: float) -> float:
    """Seconds from the microsecond stamps of NVML samples."""
    return microseconds * 1e-6


def seconds_from_nanoseconds(nanoseconds: int) -> float:
    """Seconds from a nanosecond clock reading."""
    return nanoseconds * 1e-9


def grams_from_kilograms(kg: float) -> float:
    """Grams from kilograms."""
    return kg * 1e3


def kilograms(grams: float) -> float:
    """Kilograms from grams."""
    return grams / 1e3


def grams_per_kwh_from_pounds_per_mwh(pounds_per_mwh: float) -> float:
    """Grams per kWh from the pounds per MWh of North American grids; a pound is 453.59237 g."""
    return pounds_per_mwh * 0.45359237
