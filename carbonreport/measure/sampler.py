"""The one thread of the tracer: opens the meters, polls them, accounts for spans, keeps the record."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.curve import Curve
from carbonreport.measure.edges import EdgeResolver, EdgeSource
from carbonreport.measure.guard import guarded
from carbonreport.measure.ledger import SpanLedger
from carbonreport.measure.meter import Meter, Poll
from carbonreport.measure.spans import SpanQueue
from carbonreport.model.notes import Note
from carbonreport.model.run import Span
from carbonreport.model.sums import aliasing_words
from carbonreport.store.writer import RecordWriter, device_line, end_line, gap_line, note_line, points_line, span_row, spans_line, sums_line
from carbonreport.units import QUARTER_HOUR_S

# A ladder is tried from its first rung; the first meter that opens is used.
Ladder = Sequence[tuple[str, Callable[[], Meter]]]

_STEP_NOTED_S = 1.0
_SLEEP_NOTED_S = 1.0
_FIRST_SUMS_S = 60.0
HOST_COUNTERS = ("rapl", "perf")
_MAX_OPEN_POINTS = 48  # of one device in the tail, before they move to the record


@dataclass(frozen=True, slots=True)
class Result:
    """What the run's summary needs before anybody reads the record. Energies are after the gain. [J]"""

    duration_s: float
    joules: Mapping[str, float]
    notes: tuple[Note, ...]


