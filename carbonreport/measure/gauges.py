"""One NVIDIA board and the best way to read it.

What a board can do is asked once and named in its Device:

    sample buffer or instant power, and counter   anchored
    counter alone                                 counter
    sample buffer or instant power alone          instant
    one-second average alone                      averaged
    nothing                                       left out, with a note; never zero
"""

from collections.abc import Callable
from typing import Protocol

from carbonreport.combine.lattice import Lattice
from carbonreport.measure.anchor import Anchor, Integral, Points
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Poll, Reading, Samples
from carbonreport.measure.nvml_power import BufferedPower, Calls, InstantPower, PowerSource, TickingCounter, UsagePower
from carbonreport.measure.visible import Board
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, Method
from carbonreport.model.sensor import Sensor
from carbonreport.sensors import ReadingKind

HOLE_S = 1.0
GAIN_TRUSTED = (0.9, 1.1)
# 90 % of true / reading: external calibrations of eight boards read low by 0.7 to 6.2 % (seven) and high by under 1 % (one).
GAIN_OF_COUNTER = (0.99, 1.08)
GAIN_OF_SAMPLES = (0.95, 1.08)  # A100 and H100 sense a quarter of the time (arXiv 2312.02741)
TICK_TRUSTED_S = 600.0  # two clocks drift apart by some milliseconds in that time
SD_OF_90_PERCENT = 1.645

SensorOf = Callable[[Board, ReadingKind], Sensor | None]


class Gauge(Protocol):
    """One board and how it is read."""

    board: Board
    device: Device
    calls: Calls
    period_s: float | None

    @property
    def end_s(self) -> float:
        """Offset of the newest reading. [s]"""

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """What the board brought since the previous poll; raises DeviceLost."""

    def rest(self) -> tuple[Reading, ...]:
        """What was read and not yet handed over."""


def best_gauge(calls: Calls, board: Board, clock: RunClock, sensor_of: SensorOf) -> Gauge | None:
    """The highest rung that the board answers; None where it answers none.

    Raises:
        DeviceLost: The board stopped answering.
    """
    counter = TickingCounter(calls)
    counter.find_tick(clock)
    counted = counter.read(clock)
    source, first = _best_power(calls, board, clock)
    if source is None or (counted and source.is_averaged):
        if counted is None or counted[1] <= 0:  # some guests answer 0 for "unknown"
            return None
        return CountedGauge(board, _device(board, "counter", "NVML energy counter", 1.0), calls, counter, counted)
    sensor = sensor_of(board, source.kind)
    if counted:
        device = _device(board, "anchored", f"{source.words}, scaled to the energy counter", 1.0)
        return SampledGauge(board, device, calls, source, sensor, (counter, Anchor(counted)), first)
    edge_joules = (calls.limit_watts() or first[-1][1]) * source.blur_s
    device = _device(board, "averaged" if source.is_averaged else "instant", source.words, edge_joules)
    return SampledGauge(board, device, calls, source, sensor, None, first)


