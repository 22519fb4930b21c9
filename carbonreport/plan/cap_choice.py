"""Which cap is worth it, if any, and whether that was seen again when it was measured anew. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.plan.cap_curve import CapCurve, CapCurvePoint, Ratio, Scatter, is_within, ratio_of

LEAST_SAVING = 0.01  # a judgement: a saving below it is lost in what else changes on a machine from week to week


@dataclass(frozen=True, slots=True)
class CapRule:
    """What is wanted.

    Attributes:
        slowdown: How much longer it may take, as a share of the time without a cap; None: any time.
        eta: Weight of energy in Zeus's cost eta E + (1 - eta) P T (NSDI'23); None: energy alone counts.
        most_watts: P of that cost: limit of all boards together. [W]
    """

    slowdown: float | None = 0.05
    eta: float | None = None
    most_watts: float | None = None

    def __post_init__(self) -> None:
        if self.slowdown is not None and not 0 <= self.slowdown < math.inf:
            raise ValueError(f"a slowdown of {self.slowdown!r} cannot be; it must be 0 or more")
        if self.eta is not None and not (0 <= self.eta <= 1 and self.most_watts is not None and self.most_watts > 0):
            raise ValueError(f"eta {self.eta!r} with {self.most_watts!r} W cannot be; eta is 0 to 1 and needs the boards' limit")


@dataclass(frozen=True, slots=True)
class CapChoice:
    """A cap that is worth it.

    Attributes:
        cap_watts: Power cap of each board. [W]
        energy: What is promised of energy, after it was drawn to the level of all caps.
        time: What was measured of time.
        because: Why this one, in a sentence without a full stop.
    """

    cap_watts: float
    energy: Ratio
    time: Ratio
    because: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A choice, or that no cap is worth it.

    Attributes:
        choice: None where no cap is worth it.
        because: Why, in a sentence without a full stop.
    """

    choice: CapChoice | None
    because: str


def choose(curve: CapCurve, rule: CapRule) -> Verdict:
    """The cap of least energy, or of least cost, among those that are not dominated and keep the time; or none."""
    open_points = [point for point in curve.points if not point.is_dominated]
    if not open_points:
        return Verdict(None, "no cap saves energy: none at all needs no more energy and no more time than each of them")
    allowed = [point for point in open_points if rule.slowdown is None or is_within(_most(point.time), 1 + rule.slowdown)]
    if not allowed:
        nearest = min(open_points, key=lambda point: _most(point.time))
        return Verdict(
            None,
            f"no cap keeps a slowdown of {_percent(rule.slowdown)}: the nearest, {nearest.cap_watts:g} W, takes {_time_in_words(nearest.time)}",
        )
    best = min(allowed, key=lambda point: _cost(curve, rule, point.time.value, point.expected.value))
    value = _cost(curve, rule, best.time.value, best.expected.value)
    high = value if best.expected.high is None else _cost(curve, rule, best.time.high or best.time.value, best.expected.high)
    what = "energy" if rule.eta is None else f"cost with eta {rule.eta:g}"
    if value > 1 - LEAST_SAVING or high >= 1:
        doubt = "" if best.expected.high is None else f" and may be {_signed(high)}"
        return Verdict(None, f"no cap is worth it: of the best, {best.cap_watts:g} W, {what} is {_signed(value)} expected{doubt}")
    return Verdict(*_chosen(best, rule, what))


def _chosen(best: CapCurvePoint, rule: CapRule, what: str) -> tuple[CapChoice, str]:
    within = "at any time" if rule.slowdown is None else f"within a slowdown of {_percent(rule.slowdown)}"
    sure = "" if best.time.bound is None or rule.slowdown is None else ", which it keeps with 90 % confidence"
    because = f"least {what} {within}{sure}"
    return CapChoice(best.cap_watts, best.expected, best.time, because), because


def zeus_cost(joules: float, seconds: float, eta: float, most_watts: float) -> float:
    """Energy and time in one figure: eta E + (1 - eta) P T. [J]"""
    return eta * joules + (1 - eta) * most_watts * seconds


def _cost(curve: CapCurve, rule: CapRule, time_ratio: float, energy_ratio: float) -> float:
    """Energy, or Zeus's cost, over that without a cap."""
    if rule.eta is None or rule.most_watts is None:
        return energy_ratio
    capped = zeus_cost(energy_ratio * curve.joules, time_ratio * curve.seconds, rule.eta, rule.most_watts)
    return capped / zeus_cost(curve.joules, curve.seconds, rule.eta, rule.most_watts)


def _most(time: Ratio) -> float:
    """What the time stays below, as far as that is known."""
    return time.value if time.bound is None else time.bound


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A choice measured anew, in pairs with a run without a cap.

    Attributes:
        pairs: How many.
        time: Time for the same work.
        energy: Energy of the boards for the same work.
        holds: Whether the energy is below 1 with its whole interval, or in every pair where errors are not known, and the time kept.
    """

    pairs: int
    time: Ratio
    energy: Ratio
    holds: bool


def confirmed(
    pairs: Sequence[tuple[tuple[float, float], tuple[float, float]]], scatters: tuple[Scatter, Scatter], rule: CapRule
) -> Confirmed:
    """What new pairs of runs say of a choice.

    Args:
        pairs: (seconds, joules) of the choice and of its neighbour without a cap.
        scatters: Of time and energy, as the sweep saw them: two or three pairs alone hardly know their own.
        rule: What was wanted.
    """
    time, energy = (_paired([math.log(capped[i] / free[i]) for capped, free in pairs], scatter) for i, scatter in enumerate(scatters))
    is_lower = energy.high < 1 if energy.high is not None else all(capped[1] < free[1] for capped, free in pairs)
    keeps = rule.slowdown is None or is_within(time.value, 1 + rule.slowdown)
    return Confirmed(len(pairs), time, energy, is_lower and keeps)


def _paired(logs: Sequence[float], scatter: Scatter) -> Ratio:
    """Mean of differences of pairs; a difference has twice the variance of a run."""
    n = len(logs)
    mean = sum(logs) / n
    degrees = scatter.degrees + n - 1
    if degrees < 1:
        return Ratio(math.exp(mean))
    variance = (scatter.squares + sum((log - mean) ** 2 for log in logs) / 2) / degrees
    return ratio_of(mean, math.sqrt(2 * variance / n), degrees)


def _percent(share: float | None) -> str:
    return f"{100 * (share or 0.0):.3g} %"


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")


def _time_in_words(time: Ratio) -> str:
    if time.bound is None:
        return f"{_signed(time.value)} of time"
    return f"{_signed(time.value)} of time, at most {_signed(time.bound)} with 90 % confidence"
