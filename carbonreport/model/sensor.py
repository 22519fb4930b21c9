"""How a board's power readings follow its power: a low pass or a moving mean, late by a delay. Stdlib only."""

from dataclasses import dataclass
from typing import Literal

Kernel = Literal["low-pass", "boxcar"]

MOST_CALIBRATED_SD_S = 0.0005


@dataclass(frozen=True, slots=True)
class Sensor:
    """The response of one kind of power reading on one kind of board.

    Attributes:
        kernel: "low-pass": first order, `width_s` its time constant; "boxcar": mean over the last `width_s`.
        width_s: Time constant or window. [s]
        delay_s: How much older a reading is than its stamp. [s]
        period_s: Time between two readings. [s]
        width_sd_s: Standard deviation of `width_s`. [s]
        delay_sd_s: Standard deviation of `delay_s`. [s]
        source: Where this is known from.
    """

    kernel: Kernel
    width_s: float
    delay_s: float
    period_s: float
    width_sd_s: float
    delay_sd_s: float
    source: str

    def __post_init__(self) -> None:
        if not 0 < self.width_s < 10 or not 0 < self.period_s < 10:
            raise ValueError(f"a sensor with width {self.width_s!r} s and period {self.period_s!r} s; both lie between 0 and 10 s")
        if not -1 < self.delay_s < 10 or self.width_sd_s < 0 or self.delay_sd_s < 0:
            raise ValueError(f"a sensor with delay {self.delay_s!r} s, deviations {self.width_sd_s!r} and {self.delay_sd_s!r} s")

    @property
    def is_calibrated(self) -> bool:
        """Whether both numbers were measured on this kind of board, to half a millisecond."""
        return max(self.width_sd_s, self.delay_sd_s) <= MOST_CALIBRATED_SD_S

    @property
    def lag_s(self) -> float:
        """Mean age of the power in a reading. [s]"""
        return self.delay_s + (self.width_s if self.kernel == "low-pass" else self.width_s / 2)

    @property
    def coverage(self) -> float:
        """Share of the time that readings see: a window shorter than the period leaves the rest unseen."""
        return 1.0 if self.kernel == "low-pass" else min(1.0, self.width_s / self.period_s)