class SampledGauge:
    """A board with power samples, and with a counter to scale them by where it has one."""

    def __init__(
        self,
        board: Board,
        device: Device,
        calls: Calls,
        source: PowerSource,
        sensor: Sensor | None,
        counter: tuple[TickingCounter, Anchor] | None,
        first: Points,
    ) -> None:
        self.board, self.device, self.calls = board, device, calls
        self.period_s: float | None = source.period_s
        self._source, self._sensor, self._counter, self._first = source, sensor, counter, first
        self._integral = Integral(max(HOLE_S, 3 * source.period_s))
        self._lattice = Lattice(sensor.period_s) if sensor and source.kind == "samples" else None
        self._unseen = Unseen(sensor)
        self._capped_from_s: float | None = None
        self._read_s = first[-1][0]
        self._tick_found_s = self._read_s
        self._is_doubted = False

    @property
    def end_s(self) -> float:
        """See Gauge."""
        return self._integral.end_s

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """See Gauge."""
        now_s = clock.offset_s()
        self._read_counter(clock, now_s, is_last=is_last)
        news = self._samples(clock, now_s, is_last=is_last)
        fresh, holes = self._integral.add(self._true_times(news))
        self._unseen.add(news)
        if is_last and now_s - self.end_s > HOLE_S:
            holes.append((self.end_s, now_s))
        gains, notes = self._compared(holes, is_last=is_last)
        gaps = tuple(Gap(self.device.id, *hole) for hole in holes)
        unseen_joules = self._unseen.joules()
        return Poll(
            _readings(self.device.id, fresh),
            gains,
            gaps,
            tuple(notes),
            self._snapped(news),
            {self.device.id: self._sensor.period_s if self._sensor else self._source.blur_s},
            {} if unseen_joules is None else {self.device.id: unseen_joules},
        )

    def rest(self) -> tuple[Reading, ...]:
        """See Gauge."""
        first, self._first = self._first, []
        return _readings(self.device.id, self._integral.add(self._true_times(first))[0])

    def _true_times(self, power: Points) -> Points:
        """When the power was what a sample says: before its stamp, by the mean age of what a sensor sees."""
        lag_s = self._sensor.lag_s if self._sensor else 0.0
        return [(offset_s - lag_s, watts) for offset_s, watts in power]

    def _read_counter(self, clock: RunClock, now_s: float, *, is_last: bool) -> None:
        """Read the counter before the samples, which then reach past it."""
        if self._counter is None:
            return
        counter, anchor = self._counter
        if not is_last and not anchor.is_due(now_s):
            return
        if not is_last and now_s - self._tick_found_s > TICK_TRUSTED_S:
            counter.find_tick(clock)
            self._tick_found_s = now_s
        counted = counter.read(clock)
        if counted:
            anchor.take(counted)

    def _samples(self, clock: RunClock, now_s: float, *, is_last: bool) -> Points:
        is_due = is_last or now_s - self._read_s >= 0.9 * self._source.period_s
        news = self._source.read(clock) if is_due else []
        self._read_s = now_s if is_due else self._read_s
        first, self._first = self._first, []
        return first + news

    def _snapped(self, news: Points) -> tuple[Samples, ...]:
        if self._lattice is None or self._sensor is None:
            return ()
        slots = self._lattice.snap([offset_s for offset_s, _ in news])
        points = tuple((slot, watts) for slot, (_, watts) in zip(slots, news, strict=True) if slot is not None)
        return (Samples(self.device.id, self._sensor, points, self._capped_seconds()),)

    def _capped_seconds(self) -> float | None:
        """Time at the power limit since the first call. [s]"""
        capped_s = self.calls.capped_seconds()
        if capped_s is None:
            return None
        if self._capped_from_s is None:
            self._capped_from_s = capped_s
        return max(0.0, capped_s - self._capped_from_s)

    def _compared(self, holes: Points, *, is_last: bool) -> tuple[dict[str, float], list[Note]]:
        if self._counter is None:
            return {}, []
        anchor = self._counter[1]
        for hole in holes:
            anchor.skip(hole)
        is_news, has_fallen = anchor.settle(self._integral, is_last=is_last)
        notes = [_reset_note(self.calls.label)] if has_fallen else []
        gain = anchor.gain()
        if gain is None:
            return {}, [*notes, _short_note(self.calls.label, anchor.seconds)] if is_last else notes
        if not is_news:
            return {}, notes
        if GAIN_TRUSTED[0] <= gain <= GAIN_TRUSTED[1]:
            return {self.device.id: gain}, notes
        if not self._is_doubted:
            self._is_doubted = True
            notes.append(_doubt_note(self.calls.label, anchor))
        return {self.device.id: 1.0}, notes


