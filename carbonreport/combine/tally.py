"""Sums of power on occupancy, kept while a run goes on. Pure, stdlib only: it runs beside the user's program.

Time comes in as turns (what is open from now on), power as samples on the sensor's lattice. No sample is kept but
those around spans that hardly repeat.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from carbonreport.combine.excerpts import Excerpts
from carbonreport.combine.occupancy import Response, Seen, seen_by
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import BODY, END, PIECES, REST, START, Block, NormalEquations, PathTimes, Rhythm, SpanSums

BLOCK_S = 2.0  # longer than the cycle of a power limiter
MAX_BLOCKS = 64
CUT_FROM_S = 0.020  # shorter stretches have no pieces
CUT_S = 0.010
MEMORY_S = 0.2  # after a pause the sensor still sees what nobody noted

Open = Mapping[str, float]
"""What is open: share of the time by path; empty is REST."""


class Tally:
    """The sums of one device.

    Args:
        device: Id of the device.
        sensor: How its samples respond to power.
        joules_at: Energy of the device's curve at an offset within its memory. [J]
        begin_s: Offset from which turns are known. [s]
    """

    def __init__(self, device: str, sensor: Sensor, joules_at: Callable[[float], float], begin_s: float) -> None:
        self.device, self.sensor = device, sensor
        self._joules_at = joules_at
        self._columns: dict[str, int] = {REST: 0}
        self._times: list[PathTimes] = [PathTimes()]
        self._open: dict[int, float] = {0: 1.0}
        self._since_s = self._passed_s = self._deaf_until_s = begin_s
        self._counted_from_s = begin_s
        self._samples: deque[tuple[float, float]] = deque()
        self._seen: Seen[int] = seen_by(sensor)
        self._now: dict[int, float] = {}
        self._block, self._block_ends_s, self._block_s = Block(), begin_s + BLOCK_S, BLOCK_S
        self._blocks: list[Block] = []
        self._pieces, self._by_width, self._by_delay = NormalEquations(), NormalEquations(), NormalEquations()
        self._joules = self._seconds = 0.0
        self._excerpts = Excerpts()
        self.limited_seconds: float | None = None

    def add(self, samples: Sequence[tuple[float, float]]) -> None:
        """Take samples (offset_s, watts), rising, on the sensor's lattice."""
        self._samples.extend(samples)

    def turn(self, at_s: float, open_from_now: Open) -> None:
        """From here on these paths are open."""
        self._finish_stretch(at_s)
        self._open = {self._column(path): share for path, share in open_from_now.items()} or {0: 1.0}
        self._since_s = self._passed_s = at_s

    def until(self, at_s: float) -> None:
        """What is open stays so at least up to here; pass the part that cannot be the end of its stretch."""
        sure_s = at_s - CUT_S
        if sure_s - self._since_s >= CUT_FROM_S:
            self._pass_start()
            self._pass(sure_s, BODY)
        self._close_energy()

    def pause(self, at_s: float, open_from_now: Open) -> None:
        """Nobody noted what was open up to here: forget the state, begin anew."""
        self._close_energy()
        self._seen = seen_by(self.sensor)
        self._excerpts.forget()
        self._open = {self._column(path): share for path, share in open_from_now.items()} or {0: 1.0}
        self._since_s = self._passed_s = self._counted_from_s = at_s
        self._deaf_until_s = at_s + MEMORY_S

    def sums(self, rhythms: Mapping[str, Rhythm]) -> SpanSums:
        """What is known so far, with the rhythm of each path."""
        for path, column in self._columns.items():
            self._times[column].rhythm = rhythms.get(path, self._times[column].rhythm)
        blocks = [*self._blocks, self._block] if self._block.count else self._blocks
        return SpanSums(
            device=self.device,
            sensor=self.sensor,
            paths=tuple(self._columns),
            times=tuple(self._times),
            blocks=tuple(blocks),
            pieces=self._pieces,
            by_width=self._by_width,
            by_delay=self._by_delay,
            joules=self._joules,
            seconds=self._seconds,
            limited_seconds=self.limited_seconds,
            excerpts=self._excerpts.finished(),
        )

    # Time

    def _column(self, path: str) -> int:
        column = self._columns.get(path)
        if column is None:
            column = self._columns[path] = len(self._columns)
            self._times.append(PathTimes())
        return column

    def _finish_stretch(self, at_s: float) -> None:
        if at_s - self._since_s >= CUT_FROM_S:
            self._pass_start()
            self._pass(at_s - CUT_S, BODY)
            self._pass(at_s, END)
        else:
            self._pass(at_s, BODY)
        for column, share in self._open.items():
            self._times[column].stretches += at_s > self._since_s
            if column:
                self._excerpts.stretch(column, self._since_s, at_s, share)
            elif at_s > self._since_s:
                self._excerpts.between(self._since_s, at_s)

    def _pass_start(self) -> None:
        if self._passed_s < self._since_s + CUT_S:
            self._pass(self._since_s + CUT_S, START)

    def _pass(self, to_s: float, piece: int) -> None:
        """Let time pass with one piece of the open stretches, and take the samples on the way."""
        open_now = {column * PIECES + piece: share for column, share in self._open.items()}
        while self._samples and self._samples[0][0] - self.sensor.delay_s <= to_s:
            stamp_s, watts = self._samples.popleft()
            seen_s = stamp_s - self.sensor.delay_s
            if seen_s < self._passed_s:
                continue  # older than what is known
            self._move(seen_s, open_now)
            if stamp_s >= self._deaf_until_s:
                self._take(stamp_s, watts, self._seen.responses(open_now))
        self._move(to_s, open_now)

    def _move(self, to_s: float, open_now: Mapping[int, float]) -> None:
        seconds = to_s - self._passed_s
        if seconds <= 0:
            return
        self._seen.advance(seconds, open_now)
        for column, share in self._open.items():
            self._times[column].seconds += seconds * share
        self._passed_s = to_s

    def _close_energy(self) -> None:
        """Add the curve's energy of the time that was passed since the last call."""
        if self._passed_s > self._counted_from_s:
            self._joules += self._joules_at(self._passed_s) - self._joules_at(self._counted_from_s)
            self._seconds += self._passed_s - self._counted_from_s
            self._counted_from_s = self._passed_s

    # Sums

    def _take(self, stamp_s: float, watts: float, seen: list[tuple[int, Response]]) -> None:
        if stamp_s >= self._block_ends_s:
            self._close_block(stamp_s)
        self._excerpts.sample(stamp_s, watts)
        columns = _by_path(seen)
        _add_products(self._block.sums, [(column, r[0]) for column, r in columns], watts)
        self._block.squares += watts * watts
        self._block.count += 1
        _add_products(self._pieces, sorted((key, r[0]) for key, r in seen), watts)
        _add_derivatives(self._by_width, [(column, r[0], r[1]) for column, r in columns], watts)
        _add_derivatives(self._by_delay, [(column, r[0], r[2]) for column, r in columns], watts)

    def _close_block(self, at_s: float) -> None:
        if self._block.count:
            self._blocks.append(self._block)
            self._block = Block()
        if len(self._blocks) > MAX_BLOCKS:
            for i in range(0, MAX_BLOCKS, 2):
                self._blocks[i].add(self._blocks[i + 1])
            self._blocks = self._blocks[:MAX_BLOCKS:2] + self._blocks[MAX_BLOCKS:]
            self._block_s *= 2
        self._block_ends_s = at_s + self._block_s


def _by_path(seen: list[tuple[int, Response]]) -> list[tuple[int, Response]]:
    """Responses of whole paths: those of their pieces add up."""
    whole: dict[int, Response] = {}
    for key, (s, by_width, by_delay) in seen:
        column = key // PIECES
        t = whole.get(column)
        whole[column] = (s, by_width, by_delay) if t is None else (t[0] + s, t[1] + by_width, t[2] + by_delay)
    return sorted(whole.items())


def _add_products(sums: NormalEquations, seen: Sequence[tuple[int, float]], watts: float) -> None:
    normal, right = sums.normal, sums.right
    for n, (i, s) in enumerate(seen):
        right[i] = right.get(i, 0.0) + s * watts
        for j, t in seen[n:]:
            normal[i, j] = normal.get((i, j), 0.0) + s * t


def _add_derivatives(sums: NormalEquations, seen: Sequence[tuple[int, float, float]], watts: float) -> None:
    normal, right = sums.normal, sums.right
    for n, (i, s, ds) in enumerate(seen):
        right[i] = right.get(i, 0.0) + ds * watts
        for j, t, dt in seen[n:]:
            normal[i, j] = normal.get((i, j), 0.0) + s * dt + ds * t
