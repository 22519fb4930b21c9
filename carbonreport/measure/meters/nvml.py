"""NVIDIA GPUs: power samples anchored to the energy counter, or the best of what a board offers.

What a board can do is asked once, in `open`, and named in its Device:

    sample buffer or instant power, and counter   anchored
    counter alone                                 counter
    sample buffer or instant power alone          instant
    one-second average alone                      averaged
    nothing                                       left out, with a note; never zero
"""

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from carbonreport.errors import DeviceLost, MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.anchor import Anchor, Integral, Points
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Meter, Poll, Reading
from carbonreport.measure.nvml_power import BufferedPower, Calls, InstantPower, PowerSource, UsagePower, asked
from carbonreport.measure.visible import Board, order_doubt, visible
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, Method

HOLE_S = 1.0
GAIN_TRUSTED = (0.9, 1.1)
# 90 % of true / reading: external calibrations of eight boards read low by 0.7 to 6.2 % (seven) and high by under 1 % (one).
GAIN_OF_COUNTER = (0.99, 1.08)
GAIN_OF_SAMPLES = (0.95, 1.08)  # A100 and H100 sense a quarter of the time (arXiv 2312.02741)

WAYS_OUT = {
    "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or start the container with --gpus all",
    "NVMLError_DriverNotLoaded": "the NVIDIA driver is not loaded: sudo modprobe nvidia",
    "NVMLError_LibRmVersionMismatch": "the NVIDIA driver was updated while the old one runs: restart the machine",
    "NVMLError_NoPermission": "the NVIDIA driver may not be used here: add the user to the group of /dev/nvidiactl (ls -l /dev/nvidiactl)",
}
_START_ERRORS = {"NVMLError_LibraryNotFound": MeterAbsent, "NVMLError_DriverNotLoaded": MeterAbsent, "NVMLError_NoPermission": MeterDenied}


def create(options: Mapping[str, str]) -> Meter:
    """The meter of this machine's NVIDIA GPUs.

    Raises:
        MeterError: The binding is not installed.
    """
    return NvmlMeter(_binding(), os.environ)


def available() -> str | None:
    """None where NVML answers, else why not and the way out."""
    try:
        nvml = _binding()
        _start(nvml)
    except MeterError as error:
        return str(error)
    count = asked(nvml, "nvmlDeviceGetCount")
    _stop(nvml)
    return None if count else _nothing_visible(0, os.environ)