class CountedGauge:
    """A board whose energy counter is all there is."""

    period_s: float | None = None

    def __init__(self, board: Board, device: Device, calls: Calls, counter: TickingCounter, first: tuple[float, float]) -> None:
        self.board, self.device, self.calls, self._counter = board, device, calls, counter
        self._first: Points = [(first[0], 0.0)]
        self._newest, self._joules = first, 0.0

    @property
    def end_s(self) -> float:
        """See Gauge."""
        return self._newest[0]

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """See Gauge."""
        device, now_s = self.device.id, clock.offset_s()
        before = self._newest
        counted = self._counter.read(clock) if is_last or now_s - before[0] >= 0.9 else None
        has_news = counted is not None and counted[1] != before[1] and counted[0] > before[0]
        if counted is None or not has_news:
            gaps = (Gap(device, before[0], now_s),) if is_last and now_s - before[0] > HOLE_S else ()
            return Poll(self.rest(), gaps=gaps)
        self._newest = counted
        if counted[1] < before[1]:
            point = _readings(device, [(counted[0], self._joules)])
            return Poll(self.rest() + point, gaps=(Gap(device, before[0], counted[0]),), notes=(_reset_note(self.calls.label),))
        self._joules += counted[1] - before[1]
        return Poll(self.rest() + _readings(device, [(counted[0], self._joules)]))

    def rest(self) -> tuple[Reading, ...]:
        """See Gauge."""
        first, self._first = self._first, []
        return _readings(self.device.id, first)


class Unseen:
    """What a board may have drawn while its sensor did not look: A100 and H100 look for 25 of every 100 ms.

    The difference of neighbouring readings tells how much power moves between them; slower changes are seen.
    """

    def __init__(self, sensor: Sensor | None) -> None:
        self._unseen_share = 0.0 if sensor is None else 1.0 - sensor.coverage
        self._last: tuple[float, float] | None = None
        self._squares = 0.0

    def add(self, power: Points) -> None:
        """Take readings in rising order."""
        if not self._unseen_share:
            return
        for offset_s, watts in power:
            if self._last is not None and offset_s > self._last[0]:
                step_s = offset_s - self._last[0]
                self._squares += 0.5 * ((watts - self._last[1]) * min(step_s, HOLE_S)) ** 2
            self._last = (offset_s, watts)

    def joules(self) -> float | None:
        """Half-width of its 90 % interval; None where the sensor sees all. [J]"""
        return SD_OF_90_PERCENT * (self._squares * self._unseen_share) ** 0.5 if self._unseen_share else None


def _best_power(calls: Calls, board: Board, clock: RunClock) -> tuple[PowerSource | None, Points]:
    usage = UsagePower(calls, is_averaged=not calls.usage_is_instant(board.name))
    sources: tuple[PowerSource, ...] = (BufferedPower(calls), InstantPower(calls), usage)
    for source in sources:
        first = source.read(clock)
        if first:
            return source, first
    return None, []


def _device(board: Board, method: Method, source: str, edge_joules: float) -> Device:
    low, high = GAIN_OF_COUNTER if method in ("anchored", "counter") else GAIN_OF_SAMPLES
    return Device(board.uuid, board.name, "gpu", method, low, high, source, edge_joules, ORIGIN_OF_METHOD[method])


def _readings(device: str, points: Points) -> tuple[Reading, ...]:
    return tuple(Reading(device, offset_s, joules) for offset_s, joules in points)


def _reset_note(label: str) -> Note:
    return Note("counter-reset", f"the energy counter of {label} restarted; it was compared anew from there")


def _short_note(label: str, seconds: float) -> Note:
    return Note(
        "anchor-short", f"the energy counter of {label} was compared with its power samples for {seconds:.0f} s; the samples stand alone"
    )


def _doubt_note(label: str, anchor: Anchor) -> Note:
    return Note(
        "counter-doubted",
        f"over {anchor.seconds:.0f} s the energy counter of {label} says {anchor.counter_joules:.0f} J and its power samples "
        f"{anchor.sample_joules:.0f} J; they differ by over 10 %, so the samples are used as they are",
    )
