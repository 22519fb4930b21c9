"""AMD GPUs through amdsmi: socket power, scaled to the energy counter where the two agree. Written by the manual, not tried on hardware.

What a board can do is asked once, in `open`:

    socket power and counter    anchored; a counter that is wrong or stands still is left out, with a note
    counter alone               counter
    socket power alone          instant, or averaged where the board gives a mean
    nothing                     left out, with a note; never zero

The two dies of an MI250 are two GPUs of which the first reports the power of both; the second is counted there.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.anchor import Anchor, Integral, Points
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Meter, Poll, Reading
from carbonreport.measure.visible import Board, visible
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, Method
from carbonreport.units import joules_from_microjoules

KFD = Path("/dev/kfd")
INSTANT_PERIOD_S = 0.1
AVERAGED_PERIOD_S = 0.5
HOLE_S = 3.0
GAIN = (0.9, 1.1)  # assumed: no calibration of AMD's sensors was found
GAIN_TRUSTED = (0.9, 1.1)
UNTRIED = "not tried on hardware"
TWO_DIES = "MI250"
NO_PERMISSION = 10  # AMDSMI_STATUS_NO_PERM
# What the binding was seen to raise on import where library and binding do not fit each other.
ODD_IMPORTS = (ImportError, OSError, KeyError, AttributeError, TypeError, ValueError, RuntimeError)


def create(options: Mapping[str, str]) -> Meter:
    """The meter of this machine's AMD GPUs.

    Raises:
        MeterError: There is none, or the binding cannot be used.
    """
    return AmdMeter(_binding(), os.environ)


def available() -> str | None:
    """None where the binding answers, else why not and the way out."""
    try:
        amdsmi = _binding()
        _start(amdsmi)
    except MeterError as error:
        return str(error)
    amdsmi.amdsmi_shut_down()
    return None


class AmdMeter:
    """Reads the boards that ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES leave to the program.

    Args:
        amdsmi: The module of that name, or what behaves like it.
        environ: Environment of the program.
    """

    def __init__(self, amdsmi: Any, environ: Mapping[str, str]) -> None:
        self._amdsmi, self._environ = amdsmi, environ
        self._clock: RunClock | None = None
        self._gauges: list[AmdGauge] = []
        self._notes: list[Note] = []
        self._facts: dict[str, str] = {}

    @property
    def period_s(self) -> float | None:
        """The shortest period of any board; None before `open` and where counters alone are read. [s]"""
        return min((gauge.period_s for gauge in self._gauges if gauge.period_s is not None), default=None)

    def environment(self) -> Mapping[str, str]:
        """Number of boards of each model; empty before `open`."""
        return self._facts

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        _start(self._amdsmi)
        self._clock = clock
        try:
            handles = dict(_boards(self._amdsmi))
        except self._amdsmi.AmdSmiException as error:
            self.close()
            raise MeterError(f"the AMD driver does not answer: {error}") from error
        boards, self._notes = reporting(tuple(handles), visible_amd(tuple(handles), self._environ))
        opened = [
            (board, _gauge(Calls(self._amdsmi, handles[board], f"GPU {board.index} ({board.name})"), board, clock)) for board in boards
        ]
        self._gauges = [gauge for _, gauge in opened if gauge]
        silent = [
            f"GPU {board.index} ({board.name}) gives neither power nor energy; it was left out" for board, gauge in opened if not gauge
        ]
        if not self._gauges:
            self.close()
            raise (
                MeterError("; ".join(silent)) if silent else MeterAbsent(f"no AMD GPU of the {len(handles)} here is visible to the program")
            )
        self._notes += [Note("tracer-degraded", text) for text in silent]
        self._notes += [Note("averaged-power", _blurred(gauge)) for gauge in self._gauges if gauge.device.method == "averaged"]
        models = Counter(gauge.device.name for gauge in self._gauges)
        self._facts = {"amd_gpus": ", ".join(f"{count} x {name}" for name, count in sorted(models.items()))}
        return tuple(gauge.device for gauge in self._gauges)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        polls = [gauge.poll(self._clock, is_last=is_last) for gauge in self._gauges]
        notes, self._notes = self._notes, []
        return Poll(
            readings=tuple(reading for poll in polls for reading in poll.readings),
            gains={device: gain for poll in polls for device, gain in poll.gains.items()},
            gaps=tuple(gap for poll in polls for gap in poll.gaps),
            notes=(*notes, *(note for poll in polls for note in poll.notes)),
        )

    def close(self) -> None:
        """See Meter."""
        self._amdsmi.amdsmi_shut_down()


@dataclass(frozen=True, slots=True)
class Calls:
    """The binding's calls to one board, in house units; None is "not here" or "not now"."""

    amdsmi: Any
    handle: Any
    label: str

    def watts(self) -> tuple[float, bool] | None:
        """Socket power now, and whether it is a mean: what is called current, else what has no adjective, else the average."""
        power = self._ask("amdsmi_get_power_info")
        for key, is_mean in (("current_socket_power", False), ("socket_power", False), ("average_socket_power", True)):
            watts = _positive(power.get(key))
            if watts is not None:
                return watts, is_mean
        return None

    def counter(self, clock: RunClock) -> tuple[float, float] | None:
        """Energy since the driver was loaded, and when. (offset_s, joules)"""
        offset_s, energy = clock.offset_s(), self._ask("amdsmi_get_energy_count")
        count = _positive(energy.get("energy_accumulator", energy.get("power")))  # the name changed with release 6.2.1
        microjoules_per_count = _positive(energy.get("counter_resolution"))  # 15.3
        if count is None or microjoules_per_count is None:
            return None
        return offset_s, joules_from_microjoules(count * microjoules_per_count)

    def _ask(self, function: str) -> Mapping[str, Any]:
        return _asked(self.amdsmi, function, self.handle)


