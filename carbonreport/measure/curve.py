"""The cumulative energy of one device while it grows: a short full-resolution memory, and few points for the record."""

from bisect import bisect_right

from carbonreport.model.run import Device
from carbonreport.units import QUARTER_HOUR_S

# A point is left out of the record while the straight line stays this close to the curve: the meter's own relative
# error, at most 5 %, over one minute of mean power. Quarter-hour edges are always kept, so charging by time is exact.
_MAX_RELATIVE_ERROR = 0.05
_MINUTE_S = 60.0
_POINTS_BEFORE_COARSER = 8  # in one quarter hour; then the tolerance doubles, which bounds the file
_HOLD_S = 0.25  # the last power is held to the end of the run over at most this time


class Curve:
    """Takes cumulative readings of a device and keeps what spans and the record need.

    Offsets are seconds since the start of the run; readings before 0 only fix the zero.
    """

    def __init__(self, device: Device, started_s: float) -> None:
        self.device = device
        self.times: list[float] = []
        self.joules: list[float] = []
        self._before: tuple[float, float] | None = None
        self._zero: float | None = None
        self._merger = _Merger(device, started_s)

    @property
    def latest_s(self) -> float | None:
        """Offset of the newest reading, or None."""
        return self.times[-1] if self.times else None

    def add(self, offset_s: float, joules: float) -> None:
        """Take a reading of the meter's own cumulative energy. [J]"""
        if offset_s < 0:
            self._before = (offset_s, joules)
            return
        if self._zero is None:
            self._start(offset_s, joules)
        assert self._zero is not None
        self._append(offset_s, joules - self._zero)

    def _start(self, offset_s: float, joules: float) -> None:
        """Fix the zero: at offset 0 where an earlier reading allows it, else at this reading."""
        if self._before is None:
            self._zero = joules
            return
        t0, e0 = self._before
        self._zero = e0 + (joules - e0) * (0.0 - t0) / (offset_s - t0)
        if offset_s > 0:
            self._append(0.0, 0.0)

    def _append(self, offset_s: float, joules: float) -> None:
        if self.times and offset_s <= self.times[-1]:
            return
        joules = max(joules, self.joules[-1]) if self.joules else joules
        self.times.append(offset_s)
        self.joules.append(joules)
        self._merger.add(offset_s, joules)

    def joules_at(self, offset_s: float) -> float:
        """Energy since the start at an offset within memory, the ends held. [J]"""
        i = bisect_right(self.times, offset_s)
        if i == 0:
            return self.joules[0] if self.joules else 0.0
        if i == len(self.times):
            return self.joules[-1]
        t0, t1, e0, e1 = self.times[i - 1], self.times[i], self.joules[i - 1], self.joules[i]
        return e0 + (e1 - e0) * (offset_s - t0) / (t1 - t0)

    def forget_before(self, offset_s: float) -> None:
        """Drop readings that no span needs any more, but for the last one before the offset."""
        keep = max(bisect_right(self.times, offset_s) - 1, 0)
        if keep:
            del self.times[:keep], self.joules[:keep]

    def hold(self, end_s: float) -> None:
        """Hold the last power up to the end of the run, over at most a quarter of a second."""
        if len(self.times) < 2 or not 0 < end_s - self.times[-1] <= _HOLD_S:
            return
        watts = (self.joules[-1] - self.joules[-2]) / (self.times[-1] - self.times[-2])
        self._append(end_s, self.joules[-1] + watts * (end_s - self.times[-1]))

    def open_points(self) -> list[tuple[float, float]]:
        """Points that the record does not hold yet, the newest reading included."""
        return self._merger.open_points()

    def closed_points(self) -> list[tuple[float, float]]:
        """Take the closed points; the open segment stays."""
        return self._merger.take_closed()

    def break_line(self) -> None:
        """Close the segment at the newest reading: a gap begins."""
        self._merger.close()


class _Merger:
    """Swinging door: the longest straight lines that stay within the tolerance."""

    def __init__(self, device: Device, started_s: float) -> None:
        self._relative = min((device.gain_high - device.gain_low) / 2, _MAX_RELATIVE_ERROR)
        self._floor = max(device.edge_joules, 1.0)
        self._started_s = started_s
        self._closed: list[tuple[float, float]] = []
        self._anchor: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None
        self._door = (float("-inf"), float("inf"))
        self._points_in_quarter = 0
        self._quarter = self._quarter_of(0.0)

    def _quarter_of(self, offset_s: float) -> int:
        return int((self._started_s + offset_s) // QUARTER_HOUR_S)

    def _tolerance_joules(self, offset_s: float, joules: float) -> float:
        mean_watts = joules / offset_s if offset_s > 0 else 0.0
        coarser = float(2 ** (self._points_in_quarter // _POINTS_BEFORE_COARSER))
        return max(self._floor, self._relative * mean_watts * _MINUTE_S * coarser)

    def add(self, t: float, e: float) -> None:
        if self._anchor is None:
            self._put(t, e)
            self._quarter = self._quarter_of(t)
            return
        self._cross_quarters(t, e)
        t0, e0 = self._anchor
        slope = (e - e0) / (t - t0) if t > t0 else 0.0
        low, high = self._door
        if not low <= slope <= high:
            self.close()
            t0, e0 = self._anchor
            low, high = self._door
        if t > t0:
            slack = self._tolerance_joules(t, e) / (t - t0)
            slope = (e - e0) / (t - t0)
            self._door = (max(low, slope - slack), min(high, slope + slack))
        self._last = (t, e)

    def _cross_quarters(self, t: float, e: float) -> None:
        """Put a point on the newest quarter-hour edge that this reading passed: energy is charged by quarter hours."""
        quarter = self._quarter_of(t)
        if quarter == self._quarter:
            return
        t0, e0 = self._last or self._anchor or (t, e)
        for edge in sorted({self._quarter + 1, quarter}):
            edge_s = edge * QUARTER_HOUR_S - self._started_s
            if t0 < edge_s < t:
                self.close()
                self._put(edge_s, e0 + (e - e0) * (edge_s - t0) / (t - t0))
        self._quarter, self._points_in_quarter = quarter, 0

    def close(self) -> None:
        """End the segment at the newest reading."""
        if self._last is not None:
            self._put(*self._last)

    def _put(self, t: float, e: float) -> None:
        self._closed.append((t, e))
        self._anchor, self._last, self._door = (t, e), None, (float("-inf"), float("inf"))
        self._points_in_quarter += 1

    def open_points(self) -> list[tuple[float, float]]:
        return self._closed + ([self._last] if self._last is not None else [])

    def take_closed(self) -> list[tuple[float, float]]:
        taken, self._closed = self._closed, []
        return taken
