"""Processors and their memory through the kernel's perf events (RAPL again): the road that needs the least privilege.

One 64-bit counter for each package and memory, opened on one CPU of each for the whole system. It needs
`kernel.perf_event_paranoid` at 0 or below, or CAP_PERFMON; what core, uncore and psys show lies in the package or holds it.
"""

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Meter, Poll, Reading
from carbonreport.measure.meters.rapl import DRAM_GAIN, PACKAGE_GAIN
from carbonreport.measure.mirrored import mirrored_note, mirrors
from carbonreport.measure.perf_events import WAYS_OUT, Kernel, Opener
from carbonreport.measure.processes import RunShare, roots_of_run
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, DeviceKind

ROOT = Path("/sys")
EVENTS: Mapping[str, DeviceKind] = {"energy-pkg": "cpu", "energy-ram": "dram"}


def create(options: Mapping[str, str]) -> Meter:
    """The meter of this machine's processors."""
    return PerfMeter(share=RunShare(roots_of_run(os.environ, os.getpid(), os.getppid())))


def available() -> str | None:
    """None where a package can be counted, else why not and the way out."""
    opener = Kernel()
    try:
        for counter in _opened(ROOT, opener):
            opener.close(counter.handle)
    except MeterError as error:
        return str(error)
    return None


@dataclass(slots=True)
class Counter:
    """One counter and what is known of it.

    Attributes:
        id: Id of the device, as powercap's meter names it.
        kind: cpu (package) or dram.
        handle: What the opener gave.
        joules_per_count: Its unit. [J]
        count: Newest value.
        offset_s: When that was read. [s]
        joules: Energy since `open`. [J]
    """

    id: str
    kind: DeviceKind
    handle: int
    joules_per_count: float
    count: int = 0
    offset_s: float = 0.0
    joules: float = 0.0

    def device(self) -> Device:
        """How the record names it."""
        low, high = DRAM_GAIN if self.kind == "dram" else PACKAGE_GAIN
        name = f"{'memory of ' if self.kind == 'dram' else 'processor '}{self.id.removeprefix('dram-').removeprefix('cpu-')}"
        return Device(self.id, name, self.kind, "counter", low, high, "RAPL counter of perf events", 0.0, ORIGIN_OF_METHOD["counter"])

    def begin(self, offset_s: float, count: int) -> Reading:
        """Count from here."""
        self.offset_s, self.count = offset_s, count
        return Reading(self.id, offset_s, self.joules)

    def advance(self, offset_s: float, count: int) -> tuple[Reading, Gap | None]:
        """Count on; a gap where it fell, which 64 bits never do by themselves."""
        if count < self.count:
            gap = Gap(self.id, self.offset_s, offset_s)
            return self.begin(offset_s, count), gap
        self.joules += (count - self.count) * self.joules_per_count
        return self.begin(offset_s, count), None


