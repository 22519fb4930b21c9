"""A zone's typical year in numbers that a person can judge: day curve, swing, and how far to trust them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from carbonreport.combine.intervals import Z90, grid_sd
from carbonreport.errors import UnknownZone
from carbonreport.grid.sources.embedded import LEAST_DIRECT_SHARE, EmbeddedGrid
from carbonreport.grid.zones import DATA, ZoneRow, all_zones, resolve_zone
from carbonreport.model.series import Array, GridErrors, SeasonalProfile
from carbonreport.units import SECONDS_PER_HOUR

# Lengths of runs for which the trust is told. [h]
LENGTHS_H = (1, 24, 168, 720)
_OPPOSITE_H = 12.0
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """A zone as the embedded tables have it.

    Attributes:
        profile: Its typical year.
        year: Year of the level.
        level: Mean of that year. [gCO2e/kWh]
        curves: Intensity by local month and hour of the mean day of the week, or None without hourly data. [gCO2e/kWh] Shape (12, 24).
        factors: A run's 90 % factor either way, by length in hours.
        direct: Mean direct intensity, or None. [gCO2e/kWh]
        direct_because: Why there is no hourly direct row, or "".
    """

    profile: SeasonalProfile
    year: int
    level: float
    curves: Array | None
    factors: tuple[tuple[int, float], ...]
    direct: float | None
    direct_because: str

    def curve(self, month: int | None = None) -> Array | None:
        """Intensity by local hour, of one month (1 to 12) or of the mean month. [gCO2e/kWh] Shape (24,)."""
        if self.curves is None:
            return None
        curve: Array = self.curves.mean(axis=0) if month is None else self.curves[month - 1]
        return curve

    def day(self, month: int | None = None) -> "Day | None":
        """The day curve in short, or None without hourly data."""
        curve = self.curve(month)
        if curve is None:
            return None
        best, worst = int(np.argmin(curve)), int(np.argmax(curve))
        apart_h = min(abs(best - worst), 24 - abs(best - worst)) or _OPPOSITE_H
        variance = sum(2 * sd**2 * -math.expm1(-apart_h / tau) for sd, tau in self.profile.terms)
        ratio = math.log(float(curve[worst] / curve[best]))
        chance = NormalDist().cdf(ratio / math.sqrt(variance)) if variance > 0 else 1.0
        return Day(best, worst, float((curve[worst] - curve[best]) / curve.mean()), chance)


@dataclass(frozen=True, slots=True)
class Day:
    """A day curve in short.

    Attributes:
        best_hour: Local hour of the lowest intensity.
        worst_hour: Of the highest.
        swing: Highest less lowest over the mean.
        chance: That on a given day the best hour is really cleaner than the worst.
    """

    best_hour: int
    worst_hour: int
    swing: float
    chance: float


def look(text: str, year_now: int, grid: EmbeddedGrid | None = None) -> Look:
    """A zone by any of its names.

    Raises:
        UnknownZone: No such zone.
    """
    grid = grid or EmbeddedGrid()
    profile = grid.profile(text)
    year = max(profile.levels)
    level = profile.levels[year]
    errors = GridErrors(profile.terms, profile.level_sd_per_year * math.sqrt(max(year_now - year, 0)))
    direct, because = _direct(profile, grid)
    return Look(
        profile=profile,
        year=year,
        level=level,
        curves=None if profile.shape is None else level * profile.shape,
        factors=tuple((length, math.exp(Z90 * _sd(errors, length))) for length in LENGTHS_H),
        direct=direct,
        direct_because=because,
    )


def find(text: str | None = None) -> list[ZoneRow]:
    """The zone that a text means, then those whose code or name holds it; all without one.

    Raises:
        UnknownZone: There is none; it names the nearest.
    """
    rows = list(all_zones(DATA))
    if not text:
        return rows
    word = text.strip().casefold()
    found = [row for row in rows if word in row.code.casefold() or word in row.name.casefold()]
    try:
        meant = resolve_zone(text)
    except UnknownZone:
        if not found:
            raise
        return found
    return [*(row for row in rows if row.code == meant), *(row for row in found if row.code != meant)]


def _sd(errors: GridErrors, length_h: int) -> float:
    """Sd of ln of the mean of a run at constant power."""
    starts = np.arange(length_h, dtype=np.float64) * SECONDS_PER_HOUR
    return grid_sd(starts, np.full(length_h, 1 / length_h), errors)


def _direct(profile: SeasonalProfile, grid: EmbeddedGrid) -> tuple[float | None, str]:
    """Direct level of the newest year, and why its hours are not told, or nothing."""
    share = grid.direct_share(profile.zone)
    if share is None:
        return None, "the direct intensity of the zone is not known"
    level = profile.levels[max(profile.levels)] * share
    if share < LEAST_DIRECT_SHARE:
        return level, f"under {LEAST_DIRECT_SHARE * 100:.0f} % of the life-cycle intensity, so that its hours go their own way"
    return level, ""


def trust_in_words(looked: Look) -> Sequence[str]:
    """What the profile can and cannot tell, in sentences."""
    marks = looked.profile.marks
    said = [f"{why[0].upper()}{why[1:]}."] if (why := why_no_hours(looked)) else []
    if looked.profile.weekend_ratio is not None:
        said.append(f"The curve is that of the mean day; {_weekends(looked.profile.weekend_ratio)}. Holidays are not known.")
    if "estimated" in marks:
        said.append("Its provider estimated every hour; the day curve is that of the estimate.")
    if "retired" in marks:
        said.append("It is no longer published" + (f"; its successor is {looked.profile.successor}." if looked.profile.successor else "."))
    factors = ", ".join(f"{_length(length)} × or ÷ {factor:.2f}" for length, factor in looked.factors)
    said.append(f"True mean of a run against this profile, 90 %: {factors}.")
    day = looked.day()
    if day is not None:
        said.append(f"On a given day the best hour is cleaner than the worst with a chance of {day.chance * 100:.0f} %.")
        said.append("Months differ from year to year by 1–20 %; the level is that of the year named.")
    return said


def why_no_hours(looked: Look) -> str:
    """Why there is no day curve to trust, "" where there is one."""
    if "constant" in looked.profile.marks:
        return "its hourly data hardly change; only the yearly mean is used"
    return "it has no hourly data; only the yearly mean is used" if looked.curves is None else ""


def _weekends(ratio: Array) -> str:
    """How Saturdays and Sundays differ from workdays, with the hours at which they do."""
    low, high = (round((value - 1) * 100) for value in (float(ratio.min()), float(ratio.max())))
    if low == high == 0:
        return "Saturdays and Sundays differ from workdays by under 1 %"
    least, most = (f"{percent:+d} %".replace("-", "−") for percent in (low, high))
    return f"Saturdays and Sundays differ from workdays by {least} ({int(ratio.argmin())}:00) to {most} ({int(ratio.argmax())}:00)"


def _length(hours: int) -> str:
    return f"{hours} h" if hours <= 24 else f"{hours // 24} days"
