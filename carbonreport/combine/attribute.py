"""Energy of spans that are shorter than a power sensor's response: from their repeats, each alone, or by the curve. Pure.

Paths that repeat are solved together (powers.py); one gain makes them agree with the device's curve. Those that hardly repeat are
solved one unknown a stretch (single.py); long ones are a difference of the curve. What cannot be told apart is told as one (telling.py).
"""

import math
from collections.abc import Mapping

import numpy as np

from carbonreport.combine.excerpts import LONGEST_S
from carbonreport.combine.powers import LEAST_CONTRAST_WATTS, Powers, is_sliver, solve_powers
from carbonreport.combine.single import stretches_alone
from carbonreport.combine.solve import Array
from carbonreport.combine.telling import Group, aliasing, lacks_fit, limited_share, tell, tell_as_one, too_short
from carbonreport.model.attribution import Attribution, How, Told
from carbonreport.model.sums import REST, SpanSums

SD_OF_90_PERCENT = 1.645
_TOO_ALIKE = "its occupancy is that of others"


def attribute(sums: SpanSums, curve_watts: Mapping[str, float]) -> Attribution:
    """Power of every path of one device.

    Args:
        sums: What the run's samples say.
        curve_watts: Mean power of each path by the difference of the device's curve. [W]
    """
    mean_watts = sums.joules / sums.seconds if sums.seconds > 0 else 0.0
    alone = stretches_alone(sums, mean_watts)
    how = {c: _how(sums, c, c in alone) for c, times in enumerate(sums.times) if times.seconds > 0}
    judged = frozenset(c for c, kind in how.items() if kind == "repeats" and sums.paths[c] != REST and not is_sliver(sums, c))
    short = too_short(sums)
    powers = None if short else solve_powers(sums)
    groups = tell_as_one(sums, judged, short or _TOO_ALIKE) if powers is None else tell(sums, powers, judged)
    if powers is None:
        how = {c: "curve" if kind == "repeats" else kind for c, kind in how.items()}
    seconds = np.array([times.seconds for times in sums.times])
    gain = _gain(sums, powers, seconds)
    watts, covariance = _by_repeats(sums, powers, judged, gain)
    for column, kind in how.items():
        if kind != "repeats":
            covariance[column, :] = covariance[:, column] = 0.0
            watts[column], sd_watts = _otherwise(sums, column, kind, alone, curve_watts, mean_watts)
            covariance[column, column] = sd_watts**2
    return Attribution(
        device=sums.device,
        paths=sums.paths,
        watts=watts,
        covariance=covariance,
        seconds=seconds,
        how={sums.paths[c]: kind for c, kind in how.items()},
        told=_told(sums, groups),
        residual_watts=0.0 if powers is None else powers.residual_watts,
        free_gain=gain,
        limited_share=limited_share(sums),
        aliased=aliasing(sums),
    )


def _how(sums: SpanSums, column: int, is_alone: bool) -> How:
    if sums.times[column].stretch_s >= LONGEST_S:
        return "curve"
    return "single" if is_alone else "repeats"


def _gain(sums: SpanSums, powers: Powers | None, seconds: Array) -> float:
    """Energy of the curve over that of the model: the one gain of the run."""
    model_joules = 0.0 if powers is None else float(powers.watts @ seconds)
    return sums.joules * sums.gain / model_joules if model_joules > 0 else 1.0


def _by_repeats(sums: SpanSums, powers: Powers | None, judged: frozenset[int], gain: float) -> tuple[Array, Array]:
    """Power and covariance, scaled to the curve; a power that moves a little when long spans are cut is known no better than that move."""
    if powers is None:
        return np.zeros(len(sums.paths)), np.zeros((len(sums.paths), len(sums.paths)))
    covariance = powers.covariance.copy()
    for column in judged:
        if lacks_fit(sums, powers, column):
            covariance[column, column] += (float(powers.moved[column]) / SD_OF_90_PERCENT) ** 2
    return powers.watts * gain, covariance * gain**2


def _otherwise(
    sums: SpanSums,
    column: int,
    how: How,
    alone: Mapping[int, tuple[float, float]],
    curve_watts: Mapping[str, float],
    mean_watts: float,
) -> tuple[float, float]:
    """Power and standard deviation of a path from its single stretches or from the curve, which the sensor blurs at both ends. [W]"""
    if how == "single":
        watts, sd_watts = alone[column]
        return watts * sums.gain, sd_watts * sums.gain
    times = sums.times[column]
    blur_watts = LEAST_CONTRAST_WATTS * sums.sensor.width_s / max(times.stretch_s, 1e-6) / math.sqrt(max(times.stretches, 1))
    return curve_watts.get(sums.paths[column], mean_watts * sums.gain), blur_watts


def _told(sums: SpanSums, groups: list[Group]) -> dict[str, Told]:
    return {sums.paths[c]: Told(sums.paths[group.columns[0]], because) for group in groups for c, because in group.because.items()}
