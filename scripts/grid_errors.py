"""Error numbers of a typical profile out of past years: three terms that are forgotten in 6 h, 48 h and 60 days, and the level's.

Each year is predicted by the shape of the others at its own level; what is left, e = ln(true / predicted), has a covariance by distance,
to which the three terms are fitted without negative variances. The level's number is the change of ln(level) from one year to the
next, drawn towards that of zones of its size. Used to test intervals on years that were left out: `benchmarks/grid_coverage.py`.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.intervals import Z90

Array = NDArray[np.float64]
TAUS_H = (6.0, 48.0, 1440.0)
LAGS_H = (0, 1, 2, 3, 4, 6, 9, 12, 18, 24, 36, 48, 72, 96, 168, 240, 336, 504, 720, 1080, 1440)
# Weight of the class against one change of the zone's own level: of those tried, the likeliest for the changes of the zones' levels
# from 2022 to 2023, given those from 2021 to 2022.
CLASS_WEIGHT = 1.5
LEVEL_CLASSES = (50.0, 150.0, 300.0, 500.0, float("inf"))

Shape = Callable[[Sequence[int]], Array]


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


def level_sd(own: Sequence[float], everybody: Mapping[float, Sequence[float]], level: float) -> float:
    """Sd of ln(level) after one year.

    Args:
        own: Changes of ln(level) of the zone.
        everybody: Changes of zones by the upper end of their class.
        level: The zone's. [gCO2e/kWh]
    """
    of_class = np.asarray(everybody[class_of(level)])
    mean_square = float(np.quantile(np.abs(of_class), 0.9) / Z90) ** 2  # a 90 % interval is wanted, and a few islands change a lot
    return float(np.sqrt((CLASS_WEIGHT * mean_square + sum(change**2 for change in own)) / (CLASS_WEIGHT + len(own))))


def class_of(level: float) -> float:
    """Upper end of the class of a level. [gCO2e/kWh]"""
    return next(upper for upper in LEVEL_CLASSES if level < upper)
