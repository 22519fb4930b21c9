"""How exact the cells of a table are: errors of few repeats, borrowed from one another (empirical Bayes). Pure.

Two repeats say next to nothing of one cell's noise: their variance is often ten times too small. Relative noise is taken to be one figure a kernel for all
its locked clocks, and one for unlocked ones, which are often measured more often; each kernel's is drawn to that of all, by as much as they differ no more
than their few repeats explain (Smyth 2004, "Linear models and empirical Bayes methods for assessing differential expression", section 6).
"""

from dataclasses import dataclass

import numpy as np

from carbonreport.plan.special import digamma, trigamma, trigamma_inverse
from carbonreport.plan.table import Array, PlanTable

_MOST_DEGREES = 1e6
_LEAST_SHARE = 1e-4  # of the usual variance: cells that agree by chance


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Standard deviations of the cells and how well they are known.

    Attributes:
        seconds_sd: Of each mean, with what others say of it. [s] Shape (rows, pairs).
        joules_sd: The same of the energy. [J] Shape (rows, pairs).
        degrees: Degrees of freedom behind them: cells' repeats in sum, as far as kernels share their noise.
    """

    seconds_sd: Array
    joules_sd: Array
    degrees: int


def noise_of(table: PlanTable) -> Noise | None:
    """Noise of a table's cells; None where no cell says how exact it is."""
    if table.seconds_sd is None or table.joules_sd is None:
        return None
    repeats = np.full(table.seconds.shape, 2.0) if table.repeats is None else table.repeats.astype(float)
    found = [_pooled(table, cells, sd, repeats) for cells, sd in ((table.seconds, table.seconds_sd), (table.joules, table.joules_sd))]
    (seconds_sd, seconds_degrees), (joules_sd, joules_degrees) = found
    return Noise(seconds_sd, joules_sd, max(1, int(min(seconds_degrees, joules_degrees))))


def _pooled(table: PlanTable, cells: Array, sd: Array, repeats: Array) -> tuple[Array, float]:
    """Standard deviation of each mean, and degrees of freedom. Shape (rows, pairs)."""
    variances = (sd / cells) ** 2 * repeats  # of single measurements
    degrees = np.where(np.isnan(variances), 0.0, np.maximum(repeats - 1, 1.0))
    is_unlocked = np.arange(len(table.pairs)) == table.unlocked
    single = np.full(cells.shape, np.nan)
    behind = 0.0
    for columns in (is_unlocked, ~is_unlocked):
        own = degrees[:, columns]
        total = own.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            rows = (np.nan_to_num(variances[:, columns]) * own).sum(axis=1) / total
        drawn, prior_degrees = drawn_together(rows[total > 0], total[total > 0])
        if drawn.size == 0:
            continue
        usual = float(drawn.mean())
        line = np.full(len(rows), usual)
        line[total > 0] = drawn
        single[:, columns] = line[:, None]
        behind += min(float(total.sum()), prior_degrees + float(total[total > 0].min()))
    usual = float(np.nanmean(single)) if not np.isnan(single).all() else 0.0
    single = np.where(np.isnan(single), usual, single)
    return np.sqrt(single / np.maximum(repeats, 1)) * np.nan_to_num(cells), behind


def drawn_together(variances: Array, degrees: Array) -> tuple[Array, float]:
    """Variances drawn to their common level, and the degrees of freedom that this level is worth. Shape (n,).

    Logarithms of variances that only chance sets apart scatter by the trigamma function of half their degrees; what they scatter more is real.
    """
    if variances.size == 0 or not (variances > 0).any():
        return np.zeros_like(variances), _MOST_DEGREES
    level = float((variances * degrees).sum() / degrees.sum())
    if variances.size == 1:
        return variances.copy(), 0.0
    logs = np.log(np.maximum(variances, _LEAST_SHARE * level)) - digamma(degrees / 2) + np.log(degrees / 2)
    spread = float(logs.var(ddof=1) - trigamma(degrees / 2).mean())
    if spread <= 0:
        return np.full_like(variances, level), _MOST_DEGREES
    prior = 2 * trigamma_inverse(spread)
    center = float(np.exp(logs.mean() + digamma(np.array(prior / 2)) - np.log(prior / 2)))
    return np.asarray((prior * center + degrees * variances) / (prior + degrees)), prior
