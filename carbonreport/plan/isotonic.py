"""Curves that only rise or only fall: least squares by pooling neighbours, and a smooth line through the result. Pure."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def rising(values: Array, weights: Array) -> Array:
    """The never falling values nearest to the given ones in weighted least squares (pool adjacent violators, Ayer et al. 1955). Shape (n,)."""
    pools: list[list[float]] = []  # mean, weight, how many values
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        pools.append([value, weight, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, heavy, many = pools.pop()
            pools[-1] = [
                (pools[-1][0] * pools[-1][1] + mean * heavy) / (pools[-1][1] + heavy),
                pools[-1][1] + heavy,
                pools[-1][2] + many,
            ]
    return np.repeat([mean for mean, _, _ in pools], [int(many) for _, _, many in pools])


def falling(values: Array, weights: Array) -> Array:
    """The same for values that never rise. Shape (n,)."""
    return -rising(-values, weights)


def smooth_line(x: Array, y: Array, at: Array) -> Array:
    """A cubic through the points that has no bump of its own: it rises where they rise (Fritsch and Butland 1984). Shape (m,).

    Args:
        x: Rising. Shape (n,), 2 or more.
        y: Shape (n,).
        at: Where to read it, within x. Shape (m,).
    """
    widths, slopes = np.diff(x), np.diff(y) / np.diff(x)
    ends = np.concatenate([slopes[:1], np.zeros(x.size - 2), slopes[-1:]])
    for i in range(1, x.size - 1):
        left, right = slopes[i - 1], slopes[i]
        if left * right > 0:
            heavy, light = 2 * widths[i] + widths[i - 1], widths[i] + 2 * widths[i - 1]
            ends[i] = (heavy + light) / (heavy / left + light / right)
    part = np.clip(np.searchsorted(x, at, side="right") - 1, 0, x.size - 2)
    share, width = (at - x[part]) / widths[part], widths[part]
    left_weight = (1 + 2 * share) * (1 - share) ** 2
    line: Array = (
        y[part] * left_weight
        + y[part + 1] * (1 - left_weight)
        + width * (ends[part] * share * (1 - share) ** 2 - ends[part + 1] * share**2 * (1 - share))
    )
    return line
