"""Processors and their memory through powercap (RAPL, of Intel and of AMD): packages and DRAM, nothing twice."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Meter, Poll, Reading
from carbonreport.measure.mirrored import mirrored_note, mirrors
from carbonreport.measure.perf_events import WAYS_OUT
from carbonreport.measure.processes import RunShare, roots_of_run
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, DeviceKind
from carbonreport.units import joules_from_microjoules

ROOT = Path("/sys/class/powercap")
PACKAGE_GAIN = (0.95, 1.05)
DRAM_GAIN = (0.85, 1.15)
# No package draws more for long: a pause longer than range / this may hide a whole turn of the counter.
MOST_WATTS = 1000.0
# Container engines hide /sys/devices/virtual/powercap, where the links of ROOT lead; what is mounted at ROOT itself they leave alone.
MOUNT = "docker run -v /sys/devices/virtual/powercap/intel-rapl:/sys/class/powercap:ro"


def create(options: Mapping[str, str]) -> Meter:
    """The meter of this machine's processors."""
    return RaplMeter(share=RunShare(roots_of_run(os.environ, os.getpid(), os.getppid())))


def available() -> str | None:
    """None where a package can be read, else why not and the way out."""
    try:
        _readable(ROOT)
    except MeterError as error:
        return str(error)
    return None


@dataclass(slots=True)
class Zone:
    """One counter and what is known of it.

    Attributes:
        id: Id of the device.
        kind: cpu (package) or dram.
        path: Its folder.
        range_microjoules: Largest value before it starts again at 0; None where it cannot be read.
        microjoules: Newest value.
        offset_s: When that was read. [s]
        joules: Energy since `open`. [J]
    """

    id: str
    kind: DeviceKind
    path: Path
    range_microjoules: int | None
    microjoules: int = 0
    offset_s: float = 0.0
    joules: float = 0.0

    def device(self) -> Device:
        """How the record names it."""
        is_dram = self.kind == "dram"
        low, high = DRAM_GAIN if is_dram else PACKAGE_GAIN
        name = f"{'memory of ' if is_dram else 'processor '}{self.id.removeprefix('dram-').removeprefix('cpu-')}"
        return Device(self.id, name, self.kind, "counter", low, high, "RAPL counter in powercap", 0.0, ORIGIN_OF_METHOD["counter"])

    def read(self) -> int | None:
        """What the counter shows, in microjoules; None where it cannot be read now."""
        return _try_integer(self.path / "energy_uj")

    def begin(self, offset_s: float, microjoules: int) -> Reading:
        """Count from here."""
        self.offset_s, self.microjoules = offset_s, microjoules
        return Reading(self.id, offset_s, self.joules)

    def advance(self, offset_s: float, microjoules: int) -> tuple[Reading, Gap | None]:
        """Count on; a gap where nobody can know how far the counter went."""
        before_s, delta_microjoules = self.offset_s, self._delta_microjoules(offset_s, microjoules)
        if delta_microjoules is None:
            return self.begin(offset_s, microjoules), Gap(self.id, before_s, offset_s)
        self.joules += joules_from_microjoules(delta_microjoules)
        return self.begin(offset_s, microjoules), None

    def _delta_microjoules(self, offset_s: float, microjoules: int) -> int | None:
        if self.range_microjoules is None:
            return microjoules - self.microjoules if microjoules >= self.microjoules else None
        if MOST_WATTS * (offset_s - self.offset_s) > joules_from_microjoules(self.range_microjoules):
            return None
        return (microjoules - self.microjoules) % (self.range_microjoules + 1)


