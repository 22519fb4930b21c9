"""The response of a power sensor, found from a load whose times are known. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.combine.single import seen
from carbonreport.combine.solve import Array
from carbonreport.model.sensor import Kernel, Sensor

# Where the search begins, by kernel: widths and delays in steps that no minimum slips through. [s]
_WIDTHS_S: dict[Kernel, tuple[float, ...]] = {
    "low-pass": (0.003, 0.006, 0.010, 0.015, 0.022, 0.035, 0.060),
    "boxcar": (0.008, 0.012, 0.018, 0.025, 0.035, 0.050, 0.075, 0.100),
}
_DELAYS_S = (-0.004, 0.0, 0.003, 0.006, 0.010, 0.016, 0.025)
_ROUNDS = 12
_CORRELATED_SAMPLES = 5  # neighbours err alike: the load's power drifts
_LEAST_SD_S = 0.0003  # the agreement of two recordings of one board, six months of drivers apart


@dataclass(frozen=True, slots=True)
class Fit:
    """A response and how well it explains the samples.

    Attributes:
        sensor: The response.
        residual_watts: Root mean square of what it leaves. [W]
        swing_watts: Difference between the strongest and the weakest part of the load. [W]
        spread_watts: Standard deviation of the samples themselves. [W]
    """

    sensor: Sensor
    residual_watts: float
    swing_watts: float
    spread_watts: float

    @property
    def is_good(self) -> bool:
        """Whether the response explains the load well enough to stand on."""
        return self.residual_watts < 0.05 * self.swing_watts and self.residual_watts < 0.15 * self.spread_watts


def fit_response(
    samples: Sequence[tuple[float, float]], stretches: Sequence[tuple[int, float, float, float]], *, period_s: float, source: str
) -> Fit:
    """The response that explains samples of a known load best.

    Args:
        samples: (offset_s, watts) on the sensor's lattice.
        stretches: (part, from_s, to_s, share); one power a part.
        period_s: Time between two samples. [s]
        source: What the sensor's source says.

    Raises:
        ValueError: Too few samples.
    """
    if len(samples) < 100:
        raise ValueError(f"{len(samples)} samples are too few; a response needs 100 or more")
    stamps, power = np.array([t for t, _ in samples]), np.array([w for _, w in samples])
    is_inside = (stamps >= stretches[0][1] + 0.2) & (stamps <= stretches[-1][2])
    problem = _Problem(stamps[is_inside], power[is_inside], stretches, period_s, source)
    fits = [problem.fit(kernel) for kernel in _WIDTHS_S]
    return min(fits, key=lambda fit: fit.residual_watts)


class _Problem:
    def __init__(
        self, stamps_s: Array, power: Array, stretches: Sequence[tuple[int, float, float, float]], period_s: float, source: str
    ) -> None:
        self.stamps_s, self.power, self.stretches = stamps_s, power, stretches
        self.period_s, self.source = period_s, source
        parts = sorted({s[0] for s in stretches})
        self._of_part = np.array([[s[0] == part for part in parts] for s in stretches], dtype=float)

    def fit(self, kernel: Kernel) -> Fit:
        """Coarse grid, then Gauss-Newton with halved steps."""
        begin = min(
            ((width_s, delay_s) for width_s in _WIDTHS_S[kernel] for delay_s in _DELAYS_S),
            key=lambda at: self._residual(kernel, np.array(at)),
        )
        at = np.array(begin)
        for _ in range(_ROUNDS):
            left, jacobian = self._linear(kernel, at)
            step = np.linalg.lstsq(jacobian, left, rcond=None)[0]
            while self._residual(kernel, at + step) > self._residual(kernel, at) and np.abs(step).max() > 1e-6:
                step = step / 2
            at = at + step
            if np.abs(step).max() < 1e-6:
                break
        left, jacobian = self._linear(kernel, at)
        variance = np.linalg.inv(jacobian.T @ jacobian) * float(left @ left) / left.size * _CORRELATED_SAMPLES
        sd = np.sqrt(np.diag(variance)).clip(_LEAST_SD_S)
        sensor = Sensor(kernel, float(at[0]), float(at[1]), self.period_s, float(sd[0]), float(sd[1]), self.source)
        watts = self._watts(kernel, at)[1]
        return Fit(sensor, float(np.sqrt(left @ left / left.size)), float(watts.max() - watts.min()), float(self.power.std()))

    def _watts(self, kernel: Kernel, at: Array) -> tuple[Array, Array]:
        """Model of the samples and power of each part. [W]"""
        sensor = Sensor(kernel, max(float(at[0]), 1e-4), float(at[1]), self.period_s, 0.0, 0.0, self.source)
        design = seen(self.stretches, self.stamps_s, sensor) @ self._of_part
        watts = np.linalg.lstsq(design, self.power, rcond=None)[0]
        return design @ watts, watts

    def _left(self, kernel: Kernel, at: Array) -> Array:
        return self.power - self._watts(kernel, at)[0]

    def _residual(self, kernel: Kernel, at: Array) -> float:
        left = self._left(kernel, at)
        return float(left @ left)

    def _linear(self, kernel: Kernel, at: Array) -> tuple[Array, Array]:
        """What is left, and how the model moves with width and delay."""
        left, small_s = self._left(kernel, at), 1e-5
        columns = [(left - self._left(kernel, at + small_s * np.eye(2)[i])) / small_s for i in range(2)]
        return left, np.stack(columns, axis=1)
