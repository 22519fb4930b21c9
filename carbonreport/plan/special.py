"""Digamma, trigamma and the inverse of the latter, without scipy. Pure."""

import math

import numpy as np

from carbonreport.plan.table import Array

_LARGE = 6.0  # from where the series in 1 / x are exact enough (Abramowitz and Stegun 6.3.18 and 6.4.12)
_ROUNDS = 50


def digamma(x: Array) -> Array:
    """Derivative of the logarithm of the gamma function, of values above 0."""
    left, sums = np.array(x, dtype=float), np.zeros_like(np.array(x, dtype=float))
    while (left < _LARGE).any():
        small = left < _LARGE
        sums = np.where(small, sums - 1 / left, sums)
        left = np.where(small, left + 1, left)
    square = 1 / left**2
    return np.asarray(sums + np.log(left) - 0.5 / left - square * (1 / 12 - square * (1 / 120 - square / 252)))


def trigamma(x: Array) -> Array:
    """Derivative of digamma, of values above 0."""
    left, sums = np.array(x, dtype=float), np.zeros_like(np.array(x, dtype=float))
    while (left < _LARGE).any():
        small = left < _LARGE
        sums = np.where(small, sums + 1 / left**2, sums)
        left = np.where(small, left + 1, left)
    square = 1 / left**2
    return np.asarray(sums + 1 / left + square / 2 + square / left * (1 / 6 - square * (1 / 30 - square / 42)))


def trigamma_inverse(value: float) -> float:
    """The number above 0 whose trigamma is this, by halving: trigamma falls."""
    low, high = 1e-8, 1e8
    for _ in range(2 * _ROUNDS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(trigamma(np.array(middle))) > value else (low, middle)
    return math.sqrt(low * high)
