"""Appends a run to its record, one `write` a line. Stdlib only: the tracer starts without msgspec."""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from carbonreport.errors import OutputError
from carbonreport.model.knobs import KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.model.run import Device, Place, RunRecord, Span
from carbonreport.model.sums import NormalEquations, SpanSums
from carbonreport.store.tail import CREATE, TailWriter, encode, tail_path

FORMAT_VERSION = 1


def iso(unix_s: float) -> str:
    """UTC time with microseconds, as records spell it."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def new_record_path(folder: Path, name: str, started_s: float, run_id: str) -> Path:
    """A file name of a run: start, name in plain characters, a part of the id."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-")
    while "--" in plain:
        plain = plain.replace("--", "-")
    start = datetime.fromtimestamp(started_s, UTC)
    return folder / f"{start:%Y%m%dT%H%M%SZ}-{plain[:40].strip('-') or 'run'}-{run_id[:6]}.jsonl"


class RecordWriter:
    """One record file and its tail. Every method is one system call after encoding."""

    def __init__(self, path: Path, *, with_tail: bool = True) -> None:
        """Create both files; a finished run needs no tail.

        Raises:
            OutputError: The folder cannot be made or written, or the file exists.
        """
        self.path = path
        self._is_torn = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, CREATE | os.O_APPEND, 0o644)
            self._tail = TailWriter(tail_path(path)) if with_tail else None
        except OSError as error:
            raise OutputError(
                f"cannot write the record {path}: {error.strerror or error}; choose another folder with --out (out=… in Python)"
            ) from error

    def append(self, line: Mapping[str, Any]) -> None:
        """Append one line.

        Raises:
            OSError: The line did not fit on the disk; nothing is appended after a torn line, the tail goes on.
        """
        content = encode(dict(line)) + b"\n"
        if self._is_torn:
            raise OSError(errno.ENOSPC, f"{self.path} was cut off by a full disk")
        if os.write(self._fd, content) < len(content):
            self._is_torn = True
            raise OSError(errno.ENOSPC, f"{self.path} was cut off by a full disk")

    def write_tail(self, state: dict[str, Any]) -> bool:
        """Keep the state of the unfinished run; False where it is too long for a slot."""
        return self._tail is None or self._tail.write(state)

    def close(self, *, is_clean: bool) -> None:
        """Close both files; a clean end removes the tail."""
        if is_clean:
            os.fsync(self._fd)
        os.close(self._fd)
        if self._tail is not None:
            self._tail.close(remove=is_clean)


def header(
    run_id: str,
    name: str,
    kind: str,
    host: str,
    parent: str | None,
    started_s: float,
    place: Place,
    environment: Mapping[str, str],
    *,
    job: str | None = None,
    rank: int | None = None,
    world_size: int | None = None,
) -> dict[str, Any]:
    """First line of a record; what a run does not have of job, rank and world size is left out."""
    of_job = {"job": job, "rank": rank, "world_size": world_size}
    return {
        "carbonreport": FORMAT_VERSION,
        "type": "run",
        "id": run_id,
        "name": name,
        "kind": kind,
        "host": host,
        "parent": parent,
        "started": iso(started_s),
        "place": asdict(place),
        "environment": dict(environment),
        **{key: value for key, value in of_job.items() if value is not None},
    }


def device_line(device: Device) -> dict[str, Any]:
    """A device, once, before its first points."""
    return {"type": "device", **asdict(device)}