class RaplMeter:
    """Adds packages and their DRAM; psys holds both, core and uncore lie inside the package, so these are left out.

    Args:
        root: Folder of the powercap zones.
        share: Tells which part of the machine's work was the run's own; None where nobody asks.
        wait: Lets so many seconds pass.
    """

    period_s: float | None = None

    def __init__(self, root: Path = ROOT, share: RunShare | None = None, wait: Callable[[float], None] = time.sleep) -> None:
        self._root, self._share, self._wait = root, share, wait
        self._clock: RunClock | None = None
        self._zones: list[Zone] = []
        self._first: list[Reading] = []
        self._notes: list[Note] = []

    def environment(self) -> Mapping[str, str]:
        """Number of packages and of memories that are read; empty before `open`."""
        kinds = [zone.kind for zone in self._zones]
        dram = f"{kinds.count('dram')} DRAM" if "dram" in kinds else "no counter of the memory"
        return {"rapl": f"{kinds.count('cpu')} package(s), {dram}"} if kinds else {}

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        self._clock = clock
        zones, denied = _readable(self._root)
        self._notes = [Note("host-unreadable", f"{_denied(path, self._root)}; the other counters are read")] if (path := denied) else []
        first = {zone.id: zone.begin(clock.offset_s(), _integer(zone.path / "energy_uj")) for zone in zones}
        if self._share:
            self._share.look(clock.offset_s())
        repeated = mirrors({zone.id: zone.read for zone in zones if zone.kind == "cpu"}, self._wait)
        self._notes += [mirrored_note(mirror, original) for mirror, original in repeated.items()]
        self._zones = [zone for zone in zones if zone.id not in repeated]
        self._first = [first[zone.id] for zone in self._zones]
        return tuple(zone.device() for zone in self._zones)

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        readings, gaps, notes = self._first, [], self._notes
        self._first, self._notes = [], []
        for zone in self._zones:
            offset_s, microjoules = self._clock.offset_s(), zone.read()
            if microjoules is None:
                continue
            reading, gap = zone.advance(offset_s, microjoules)
            readings.append(reading)
            if gap:
                gaps.append(gap)
                notes.append(
                    Note("reading-gap", f"{zone.id} has an unknown energy for {gap.to_s - gap.from_s:.0f} s: its counter started again")
                )
        if self._share:
            self._share.look(self._clock.offset_s(), is_last=is_last)
            notes += self._share.notes() if is_last else []
        return Poll(tuple(readings), gaps=tuple(gaps), notes=tuple(notes))

    def close(self) -> None:
        """See Meter: nothing is held."""


def _readable(root: Path) -> tuple[list[Zone], Path | None]:
    """Zones that can be read, and the first file that may not."""
    zones: list[Zone] = []
    denied: Path | None = None
    for zone in _zones(root):
        try:
            _integer(zone.path / "energy_uj")
        except PermissionError:
            denied = denied or zone.path / "energy_uj"
        else:
            zones.append(zone)
    if zones:
        return zones, denied
    if denied:
        raise MeterDenied(_denied(denied, root))
    raise _nothing(root)


def _nothing(root: Path) -> MeterError:
    """Why there is no zone: a container hides them, or the machine has none."""
    try:
        names = os.listdir(root)
    except PermissionError:
        return MeterDenied(f"{root} may not be looked into; in a container this shows it: {MOUNT} …")
    except OSError:
        names = None
    if names and any(name.startswith("intel-rapl:") and not (root / name / "name").exists() for name in names):
        return MeterDenied(f"the processors' counters in {root} are hidden, as container engines do; this shows them: {MOUNT} …")
    if names == []:
        return MeterAbsent(f"no processor energy counter in {root}, which is empty (in a container of a machine that has some: {MOUNT} …)")
    return MeterAbsent(f"no processor energy counter in {root} (virtual machines and ARM have none); the model of busy time can stand in")


def _zones(root: Path) -> Iterator[Zone]:
    for path in sorted(root.glob("intel-rapl:*")):
        name = _name(path)
        if path.name.count(":") != 1 or not name.startswith("package-"):
            continue
        yield Zone(f"cpu-{name}", "cpu", path, _try_integer(path / "max_energy_range_uj"))
        # In sysfs a child lies both in its parent and beside it; a mount into a container may keep one of them.
        children = {child.name: child for child in (*root.glob(f"{path.name}:*"), *path.glob(f"{path.name}:*"))}
        for child in children.values():
            if _name(child) == "dram":
                yield Zone(f"dram-{name}", "dram", child, _try_integer(child / "max_energy_range_uj"))


def _name(path: Path) -> str:
    try:
        return (path / "name").read_text().strip()
    except OSError:  # a zone that went away, or a folder of another kind
        return ""


def _integer(path: Path) -> int:
    return int(path.read_text())


def _try_integer(path: Path) -> int | None:
    try:
        return _integer(path)
    except OSError:
        return None


def _denied(path: Path, root: Path) -> str:
    return (
        f"{path} may be read by root only; until the next boot this opens it: sudo chmod a+r {root}/intel-rapl:*/energy_uj "
        f"(or, to read them as perf events: {WAYS_OUT})"
    )
