"""Runs out of what a log says: devices with their curves, when they began, and what must be told of them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from carbonreport import __version__
from carbonreport.importers.curves import Curve
from carbonreport.importers.imported import Imported, Rejected, kind_in_words
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Clock
from carbonreport.importers.wishes import Wishes
from carbonreport.model.notes import Note
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, DeviceKind, EnergyTrace, Method, Place, RunKind, RunRecord

# True over read, 90 %: as the method's uncertainty budget has it for counters and samples of NVIDIA boards ("gpu_counter_gain",
# "gpu_sampled_power"; arXiv 2312.02741), for a total that a tool reports without saying how (naive readings are off by 39 % on
# average, same source), and for models of busy time ("host_model").
GAINS: dict[Method, tuple[float, float]] = {
    "anchored": (0.99, 1.08),
    "counter": (0.99, 1.08),
    "instant": (0.95, 1.08),
    "averaged": (0.95, 1.08),
    "reported": (1 / 1.39, 1.39),
    "model": (0.5, 2.0),
}
_AVERAGED_LAG_S = 0.5


@dataclass(frozen=True, slots=True)
class Load:
    """One device and its energy over time; the name of its host where the log says it."""

    id: str
    name: str
    kind: DeviceKind
    method: Method
    source: str
    curve: Curve
    count: int = 1
    host: str = ""


@dataclass(frozen=True, slots=True)
class Draft:
    """A run as a log tells it.

    Attributes:
        key: What makes it the same run in another file; "" for the file itself and its number.
        name: What it is called.
        loads: Its devices; their curves are in the seconds of `clock`.
        clock: What those seconds count from.
        start_s: Its start in those seconds, or None for the first reading.
        end_s: Its end, or None for the last reading.
        kind: What the run was.
        facts: Versions and hardware in words.
        notes: What must be told of this run.
        is_complete: Whether it ended cleanly.
        job: What the scheduler calls it, hashed before it is kept; "" for none.
    """

    key: str
    name: str
    loads: tuple[Load, ...]
    clock: Clock
    start_s: float | None = None
    end_s: float | None = None
    kind: RunKind = "other"
    facts: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    is_complete: bool = True


def steady(seconds: float, joules: float, *, start_s: float = 0.0) -> Curve:
    """A curve of constant power. [s], [J]"""
    return Curve((start_s, start_s + seconds), (0.0, joules), step_s=seconds)


def imported(
    format_name: str,
    file: LogFile,
    drafts: Sequence[Draft],
    *,
    rows: int,
    rejected: Iterable[Rejected] = (),
    notes: Iterable[Note] = (),
    wishes: Wishes,
    why_not: str | None = None,
) -> Imported:
    """The runs of a log. Those without a date are kept apart, and a note says what dates them."""
    said = list(dict.fromkeys(notes))
    runs: list[RunRecord] = []
    undated: list[RunRecord] = []
    impossible: list[Rejected] = []
    for number, draft in enumerate(drafts):
        try:
            run = _run(format_name, file, draft, number, said, wishes)
        except ValueError as error:  # a date or a length that no run has
            impossible.append((number + 1, f"run {number + 1} of the file: {error}"))
        else:
            (runs if draft.clock == "utc" else undated).append(run)
    if undated:
        said.append(Note("import-undated", f"{file.name}: {_undated(drafts)}"))
    put_aside = sorted({*rejected, *impossible})
    has_runs = bool(runs or undated)
    if put_aside and has_runs:
        first = f"the first is line {put_aside[0][0]}: {put_aside[0][1]}"
        said.append(Note("import-rejected", f"{file.name}: {len(put_aside)} of {rows} rows were not used; {first}"))
    if has_runs:
        runs = [replace(run, notes=tuple(dict.fromkeys((*run.notes, *said)))) for run in runs]
    else:
        why_not = why_not or (f"line {put_aside[0][0]}: {put_aside[0][1]}" if put_aside else "it holds no energy")
        said.append(Note("import-no-energy", f"{file.name}: {why_not}"))
    told = dict.fromkeys([*said, *(note for draft in drafts for note in draft.notes)])
    return Imported(
        format_name,
        tuple(runs),
        rows,
        tuple(put_aside),
        tuple(told),
        tuple(undated),
        None if has_runs else why_not,
        any(draft.clock == "local" for draft in drafts),
        _hosts(drafts, file),
    )


def _hosts(drafts: Iterable[Draft], file: LogFile) -> dict[str, str]:
    """Host by device; a device that was on several has none."""
    hosts: dict[str, set[str]] = {}
    for load in (load for draft in drafts for load in draft.loads):
        hosts.setdefault(_unique(load, file), set()).add(load.host)
    return {device: found.pop() for device, found in hosts.items() if len(found) == 1 and found != {""}}


def _undated(drafts: Sequence[Draft]) -> str:
    if any(draft.clock == "local" for draft in drafts):
        return "its times are local and name no zone; give --time-zone, such as Europe/Berlin"
    return "it does not say when it was; only its energy is known, unless --start says when it began"


def _run(format_name: str, file: LogFile, draft: Draft, number: int, notes: Sequence[Note], wishes: Wishes) -> RunRecord:
    seconds = [s for load in draft.loads for s in (load.curve.seconds[0], load.curve.seconds[-1])]
    start_s = draft.start_s if draft.start_s is not None else min(seconds)
    end_s = max(draft.end_s if draft.end_s is not None else max(seconds), *seconds)
    start_s = min(start_s, *seconds)
    key = _hash(f"{format_name} {draft.key}" if draft.key else f"{file.sha256} {number}")
    ids = {load.id: _unique(load, file) for load in draft.loads}
    return RunRecord(
        id=f"{format_name}-{key}",
        name=draft.name or file.stem or format_name,
        kind=draft.kind,
        host=f"imported-{file.sha256[:16]}",
        started_s=max(start_s, 0.0),
        duration_s=end_s - start_s,
        devices=tuple(_device(load, ids[load.id]) for load in draft.loads),
        traces=tuple(_trace(load, ids[load.id], start_s) for load in draft.loads),
        place=Place(time_zone=wishes.zone.key if wishes.zone is not None else None),
        is_complete=draft.is_complete,
        environment={"carbonreport": __version__, **{name: text for name, text in draft.facts.items() if text}},
        notes=(Note("imported-log", f"read from {file.name}, {kind_in_words(format_name)}"), *draft.notes),
        source=file.name,
        sha256=file.sha256,
    )


def _unique(load: Load, file: LogFile) -> str:
    """An id that no other file has; a UUID is one already."""
    return load.id if load.id.startswith(("GPU-", "MIG-")) else f"{load.id} of {file.sha256[:8]}"


def _device(load: Load, device_id: str) -> Device:
    low, high = GAINS[load.method]
    seconds = load.curve.seconds[-1] - load.curve.seconds[0]
    mean_watts = load.curve.total_joules / seconds if seconds > 0 else 0.0
    unsure_s = {
        "averaged": max(_AVERAGED_LAG_S, load.curve.step_s / 2),
        "instant": load.curve.step_s / 2,
        "counter": min(load.curve.step_s, 0.1),
    }
    edge_joules = min(mean_watts * unsure_s.get(load.method, 0.0), load.curve.total_joules)
    return Device(
        device_id, load.name, load.kind, load.method, low, high, load.source, edge_joules, ORIGIN_OF_METHOD[load.method], load.count
    )


def _trace(load: Load, device_id: str, start_s: float) -> EnergyTrace:
    curve = load.curve
    return EnergyTrace(
        device_id, tuple(s - start_s for s in curve.seconds), curve.joules, tuple((a - start_s, b - start_s) for a, b in curve.gaps)
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
