"""The power of every path of one device from its sums, with what may be wrong about it. Pure.

Non-negative least squares of power on occupancy as the sensor sees it. The covariance is that of blocks (autocorrelation
counts), of the sensor's response, and a floor for edges and for power that is not constant inside a span. The floor was set on
recordings of an H200 (docs/method.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.combine.solve import Array, Solution, dense, nnls, solved
from carbonreport.model.sums import PIECES, REST, NormalEquations, SpanSums

EDGE_FLOOR_S = 0.0002
LEAST_CONTRAST_WATTS = 100.0
TINY_SHARE = 0.01
SLIVER_S = 0.002  # longer stretches have a power of their own, however few
ALIKE = 0.9999  # cosine of two columns that always come together
UNSEEN = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Powers:
    """What the samples say.

    Attributes:
        watts: Power of each path. [W] Shape (n,).
        covariance: Of the power; the board's gain is left out. [W²] Shape (n, n).
        moved: How far each power moves when long stretches are cut 10 ms from their ends. [W] Shape (n,).
        residual_watts: What is left, root mean square over samples. [W]
        condition: Condition number of the design with columns of unit length.
        least_apart: Columns that are most like another one.
    """

    watts: Array
    covariance: Array
    moved: Array
    residual_watts: float
    condition: float
    least_apart: frozenset[int]


def is_sliver(sums: SpanSums, column: int) -> bool:
    """Whether a path is nothing but the gaps between others: those share the power of what they lie beside."""
    path, times = sums.paths[column], sums.times[column]
    is_between = path == REST or any(p.startswith(path + "/") for p in sums.paths)
    return is_between and times.stretch_s < SLIVER_S and times.seconds < TINY_SHARE * sums.seconds


def solve_powers(sums: SpanSums) -> Powers | None:
    """Power of every path; None where the equations have no solution.

    Args:
        sums: What a device's samples say of the spans.
    """
    shares = _columns_of_one_power(sums)
    try:
        solution = solved(sums.blocks, shares)
    except np.linalg.LinAlgError:
        return None
    mean_watts = sums.joules / sums.seconds if sums.seconds > 0 else 0.0
    grouped = solution.covariance + np.diag(_floor_watts(sums, shares, solution, mean_watts) ** 2)
    for move in _response_moves(sums, shares, solution):
        grouped += np.outer(move, move)
    count = len(sums.paths)
    watts, moved, covariance = np.zeros(count), np.zeros(count), np.zeros((count, count))
    moves = _moved_by_pieces(sums, shares, solution)
    for g, columns in enumerate(shares):
        watts[columns], moved[columns] = solution.watts[g], moves[g]
        for h, others in enumerate(shares):
            covariance[np.ix_(columns, others)] = grouped[g, h]
    overlap = solution.overlap - np.eye(len(shares))
    closest = frozenset(c for g, columns in enumerate(shares) if overlap[g].max() == overlap.max() for c in columns)
    return Powers(watts, covariance, moved, solution.residual_watts, solution.condition, closest)


def _columns_of_one_power(sums: SpanSums) -> list[list[int]]:
    """A column each, but slivers share the power of what they lie beside, and twins share theirs."""
    used = [c for c, times in enumerate(sums.times) if times.seconds > 0]
    total = NormalEquations()
    for block in sums.blocks:
        total.add(block.sums)
    normal = dense(total, [[c] for c in used])[0]
    lengths = np.sqrt(np.diag(normal))
    overlap = normal / np.outer(lengths, lengths).clip(1e-12)
    shares = {c: [c] for c in used}
    for n, column in enumerate(used):
        overlap[n, n] = -1.0
        i = int(overlap[n].argmax())
        neighbour = next((c for c, columns in shares.items() if used[i] in columns and c != column), None)
        is_one_with_it = is_sliver(sums, column) or overlap[n, i] > ALIKE or lengths[n] < UNSEEN
        if neighbour is not None and is_one_with_it:
            shares[neighbour] += shares.pop(column)
    return list(shares.values())


def _response_moves(sums: SpanSums, shares: Sequence[Sequence[int]], solution: Solution) -> list[Array]:
    """How far power moves when the sensor is one deviation other than believed. [W] Shapes (k,)."""
    moves = []
    for derivative, sd_s in ((sums.by_width, sums.sensor.width_sd_s), (sums.by_delay, sums.sensor.delay_sd_s)):
        normal, right = dense(derivative, shares)
        moves.append(solution.inverse @ (right - normal @ solution.watts) * sd_s)
    return moves


def _floor_watts(sums: SpanSums, shares: Sequence[Sequence[int]], solution: Solution, mean_watts: float) -> Array:
    """Edges are not exact and power is not constant inside a span. [W] Shape (k,)."""
    lengths = np.array([max(1e-6, *(sums.times[c].stretch_s for c in columns)) for columns in shares])
    floor: Array = EDGE_FLOOR_S * np.maximum(np.abs(solution.watts - mean_watts), LEAST_CONTRAST_WATTS) / lengths
    return floor


def _moved_by_pieces(sums: SpanSums, shares: Sequence[Sequence[int]], solution: Solution) -> Array:
    """How far each power moves when long stretches are cut at their ends. [W] Shape (k,)."""
    pieces = [[c * PIECES + piece for c in columns] for columns in shares for piece in range(PIECES)]
    normal, right = dense(sums.pieces, pieces)
    seen = np.flatnonzero(np.diag(normal) > UNSEEN)
    watts = np.zeros(len(pieces))
    try:
        watts[seen] = nnls(normal[np.ix_(seen, seen)], right[seen])[0]
    except np.linalg.LinAlgError:
        return np.zeros(len(shares))
    moved: Array = watts[::PIECES] - solution.watts  # the first piece of each is its body
    return moved
