"""What a joule costs at each moment of a place, and what a job of known power costs at any start. Pure."""

from dataclasses import dataclass

import numpy as np

from carbonreport.model.series import Array
from carbonreport.units import JOULES_PER_KWH


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Emissions of a joule of IT energy, constant within each slice.

    Attributes:
        edges_s: Slice edges, POSIX seconds, rising. Shape (n + 1,).
        grams_per_joule: PUE times intensity. [gCO2e/J] Shape (n,).
    """

    edges_s: Array
    grams_per_joule: Array

    def __post_init__(self) -> None:
        if self.edges_s.size != self.grams_per_joule.size + 1 or self.grams_per_joule.size == 0:
            raise ValueError(f"{self.edges_s.size} edges for {self.grams_per_joule.size} rates")
        if np.any(np.diff(self.edges_s) <= 0) or not np.all(np.isfinite(self.grams_per_joule)):
            raise ValueError("edges that do not rise, or rates that are not finite")

    @classmethod
    def of(cls, edges_s: Array, grams_per_kwh: Array, pue: Array) -> "Rates":
        """From intensities and PUEs of the same slices."""
        return cls(edges_s, grams_per_kwh * pue / JOULES_PER_KWH)

    def cumulative(self, at_s: Array) -> Array:
        """Emissions of one watt from the first edge to some moments, partial slices exact. [g/W]"""
        whole = np.concatenate([[0.0], np.cumsum(self.grams_per_joule * np.diff(self.edges_s))])
        found: Array = np.interp(at_s, self.edges_s, whole)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """Power of a job over its own time, constant within each piece.

    Attributes:
        edges_s: Piece edges, seconds since its start, from 0, rising. Shape (k + 1,).
        watts: Power of each piece, at the IT equipment. [W] Shape (k,).
    """

    edges_s: Array
    watts: Array

    def __post_init__(self) -> None:
        if self.edges_s.size != self.watts.size + 1 or self.edges_s[0] != 0 or np.any(np.diff(self.edges_s) <= 0):
            raise ValueError("a job's pieces must begin at 0 and rise")
        if np.any(self.watts < 0) or not np.all(np.isfinite(self.watts)):
            raise ValueError("a job's power must be finite and not negative")

    @classmethod
    def steady(cls, watts: float, seconds: float) -> "Job":
        """A job of constant power."""
        return cls(np.array([0.0, seconds]), np.array([watts]))

    @property
    def seconds(self) -> float:
        """Its length. [s]"""
        return float(self.edges_s[-1])

    @property
    def joules(self) -> float:
        """Its energy. [J]"""
        return float(self.watts @ np.diff(self.edges_s))

    @property
    def mean_watts(self) -> float:
        """Its mean power. [W]"""
        return self.joules / self.seconds


def cost_of_starts(job: Job, rates: Rates, starts_s: Array) -> Array:
    """Emissions of a job at each start: the sum over slices of energy times PUE times intensity. [gCO2e] Shape (n,).

    NaN where the rates do not cover the whole of it.
    """
    grams = np.zeros(starts_s.size)
    before = rates.cumulative(starts_s)
    for end_s, watts in zip(job.edges_s[1:], job.watts, strict=True):
        after = rates.cumulative(starts_s + end_s)
        grams += watts * (after - before)
        before = after
    slack_s = 1e-6 * job.seconds
    is_covered = (starts_s >= rates.edges_s[0] - slack_s) & (starts_s + job.seconds <= rates.edges_s[-1] + slack_s)
    return np.where(is_covered, grams, np.nan)