class Sampler:
    """Polls meters once an interval until it is told to stop; nothing that fails here reaches the program."""

    def __init__(
        self,
        clock: RunClock,
        ladders: Sequence[Ladder],
        writer: RecordWriter,
        queue: SpanQueue,
        interval_s: float,
        edges: EdgeSource | None = None,
    ) -> None:
        self._clock, self._ladders, self._writer, self._queue = clock, ladders, writer, queue
        self._interval_s = interval_s
        self._meters: list[tuple[str, Meter]] = []
        self._curves: dict[str, Curve] = {}
        self._gains: dict[str, float] = {}
        self._notes: dict[str, Note] = {}
        self._unseen: dict[str, float] = {}
        self._periods: dict[str, float] = {}
        self._is_used: dict[str, bool] = {}
        self._ledger = SpanLedger(clock)
        self._has_gpu_edges = edges is not None
        self._edges = EdgeResolver(queue, edges)
        self._sums_due_s = _FIRST_SUMS_S
        self._batch = 0
        self._quarter = self._quarter_now()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="carbonreport-sampler", daemon=True)
        self._end_s: float | None = None
        self._last_lines: tuple[dict[str, object], ...] = ()
        self._last_notes: tuple[Note, ...] = ()
        self.result: Result | None = None

    def start(self) -> None:
        """Start the thread; it opens the meters itself."""
        self._thread.start()

    def end(self) -> None:
        """The run ends now; what `stop` still does does not count."""
        self._end_s = self._clock.offset_s()

    def say_last(self, lines: Sequence[dict[str, object]], notes: Sequence[Note]) -> None:
        """Lines and notes that belong before the record's last line; called before `stop`."""
        self._last_lines, self._last_notes = tuple(lines), tuple(notes)

    def stop(self, timeout_s: float) -> bool:
        """End the run and wait for the last poll; False where a driver hangs longer than the timeout."""
        if self._end_s is None:
            self.end()
        self._stop.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def abandon(self) -> None:
        """Forget the drivers: this process is a fork of the one that is measured. Takes no lock: its holder is gone."""
        self._meters.clear()

    def _run(self) -> None:
        guarded("opening the meters", self.open, self._note)
        while not self._stop.is_set():
            guarded("sampling", self.tick, self._note)
            self._stop.wait(self._next_wait_s())
        guarded("the last reading", self.finish, self._note)
        for name, meter in self._meters:
            guarded(f"closing the meter {name}", meter.close, self._note)

    def _next_wait_s(self) -> float:
        periods = [meter.period_s for _, meter in self._meters if meter.period_s is not None]
        return min([self._interval_s, *periods])

    # Meters

    def open(self) -> None:
        """Open the first meter of each ladder that will, say what is missing, and write the first tail."""
        absent = ""
        for ladder in self._ladders:
            refused: list[tuple[str, MeterError]] = []
            for name, create in ladder:
                if self._open_one(name, create, refused):
                    break
            for note in _refusals(refused, stands_in=self._meters[-1][0] if len(refused) < len(ladder) and self._meters else None):
                self._note(note)
            absent = absent or next((str(error) for name, error in refused if name == "nvml" and isinstance(error, MeterAbsent)), "")
        if absent and not any(curve.device.kind == "gpu" for curve in self._curves.values()):
            self._note(Note("no-gpu", absent))
        self._write_tail()

    def _open_one(self, name: str, create: Callable[[], Meter], refused: list[tuple[str, MeterError]]) -> bool:
        def try_open() -> bool:
            try:
                meter = create()
                devices = meter.open(self._clock)
            except MeterError as error:
                refused.append((name, error))
                return False
            for device in devices:
                self._curves[device.id] = Curve(device, self._clock.started_s)
                self._writer.append(device_line(device))
            self._meters.append((name, meter))
            facts = getattr(meter, "environment", None)
            if facts is not None:
                self._writer.append({"type": "environment", "facts": dict(facts())})
            return True

        return bool(guarded(f"the meter {name}", try_open, self._note))

    def _poll(self, *, is_last: bool) -> None:
        for name, meter in self._meters:
            poll = guarded(f"reading the meter {name}", lambda m=meter: m.poll(is_last=is_last), self._note)  # type: ignore[misc]
            if poll is not None:
                self._take(poll)

    def _take(self, poll: Poll) -> None:
        for gap in poll.gaps:
            self._add_gap(gap.device, gap.from_s, gap.to_s)
        for reading in poll.readings:
            curve = self._curves.get(reading.device)
            if curve is not None:
                curve.add(reading.offset_s, reading.joules)
        self._gains.update(poll.gains)
        self._unseen.update(poll.unseen_joules)
        self._is_used.update(poll.is_used)
        self._ledger.add_samples(poll.samples, self._curves)
        self._periods.update(poll.periods_s)
        for note in poll.notes:
            self._note(note)

    def _add_gap(self, device: str, from_s: float, to_s: float) -> None:
        if device in self._curves and to_s > max(from_s, 0.0):
            self._curves[device].break_line()
            self._writer.append(gap_line(device, max(from_s, 0.0), to_s))

    # The record

    def tick(self) -> None:
        """Poll, account for spans, and keep the record."""
        self._look_at_clocks()
        self._poll(is_last=False)
        self._account(is_last=False)
        quarter = self._quarter_now()
        if quarter != self._quarter and self._ledger.done_s + self._clock.started_s >= quarter * QUARTER_HOUR_S:
            self._quarter = quarter
            self._flush(quarter * QUARTER_HOUR_S)
        elif any(len(curve.open_points()) > _MAX_OPEN_POINTS for curve in self._curves.values()):
            self._flush_points()
        if self._clock.offset_s() >= self._sums_due_s:
            self._append_sums()
        self._write_tail()

    def _append_sums(self) -> None:
        """Keep what short spans need; each line replaces the one before, so they come at doubling times."""
        self._sums_due_s = 2 * max(self._clock.offset_s(), _FIRST_SUMS_S)
        for sums in self._ledger.sums():
            self._writer.append(sums_line(sums))

    def _account(self, *, is_last: bool) -> None:
        """Take the edges whose time is known and account for the time up to there."""
        edges, known_ns = self._edges.take(self._clock.clock.boot_ns(), is_last=is_last)
        until_s = self._end() if is_last else self._clock.offset_of_boot_s(known_ns)
        self._ledger.advance(edges, self._curves, until_s, is_last=is_last)
        self._queue.backlog = self._ledger.backlog + self._edges.waiting

    def _end(self) -> float:
        return self._end_s if self._end_s is not None else self._clock.offset_s()

    def _look_at_clocks(self) -> None:
        jump = self._clock.look()
        now_s = self._clock.offset_s()
        if jump.slept_s > _SLEEP_NOTED_S:
            for device in self._curves:
                self._add_gap(device, now_s - jump.slept_s, now_s)
            self._note(Note("suspended", f"the machine slept for {jump.slept_s:.0f} s during the run"))
        if abs(jump.stepped_s) > _STEP_NOTED_S:
            way = "forward" if jump.stepped_s > 0 else "back"
            self._note(Note("clock-stepped", f"the wall clock was set {way} by {abs(jump.stepped_s):.0f} s, {now_s:.0f} s after the start"))

    def _quarter_now(self) -> int:
        return int((self._clock.started_s + self._clock.offset_s()) // QUARTER_HOUR_S)

    def _flush(self, before_s: float) -> None:
        """Move points and the sums of finished quarter hours to the record."""
        self._flush_points()
        spans = self._ledger.take_before(before_s)
        if spans:
            self._append_spans(spans)

    def _flush_points(self) -> None:
        for device, curve in self._curves.items():
            points = curve.closed_points()
            if points:
                self._writer.append(points_line(device, points))

    def _append_spans(self, spans: Sequence[Span]) -> None:
        still_open = self._ledger.open_sums()
        ids = list(self._curves)
        self._writer.append(spans_line(self._batch, [*spans, *still_open], ids))
        if still_open:
            self._ledger.take_before(float("inf"))
        self._batch += 1

    def _write_tail(self) -> None:
        if not self._writer.write_tail(self._state()):
            self._flush(float("inf"))
            self._writer.write_tail(self._state())

    def _state(self) -> dict[str, object]:
        points = [
            (device, [round(t, 4) for t, _ in p], [round(j, 3) for _, j in p])
            for device, curve in self._curves.items()
            if (p := curve.open_points())
        ]
        ids = list(self._curves)
        spans = [span_row(span, ids) for span in self._ledger.open_sums()]
        return {
            "offset_s": round(self._clock.offset_s(), 4),
            "batch": self._batch,
            "devices": ids,
            "points": points,
            "spans": spans,
            "gains": self._gains,
            "unseen": self._unseen,
            "unused": self._unused(),
        }

    def _unused(self) -> list[str]:
        """Devices that are read but do not count."""
        return [device for device, is_used in self._is_used.items() if not is_used]

    def finish(self) -> None:
        """Take the last readings and close the record."""
        self._look_at_clocks()
        self._poll(is_last=True)
        end_s = self._end()
        for curve in self._curves.values():
            curve.hold(end_s)
        self._account(is_last=True)
        for curve in self._curves.values():
            curve.break_line()
        self._note_spans()
        self._flush(float("inf"))
        self._append_sums()
        for line in self._last_lines:
            self._writer.append(line)
        for note in self._last_notes:
            self._note(note)
        joules = {device: curve.joules_at(end_s) * self._gains.get(device, 1.0) for device, curve in self._curves.items()}
        self.result = Result(end_s, joules, tuple(self._notes.values()))
        self._writer.append(end_line(end_s, self._gains, self._unseen, self._unused()))
        self._writer.close(is_clean=True)

    def _note_spans(self) -> None:
        has_gpu = any(curve.device.kind == "gpu" for curve in self._curves.values())
        if self._ledger.has_spans and has_gpu and not self._has_gpu_edges:
            self._note(
                Note("host-edges", "spans were stamped on the host; GPU work that was launched in one span may have run in the next")
            )
        if self._edges.given_up:
            self._note(Note("host-edges", f"the GPU did not reach {self._edges.given_up} edges of spans; their host's stamps were taken"))
        if self._queue.dropped:
            self._note(Note("spans-dropped", f"{self._queue.dropped} spans came faster than they could be kept"))
        if self._ledger.unusable_items:
            self._note(
                Note("items-dropped", f"{self._ledger.unusable_items} spans said items that are no number of 0 or more; they were left out")
            )
        if self._ledger.folded:
            self._note(Note("spans-folded", f"{len(self._ledger.folded)} span paths beyond the first 64 were added to their parents"))
        for period_s in sorted(set(self._periods.values())):
            for path, rhythm in self._ledger.rhythms.items():
                words = aliasing_words(path, rhythm, period_s)
                if words:
                    self._note(Note("sensor-aliasing", words))
                    break

    def _note(self, note: Note) -> None:
        """Keep the first note of each slug and subject; a sampler that fails every second says so once."""
        key = f"{note.slug}:{note.text[:40]}"
        if key in self._notes or len(self._notes) >= 100:
            return
        self._notes[key] = note
        with contextlib.suppress(OSError):  # a full disk: the note stays for the summary
            self._writer.append(note_line(note))


def _refusals(refused: Sequence[tuple[str, MeterError]], stands_in: str | None) -> list[Note]:
    """What the refusals of one ladder mean to the reader of the record.

    A machine without such a device is no fault; a counter that may not be read is worth a word unless another counter stands in.
    """
    notes = []
    for name, error in refused:
        if isinstance(error, MeterAbsent):
            continue
        is_host = name in HOST_COUNTERS
        if is_host and stands_in in HOST_COUNTERS:
            continue
        notes.append(Note("host-unreadable" if is_host and isinstance(error, MeterDenied) else "tracer-degraded", str(error)))
    return notes
