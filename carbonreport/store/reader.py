"""Reads records: every line typed, every error with file, line and field."""

import hashlib
import math
from collections import defaultdict
from pathlib import Path

import msgspec

from carbonreport.errors import BadPue, RecordError
from carbonreport.model.knobs import KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.model.pue import PueProfile
from carbonreport.model.run import Device, EnergyTrace, Place, RunRecord, Span
from carbonreport.store.lines import (
    HELD,
    LINE,
    TAIL,
    DeviceLine,
    EndLine,
    EnvironmentLine,
    GapLine,
    KnobsLine,
    Line,
    NoteLine,
    PlaceField,
    PointsLine,
    Probe,
    RunLine,
    SpanRow,
    SpansLine,
)
from carbonreport.store.sums_reader import SumsLine, sums_of
from carbonreport.store.tail import newest_slot, tail_path
from carbonreport.store.writer import FORMAT_VERSION


def load(path: str | Path) -> RunRecord:
    """Read a record, finished or not.

    Raises:
        RecordError: Not a record, of a newer format, or torn elsewhere than in its last line.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except IsADirectoryError as error:
        raise RecordError(f"{path} is a folder; name the records in it, such as {path}/*.jsonl") from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    lines, is_torn = _complete_lines(content)
    if not lines or not _is_record(lines[0]):
        first = lines[0] if lines else content
        if _is_cut_off(first):
            raise RecordError(f"{path}: its first line is cut off after {len(first)} bytes; restore the file from a copy or leave it out")
        why = "its first line has no field 'carbonreport'" if content.strip() else "it is empty"
        raise RecordError(f"{path} is not a carbonreport record: {why}; records are the .jsonl files that `carbonreport run` writes")
    builder = _Builder(path, hashlib.sha256(content).hexdigest())
    for number, line in enumerate(lines, start=1):
        builder.add(number, line)
    if is_torn:
        builder.notes.append(Note("record-torn", f"the last line of {path.name} was cut off and was left out"))
    return builder.finish(newest_slot(tail_path(path)))


def _complete_lines(content: bytes) -> tuple[list[bytes], bool]:
    """Lines that end in a newline, and whether something is left over."""
    *lines, rest = content.split(b"\n")
    return lines, bool(rest)


def _is_record(line: bytes) -> bool:
    try:
        return msgspec.json.decode(line, type=Probe).carbonreport is not None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def _is_cut_off(line: bytes) -> bool:
    """Whether a line begins as the first one of a record and ends too early."""
    if not line.lstrip().startswith(b"{") or b'"carbonreport"' not in line:
        return False
    try:
        msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    return False


class _Builder:
    """Collects lines into a RunRecord."""

    def __init__(self, path: Path, sha256: str) -> None:
        self.path, self.sha256 = path, sha256
        self.run: RunLine | None = None
        self.devices: dict[str, DeviceLine] = {}
        self.points: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
        self.gaps: dict[str, list[tuple[float, float]]] = defaultdict(list)
        self.spans: list[tuple[SpanRow, list[str]]] = []
        self.sums: dict[str, SumsLine] = {}
        self.knobs: dict[str, KnobsHeld] = {}
        self.batch = -1
        self.notes: list[Note] = []
        self.environment: dict[str, str] = {}
        self.end: EndLine | None = None

    def add(self, number: int, content: bytes) -> None:
        try:
            line = LINE.decode(content)
            self._take(line, content)
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError, OverflowError) as error:
            raise RecordError(f"{self.path}, line {number}: {error}; restore the file from a copy or leave it out") from error

    def _take(self, line: Line, content: bytes) -> None:
        match line:
            case RunLine():
                if line.carbonreport > FORMAT_VERSION:
                    raise RecordError(
                        f"{self.path} has record format {line.carbonreport}, this carbonreport reads {FORMAT_VERSION}: pip install --upgrade carbonreport"
                    )
                if line.started.tzinfo is None:
                    raise ValueError(f"started {line.started.isoformat()!r} has no zone; records say UTC with a Z")
                self.run, self.environment = line, dict(line.environment)
            case DeviceLine():
                self.devices[line.id] = line
            case PointsLine():
                self._extend(line.device, line.offsets_s, line.joules)
            case GapLine():
                self.gaps[line.device].append((line.from_s, line.to_s))
            case SpansLine():
                self.batch = max(self.batch, line.batch)
                self.spans += [(row, line.devices) for row in line.spans]
            case SumsLine():
                self.sums[line.device] = line
            case KnobsLine():
                held = HELD.decode(content)
                self.knobs[held.device] = held
            case NoteLine():
                self.notes.append(Note(line.slug, line.text))
            case EnvironmentLine():
                self.environment.update(line.facts)
            case EndLine():
                self.end = line

    def _extend(self, device: str, offsets_s: list[float], joules: list[float]) -> None:
        if device not in self.devices:
            raise ValueError(f"points of unknown device {device!r}")
        if len(offsets_s) != len(joules):
            raise ValueError(f"{len(offsets_s)} offsets for {len(joules)} energies of {device}")
        times, energies = self.points[device]
        for offset_s, energy in zip(offsets_s, joules, strict=True):
            if not times or offset_s > times[-1]:
                times.append(offset_s)
                energies.append(max(energy, energies[-1]) if energies else energy)

    def finish(self, slot: bytes | None) -> RunRecord:
        """The record, with the newest tail applied where the run has no end."""
        run = self.run
        if run is None:
            raise RecordError(f"{self.path}: no line of type 'run'")
        end = self.end if self.end is not None else self._unfinished(slot)
        try:
            return self._record(run, end)
        except (ValueError, BadPue) as error:
            raise RecordError(f"{self.path}: {error}") from error

    def _unfinished(self, slot: bytes | None) -> EndLine:
        """The end that the run would have had where its newest tail breaks off."""
        end = EndLine(max((times[-1] for times, _ in self.points.values() if times), default=0.0), {})
        if slot is not None:
            tail = TAIL.decode(slot)
            for device, offsets_s, joules in tail.points:
                self._extend(device, offsets_s, joules)
            if tail.batch > self.batch:
                self.spans += [(row, tail.devices) for row in tail.spans]
            end = EndLine(max(end.duration_s, tail.offset_s), tail.gains, tail.unseen, tail.unused)
        self.notes.append(Note("interrupted", self._how_it_broke_off(end.duration_s, has_tail=slot is not None)))
        return end

    def _how_it_broke_off(self, duration_s: float, *, has_tail: bool) -> str:
        if duration_s == 0:
            return f"{self.path.stem} breaks off before its first reading; neither how long it ran nor what it used is known"
        rest = "at most its last two seconds are missing" if has_tail else "what came later is not known, for its .tail is not beside it"
        return f"{self.path.stem} has no clean end; it is counted up to {duration_s:.0f} s after its start, {rest}"

    def _record(self, run: RunLine, end: EndLine) -> RunRecord:
        started_s = run.started.timestamp()
        traces = []
        for device, (times, energies) in self.points.items():
            gain = end.gains.get(device, 1.0)
            traces.append(EnergyTrace(device, tuple(times), tuple(energy * gain for energy in energies), tuple(self.gaps[device])))
        return RunRecord(
            id=run.id,
            name=run.name,
            kind=run.kind,
            host=run.host,
            started_s=started_s,
            duration_s=end.duration_s,
            devices=tuple(_device(d, end.unseen.get(d.id, 0.0)) for d in self.devices.values()),
            traces=tuple(traces),
            spans=tuple(_merged_spans(self.spans, end.gains)),
            sums=tuple(sums_of(line, end.gains.get(line.device, 1.0)) for line in self.sums.values()),
            knobs=tuple(self.knobs.values()),
            unused=tuple(dict.fromkeys(end.unused)),
            place=_place(run.place),
            parent=run.parent,
            job=run.job,
            rank=run.rank,
            world_size=run.world_size,
            is_complete=self.end is not None,
            environment=self.environment,
            notes=tuple(dict.fromkeys(self.notes)),
            source=self.path.name,
            sha256=self.sha256,
        )


def _device(d: DeviceLine, unseen_joules: float) -> Device:
    """A device; what its sensor may have missed in the whole run widens the interval of the run's two ends. [J]"""
    edge_joules = math.hypot(d.edge_joules, unseen_joules / math.sqrt(2))
    return Device(d.id, d.name, d.kind, d.method, d.gain_low, d.gain_high, d.source, edge_joules, d.origin, d.count)


def _place(place: PlaceField) -> Place:
    p = place.pue
    pue = None if p is None else PueProfile(p.value, p.low, p.high, p.origin, p.source, p.has_range, p.months, p.hours, p.edges_s, p.values)
    return Place(place.zone, place.zone_source, place.time_zone, pue, place.site)


def _merged_spans(rows: list[tuple[SpanRow, list[str]]], gains: dict[str, float]) -> list[Span]:
    """Rows of one path and quarter hour added, each device's joules times its gain."""
    merged: dict[tuple[str, float], Span] = {}
    for (path, quarter_s, count, seconds, items, joules), devices in rows:
        energy = {d: j * gains.get(d, 1.0) for d, j in zip(devices, joules, strict=True)}
        before = merged.get((path, quarter_s))
        if before is not None:
            count, seconds = count + before.count, seconds + before.seconds
            items = before.items if items is None else items + (before.items if before.items is not None else 0.0)
            energy = {d: energy.get(d, 0.0) + before.joules.get(d, 0.0) for d in {**before.joules, **energy}}
        merged[path, quarter_s] = Span(path, quarter_s, count, seconds, items, energy)
    return list(merged.values())
