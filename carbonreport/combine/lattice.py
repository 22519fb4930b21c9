"""When power samples were taken, from their stamps and the strict lattice of the sensor. Pure, stdlib only.

While the host launches kernels the driver stamps 20 to 40 % of the samples late, by up to 24 ms. Up to 3.5 ms only the
stamp is late and the value belongs to the lattice; a later sample was taken late too, 3.5 ms before its stamp (known
loads on an H200: samples 4 to 8 ms late then fit to 7 W instead of 16, those 13 to 14.6 ms late to 5 W instead of 100).
"""

from collections import deque
from math import floor

REACH_S = 3.0
EARLIEST_S = -0.0007
STAMPED_LATE_S = 0.0035
LATE_S, LATEST_S = 0.008, 0.0146  # beyond the second, or the first just after another such one, nobody knows when it was taken
_CLUSTER_S = 0.0015
_ENOUGH = 10


class Lattice:
    """Finds the phase of a sensor's lattice and from it when each sample was taken.

    Args:
        period_s: Time between two samples. [s]
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._recent: deque[float] = deque(maxlen=max(_ENOUGH, round(REACH_S / period_s)))
        self._newest_s = float("-inf")
        self._lateness_s = 0.0

    def snap(self, stamps_s: list[float]) -> list[float | None]:
        """When each sample was taken: its slot, or later; None where nobody knows and for a second one in its slot. [s]

        Args:
            stamps_s: Stamps in rising order, none seen before. [s] Any zero, but always the same one.
        """
        self._recent.extend(stamps_s)
        phase_s = self._phase_s()
        return [self._taken_s(stamp_s, phase_s) for stamp_s in stamps_s]

    def _taken_s(self, stamp_s: float, phase_s: float | None) -> float | None:
        if phase_s is None:
            return None
        slot_s = phase_s + self._period_s * floor((stamp_s - EARLIEST_S - phase_s) / self._period_s)
        before_s, self._lateness_s = self._lateness_s, stamp_s - slot_s
        if slot_s < self._newest_s + 0.5 * self._period_s or self._lateness_s > (LATEST_S if before_s <= LATE_S else LATE_S):
            return None
        self._newest_s = slot_s
        return slot_s + max(0.0, self._lateness_s - STAMPED_LATE_S)

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
