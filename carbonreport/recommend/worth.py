"""Whether another time or place is worth it: what it is expected to save, shrunk, and the chance that this run gains. Pure.

Two schedules on one grid differ by ln(I_alt / I_now); with weights of the hours the variance of the difference is that of
the weights' difference, and the level cancels. From typical hours, printed with s^2 = (1.1 sd)^2 + (0.3 ln ratio)^2 + 0.01^2, and the
expected saving is 0.8 of the promised logarithm: both were found on held-out years (method, section 4).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from carbonreport.combine.intervals import Z90, grid_sd
from carbonreport.model.series import QUALITIES, Array, IntensitySeries
from carbonreport.units import hours

SHRINK = 0.8
LEAST_SAVING = 0.05
LEAST_CHANCE = 0.75
LONGEST_TYPICAL_H = 12.0
_LEAST_SD = 0.01
_DRIFT, _SD_FACTOR = 0.3, 1.1

Verdict = Literal["worth-it", "not-worth-it", "unknown"]
Runs = Sequence[tuple[float, float]]
"""(from_s, to_s) in POSIX seconds, rising."""


@dataclass(frozen=True, slots=True)
class Saving:
    """What an option saves of the location-based figure, as shares of it.

    Attributes:
        value: Expected, shrunk; negative where the figure would rise.
        low: Lower end of its 90 % interval.
        high: Upper end.
        chance: Chance that this run gains, 0 to 1.
    """

    value: float
    low: float
    high: float
    chance: float


def saving_of(
    now_grams: float, other_grams: float, sd: float, *, is_typical: bool, energy_log: float = 0.0, energy_sd: float = 0.0
) -> Saving:
    """The saving of one option against now.

    Args:
        now_grams: Emissions of starting now. [gCO2e]
        other_grams: Emissions of the option, its pauses and waiting included. [gCO2e]
        sd: Standard deviation of the logarithm of the grid's part of other / now.
        is_typical: Whether it rests on the shape of typical hours, which drifts from year to year, corrected by an observed hour or not.
        energy_log: Part of ln(other / now) that is energy (a cap, a PUE): it is not shrunk.
        energy_sd: Standard deviation of that part.
    """
    log_ratio = math.log(other_grams / now_grams) if other_grams > 0 and now_grams > 0 else 0.0
    if log_ratio == 0:
        return Saving(0.0, 0.0, 0.0, 0.5)
    grid_log = log_ratio - energy_log
    s = math.hypot(_SD_FACTOR * sd, _DRIFT * grid_log, _LEAST_SD) if is_typical else math.hypot(sd, _LEAST_SD if sd > 0 else 0.0)
    s = math.hypot(s, energy_sd)
    expected = energy_log + (SHRINK * grid_log if is_typical else grid_log)
    chance = NormalDist().cdf(-log_ratio / s) if s > 0 else float(log_ratio < 0)
    value, low, high = (1 - math.exp(x) for x in (expected, expected + Z90 * s, expected - Z90 * s))
    return Saving(value, low, high, chance)


def difference_sd(series: IntensitySeries, now: Runs, other: Runs) -> float:
    """Standard deviation of ln(other / now) of two schedules of the same steady power on one grid."""
    return _sd(series, _weights(series, other) - _weights(series, now))


def apart_sd(one: IntensitySeries, one_runs: Runs, other: IntensitySeries, other_runs: Runs) -> float:
    """Standard deviation of ln(other / one) of schedules on two grids, whose errors have nothing to do with each other."""
    return math.hypot(_sd(one, _weights(one, one_runs)), _sd(other, _weights(other, other_runs)))


def has_typical_shape(series: IntensitySeries) -> bool:
    """Whether the hours follow a typical day: neither observed nor forecast. An observed hour corrects their size, not how the day goes."""
    return {QUALITIES[int(i)] for i in np.unique(series.quality)} <= {"typical", "annual"}


def is_typical(series: IntensitySeries) -> bool:
    """Whether the hours rest on a typical profile alone: neither observed, nor forecast, nor corrected by an observed hour."""
    return has_typical_shape(series) and not any(errors.observed_s is not None for errors in series.errors.values())


def reason_against(saving: Saving, *, length_h: float, rests_on_typical: bool, marks: Sequence[str] = ()) -> str:
    """Why an option is not advised, or ""."""
    if rests_on_typical and ("constant" in marks or "estimated" in marks):
        return "the zone's day curve was not measured"
    if rests_on_typical and length_h > LONGEST_TYPICAL_H:
        return (
            f"for runs of over {LONGEST_TYPICAL_H:.0f} h a typical profile alone saves nothing; an observed hour or a forecast would tell"
        )
    if saving.value < LEAST_SAVING:
        return f"it would lower the figure by under {LEAST_SAVING * 100:.0f} %"
    if saving.chance < LEAST_CHANCE:
        return f"the chance that this run gains is under {LEAST_CHANCE}"
    return ""


def _sd(series: IntensitySeries, weights: Array) -> float:
    """Standard deviation of the logarithm of a weighted mean of the series, qualities taken as independent."""
    variance = 0.0
    for index in np.unique(series.quality):
        errors = series.errors.get(QUALITIES[int(index)])
        if errors is not None:
            chosen = series.quality == index
            variance += grid_sd(series.edges_s[:-1][chosen], weights[chosen], errors) ** 2
    return math.sqrt(variance)


def _weights(series: IntensitySeries, runs: Runs) -> Array:
    """Share of a schedule's emissions in each slice of the series. Shape (n,)."""
    seconds = np.zeros(series.grams_per_kwh.size)
    for from_s, to_s in runs:
        seconds += np.clip(np.minimum(series.edges_s[1:], to_s) - np.maximum(series.edges_s[:-1], from_s), 0.0, None)
    grams = seconds * series.grams_per_kwh
    return np.asarray(grams / max(float(grams.sum()), 1e-300), dtype=np.float64)


def length_h(runs: Runs) -> float:
    """Time that a schedule runs. [h]"""
    return hours(sum(to_s - from_s for from_s, to_s in runs))


def change(ratio: float) -> str:
    """A ratio to now as a change in words: −13.7 %."""
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")