class NvmlMeter:
    """Reads the boards that CUDA_VISIBLE_DEVICES leaves to the program.

    Args:
        nvml: The module `pynvml`, or what behaves like it.
        environ: Environment of the program.
    """

    def __init__(self, nvml: Any, environ: Mapping[str, str]) -> None:
        self._nvml, self._environ = nvml, environ
        self._clock: RunClock | None = None
        self._gauges: list[Gauge] = []
        self._lost: set[str] = set()
        self._notes: list[Note] = []
        self._gaps: list[Gap] = []
        self._facts: dict[str, str] = {}

    @property
    def period_s(self) -> float | None:
        """The shortest period of any board; None before `open` and where counters alone are read. [s]"""
        return min((gauge.period_s for gauge in self._gauges if gauge.period_s is not None), default=None)

    def environment(self) -> Mapping[str, str]:
        """Driver version and number of boards of each model; empty before `open`."""
        return self._facts

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        _start(self._nvml)
        self._clock = clock
        try:
            handles = self._handles()
            boards = self._visible(handles)
            self._gauges = [gauge for board in boards if (gauge := self._gauge(handles[board], board, clock))]
            self._facts = self._environment(boards)
        except self._nvml.NVMLError as error:
            self.close()
            raise MeterError(f"the NVIDIA driver does not answer: {error}") from error
        if not self._gauges:
            self.close()
            refused = "; ".join(note.text for note in self._notes)
            raise MeterError(refused) if refused else MeterAbsent(_nothing_visible(len(handles), self._environ))
        return tuple(gauge.device for gauge in self._gauges)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        polls = [self._poll_of(gauge, self._clock, is_last) for gauge in self._gauges]
        self._gaps += [gap for poll in polls for gap in poll.gaps if gap.device not in self._lost]
        notes = [*self._notes, *(note for poll in polls for note in poll.notes)]
        self._notes = []
        if is_last:
            notes += self._closing_notes()
        return Poll(
            readings=tuple(reading for poll in polls for reading in poll.readings),
            gains={device: gain for poll in polls for device, gain in poll.gains.items()},
            gaps=tuple(gap for poll in polls for gap in poll.gaps),
            notes=tuple(notes),
        )

    def close(self) -> None:
        """See Meter."""
        _stop(self._nvml)

    def _handles(self) -> dict[Board, Any]:
        """Handles in PCI order; boards that a container hides do not count, as for CUDA."""
        found: dict[Board, Any] = {}
        for i in range(self._nvml.nvmlDeviceGetCount()):
            try:
                handle = self._nvml.nvmlDeviceGetHandleByIndex(i)
                found[_board(self._nvml, handle, len(found))] = handle
            except self._nvml.NVMLError_NoPermission:
                continue
            except self._nvml.NVMLError as error:
                self._notes.append(Note("tracer-degraded", f"GPU {i} does not answer ({error}); it was left out"))
        return found

    def _visible(self, handles: Mapping[Board, Any]) -> tuple[Board, ...]:
        boards, wanted = tuple(handles), self._environ.get("CUDA_VISIBLE_DEVICES")
        parents = _mig_parents(self._nvml, handles) if "MIG-" in (wanted or "") else {}
        doubt = order_doubt(boards, wanted, order_is_pci=self._environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")
        if doubt:
            self._notes.append(Note("tracer-degraded", doubt))
        return visible(boards, wanted, parents)

    def _gauge(self, handle: Any, board: Board, clock: RunClock) -> "Gauge | None":
        calls = Calls(self._nvml, handle, f"GPU {board.index} ({board.name})")
        try:
            gauge = _best_gauge(calls, board, clock)
        except DeviceLost as error:
            self._notes.append(Note("tracer-degraded", f"{error}; it was left out"))
            return None
        if gauge is None:
            self._notes.append(Note("tracer-degraded", f"{calls.label} gives neither power nor energy; it was left out"))
        elif gauge.device.method == "averaged":
            text = f"{calls.label} gives a one-second average of power alone: each end of the run is uncertain by {gauge.device.edge_joules:.0f} J"
            self._notes.append(Note("averaged-power", text))
        return gauge

    def _poll_of(self, gauge: "Gauge", clock: RunClock, is_last: bool) -> Poll:
        device, now_s = gauge.device.id, clock.offset_s()
        if device in self._lost:
            return Poll((), gaps=(Gap(device, gauge.end_s, now_s),) if is_last else ())
        try:
            return gauge.poll(clock, is_last=is_last)
        except DeviceLost as error:
            self._lost.add(device)
            readings = gauge.rest()
            gaps = (Gap(device, gauge.end_s, now_s),) if is_last else ()
            return Poll(readings, gaps=gaps, notes=(Note("device-lost", f"{error} after {now_s:.0f} s; its energy after that is missing"),))

    def _closing_notes(self) -> Iterable[Note]:
        for gauge in self._gauges:
            lengths = [gap.to_s - gap.from_s for gap in self._gaps if gap.device == gauge.device.id]
            if lengths:
                times = "once" if len(lengths) == 1 else f"{len(lengths)} times"
                yield Note("reading-gap", f"{gauge.calls.label} could not be read {times}, {sum(lengths):.1f} s in all")

    def _environment(self, boards: Sequence[Board]) -> dict[str, str]:
        models = Counter(board.name for board in boards)
        facts = {"gpus": ", ".join(f"{count} x {name}" for name, count in sorted(models.items()))}
        driver = asked(self._nvml, "nvmlSystemGetDriverVersion")
        return facts if driver is None else {"driver": _text(driver), **facts}


class Gauge(Protocol):
    """One board and how it is read."""

    device: Device
    calls: "Calls"
    period_s: float | None

    @property
    def end_s(self) -> float:
        """Offset of the newest reading. [s]"""

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """What the board brought since the previous poll; raises DeviceLost."""

    def rest(self) -> tuple[Reading, ...]:
        """What was read and not yet handed over."""


class SampledGauge:
    """A board with power samples, and with a counter to scale them by where it has one."""

    def __init__(self, device: Device, calls: Calls, source: PowerSource, anchor: Anchor | None, first: Points) -> None:
        self.device, self.calls = device, calls
        self.period_s: float | None = source.period_s
        self._source, self._anchor, self._first = source, anchor, first
        self._integral = Integral(max(HOLE_S, 3 * source.period_s))
        self._read_s = first[-1][0]
        self._doubted = False

    @property
    def end_s(self) -> float:
        """See Gauge."""
        return self._integral.end_s

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """See Gauge."""
        now_s = clock.offset_s()
        if self._anchor and (is_last or self._anchor.is_due(now_s)):
            counted = self.calls.counter(clock)  # before the samples, which then reach past it
            if counted:
                self._anchor.take(counted)
        fresh, holes = self._integral.add(self._samples(clock, now_s, is_last=is_last))
        if is_last and now_s - self.end_s > HOLE_S:
            holes.append((self.end_s, now_s))
        gains, notes = self._compared(holes, is_last=is_last)
        gaps = tuple(Gap(self.device.id, *hole) for hole in holes)
        return Poll(_readings(self.device.id, fresh), gains, gaps, tuple(notes))

    def rest(self) -> tuple[Reading, ...]:
        """See Gauge."""
        first, self._first = self._first, []
        return _readings(self.device.id, self._integral.add(first)[0])

    def _samples(self, clock: RunClock, now_s: float, *, is_last: bool) -> Points:
        is_due = is_last or now_s - self._read_s >= 0.9 * self._source.period_s
        news = self._source.read(clock) if is_due else []
        self._read_s = now_s if is_due else self._read_s
        first, self._first = self._first, []
        return first + news

    def _compared(self, holes: Points, *, is_last: bool) -> tuple[dict[str, float], list[Note]]:
        anchor = self._anchor
        if anchor is None:
            return {}, []
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
        if not self._doubted:
            self._doubted = True
            notes.append(_doubt_note(self.calls.label, anchor))
        return {self.device.id: 1.0}, notes


class CountedGauge:
    """A board whose energy counter is all there is."""

    period_s: float | None = None

    def __init__(self, device: Device, calls: Calls, first: tuple[float, float]) -> None:
        self.device, self.calls = device, calls
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
        counted = self.calls.counter(clock) if is_last or now_s - before[0] >= 0.9 else None
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


def _best_gauge(calls: Calls, board: Board, clock: RunClock) -> Gauge | None:
    counted = calls.counter(clock)
    source, first = _best_power(calls, board, clock)
    if source is None and counted is None:
        return None
    if source is None or (counted and source.is_averaged):
        return CountedGauge(_device(board, "counter", "NVML energy counter", 1.0), calls, counted) if counted else None
    if counted:
        device = _device(board, "anchored", f"{source.words}, scaled to the energy counter", 1.0)
        return SampledGauge(device, calls, source, Anchor(counted), first)
    edge_joules = (calls.limit_watts() or first[-1][1]) * source.blur_s
    device = _device(board, "averaged" if source.is_averaged else "instant", source.words, edge_joules)
    return SampledGauge(device, calls, source, None, first)


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


def _binding() -> Any:
    """The module `pynvml`; not imported where there is no driver, for that takes longer than all the rest of a start."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        if sys.platform == "linux":
            raise MeterAbsent(WAYS_OUT["NVMLError_LibraryNotFound"]) from error
    try:
        return import_module("pynvml")
    except ModuleNotFoundError as error:
        raise MeterError("NVIDIA GPUs are read through nvidia-ml-py, which is not installed: pip install nvidia-ml-py") from error


def _start(nvml: Any) -> None:
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        name = type(error).__name__
        raise _START_ERRORS.get(name, MeterError)(WAYS_OUT.get(name, f"NVML cannot be started: {error}")) from error


def _stop(nvml: Any) -> None:
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError_Uninitialized:  # closed before, or the driver has gone
        return


def _board(nvml: Any, handle: Any, index: int) -> Board:
    uuid, name, pci = nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle), nvml.nvmlDeviceGetPciInfo(handle)
    return Board(index, _text(uuid), _text(name), _text(pci.busId))


def _mig_parents(nvml: Any, handles: Mapping[Board, Any]) -> dict[str, str]:
    """UUID of the board of each MIG instance."""
    parents: dict[str, str] = {}
    for board, handle in handles.items():
        slots = asked(nvml, "nvmlDeviceGetMaxMigDeviceCount", handle)
        for i in range(0 if slots is None else slots):
            instance = asked(nvml, "nvmlDeviceGetMigDeviceHandleByIndex", handle, i)
            uuid = None if instance is None else asked(nvml, "nvmlDeviceGetUUID", instance)
            if uuid is not None:
                parents[_text(uuid)] = board.uuid
    return parents


def _nothing_visible(count: int, environ: Mapping[str, str]) -> str:
    if count and "CUDA_VISIBLE_DEVICES" in environ:
        return f"no NVIDIA GPU is visible: CUDA_VISIBLE_DEVICES={environ['CUDA_VISIBLE_DEVICES']!r} names none of the {count} here"
    return "no NVIDIA GPU is visible: the driver is there but shows no board; a container needs --gpus all"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


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
        "tracer-degraded",
        f"over {anchor.seconds:.0f} s the energy counter of {label} says {anchor.counter_joules:.0f} J and its power samples "
        f"{anchor.sample_joules:.0f} J; they differ by over 10 %, so the samples are used as they are",
    )