class AmdGauge:
    """One board: its power integrated and scaled to the counter, or the counter alone.

    Args:
        device: How the record names it.
        calls: Asks it.
        period_s: How often its power is read; None where it has a counter alone. [s]
        counted: First reading of the counter, or None.
    """

    def __init__(self, device: Device, calls: Calls, period_s: float | None, counted: tuple[float, float] | None) -> None:
        self.device, self.calls, self.period_s = device, calls, period_s
        self._integral = Integral(HOLE_S)
        self._anchor = Anchor(counted) if counted and period_s is not None else None
        self._counted, self._joules = counted, 0.0
        self._first: Points = [(counted[0], 0.0)] if counted and period_s is None else []
        self._read_s = float("-inf")
        self._doubted = False

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """What the board brought since the previous poll."""
        poll = self._counter_poll(clock) if self.period_s is None else self._power_poll(clock, self.period_s, is_last=is_last)
        return self._ended(poll, clock.offset_s()) if is_last else poll

    def _counter_poll(self, clock: RunClock) -> Poll:
        first, self._first = self._first, []
        before, counted = self._counted, self.calls.counter(clock)
        if before is None or counted is None or counted[1] == before[1]:
            return Poll(self._readings(first))
        self._counted = counted
        if counted[1] < before[1]:
            note = Note("counter-reset", f"the energy counter of {self.calls.label} restarted")
            return Poll(
                self._readings([*first, (counted[0], self._joules)]), gaps=(Gap(self.device.id, before[0], counted[0]),), notes=(note,)
            )
        self._joules += counted[1] - before[1]
        return Poll(self._readings([*first, (counted[0], self._joules)]))

    def _power_poll(self, clock: RunClock, period_s: float, *, is_last: bool) -> Poll:
        now_s = clock.offset_s()
        if self._anchor and (is_last or self._anchor.is_due(now_s)):
            counted = self.calls.counter(clock)
            if counted:
                self._anchor.take(counted)
        fresh, holes = self._integral.add(self._power(clock, period_s, is_last=is_last))
        gains, notes = self._compared(holes, is_last=is_last)
        return Poll(self._readings(fresh), gains, tuple(Gap(self.device.id, *hole) for hole in holes), tuple(notes))

    def _power(self, clock: RunClock, period_s: float, *, is_last: bool) -> Points:
        now_s = clock.offset_s()
        if not is_last and now_s - self._read_s < 0.9 * period_s:
            return []
        self._read_s = now_s
        power = self.calls.watts()
        return [] if power is None else [(now_s, power[0])]

    def _compared(self, holes: Points, *, is_last: bool) -> tuple[dict[str, float], list[Note]]:
        anchor = self._anchor
        if anchor is None:
            return {}, []
        for hole in holes:
            anchor.skip(hole)
        is_news, has_fallen = anchor.settle(self._integral, is_last=is_last)
        label = self.calls.label
        notes = [Note("counter-reset", f"the energy counter of {label} restarted; it was compared anew from there")] if has_fallen else []
        gain = anchor.gain()
        if gain is None:
            short = f"the energy counter of {label} was compared with its power for {anchor.seconds:.0f} s; the power stands alone"
            return {}, [*notes, Note("anchor-short", short)] if is_last else notes
        if not is_news:
            return {}, notes
        if GAIN_TRUSTED[0] <= gain <= GAIN_TRUSTED[1]:
            return {self.device.id: gain}, notes
        if not self._doubted:
            self._doubted = True
            notes.append(Note("counter-doubted", _doubt(label, anchor)))
        return {self.device.id: 1.0}, notes

    def _ended(self, poll: Poll, now_s: float) -> Poll:
        """With the time at the end in which it could not be read."""
        end_s = self._counted[0] if self.period_s is None and self._counted else self._integral.end_s
        if now_s - end_s <= HOLE_S:
            return poll
        note = Note(
            "device-lost", f"{self.calls.label} stopped answering {max(end_s, 0.0):.0f} s after the start; its energy after that is missing"
        )
        return replace(poll, gaps=(*poll.gaps, Gap(self.device.id, max(end_s, 0.0), now_s)), notes=(*poll.notes, note))

    def _readings(self, points: Points) -> tuple[Reading, ...]:
        return tuple(Reading(self.device.id, offset_s, joules) for offset_s, joules in points)


