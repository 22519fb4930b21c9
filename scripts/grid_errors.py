"""Error numbers of a typical profile out of past years: three terms that are forgotten in 6 h, 48 h and 60 days, and the level's.

Each year is predicted by the shape of the others at its own level; what is left, e = ln(true / predicted), has a covariance by distance,
to which the three terms are fitted without negative variances. The level's number is that of `scripts/grid_levels.py`. Nothing in
either was set by hand: what a number rests on is the years that it is given. `benchmarks/grid_coverage.py` gives it those before a year and
looks at that year.
"""

from collections.abc import Callable, Mapping, Sequence
from math import sqrt

import numpy as np
from grid_levels import Spread, t95
from numpy.typing import NDArray

from carbonreport.combine.intervals import Z90

Array = NDArray[np.float64]
# The form of the profile's error, not its size: `carbonreport/data/odbl/README.md` has a column for each.
TAUS_H = (6.0, 48.0, 1440.0)
LAGS_H = (0, 1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72, 96, 168, 240, 336, 504, 720, 1080, 1440)


def residuals(years: Mapping[int, Array], typical: Callable[[int, Sequence[int]], Array]) -> list[Array]:
    """ln(true / predicted) of each year, predicted by the others.

    Args:
        years: Hours by year. [gCO2e/kWh]
        typical: Of a year and the years that may be used: the relative intensity of its hours, of mean one.
    """
    found = []
    for year, grams in years.items():
        others = [other for other in years if other != year] or [year]
        relative = typical(year, others)
        found.append(np.log(np.maximum(grams, 0.5) / (grams.mean() * relative)))
    return found


def terms(errors: Sequence[Array]) -> tuple[tuple[float, float], ...]:
    """(sd, hours) of the three terms, from errors of whole years."""
    covariance = np.array([np.mean([np.mean(e[: e.size - lag] * e[lag:]) for e in errors]) for lag in LAGS_H])
    basis = np.exp(-np.array(LAGS_H, dtype=np.float64)[:, None] / np.array(TAUS_H))
    variances = nonnegative(basis, covariance) * fewer_years(len(errors))
    return tuple((float(np.sqrt(v)), tau) for v, tau in zip(variances, TAUS_H, strict=True))


def fewer_years(count: int) -> float:
    """Variance of a year predicted by all `count` others over that of one predicted by all but itself: a mean of more years is steadier."""
    return (1 + 1 / count) / (1 + 1 / (count - 1)) if count > 1 else 1.0


def nonnegative(basis: Array, wanted: Array) -> Array:
    """Least squares without negative weights: the best of all subsets of the few columns."""
    best, least = np.zeros(basis.shape[1]), float(wanted @ wanted)
    for chosen in range(1, 2 ** basis.shape[1]):
        columns = [i for i in range(basis.shape[1]) if chosen >> i & 1]
        weights = np.linalg.lstsq(basis[:, columns], wanted, rcond=None)[0]
        left = basis[:, columns] @ weights - wanted
        if np.all(weights >= 0) and float(left @ left) < least:
            least, best = float(left @ left), np.zeros(basis.shape[1])
            best[columns] = weights
    return best


def level_sd(own: Sequence[float], everybody: Spread, level: float) -> float:
    """Sd of ln(level) after one year; 1.645 of it reach as far as 90 % of the t do.

    Args:
        own: Changes of ln(level) of the zone.
        everybody: What the zones as a whole say of one's changes.
        level: The zone's. [gCO2e/kWh]
    """
    freedom = everybody.weight + len(own)
    variance = (everybody.weight * everybody.sd_at(level) ** 2 + sum(change**2 for change in own)) / freedom
    return sqrt(variance) * t95(freedom) / Z90
