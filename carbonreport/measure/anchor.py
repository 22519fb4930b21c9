"""Power samples to joules, and one slow gain that makes them agree with the board's energy counter. Pure."""

from bisect import bisect_right
from collections import deque

REACH_S = 0.2  # how far past its ends a curve is continued to meet a reading of the counter
COUNTER_PERIOD_S = 13.73  # one read costs 3 ms; no multiple of the counter's tick of 0.1 s, which would hide an error of its phase
COMPARED_ENOUGH_S = 30.0

Points = list[tuple[float, float]]
"""(offset_s, watts or joules) in rising order."""


class Integral:
    """Cumulative joules of power samples by the trapezoidal rule, flat across holes."""

    def __init__(self, hole_s: float) -> None:
        self._hole_s = hole_s
        self._recent: deque[tuple[float, float]] = deque(maxlen=512)
        self._watts = self._joules = 0.0
        self._opening: tuple[float, float] | None = None

    @property
    def end_s(self) -> float:
        """Offset of the newest sample; minus infinity before the first. [s]"""
        return self._recent[-1][0] if self._recent else float("-inf")

    def add(self, power: Points) -> tuple[Points, Points]:
        """Take samples in; late and repeated ones are dropped.

        Returns:
            New points (offset_s, joules), and holes (from_s, to_s).
        """
        fresh: Points = []
        holes: Points = []
        end_s, watts_before, joules = self.end_s, self._watts, self._joules
        for offset_s, watts in power:
            passed_s = offset_s - end_s
            if passed_s <= 0:
                continue
            if passed_s <= self._hole_s:
                joules += 0.5 * (watts_before + watts) * passed_s
            elif self._opening:
                holes.append((end_s, offset_s))
            else:
                self._opening = (offset_s, watts)
            end_s, watts_before = offset_s, watts
            fresh.append((offset_s, joules))
        self._watts, self._joules = watts_before, joules
        self._recent.extend(fresh)
        return fresh, holes

    def joules_at(self, offset_s: float) -> float | None:
        """Energy at one offset, also shortly before the first and after the newest sample; None where it is not known. [J]"""
        if offset_s >= self.end_s:
            beyond_s = offset_s - self.end_s
            return self._joules + self._watts * beyond_s if beyond_s <= REACH_S else None
        if self._opening and 0 < self._opening[0] - offset_s <= REACH_S:
            return self._opening[1] * (offset_s - self._opening[0])
        points = list(self._recent)
        i = bisect_right(points, (offset_s, float("inf")))
        if i == 0:
            return None
        (t0, e0), (t1, e1) = points[i - 1], points[i]
        return e0 + (e1 - e0) * (offset_s - t0) / (t1 - t0)


class Anchor:
    """Compares the counter with the samples over every stretch without hole or reset."""

    def __init__(self, first: tuple[float, float]) -> None:
        self._pending: list[tuple[float, float]] = [first]
        self._before: tuple[float, float, float] | None = None  # offset_s, joules by counter, joules by samples
        self._due_s = first[0] + COUNTER_PERIOD_S
        self.counter_joules = self.sample_joules = self.seconds = 0.0

    def is_due(self, now_s: float) -> bool:
        """Whether it is time to read the counter again."""
        return now_s >= self._due_s

    def take(self, reading: tuple[float, float]) -> None:
        """Keep a reading of the counter until the samples reach it."""
        self._pending.append(reading)
        self._due_s = reading[0] + COUNTER_PERIOD_S

    def skip(self, hole: tuple[float, float]) -> None:
        """Begin anew after a hole: its energy is in the counter but not in the samples."""
        self._before = None
        self._pending = [reading for reading in self._pending if reading[0] >= hole[1]]
        self._due_s = hole[1]

    def settle(self, integral: Integral, *, is_last: bool) -> tuple[bool, bool]:
        """Compare the readings that the samples have reached: (anything new, counter fell)."""
        ready = [reading for reading in self._pending if is_last or reading[0] <= integral.end_s]
        self._pending = [reading for reading in self._pending if reading not in ready]
        fell = [self._compare(reading, integral.joules_at(reading[0])) for reading in ready]
        return bool(ready), any(fell)

    def gain(self) -> float | None:
        """Counter over samples so far; None before they were compared long enough."""
        if self.seconds < COMPARED_ENOUGH_S or self.sample_joules <= 0:
            return None
        return self.counter_joules / self.sample_joules

    def _compare(self, reading: tuple[float, float], sample_joules: float | None) -> bool:
        if sample_joules is None:
            return False
        before, self._before = self._before, (*reading, sample_joules)
        if before is None:
            return False
        if reading[1] < before[1]:
            return True
        self.seconds += reading[0] - before[0]
        self.counter_joules += reading[1] - before[1]
        self.sample_joules += sample_joules - before[2]
        return False
