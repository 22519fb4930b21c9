"""Quantiles of Student's t distribution for whole degrees of freedom, without scipy. Pure."""

import math

_STEPS = 200  # of the bisection; each halves the error
_MOST_T = 1e6


def t_quantile(probability: float, degrees: int) -> float:
    """The value that a t variable stays below with a probability of 0.5 to 1."""
    if degrees < 1 or not 0.5 <= probability < 1:
        raise ValueError(f"no quantile of t at {probability!r} with {degrees!r} degrees of freedom")
    low, high = 0.0, _MOST_T
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if t_probability(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def t_probability(t: float, degrees: int) -> float:
    """Probability that a t variable stays below a value (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(theta)
    is_odd = degrees % 2 == 1
    term = cosine if is_odd else 1.0
    total = term if not is_odd or degrees > 1 else 0.0
    for k in range(3 if is_odd else 2, degrees - 1, 2):
        term *= (k - 1) / k * cosine**2
        total += term
    inside = 2 / math.pi * (theta + math.sin(theta) * total) if is_odd else math.sin(theta) * total
    return 0.5 + inside / 2