def points_line(device_id: str, points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """A piece of a device's cumulative curve, before the gain: offsets [s] and joules."""
    return {
        "type": "points",
        "device": device_id,
        "offsets_s": [round(t, 4) for t, _ in points],
        "joules": [round(j, 3) for _, j in points],
    }


def gap_line(device_id: str, from_s: float, to_s: float) -> dict[str, Any]:
    """A period without a reading."""
    return {"type": "gap", "device": device_id, "from_s": round(from_s, 4), "to_s": round(to_s, 4)}


def span_row(span: Span, device_ids: Sequence[str]) -> list[Any]:
    """A span's sums: path, quarter hour, count, seconds, items, joules in the order of the devices."""
    return [
        span.path,
        span.quarter_s,
        span.count,
        round(span.seconds, 6),
        span.items,
        [round(span.joules.get(d, 0.0), 3) for d in device_ids],
    ]


def spans_line(batch: int, spans: Iterable[Span], device_ids: Sequence[str]) -> dict[str, Any]:
    """Closed sums; a tail whose batch is not above this one has nothing to add to them."""
    return {"type": "spans", "batch": batch, "devices": list(device_ids), "spans": [span_row(span, device_ids) for span in spans]}


def note_line(note: Note) -> dict[str, Any]:
    """A note."""
    return {"type": "note", "slug": note.slug, "text": note.text}


def knobs_line(held: KnobsHeld) -> dict[str, Any]:
    """What is set on a board; a later line of the same device, with what became of it, replaces it."""
    return {"type": "knobs", **asdict(held)}


def sums_line(sums: SpanSums) -> dict[str, Any]:
    """What a device's samples say of the spans so far; a later line of the same device replaces it."""
    return {
        "type": "sums",
        "device": sums.device,
        "sensor": asdict(sums.sensor),
        "paths": list(sums.paths),
        "times": [
            [_short(t.seconds), t.stretches, t.rhythm.count, _short(t.rhythm.period_s), _short(t.rhythm.squares)] for t in sums.times
        ],
        "blocks": [[*_equations(block.sums), _short(block.squares), block.count] for block in sums.blocks],
        "pieces": _equations(sums.pieces),
        "by_width": _equations(sums.by_width),
        "by_delay": _equations(sums.by_delay),
        "joules": _short(sums.joules),
        "seconds": _short(sums.seconds),
        "limited_seconds": sums.limited_seconds,
        "excerpts": [[list(excerpt.samples), list(excerpt.stretches)] for excerpt in sums.excerpts],
        "gain": sums.gain,
    }


def _equations(sums: NormalEquations) -> list[Any]:
    """Pairs and columns in rows: [[i, j, value], …], [[i, value], …]."""
    return [[[i, j, _short(v)] for (i, j), v in sums.normal.items()], [[i, _short(v)] for i, v in sums.right.items()]]


def _short(value: float) -> float:
    """Nine digits: sums of squares lose some in a difference."""
    return float(f"{value:.9g}")


def end_line(
    duration_s: float,
    gains: Mapping[str, float],
    unseen_joules: Mapping[str, float] = MappingProxyType({}),
    unused: Sequence[str] = (),
) -> dict[str, Any]:
    """Last line of a clean run; devices that do not count are named where there are any."""
    return {
        "type": "end",
        "duration_s": round(duration_s, 6),
        "gains": {k: round(g, 6) for k, g in gains.items()},
        "unseen": {k: round(j, 3) for k, j in unseen_joules.items()},
        **({"unused": list(unused)} if unused else {}),
    }


def save(run: RunRecord, path: Path) -> Path:
    """Write a finished run as a record file.

    Raises:
        OutputError: The file exists or cannot be written.
    """
    writer = RecordWriter(path, with_tail=False)
    ids = [device.id for device in run.devices]
    first = (run.id, run.name, run.kind, run.host, run.parent, run.started_s, run.place, run.environment)
    writer.append(header(*first, job=run.job, rank=run.rank, world_size=run.world_size))
    for device in run.devices:
        writer.append(device_line(device))
    for trace in run.traces:
        writer.append(points_line(trace.device, list(zip(trace.offsets_s, trace.joules, strict=True))))
        for from_s, to_s in trace.gaps:
            writer.append(gap_line(trace.device, from_s, to_s))
    if run.spans:
        writer.append(spans_line(0, run.spans, ids))
    for sums in run.sums:
        writer.append(sums_line(sums))
    for held in run.knobs:
        writer.append(knobs_line(held))
    for note in run.notes:
        writer.append(note_line(note))
    writer.append(end_line(run.duration_s, {}, unused=run.unused))
    writer.close(is_clean=True)
    return path
