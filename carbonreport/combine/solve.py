"""Non-negative least squares on normal equations, with errors from blocks. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.model.sums import Block, NormalEquations

Array = NDArray[np.float64]
_LEAST_COUNT = 10
_TINY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Power of each group of columns.

    Attributes:
        watts: Power, never below 0. [W] Shape (k,).
        inverse: Inverse of the normal matrix over the groups with power, else 0. Shape (k, k).
        covariance: By blocks, so that correlation inside a block counts. [W²] Shape (k, k).
        residual_watts: Root mean square of what is left. [W]
        condition: Condition number of the design with columns of unit length.
        overlap: Cosine between columns. Shape (k, k).
    """

    watts: Array
    inverse: Array
    covariance: Array
    residual_watts: float
    condition: float
    overlap: Array


def solved(blocks: Sequence[Block], groups: Sequence[Sequence[int]]) -> Solution:
    """Power of each group, its columns taken as one.

    Raises:
        np.linalg.LinAlgError: A group was never seen.
    """
    each = [dense(block.sums, groups) for block in blocks]
    normal = sum((q for q, _ in each), np.zeros((len(groups), len(groups))))
    right = sum((c for _, c in each), np.zeros(len(groups)))
    watts, is_on = nnls(normal, right)
    inverse = np.zeros_like(normal)
    inverse[np.ix_(is_on, is_on)] = np.linalg.inv(normal[np.ix_(is_on, is_on)])
    used = [(q, c) for (q, c), block in zip(each, blocks, strict=True) if block.count >= _LEAST_COUNT]
    spread = sum((np.outer(c - q @ watts, c - q @ watts) for q, c in used), np.zeros_like(normal))
    variance = inverse @ spread @ inverse * len(used) / max(len(used) - 1, 1)
    squares, count = sum(block.squares for block in blocks), sum(block.count for block in blocks)
    residual = max(0.0, squares - 2 * float(watts @ right) + float(watts @ normal @ watts)) / max(count, 1)
    lengths = np.sqrt(np.diag(normal))
    overlap = normal / np.outer(lengths, lengths)
    return Solution(watts, inverse, variance, residual**0.5, float(np.linalg.cond(overlap)) ** 0.5, overlap)


def dense(sums: NormalEquations, groups: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    """Normal matrix and right side with one row a group. Shapes (k, k) and (k,)."""
    row = {column: g for g, columns in enumerate(groups) for column in columns}
    normal, right = np.zeros((len(groups), len(groups))), np.zeros(len(groups))
    for (i, j), value in sums.normal.items():
        if i in row and j in row:
            normal[row[i], row[j]] += value
            if i != j:
                normal[row[j], row[i]] += value
    for i, value in sums.right.items():
        if i in row:
            right[row[i]] += value
    return normal, right


def nnls(normal: Array, right: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Least squares without negative power, and which columns have power (Lawson and Hanson 1974, on the normal equations)."""
    k = right.size
    is_on, watts = np.zeros(k, bool), np.zeros(k)
    for _ in range(3 * k + 5):
        slope = right - normal @ watts
        if is_on.all() or slope[~is_on].max() <= _TINY * np.abs(right).max():
            break
        is_on[np.flatnonzero(~is_on)[slope[~is_on].argmax()]] = True
        watts = _descended(normal, right, watts, is_on)
    return watts, is_on


def _descended(normal: Array, right: Array, watts: Array, is_on: NDArray[np.bool_]) -> Array:
    """Solve on the columns that are on; switch those off that would turn negative."""
    while True:
        trial = np.zeros_like(watts)
        trial[is_on] = np.linalg.solve(normal[np.ix_(is_on, is_on)], right[is_on])
        if not is_on.any() or trial[is_on].min() > 0:
            return trial
        falling = is_on & (trial <= 0)
        step = (watts[falling] / (watts[falling] - trial[falling])).min()
        watts = watts + step * (trial - watts)
        is_on &= watts > _TINY
