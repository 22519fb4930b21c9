"""Processors without a counter: power as a straight line in the busy share of the CPUs that the program may use."""

import os
from collections.abc import Mapping
from pathlib import Path

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Meter, Poll, Reading
from carbonreport.measure.processes import PROC, RunShare, roots_of_run
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device
from carbonreport.units import seconds_from_nanoseconds

STAT = Path("/proc/stat")
CPUINFO = Path("/proc/cpuinfo")
# Cloud Carbon Footprint, methodology, "Compute": AWS averages of idle and full power per vCPU.
IDLE_WATTS_PER_CPU = 0.74
BUSY_WATTS_PER_CPU = 3.5
GAIN = (0.5, 2.0)
# Columns of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal; guest time is inside user's.
COLUMNS = 8
NOT_BUSY = (3, 4, 7)
ALONE_FROM = 0.9  # part of the busy time of the counted CPUs from which on the run counts as alone


def create(options: Mapping[str, str]) -> Meter:
    """The model of this machine's processors.

    Args:
        options: "idle_watts" and "busy_watts" of the whole host, both or neither.

    Raises:
        MeterError: One is missing or is no number.
    """
    roots = roots_of_run(os.environ, os.getpid(), os.getppid())
    return HostModel(idle_watts=_watts(options, "idle_watts"), busy_watts=_watts(options, "busy_watts"), roots=roots)


def available() -> str | None:
    """None where the kernel tells how busy its CPUs are, else why not and the way out."""
    if STAT.exists():
        return None
    return f"{STAT} is not there (it is Linux's): state the energy of the processors with `carbonreport estimate`, or run on Linux"


class HostModel:
    """Idle and busy watts, weighted by the share of time in which the allowed CPUs were busy.

    Args:
        stat: The kernel's CPU times.
        cpus: CPUs that count; None for those that the process may use.
        idle_watts: Power of the whole host's processors at rest; None for a published mean per CPU. [W]
        busy_watts: The same with every CPU busy. [W]
        cpuinfo: Where the model of the processor stands.
        roots: Process ids at the top of the run, to tell whether others kept the CPUs busy; none where nobody asks.
        proc: Linux's /proc, for them.
    """

    period_s: float | None = None

    def __init__(
        self,
        stat: Path = STAT,
        cpus: frozenset[int] | None = None,
        idle_watts: float | None = None,
        busy_watts: float | None = None,
        cpuinfo: Path = CPUINFO,
        roots: tuple[int, ...] = (),
        proc: Path = PROC,
    ) -> None:
        if (idle_watts is None) != (busy_watts is None):
            raise MeterError("idle_watts and busy_watts go together: give both or neither")
        if idle_watts is not None and busy_watts is not None and not 0 <= idle_watts <= busy_watts:
            raise MeterError(f"idle_watts {idle_watts!r} must lie between 0 and busy_watts {busy_watts!r}")
        self._stat, self._cpus, self._cpuinfo = stat, cpus, cpuinfo
        self._host_watts = (idle_watts, busy_watts)
        self._watts = (0.0, 0.0)
        self._clock: RunClock | None = None
        self._before = (0, 0, 0)  # busy jiffies, all jiffies, awake_ns
        self._joules = 0.0
        self._first: list[Reading] = []
        self._notes: list[Note] = []
        self._share = RunShare(roots, proc, self._busy_and_all)

    def environment(self) -> Mapping[str, str]:
        """Model of the processor, where the kernel says."""
        name = _processor(self._cpuinfo)
        return {"cpu": name} if name else {}

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        every = _times(self._stat)
        self._cpus = (_allowed(every) if self._cpus is None else self._cpus) & every.keys()
        if not self._cpus:
            raise MeterError(f"{self._stat} tells nothing of the CPUs that the program may use")
        self._watts = self._of_counted(len(self._cpus), len(every))
        self._clock, self._before = clock, (*_sum(every, self._cpus), clock.clock.awake_ns())
        self._share.look(clock.offset_s())
        self._first = [Reading("host-model", clock.offset_s(), 0.0)]
        self._notes = [Note("host-modelled", self._words())]
        name = ", ".join(word for word in (f"{len(self._cpus)} logical CPUs (model)", _processor(self._cpuinfo)) if word)
        return (Device("host-model", name, "cpu", "model", *GAIN, self._words(), 0.0, ORIGIN_OF_METHOD["model"]),)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter. Time asleep costs nothing here: the CPUs' times stand still too."""
        if self._clock is None or self._cpus is None:
            raise MeterError("the meter was polled before it was opened")
        readings, notes = self._first, self._notes
        self._first, self._notes = [], []
        self._share.look(self._clock.offset_s(), is_last=is_last)
        notes = [*notes, *(self._shared() if is_last else ())]
        now = (*_sum(_times(self._stat, self._cpus), self._cpus), self._clock.clock.awake_ns())
        busy, jiffies, awake_ns = (b - a for a, b in zip(self._before, now, strict=True))
        if jiffies > 0:
            share = min(max(busy / jiffies, 0.0), 1.0)
            idle_watts, busy_watts = self._watts
            self._joules += (idle_watts + share * (busy_watts - idle_watts)) * seconds_from_nanoseconds(awake_ns)
            self._before = now
            readings.append(Reading("host-model", self._clock.offset_s(), self._joules))
        return Poll(tuple(readings), notes=tuple(notes))

    def close(self) -> None:
        """See Meter: nothing is held."""

    def _busy_and_all(self) -> tuple[int, int]:
        """Jiffies of the counted CPUs since boot."""
        cpus = self._cpus or frozenset()
        return _sum(_times(self._stat, cpus), cpus)

    def _shared(self) -> list[Note]:
        """Says how much of the busy time was the run's own, where others had a good part of it."""
        own = self._share.share()
        if own is None or own >= ALONE_FROM:
            return []
        text = f"the run's own processes had {own * 100:.0f} % of the busy time of the CPUs that it may use; the model's energy holds that of others too"
        return [Note("shared-host", text)]

    def _of_counted(self, counted: int, every: int) -> tuple[float, float]:
        idle_watts, busy_watts = self._host_watts
        if idle_watts is None or busy_watts is None:
            return counted * IDLE_WATTS_PER_CPU, counted * BUSY_WATTS_PER_CPU
        return idle_watts * counted / every, busy_watts * counted / every

    def _words(self) -> str:
        idle_watts, busy_watts = self._watts
        whose = "Cloud Carbon Footprint's mean per vCPU" if self._host_watts[0] is None else "the site's figures"
        count = len(self._cpus or ())
        cpus = "1 logical CPU" if count == 1 else f"{count} logical CPUs together"
        return f"{cpus} at {idle_watts:.1f} W idle and {busy_watts:.1f} W busy, by share of busy time ({whose})"