def visible_amd(boards: Sequence[Board], environ: Mapping[str, str]) -> tuple[Board, ...]:
    """The boards that ROCm shows: the runtime's variable first; HIP counts what that one leaves. Indices or "GPU-…"."""
    left = visible(sorted(boards, key=lambda board: board.index), environ.get("ROCR_VISIBLE_DEVICES"))
    counted_anew = {replace(board, index=i): board for i, board in enumerate(left)}
    wanted = environ.get("HIP_VISIBLE_DEVICES", environ.get("CUDA_VISIBLE_DEVICES"))
    return tuple(counted_anew[board] for board in visible(tuple(counted_anew), wanted))


def reporting(every: Sequence[Board], wanted: Sequence[Board]) -> tuple[tuple[Board, ...], list[Note]]:
    """The boards that report the energy of the wanted ones, each once, and what must be said of second dies."""
    found: dict[Board, None] = {}
    notes: dict[Note, None] = {}
    for board in wanted:
        if TWO_DIES not in board.name:
            found[board] = None
            continue
        die = every.index(board)
        first = every[die - die % 2]
        found[first] = None
        text = f"GPU {first.index} and {first.index + 1} ({first.name}) are two dies of one board, which reports both as GPU {first.index}"
        notes[Note("dies-together", text)] = None
    return tuple(found), list(notes)


