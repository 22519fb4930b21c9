"""Splits a board among its users by the time for which each keeps its cores busy: an estimate, on request alone."""

from dataclasses import replace

from carbonreport.measure.clock import RunClock
from carbonreport.measure.gauges import Gauge
from carbonreport.measure.meter import Poll, Reading
from carbonreport.measure.nvml_power import Calls
from carbonreport.measure.used import ProcessTree, is_mig
from carbonreport.model.notes import Note
from carbonreport.model.run import Device

# 90 % of true / estimate, a judgement: where kernels of two users draw 1 : 3 above idle at equal use, the share moves by up to two.
GAIN_OF_SPLIT = (0.5, 2.0)
PERIOD_S = 1.0
QUIET_S, QUIET_US = 2.0, 2_000_000  # longer without news of use: nobody computes
MOST_PERCENT = 100  # some drivers give far higher numbers for a process that has just begun or ended
NOTHING_NEW = ("NVMLError_NotFound", "NVMLError_Success")


def refusal(calls: Calls, tree: ProcessTree | None) -> str | None:
    """Why a board cannot be split among its users, or None where it can.

    Raises:
        DeviceLost: The board stopped answering.
    """
    if tree is None or tree.pids() is None:
        return "the run's processes cannot be seen"
    if not tree.is_of_host:
        return "a container does not show the processes of others"
    if is_mig(calls):
        return "it is cut into MIG instances, whose use is not told by process"
    ask = getattr(calls.nvml, "nvmlDeviceGetProcessUtilization", None)
    if ask is None:
        return "the binding does not tell the use by process"
    try:
        ask(calls.handle, 0)
    except calls.nvml.NVMLError as error:
        is_quiet = type(error).__name__ in NOTHING_NEW or getattr(error, "value", None) == 0
        return None if is_quiet else f"the driver does not tell the use by process ({error})"
    return None


class SharedGauge:
    """A gauge that counts the run's part: its processes' SM utilisation over that of all processes, asked once a second.

    While nobody computes, the run has its share of the work so far, and all of it before any work was seen.

    Power samples are left out: one share a second does not tell shorter spans apart.
    """

    def __init__(self, gauge: Gauge, tree: ProcessTree) -> None:
        self._gauge, self._tree = gauge, tree
        self.board, self.calls, self.period_s = gauge.board, gauge.calls, gauge.period_s
        self.device = _estimated(gauge.device)
        self._newest_us: int | None = None
        self._looked_s = self._worked_s = float("-inf")
        self._own_percent_s = self._every_percent_s = 0.0
        self._share = 1.0
        self._before: float | None = None
        self._whole_joules = self._joules = 0.0

    @property
    def end_s(self) -> float:
        """See Gauge."""
        return self._gauge.end_s

    def poll(self, clock: RunClock, *, is_last: bool) -> Poll:
        """See Gauge."""
        self._look(clock, is_last=is_last)
        poll = self._gauge.poll(clock, is_last=is_last)
        readings = self._scaled(poll.readings)
        notes = (*poll.notes, self._note()) if is_last else poll.notes
        return replace(poll, readings=readings, notes=notes, samples=())

    def rest(self) -> tuple[Reading, ...]:
        """See Gauge."""
        return self._scaled(self._gauge.rest())

    def _look(self, clock: RunClock, *, is_last: bool) -> None:
        """Take the share of the time since the last news of use."""
        now_s = clock.offset_s()
        if now_s - self._looked_s < 0.9 * PERIOD_S and not is_last:
            return
        self._looked_s = now_s
        now_us = clock.clock.wall_ns() // 1000
        if self._newest_us is None or self._newest_us > now_us:  # the first look, or the wall clock was set back
            self._newest_us = now_us - QUIET_US
        use, own = _use(self.calls, self._newest_us), self._tree.pids_lately(now_s)
        every_percent = sum(percent for _, _, percent in use)
        if own is not None and every_percent:
            self._newest_us = max(stamp_us for _, stamp_us, _ in use)
            self._work(now_s, sum(percent for pid, _, percent in use if pid in own), every_percent)
        elif self._every_percent_s and now_s - self._worked_s > QUIET_S:
            self._share = self._own_percent_s / self._every_percent_s

    def _work(self, now_s: float, own_percent: int, every_percent: int) -> None:
        since_s = min(now_s - self._worked_s, QUIET_S)
        self._own_percent_s += own_percent * since_s
        self._every_percent_s += every_percent * since_s
        self._share, self._worked_s = own_percent / every_percent, now_s

    def _scaled(self, readings: tuple[Reading, ...]) -> tuple[Reading, ...]:
        scaled = []
        for reading in readings:
            step_joules = 0.0 if self._before is None else reading.joules - self._before
            self._before = reading.joules
            self._whole_joules += step_joules
            self._joules += step_joules * self._share
            scaled.append(replace(reading, joules=self._joules))
        return tuple(scaled)

    def _note(self) -> Note:
        share = self._joules / self._whole_joules if self._whole_joules else self._share
        text = f"{share * 100:.0f} % of the energy of {self.calls.label} is taken for the run's, by its share of the use of the cores"
        return Note("board-split", text)


def refused_note(label: str, why: str) -> Note:
    """Says that the whole board counts."""
    return Note("split-refused", f"{label} could not be split among its users: {why}; the whole board counts")


def _estimated(device: Device) -> Device:
    low, high = GAIN_OF_SPLIT
    source = f"{device.source}, split among its users by SM utilisation"
    return replace(device, origin="estimated", source=source, gain_low=low * device.gain_low, gain_high=high * device.gain_high)


def _use(calls: Calls, since_us: int) -> list[tuple[int, int, int]]:
    """Use of the cores by process since a moment. (pid, stamp in microseconds, percent)"""
    samples = calls.ask("nvmlDeviceGetProcessUtilization", since_us)
    return [(s.pid, s.timeStamp, s.smUtil) for s in samples or () if s.timeStamp > since_us and s.smUtil <= MOST_PERCENT]
