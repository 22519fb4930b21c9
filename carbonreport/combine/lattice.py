"""Stamps of power samples, snapped to the strict lattice on which the sensor takes them. Pure, stdlib only.

While the host launches kernels the driver stamps 20 to 40 % of the samples late, by up to 24 ms; the value still
belongs to the lattice (measured on an H200: the residual of a known load falls from 35 to 7 W).
"""

from collections import deque
from math import floor

REACH_S = 3.0
EARLIEST_S, LATEST_S = -0.0007, 0.008  # a stamp outside this is not trusted to say which slot it belongs to
_CLUSTER_S = 0.0015
_ENOUGH = 10


class Lattice:
    """Finds the phase of a sensor's lattice and snaps stamps to it.

    Args:
        period_s: Time between two samples. [s]
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._recent: deque[float] = deque(maxlen=max(_ENOUGH, round(REACH_S / period_s)))
        self._newest_s = float("-inf")

    def snap(self, stamps_s: list[float]) -> list[float | None]:
        """Slot of each stamp, or None for one that is late, early, or second in its slot.

        Args:
            stamps_s: Stamps in rising order, none seen before. [s] Any zero, but always the same one.
        """
        self._recent.extend(stamps_s)
        phase_s = self._phase_s()
        return [self._slot(stamp_s, phase_s) for stamp_s in stamps_s]

    def _slot(self, stamp_s: float, phase_s: float | None) -> float | None:
        if phase_s is None:
            return None
        slot_s = phase_s + self._period_s * floor((stamp_s - EARLIEST_S - phase_s) / self._period_s)
        if stamp_s - slot_s > LATEST_S or slot_s < self._newest_s + 0.5 * self._period_s:
            return None
        self._newest_s = slot_s
        return slot_s

    def _phase_s(self) -> float | None:
        """Lower quartile of the lateness, counted from the densest cluster of stamps."""
        if len(self._recent) < _ENOUGH:
            return None
        reference_s = self._recent[0]
        residues = sorted((stamp_s - reference_s) % self._period_s for stamp_s in self._recent)
        doubled = residues + [r + self._period_s for r in residues]
        begin = best = end = 0
        for i in range(len(residues)):
            while end < i + len(residues) and doubled[end] - doubled[i] <= _CLUSTER_S:
                end += 1
            if end - i > best:
                begin, best = i, end - i
        lateness = sorted((r - doubled[begin] + self._period_s / 10) % self._period_s for r in residues)
        return reference_s + doubled[begin] - self._period_s / 10 + lateness[len(lateness) // 4]
