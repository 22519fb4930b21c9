"""The optimiser's curse taken out: the best of several noisy figures promises too much, so that all are drawn to their common level. Pure.

Logarithms of ratios have a common level and a spread about it; how wide that spread is, the figures themselves say (Rubin 1981, "Estimation in
parallel randomized experiments"). Where the figures differ by no more than their errors, the best of them is hardly better than the others.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Of ln(energy capped / uncapped) under the caps of one workload, root mean squares over 217 workloads on four boards (V100, P100, A40, RTX 6000;
# traces of Zeus, NSDI'23): spread 0.07 to 0.19, level 0.05 to 0.17.
SPREAD_SD = 0.12
LEVEL_SD = 0.12
_SPREADS = np.linspace(0.0, 4 * SPREAD_SD, 121)


def shrunk(logs: Array, covariance: Array) -> tuple[Array, Array]:
    """Expected values and standard deviations of the true logarithms, given noisy ones.

    Args:
        logs: What was measured. Shape (n,).
        covariance: Of its errors. Shape (n, n).
    """
    n = logs.size
    prior = _SPREADS[:, None, None] ** 2 * np.eye(n) + LEVEL_SD**2 * np.ones((n, n))
    gain = np.swapaxes(np.linalg.solve(prior + covariance, prior), 1, 2)  # prior (prior + covariance)^-1, both symmetric
    means = gain @ logs
    variances = np.diagonal(prior - gain @ prior, axis1=1, axis2=2)
    weights = np.linalg.solve(prior + covariance, np.broadcast_to(logs[:, None], (_SPREADS.size, n, 1)))[:, :, 0]
    evidence = -0.5 * (np.linalg.slogdet(prior + covariance)[1] + weights @ logs + (_SPREADS / SPREAD_SD) ** 2)
    share = np.exp(evidence - evidence.max())
    share /= share.sum()
    mean: Array = share @ means
    variance = share @ variances + share @ (means - mean) ** 2
    return mean, np.sqrt(np.maximum(variance, 0.0))
