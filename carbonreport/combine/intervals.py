"""90 % intervals: factors combine in log space, each side on its own (method, section 2).

Inside a kind shared inputs add linearly; independent ones, and the kinds among each other, add in quadrature.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.model.run import Device
from carbonreport.model.series import Array, GridErrors
from carbonreport.units import SECONDS_PER_HOUR

Z90 = 1.6448536269514722  # two-sided 90 % of a normal


@dataclass(frozen=True, slots=True)
class Factors:
    """A 90 % interval as factors on the value; (1, 1) is exact."""

    low: float
    high: float

    @property
    def log_half_width(self) -> float:
        """Half of ln(high / low)."""
        return math.log(self.high / self.low) / 2


EXACT = Factors(1.0, 1.0)


def product(*factors: Factors) -> Factors:
    """Interval of a product of independent factors: quadrature of the logarithms, each side on its own."""
    return Factors(
        math.exp(-math.sqrt(sum(math.log(f.low) ** 2 for f in factors))),
        math.exp(math.sqrt(sum(math.log(f.high) ** 2 for f in factors))),
    )


def independent_sum(parts: Iterable[tuple[float, Factors]]) -> Factors:
    """Interval of a sum of independent parts, given as (amount, factors)."""
    parts = list(parts)
    return _factors(
        sum(amount for amount, _ in parts),
        math.sqrt(sum((amount * (1 - f.low)) ** 2 for amount, f in parts)),
        math.sqrt(sum((amount * (f.high - 1)) ** 2 for amount, f in parts)),
    )


def _factors(total: float, below: float, above: float) -> Factors:
    """Factors of a total with margins; a margin as large as the total leaves a thousandth."""
    return EXACT if total <= 0 else Factors(max(1 - below / total, 1e-3), 1 + above / total)


@dataclass(frozen=True, slots=True)
class Part:
    """A device's share of a total (joules, or grams): amount, and how many run ends blur it.

    Attributes:
        device: Whose.
        amount: In the unit of the total.
        ends: Number of ends of runs (two a run).
        per_joule: The total's unit per joule, for errors that are stated in joules.
    """

    device: Device
    amount: float
    ends: int
    per_joule: float = 1.0


def kind_of_error(device: Device) -> str:
    """Devices that share an error: a GPU model's sensor, a host's counters, a model's wattage."""
    if device.kind == "gpu" and device.method not in ("model", "reported"):
        return f"gpu sensor of {device.name}"
    return f"{device.kind} {device.method}"


def device_factors(parts: Sequence[Part]) -> Factors:
    """Interval of the sum of the devices' energies.

    A GPU sensor's gain is half common to its model (linear) and half its board's own (quadrature); every
    other gain is common to its kind. Ends of runs are independent.
    """
    total = sum(part.amount for part in parts)
    groups: dict[str, list[Part]] = defaultdict(list)
    for part in parts:
        groups[kind_of_error(part.device)].append(part)
    margins = [_margins(kind.startswith("gpu sensor"), group) for kind, group in groups.items()]
    ends = sum(part.ends * (part.device.edge_joules * part.per_joule) ** 2 for part in parts)
    below = math.sqrt(sum(low**2 for low, _ in margins) + ends)
    above = math.sqrt(sum(high**2 for _, high in margins) + ends)
    return _factors(total, below, above)


def _margins(is_sensor: bool, parts: Sequence[Part]) -> tuple[float, float]:
    if not is_sensor:
        return sum(p.amount * (1 - p.device.gain_low) for p in parts), sum(p.amount * (p.device.gain_high - 1) for p in parts)
    boards: dict[str, float] = defaultdict(float)
    low, high = parts[0].device.gain_low, parts[0].device.gain_high
    for part in parts:
        boards[part.device.id] += part.amount
        low, high = min(low, part.device.gain_low), max(high, part.device.gain_high)
    common, own = sum(boards.values()), math.sqrt(sum(amount**2 for amount in boards.values()))
    half = math.sqrt(0.5)  # half of the variance each
    reach = math.hypot(common, own)
    return reach * half * (1 - low), reach * half * (high - 1)


def grid_sd(start_s: Array, weights: Array, errors: GridErrors) -> float:
    """Standard deviation of ln(true / stated) of a weighted mean of hours, exact for any weights.

    One pass per exponential term: a_i = exp(-dt/tau) (a_(i-1) + w_(i-1)), Var += s^2 (w_i^2 + 2 w_i a_i); the
    level counts once (method, section 2.2). Within an hour the error is one draw. Hours that were corrected by an observed one keep what
    that one does not tell of them: with c their covariance with it, `Var - c^2 / C(0)`.

    Args:
        start_s: POSIX seconds of the hours, rising. Shape (n,).
        weights: Share of each hour in the total; their sum may be below 1. Shape (n,).
        errors: Error model of those hours, with the moment of the observation, if there was one.
    """
    variance = (errors.level_sd * float(weights.sum())) ** 2
    for sd, hours in errors.terms:
        variance += sd**2 * _correlated(start_s, weights, hours * SECONDS_PER_HOUR)
    return math.sqrt(max(variance - _told(start_s, weights, errors), 0.0))


def covariance(errors: GridErrors, distance_h: Array) -> Array:
    """Covariance of the errors of two hours at each distance. Shape (n,)."""
    parts = [sd**2 * np.exp(-distance_h / tau) for sd, tau in errors.terms]
    return np.asarray(sum(parts, np.full(distance_h.shape, errors.level_sd**2)), dtype=np.float64)


def _told(start_s: Array, weights: Array, errors: GridErrors) -> float:
    """The part of the variance that the observed hour tells; hours before it were not corrected."""
    alone = float(covariance(errors, np.zeros(1))[0])
    if errors.observed_s is None or alone <= 0:
        return 0.0
    lead_h = (start_s - errors.observed_s) / SECONDS_PER_HOUR
    known = float(np.sum(np.where(lead_h >= 0, weights, 0.0) * covariance(errors, np.maximum(lead_h, 0.0))))
    return known**2 / alone


def _correlated(start_s: Array, weights: Array, tau_s: float) -> float:
    """Sum over pairs of w_i w_j exp(-|t_i - t_j| / tau)."""
    decay = np.exp(-np.diff(start_s, prepend=start_s[:1]) / tau_s)
    carried, total = 0.0, 0.0
    before = 0.0
    for w, d in zip(weights.tolist(), decay.tolist(), strict=True):
        carried = d * (carried + before)
        total += w * w + 2 * w * carried
        before = w
    return total


def log_normal(sd: float) -> Factors:
    """90 % factors of a lognormal error."""
    return Factors(math.exp(-Z90 * sd), math.exp(Z90 * sd))
