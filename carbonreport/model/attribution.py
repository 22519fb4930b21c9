"""What a device's samples say of the power of each path, and what they cannot say."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

How = Literal["repeats", "single", "curve"]


@dataclass(frozen=True, slots=True)
class Told:
    """Why a path's energy is not told apart.

    Attributes:
        within: The path in whose energy it is contained; REST is the time outside all spans.
        because: One clause without a full stop.
    """

    within: str
    because: str


@dataclass(frozen=True, slots=True, eq=False)
class Attribution:
    """The energy of one device, shared among the paths.

    Attributes:
        device: Id of the device.
        paths: Every path, and REST.
        watts: Mean power in each, the best estimate also of those that are not told apart. [W] Shape (n,).
        covariance: Of the power; the board's gain is left out. [W²] Shape (n, n).
        seconds: Time in each as far as the samples reach. [s] Shape (n,).
        how: From a path's repeats, from each stretch alone, or from the cumulative curve.
        told: Paths whose energy lies in another's.
        residual_watts: What the model leaves unexplained, root mean square over samples. [W]
        free_gain: Energy of the curve over that of the model before the two were made equal.
        limited_share: Share of the time at the power limit; None where the board does not say.
        aliased: Why the samples may always meet the same part of a step, or "".
    """

    device: str
    paths: tuple[str, ...]
    watts: Array
    covariance: Array
    seconds: Array
    how: Mapping[str, How]
    told: Mapping[str, Told]
    residual_watts: float
    free_gain: float
    limited_share: float | None
    aliased: str

    def mean_watts(self, *paths: str) -> float:
        """Mean power over some paths together. [W]"""
        at = [self.paths.index(path) for path in paths]
        return float(self.watts[at] @ self.seconds[at] / self.seconds[at].sum())

    def sd_watts(self, *paths: str) -> float:
        """Standard deviation of the mean power over some paths together. [W]"""
        at = [self.paths.index(path) for path in paths]
        seconds = self.seconds[at]
        variance = float(seconds @ self.covariance[np.ix_(at, at)] @ seconds)
        return math.sqrt(max(0.0, variance)) / float(seconds.sum())

    def members(self, path: str) -> tuple[str, ...]:
        """The path itself and those whose energy lies in its."""
        return (path, *(p for p, told in self.told.items() if told.within == path))