def _times(stat: Path, cpus: frozenset[int] | None = None) -> dict[int, tuple[int, int]]:
    """(busy, all) jiffies since boot by CPU, of some or all CPUs. Their lines come first; the long ones of interrupts are not looked at."""
    times: dict[int, tuple[int, int]] = {}
    try:
        content = stat.read_bytes()
    except FileNotFoundError as error:
        raise MeterError(f"{stat} is not there: how busy the CPUs are is read from Linux's /proc") from error
    for line in content.partition(b"\nintr")[0].splitlines():
        word, _, rest = line.partition(b" ")
        if not word.startswith(b"cpu") or word == b"cpu":
            continue
        cpu = int(word[3:])
        if cpus is None or cpu in cpus:
            jiffies = [int(column) for column in rest.split()[:COLUMNS]]
            times[cpu] = (sum(jiffies) - sum(jiffies[i] for i in NOT_BUSY if i < len(jiffies)), sum(jiffies))
    return times


def _sum(times: Mapping[int, tuple[int, int]], cpus: frozenset[int]) -> tuple[int, int]:
    counted = [times[cpu] for cpu in cpus if cpu in times]
    return sum(busy for busy, _ in counted), sum(jiffies for _, jiffies in counted)


def _allowed(times: Mapping[int, tuple[int, int]]) -> frozenset[int]:
    affinity = getattr(os, "sched_getaffinity", None)
    return frozenset(times) if affinity is None else frozenset(affinity(0))


def _processor(cpuinfo: Path) -> str:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _watts(options: Mapping[str, str], key: str) -> float | None:
    if key not in options:
        return None
    try:
        return float(options[key])
    except ValueError as error:
        raise MeterError(f"{key} {options[key]!r} is no number of watts") from error
