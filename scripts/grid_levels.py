"""How far the level of a zone moves in a year: empirical Bayes, from nothing but the changes that are known.

The changes of ln(level) of a zone are normal with a variance of its own; those variances are spread over the zones of a class as
scaled inverse chi-squares, s0^2 d0 / chi^2(d0) (Smyth 2004, doi 10.2202/1544-6115.1027). The changes of a zone are then a
multivariate t, whose likelihood over all zones gives both numbers: s0 of each class, and d0, how many changes of its own a zone must show to be believed as
much as its class. d0 is large where zones of a class are alike and small where they differ by more than few changes can feign.
A next change, given n of the zone's own, is a t with d0 + n degrees of freedom.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import lgamma, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Zone = tuple[float, Sequence[float]]
# Classes are fifths of the zones by level, or fewer parts where a part would have less zones than this. A convention, not fitted.
CLASSES, LEAST_ZONES = 5, 30
FLOOR = 1e-12
# Where the likelihood of d0 is looked up: from variances without a mean to variances that are all alike.
WEIGHTS = np.geomspace(0.5, 500.0, 141)


@dataclass(frozen=True, slots=True)
class Spread:
    """What zones as a whole say of a zone's changes.

    Attributes:
        weight: d0, the number of changes that the class is worth beside those of the zone itself.
        uppers: Upper ends of the classes, rising; the last is infinite. [gCO2e/kWh]
        sds: s0 of each class, sd of ln(level) after one year.
    """

    weight: float
    uppers: tuple[float, ...]
    sds: tuple[float, ...]

    def sd_at(self, level: float) -> float:
        """s0 of the class of a level. [gCO2e/kWh]"""
        return self.sds[int(np.searchsorted(self.uppers, level, side="right"))]


def spread(zones: Sequence[Zone]) -> Spread:
    """The likeliest spread.

    Args:
        zones: Newest level [gCO2e/kWh] and the changes of ln(level) of each zone; those without a change say nothing.
    """
    known = [(level, changes) for level, changes in zones if len(changes)]
    if not known:
        raise ValueError("no change of a level is known")
    levels = np.array([level for level, _ in known])
    counts = np.array([len(changes) for _, changes in known], dtype=np.float64)
    squares = np.array([sum(change**2 for change in changes) for _, changes in known])
    parts = max(1, min(CLASSES, len(known) // LEAST_ZONES))
    ends = np.unique(np.quantile(levels, np.arange(1, parts) / parts, method="lower"))
    uppers = (*(float(end) for end in ends if end > levels.min()), float("inf"))
    classes = np.searchsorted(uppers, levels, side="right")
    fits = [[_variance(weight, counts[classes == i], squares[classes == i]) for i in range(len(uppers))] for weight in WEIGHTS]
    best = int(np.argmax([sum(likelihood for _, likelihood in fit) for fit in fits]))
    return Spread(float(WEIGHTS[best]), uppers, tuple(sqrt(variance) for variance, _ in fits[best]))


@cache
def t95(freedom: float) -> float:
    """95 % quantile of Student's t: x = sqrt(freedom) tan(a), where a has the density cos(a)^(freedom - 1)."""
    steps = 400_000
    angles = pi * ((np.arange(steps) + 0.5) / steps - 0.5)
    chance = np.cumsum(np.cos(angles) ** (freedom - 1))
    angle = float(np.interp(0.95, chance / chance[-1], angles + pi / steps / 2))
    return float(sqrt(freedom) * np.tan(angle))


def _variance(weight: float, counts: Array, squares: Array) -> tuple[float, float]:
    """Likeliest s0^2 of a class at one d0, by fixed point, and the logarithm of its likelihood."""
    variance = max(float(squares.sum() / counts.sum()), FLOOR)
    for _ in range(200):
        before = variance
        variance = max(float(np.sum((weight + counts) / (weight + squares / before) * squares) / counts.sum()), FLOOR)
        if abs(log(variance / before)) < 1e-8:
            break
    constants = sum(
        how_many * (lgamma((weight + n) / 2) - lgamma(weight / 2))
        for n, how_many in zip(*np.unique(counts, return_counts=True), strict=True)
    )
    rest = counts / 2 * np.log(weight * pi * variance) + (weight + counts) / 2 * np.log1p(squares / (weight * variance))
    return variance, float(constants - rest.sum())
