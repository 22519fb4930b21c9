"""NVIDIA GPUs: finds the boards that the program may use and reads each as well as it can be read (gauges.py)."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from carbonreport.errors import DeviceLost, MeterAbsent, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.gauges import Gauge, SensorOf, best_gauge
from carbonreport.measure.meter import Gap, Meter, Poll
from carbonreport.measure.nvml_power import Calls, asked
from carbonreport.measure.processes import roots_of_run
from carbonreport.measure.shared import SharedGauge, refusal, refused_note
from carbonreport.measure.used import BoardUse, ProcessTree, is_chosen
from carbonreport.measure.visible import Board, order_doubt, visible
from carbonreport.model.notes import Note
from carbonreport.model.run import Device
from carbonreport.model.sensor import Sensor
from carbonreport.nvml import binding, start, stop
from carbonreport.sensors import ReadingKind, calibrations_path, find_sensor


def create(options: Mapping[str, str]) -> Meter:
    """The meter of this machine's NVIDIA GPUs; with an option "share", boards are split among their users.

    Raises:
        MeterError: The binding is not installed.
    """
    tree = ProcessTree(roots_of_run(os.environ, os.getpid(), os.getppid()))
    return NvmlMeter(binding(), os.environ, tree=tree, is_split="share" in options)


def available() -> str | None:
    """None where NVML answers, else why not and the way out."""
    try:
        nvml = binding()
        start(nvml)
    except MeterError as error:
        return str(error)
    count = asked(nvml, "nvmlDeviceGetCount")
    stop(nvml)
    return None if count else _nothing_visible(0, os.environ)


def boards_of_run(nvml: Any, environ: Mapping[str, str]) -> tuple[Board, ...]:
    """The boards that a program with this environment is shown, in CUDA's order; the driver's library is started."""
    return NvmlMeter(nvml, environ).find()


class NvmlMeter:
    """Reads the boards that CUDA_VISIBLE_DEVICES leaves to the program.

    Args:
        nvml: The module `pynvml`, or what behaves like it.
        environ: Environment of the program.
        sensor_of: How a board's readings follow its power; the shipped table and this user's calibrations where nothing is given.
        tree: The run's processes; None where nobody asks which boards they use.
        is_split: Whether a board's energy is split among its users.
    """

    def __init__(
        self,
        nvml: Any,
        environ: Mapping[str, str],
        sensor_of: SensorOf | None = None,
        *,
        tree: ProcessTree | None = None,
        is_split: bool = False,
    ) -> None:
        self._nvml, self._environ, self._tree, self._is_split = nvml, environ, tree, is_split
        self._use: BoardUse | None = None
        self._sensor_of = sensor_of or self._known_sensor
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
        start(self._nvml)
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
        if self._tree is not None:
            calls = {gauge.device.id: gauge.calls for gauge in self._gauges}
            split = frozenset(gauge.device.id for gauge in self._gauges if isinstance(gauge, SharedGauge))
            self._use = BoardUse(calls, self._tree, is_chosen=is_chosen(self._environ), split=split)
        return tuple(gauge.device for gauge in self._gauges)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        polls = [self._poll_of(gauge, self._clock, is_last) for gauge in self._gauges]
        self._gaps += [gap for poll in polls for gap in poll.gaps if gap.device not in self._lost]
        notes = [*self._notes, *(note for poll in polls for note in poll.notes)]
        self._notes = []
        if self._use is not None:
            self._use.look(self._clock.offset_s(), is_last=is_last)
            notes += self._use.notes(is_last=is_last)
        if is_last:
            notes += self._closing_notes()
        return Poll(
            readings=tuple(reading for poll in polls for reading in poll.readings),
            gains={device: gain for poll in polls for device, gain in poll.gains.items()},
            gaps=tuple(gap for poll in polls for gap in poll.gaps),
            notes=tuple(notes),
            samples=tuple(samples for poll in polls for samples in poll.samples),
            periods_s={device: period_s for poll in polls for device, period_s in poll.periods_s.items()},
            unseen_joules={device: joules for poll in polls for device, joules in poll.unseen_joules.items()},
            is_used={} if self._use is None else self._use.is_used(),
        )

    def close(self) -> None:
        """See Meter."""
        stop(self._nvml)

    def boards(self) -> tuple[tuple[Board, Calls], ...]:
        """The boards that are read, in CUDA's order, and how to ask them; empty before `open`."""
        return tuple((gauge.board, gauge.calls) for gauge in self._gauges)

    def find(self) -> tuple[Board, ...]:
        """The visible boards, without reading any of them; the library is started."""
        return self._visible(self._handles())

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

    def _gauge(self, handle: Any, board: Board, clock: RunClock) -> Gauge | None:
        calls = Calls(self._nvml, handle, f"GPU {board.index} ({board.name})")
        try:
            gauge = best_gauge(calls, board, clock, self._sensor_of)
            if gauge is not None and self._is_split:
                gauge = self._split(gauge)
        except DeviceLost as error:
            self._notes.append(Note("tracer-degraded", f"{error}; it was left out"))
            return None
        if gauge is None:
            self._notes.append(Note("tracer-degraded", f"{calls.label} gives neither power nor energy; it was left out"))
        elif gauge.device.method == "averaged":
            text = f"{calls.label} gives a one-second average of power alone: each end of the run is uncertain by {gauge.device.edge_joules:.0f} J"
            self._notes.append(Note("averaged-power", text))
        return gauge

    def _split(self, gauge: Gauge) -> Gauge:
        """The gauge of the run's part of a board, or of the whole board with a note."""
        why = refusal(gauge.calls, self._tree)
        if why is not None or self._tree is None:
            self._notes.append(refused_note(gauge.calls.label, str(why)))
            return gauge
        return SharedGauge(gauge, self._tree)

    def _known_sensor(self, board: Board, reading: ReadingKind) -> Sensor | None:
        path = calibrations_path(self._environ)
        try:
            return find_sensor(board.name, board.uuid, reading, path)
        except (OSError, ValueError) as error:
            self._notes.append(Note("tracer-degraded", f"calibrations were left out: {error}"))
            return find_sensor(board.name, board.uuid, reading)

    def _poll_of(self, gauge: Gauge, clock: RunClock, is_last: bool) -> Poll:
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
