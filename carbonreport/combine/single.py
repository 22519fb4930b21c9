"""Energy of single spans that hardly repeat: one unknown for each stretch around them. Pure.

Least squares with the sensor's own response and a wide prior; what the samples do not say widens the interval.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from carbonreport.combine.excerpts import FEW, SHORTEST_S
from carbonreport.combine.solve import Array
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import Excerpt, SpanSums

PRIOR_SD_WATTS = 300.0
NOISE_WATTS = 5.0  # of a sample, free running; the residual replaces it where it is larger
EDGE_FLOOR_S = 0.0002
LEAST_CONTRAST_WATTS = 100.0
MOST_UNKNOWNS = 400


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
    watts, variance = _solve(seen(stretches, stamps, sensor), power, mean_watts)
    moves = [
        _solve(seen(stretches, stamps, changed), power, mean_watts)[0] - watts
        for changed in (_changed(sensor, sensor.width_sd_s, 0.0), _changed(sensor, 0.0, sensor.delay_sd_s))
    ]
    out = []
    for i, (column, from_s, to_s, _) in enumerate(stretches):
        seconds = to_s - from_s
        if seconds < SHORTEST_S or from_s < stamps[0] or to_s > stamps[-1] - sensor.lag_s:
            continue
        floor = EDGE_FLOOR_S * max(abs(watts[i] - mean_watts), LEAST_CONTRAST_WATTS) / seconds
        sd = float(np.sqrt(variance[i] + moves[0][i] ** 2 + moves[1][i] ** 2 + floor**2))
        out.append((column, seconds, float(watts[i]), sd))
    return out


def seen(stretches: Sequence[tuple[int, float, float, float]], stamps_s: Array, sensor: Sensor) -> Array:
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


def _changed(sensor: Sensor, width_s: float, delay_s: float) -> Sensor:
    return Sensor(sensor.kernel, sensor.width_s + width_s, sensor.delay_s + delay_s, sensor.period_s, 0.0, 0.0, sensor.source)


def _solve(design: Array, power: Array, mean_watts: float) -> tuple[Array, Array]:
    """Posterior mean and variance of each unknown. [W], [W²]"""
    noise = NOISE_WATTS
    for _ in range(2):
        precision = design.T @ design / noise**2 + np.eye(design.shape[1]) / PRIOR_SD_WATTS**2
        covariance = np.linalg.inv(precision)
        watts = mean_watts + covariance @ design.T @ (power - mean_watts * design.sum(axis=1)) / noise**2
        left = power - design @ watts
        freedom = power.size - float(np.trace(covariance @ design.T @ design)) / noise**2
        noise = max(NOISE_WATTS, float(np.sqrt(left @ left / max(freedom, 1.0))))
    return watts, np.diag(covariance)


def _mean(stretches: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Mean power over stretches weighted by length, errors of neighbours taken as independent."""
    seconds = sum(s for s, _, _ in stretches)
    watts = sum(s * w for s, w, _ in stretches) / seconds
    return watts, sum((s * sd) ** 2 for s, _, sd in stretches) ** 0.5 / seconds