def _gauge(calls: Calls, board: Board, clock: RunClock) -> AmdGauge | None:
    power, counted = calls.watts(), calls.counter(clock)
    if power is None:
        device = _device(board, "counter", "amdsmi energy counter", 0.0)
        return AmdGauge(device, calls, None, counted) if counted else None
    watts, is_mean = power
    period_s = AVERAGED_PERIOD_S if is_mean else INSTANT_PERIOD_S
    words = f"amdsmi {'average ' if is_mean else ''}socket power every {period_s} s"
    if counted:
        return AmdGauge(_device(board, "anchored", f"{words}, scaled to the energy counter", watts * period_s), calls, period_s, counted)
    return AmdGauge(_device(board, "averaged" if is_mean else "instant", words, watts * period_s), calls, period_s, None)


def _device(board: Board, method: Method, source: str, edge_joules: float) -> Device:
    return Device(board.uuid, board.name, "gpu", method, *GAIN, f"{source} ({UNTRIED})", edge_joules, ORIGIN_OF_METHOD[method])


def _boards(amdsmi: Any) -> Iterator[tuple[Board, Any]]:
    """Boards with their handles, counted as HIP counts them where the binding knows, else as it lists them."""
    handles = list(amdsmi.amdsmi_get_processor_handles())
    listed = [_asked(amdsmi, "amdsmi_get_gpu_enumeration_info", handle) for handle in handles]
    ids = [info.get("hip_id") for info in listed]
    for i, (handle, info, hip_id) in enumerate(zip(handles, listed, ids, strict=True)):
        asic = _asked(amdsmi, "amdsmi_get_gpu_asic_info", handle)
        serial = str(asic.get("asic_serial", "")).lower().removeprefix("0x")
        uuid = info.get("hip_uuid") or (f"GPU-{serial}" if serial.strip("0") and serial != "n/a" else f"GPU-amd-{i}")
        is_numbered = sorted(str(n) for n in ids) == sorted(str(n) for n in range(len(ids)))
        yield Board(int(str(hip_id)) if is_numbered else i, str(uuid), str(asic.get("market_name") or "AMD GPU"), ""), handle


def _asked(amdsmi: Any, function: str, handle: Any) -> Mapping[str, Any]:
    """Answer of one function; empty where binding, driver or board do not have it."""
    call = getattr(amdsmi, function, None)
    if call is None:
        return {}
    try:
        answer: Mapping[str, Any] = call(handle)
    except amdsmi.AmdSmiException:
        return {}
    return answer


def _positive(value: Any) -> float | None:
    """A number above 0; None for "N/A" and for 0, which boards report for "unknown"."""
    return float(value) if isinstance(value, int | float) and value > 0 else None


def _doubt(label: str, anchor: Anchor) -> str:
    return (
        f"over {anchor.seconds:.0f} s the energy counter of {label} says {anchor.counter_joules:.0f} J and its power {anchor.sample_joules:.0f} J; "
        "they differ by over 10 %, so the power alone is used"
    )


def _blurred(gauge: AmdGauge) -> str:
    return f"{gauge.calls.label} gives an average of power alone: each end of the run is uncertain by {gauge.device.edge_joules:.0f} J"


def _binding() -> Any:
    """The module `amdsmi`; not imported where there is no AMD GPU."""
    if not KFD.exists():
        raise MeterAbsent(f"no AMD GPU: {KFD} is not there; a container needs --device /dev/kfd --device /dev/dri")
    try:
        return import_module("amdsmi")
    except ModuleNotFoundError as error:
        raise MeterError("AMD GPUs are read through amdsmi, which is not installed: pip install amdsmi, of the driver's release") from error
    except ODD_IMPORTS as error:
        raise MeterError(f"amdsmi cannot be used ({type(error).__name__}: {error}): install the release of the ROCm driver") from error


def _start(amdsmi: Any) -> None:
    try:
        amdsmi.amdsmi_init()
    except amdsmi.AmdSmiException as error:
        code = getattr(error, "get_error_code", lambda: None)()
        if code == NO_PERMISSION:
            raise MeterDenied("AMD GPUs may not be used here: sudo usermod -aG render,video $USER, and log in again") from error
        raise MeterError(f"amdsmi cannot be started: {error}") from error
