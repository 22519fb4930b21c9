"""Energy of single spans that hardly repeat: one unknown for each stretch around them. Pure.

Least squares with the sensor's own response and a wide prior; what the samples do not say widens the interval. A sample
counts by its own error: one on a steep slope less, because its time is not known exactly, and one that fits nothing hardly.
What is not known of the sensor is an unknown too, so a run with many edges settles it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from carbonreport.combine.excerpts import FEW, SHORTEST_S, Stretch
from carbonreport.combine.solve import Array
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import Excerpt, SpanSums

PRIOR_SD_WATTS = 300.0
NOISE_WATTS, TIMING_S = 2.0, 0.0003  # of a sample on flat power, and of its time: fitted to known loads on an H200
EXPECTED_NOISE_WATTS, EXPECTED_FREEDOM = 10.0, 3.0  # the noise where too few samples are left over to tell, and how many it counts for
TAIL_FREEDOM = 4.0  # of Student's t that the errors of samples follow
EDGE_FLOOR_S = 0.0002
FLOOR_SHARE = 0.003  # of the power: it is not the same all through a span
LEAST_CONTRAST_WATTS = 100.0
MOST_UNKNOWNS = 400
_ROUNDS = 8
_LEAST_FREEDOM = 0.05
_STEP_S = 5e-5


def stretches_alone(sums: SpanSums, mean_watts: float) -> dict[int, tuple[float, float]]:
    """Mean power and its standard deviation of each path whose every stretch was kept and is long enough, by column. [W]"""
    found: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for excerpt in sums.excerpts:
        for column, seconds, watts, sd_watts in single_spans(excerpt, sums.sensor, mean_watts):
            found[column].append((seconds, watts, sd_watts))
    return {
        column: _mean(stretches)
        for column, stretches in found.items()
        if column and sums.times[column].stretches < FEW and len(stretches) == sums.times[column].stretches
    }


def single_spans(excerpt: Excerpt, sensor: Sensor, mean_watts: float) -> list[tuple[int, float, float, float]]:
    """Each stretch that is long enough and wholly inside the excerpt: (column, seconds, watts, sd_watts)."""
    stamps = np.array([t for t, _ in excerpt.samples])
    power = np.array([w for _, w in excerpt.samples])
    stretches = excerpt.stretches
    if stamps.size < 3 or not stretches or len(stretches) > MOST_UNKNOWNS:
        return []
    watts, variance = _solve(excerpt, stamps, power, sensor, mean_watts)
    out = []
    for i, (column, from_s, to_s, _) in enumerate(stretches):
        seconds = to_s - from_s
        if seconds < SHORTEST_S or from_s < stamps[0] or to_s > stamps[-1] - sensor.lag_s:
            continue
        floor = EDGE_FLOOR_S * max(abs(watts[i] - mean_watts), LEAST_CONTRAST_WATTS) / seconds
        sd = float(np.sqrt(variance[i] + floor**2 + (FLOOR_SHARE * watts[i]) ** 2))
        out.append((column, seconds, float(watts[i]), sd))
    return out


def seen(stretches: Sequence[Stretch], stamps_s: Array, sensor: Sensor) -> Array:
    """Occupancy of each stretch as each sample sees it. Shape (samples, stretches)."""
    begins = np.array([s[1] for s in stretches])
    ends = np.array([s[2] for s in stretches])
    shares = np.array([s[3] for s in stretches])
    since_begin = (stamps_s - sensor.delay_s)[:, None] - begins[None, :]
    since_end = (stamps_s - sensor.delay_s)[:, None] - ends[None, :]
    response: Array = (_step(since_begin, sensor) - _step(since_end, sensor)) * shares
    return response


def _step(since_s: Array, sensor: Sensor) -> Array:
    """Response to a step of power, some time after it."""
    if sensor.kernel == "boxcar":
        return np.clip(since_s / sensor.width_s, 0.0, 1.0)
    return -np.expm1(-np.maximum(since_s, 0.0) / sensor.width_s)


def _solve(excerpt: Excerpt, stamps_s: Array, power: Array, sensor: Sensor, mean_watts: float) -> tuple[Array, Array]:
    """Posterior mean and variance of each stretch's power. [W], [W²]

    The last two unknowns are the errors of the sensor's width and delay, in their standard deviations. The errors of samples
    follow Student's t, fitted by weights in turns (Lange, Little and Taylor 1989).
    """
    design, by_width, by_time = _responses(excerpt.stretches, stamps_s, sensor)
    k = design.shape[1]
    prior = np.concatenate([np.full(k, mean_watts), [0.0, 0.0]])
    precision = np.diag(np.concatenate([np.full(k, PRIOR_SD_WATTS**-2), [1.0, 1.0]]))
    watts, variances = prior[:k], np.full(power.size, EXPECTED_NOISE_WATTS**2)
    weights = np.ones(power.size)
    for _ in range(_ROUNDS):
        slopes = by_time @ watts
        columns = np.column_stack([design, by_width @ watts * sensor.width_sd_s, -slopes * sensor.delay_sd_s])
        weighted = columns * (weights / variances)[:, None]
        covariance = np.linalg.inv(columns.T @ weighted + precision)
        unknowns = prior + covariance @ weighted.T @ (power - columns @ prior)
        watts, left = unknowns[:k], power - columns @ unknowns
        free = np.clip(1.0 - np.einsum("ij,jk,ik->i", columns, covariance, weighted), _LEAST_FREEDOM, 1.0)
        variances = _variances(left, weights, free, slopes)
        weights = (TAIL_FREEDOM + 1) / (TAIL_FREEDOM + left**2 / (variances * free))
    less_is_known = (TAIL_FREEDOM + 3) / (TAIL_FREEDOM + 1)  # than by a normal law of the same weights
    return watts, np.diag(covariance)[:k] * less_is_known


def _variances(left: Array, weights: Array, free: Array, slopes: Array) -> Array:
    """Variance of each sample: that of its time, and one that all share, by what is left where enough is left over to tell. [W²]

    Args:
        left: Residuals. [W]
        weights: How far each sample is believed.
        free: Share of each sample that no unknown takes up.
        slopes: Power over time where each sample was taken. [W/s]
    """
    by_time = (TIMING_S * slopes) ** 2
    flat = EXPECTED_NOISE_WATTS**2
    freedom = EXPECTED_FREEDOM + float(free.sum())
    for _ in range(_ROUNDS):
        expected = EXPECTED_FREEDOM * EXPECTED_NOISE_WATTS**2 / flat
        flat *= (expected + float(np.sum(weights * left**2 / (flat + by_time)))) / freedom
        flat = max(NOISE_WATTS**2, flat)
    variances: Array = flat + by_time
    return variances


def _responses(stretches: Sequence[Stretch], stamps_s: Array, sensor: Sensor) -> tuple[Array, Array, Array]:
    """Occupancies, and how they change with the sensor's width and with time. [1], [1/s], [1/s] Shapes (samples, stretches)."""
    wider, narrower = (replace(sensor, width_s=sensor.width_s + step_s) for step_s in (_STEP_S, -_STEP_S))
    by_width = (seen(stretches, stamps_s, wider) - seen(stretches, stamps_s, narrower)) / (2 * _STEP_S)
    by_time = (seen(stretches, stamps_s + _STEP_S, sensor) - seen(stretches, stamps_s - _STEP_S, sensor)) / (2 * _STEP_S)
    return seen(stretches, stamps_s, sensor), by_width, by_time


def _mean(stretches: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Mean power over stretches weighted by length, errors of neighbours taken as independent."""
    seconds = sum(s for s, _, _ in stretches)
    watts = sum(s * w for s, w, _ in stretches) / seconds
    return watts, sum((s * sd) ** 2 for s, _, sd in stretches) ** 0.5 / seconds
