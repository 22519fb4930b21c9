"""What the words need besides the footprint, and small questions to a footprint that several sentences ask."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from carbonreport.combine.footprint import is_read
from carbonreport.model.footprint import ChargedRun, DeviceEnergy, Footprint, GridUse, SpanEnergy
from carbonreport.model.run import Device, DeviceKind, RunKind, RunRecord
from carbonreport.model.statement import Facts
from carbonreport.render.words import count_in_words, placed

_HALF = 0.5


@dataclass(frozen=True, slots=True)
class Setting:
    """What the words need besides the numbers.

    Attributes:
        zone_names: Zone code to name, of zones whose place is known: {"DE": "Germany"}.
        nowhere: Zone code to what its grid is called, of zones that say no place: {"WORLD": "the world’s average grid"}.
        time_zone: IANA name for the dates.
        site: Name of the site, or None.
        made_by: Name and version of the tool.
        facts: What the author says of the project.
        is_anonymous: Whether names, places and dates are taken out for a blind review.
    """

    zone_names: Mapping[str, str]
    nowhere: Mapping[str, str]
    time_zone: str
    site: str | None
    made_by: str
    facts: Facts = field(default_factory=Facts)
    is_anonymous: bool = False

    def knows(self, grid: GridUse) -> bool:
        """Whether anybody knows where that grid is."""
        return grid.zone not in self.nowhere

    def name_of(self, grid: GridUse) -> str:
        """A grid zone in words, after "in": the Netherlands."""
        name = self.zone_names.get(grid.zone, grid.zone)
        return f"grid zone {grid.zone}" if name == grid.zone else placed(grid.zone, name)

    def place_of(self, grid: GridUse) -> str:
        """The same, with the code where the name alone may not be understood: East (grid zone RU-AS)."""
        name = self.name_of(grid)
        return f"{name} (grid zone {grid.zone})" if "-" in grid.zone and grid.zone not in name else name


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """All runs of one name and kind, with their own footprint.

    Attributes:
        name: Their name; "" where runs of too many names to list are put together by kind.
        kind: training, inference, …
        runs: Those that count, in the order of time.
        footprint: Of them alone.
        names: How many names they have.
    """

    name: str
    kind: RunKind
    runs: tuple[ChargedRun, ...]
    footprint: Footprint
    names: int = 1


def is_unread(footprint: Footprint) -> bool:
    """Whether there is no reading: the energy is unknown, not zero."""
    return footprint.covered == 0


def is_timeless(footprint: Footprint) -> bool:
    """Whether nobody knows how long it took: it broke off before its first reading."""
    return is_unread(footprint) and footprint.run_seconds == 0


def is_too_short(span: SpanEnergy) -> bool:
    """Whether a span was too short for its meters to see any energy in it: that is not known to be none."""
    return span.it_joules == 0


def is_estimate(footprint: Footprint) -> bool:
    """Whether nothing was measured: power times hours."""
    return bool(footprint.devices) and all(_is_typed_in(d) for d in footprint.devices)


def _is_typed_in(device: DeviceEnergy | Device) -> bool:
    return device.kind == "gpu" and device.method == "model"


def typed_in_share(footprint: Footprint) -> float:
    """Part of the IT energy that is power times hours out of the author's memory, 0 to 1."""
    return math.fsum(d.share for d in footprint.devices if _is_typed_in(d))


def typed_in_runs(runs: Sequence[ChargedRun]) -> list[ChargedRun]:
    """Those whose power and hours the author gave."""
    return [c for c in runs if c.run.devices and all(_is_typed_in(d) for d in c.run.devices)]


def imported_runs(runs: Sequence[ChargedRun]) -> list[ChargedRun]:
    """Those that were read from a log of another tool."""
    return [c for c in runs if any(note.slug == "imported-log" for note in c.run.notes)]


def read_time(footprint: Footprint, runs: Sequence[ChargedRun]) -> float:
    """Part of the devices' time with a reading, 0 to 1; hours that somebody typed in have none."""
    asked, typed_in = (math.fsum(c.run.duration_s * len(c.run.devices) for c in some) for some in (runs, typed_in_runs(runs)))
    return max(footprint.covered - typed_in / asked, 0.0) if asked else footprint.covered


def is_mostly_estimate(footprint: Footprint) -> bool:
    """Whether more than half of the energy is power times hours."""
    return typed_in_share(footprint) > _HALF


def is_gpu_only(footprint: Footprint) -> bool:
    """Whether the GPUs are all that is in the numbers."""
    return {kind for kind, _ in footprint.kinds} == {"gpu"}


def gpu_count(footprint: Footprint) -> int:
    """Distinct GPUs of all runs."""
    return sum(d.count for d in footprint.devices if d.kind == "gpu")


def host_count(footprint: Footprint) -> int:
    """Hosts of all devices; 0 where an estimate is among them, for nobody says in which hosts its boards were."""
    return 0 if any(_is_typed_in(d) for d in footprint.devices) else len({d.host for d in footprint.devices})


def gpus_by_name(footprint: Footprint) -> list[tuple[str, int]]:
    """How many GPUs of each name."""
    counts: dict[str, int] = {}
    for device in footprint.devices:
        if device.kind == "gpu":
            counts[device.name] = counts.get(device.name, 0) + device.count
    return list(counts.items())


def reason_left_out(footprint: Footprint) -> str:
    """Why components without a reading are not in the numbers."""
    return "the estimate is of the GPUs alone" if is_estimate(footprint) else "no reading"


_COMPONENTS: tuple[tuple[DeviceKind, str], ...] = (("gpu", "GPUs that gave no reading"), ("cpu", "processors"), ("dram", "memory"))


def not_covered(footprint: Footprint, runs: Sequence[ChargedRun]) -> list[str]:
    """Components without a reading, those that only some runs lack included."""
    parts = []
    for kind, name in _COMPONENTS:
        without = sum(1 for c in runs if _lacks(c.run, kind))
        if without == len(runs):
            parts.append(name)
        elif without:
            parts.append(f"{name} of {count_in_words(without)} of the {count_in_words(len(runs))} runs")
    if all("node" in _read_kinds(c.run) for c in runs):
        return ["storage outside the nodes", "network"]
    return [*parts, "power supplies", "fans", "storage", "network"]


def _lacks(run: RunRecord, kind: DeviceKind) -> bool:
    """Whether a run has no energy of a kind of device; GPUs are missed only where the run had some."""
    has_some = kind != "gpu" or any(d.kind == "gpu" for d in run.devices)
    return has_some and not {"node", kind} & _read_kinds(run)


def _read_kinds(run: RunRecord) -> set[DeviceKind]:
    return {d.kind for d in run.devices if is_read(run, d.id)}