class PerfMeter:
    """Adds packages and their DRAM.

    Args:
        root: Where sysfs is mounted.
        opener: Opens and reads counters.
        share: Tells which part of the machine's work was the run's own; None where nobody asks.
        wait: Lets so many seconds pass.
    """

    period_s: float | None = None

    def __init__(
        self,
        root: Path = ROOT,
        opener: Opener | None = None,
        share: RunShare | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._root, self._opener, self._share, self._wait = root, opener or Kernel(), share, wait
        self._clock: RunClock | None = None
        self._counters: list[Counter] = []
        self._first: list[Reading] = []
        self._notes: list[Note] = []

    def environment(self) -> Mapping[str, str]:
        """Number of packages and of memories that are read; empty before `open`."""
        kinds = [counter.kind for counter in self._counters]
        dram = f"{kinds.count('dram')} DRAM" if "dram" in kinds else "no counter of the memory"
        return {"rapl": f"{kinds.count('cpu')} package(s), {dram}"} if kinds else {}

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        self._clock = clock
        counters = _opened(self._root, self._opener)
        first = {counter.id: counter.begin(clock.offset_s(), self._opener.read(counter.handle)) for counter in counters}
        if self._share:
            self._share.look(clock.offset_s())
        repeated = mirrors({counter.id: partial(self._read, counter) for counter in counters if counter.kind == "cpu"}, self._wait)
        self._notes = [mirrored_note(mirror, original) for mirror, original in repeated.items()]
        for counter in counters:
            if counter.id in repeated:
                self._opener.close(counter.handle)
        self._counters = [counter for counter in counters if counter.id not in repeated]
        self._first = [first[counter.id] for counter in self._counters]
        return tuple(counter.device() for counter in self._counters)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        readings, gaps, notes = self._first, [], self._notes
        self._first, self._notes = [], []
        for counter in self._counters:
            offset_s, count = self._clock.offset_s(), self._read(counter)
            if count is None:
                continue
            reading, gap = counter.advance(offset_s, count)
            readings.append(reading)
            if gap:
                gaps.append(gap)
                notes.append(Note("reading-gap", f"{counter.id} has an unknown energy for {gap.to_s - gap.from_s:.0f} s: its counter fell"))
        if self._share:
            self._share.look(self._clock.offset_s(), is_last=is_last)
            notes += self._share.notes() if is_last else []
        return Poll(tuple(readings), gaps=tuple(gaps), notes=tuple(notes))

    def close(self) -> None:
        """See Meter."""
        counters, self._counters = self._counters, []
        for counter in counters:
            self._opener.close(counter.handle)

    def _read(self, counter: Counter) -> int | None:
        try:
            return self._opener.read(counter.handle)
        except OSError:
            return None


def _opened(root: Path, opener: Opener) -> list[Counter]:
    """Every counter that the kernel offers, opened; none stays open where one is refused."""
    counters: list[Counter] = []
    try:
        for name, kind, kind_number, config, unit, cpu in _offered(root):
            counters.append(Counter(name, kind, opener.open(kind_number, config, cpu), unit))
    except OSError as error:
        for counter in counters:
            opener.close(counter.handle)
        if error.errno in (errno.EACCES, errno.EPERM):
            raise MeterDenied(f"perf events of the whole system may not be opened here; this allows it: {WAYS_OUT}") from error
        raise MeterAbsent(f"the kernel offers energy events but does not open them: {error.strerror or error}") from error
    if not any(counter.kind == "cpu" for counter in counters):
        raise MeterAbsent(f"no energy events in {root}/bus/event_source/devices/power (virtual machines and ARM have none)")
    return counters


def _offered(root: Path) -> Iterator[tuple[str, DeviceKind, int, int, float, int]]:
    """Id, kind, type and config of the event, joules per count, and CPU of every counter."""
    source = root / "bus/event_source/devices/power"
    if not source.is_dir():
        return
    cpus = _cpus((source / "cpumask").read_text())
    packages = _package_names(root, cpus)
    for event, kind in EVENTS.items():
        described = source / "events" / event
        if not described.exists():
            continue
        for cpu in cpus:
            config = int(described.read_text().strip().partition("event=")[2].partition(",")[0], 0)
            scale = float((described.parent / f"{event}.scale").read_text())
            yield f"{kind}-{packages[cpu]}", kind, int((source / "type").read_text()), config, scale, cpu


def _cpus(mask: str) -> list[int]:
    """CPUs of a list such as "0,28-29"."""
    ranges = [part.partition("-") for part in mask.strip().split(",") if part]
    return [cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1)]


def _package_names(root: Path, cpus: list[int]) -> dict[int, str]:
    """As powercap names them: package-0, and package-0-die-1 where a package has several."""
    ids = {cpu: (_topology(root, cpu, "physical_package_id"), _topology(root, cpu, "die_id")) for cpu in cpus}
    packages = [package for package, _ in ids.values()]
    return {
        cpu: f"package-{package}-die-{die}" if packages.count(package) > 1 else f"package-{package}" for cpu, (package, die) in ids.items()
    }


def _topology(root: Path, cpu: int, name: str) -> int:
    try:
        return int((root / f"devices/system/cpu/cpu{cpu}/topology/{name}").read_text())
    except OSError:  # older kernels know no dies
        return cpu
