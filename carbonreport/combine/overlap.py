"""Ranks of one job that measured the same device of the same host: each second of it counts once, where it was read first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from carbonreport.model.footprint import ChargedRun
from carbonreport.model.notes import Note
from carbonreport.model.run import Device, EnergyTrace, RunRecord, Span
from carbonreport.units import hours

Periods = tuple[tuple[float, float], ...]
"""(from_s, to_s) in POSIX seconds, rising and apart."""


def each_second_once(charged: Sequence[ChargedRun]) -> tuple[list[ChargedRun], list[Note]]:
    """The same energy without what was read twice, and notes.

    The run that began first keeps a device's time. A later run of the job loses devices that were read before in all its time; one that
    was read before in a part of it goes on in runs of its own, of the time that is left. Spans stay with the devices that are whole.
    """
    read: dict[tuple[str, str, str], Periods] = {}
    left: dict[str, list[ChargedRun]] = {}
    notes: list[Note] = []
    for c in sorted(charged, key=lambda c: (c.run.started_s, c.run.id)):
        if c.run.job is None:
            continue
        job = (c.run.job, c.run.host)
        seconds_twice = 0.0
        cuts: dict[str, Periods] = {}
        for device in c.devices:
            own, before = _read(c.run, device.id), read.get((*job, device.id), ())
            twice = _common(own, before)
            read[*job, device.id] = _joined([*before, *own])
            if twice:
                cuts[device.id] = _without((c.run.started_s, c.run.ended_s), twice)
                seconds_twice += sum(to_s - from_s for from_s, to_s in twice)
        if cuts:
            left[c.run.id] = _cut(c, cuts)
            notes.append(Note("run-not-counted", _words(c, len(cuts), seconds_twice)))
    return [piece for c in charged for piece in left.get(c.run.id, [c])], notes


def _words(c: ChargedRun, devices: int, seconds: float) -> str:
    count = "a device" if devices == 1 else f"{devices} devices"
    return f"{c.run.source or c.run.name} measured {count} for {hours(seconds):.3g} h that another rank of its job measured too; it is counted once"


@dataclass(slots=True)
class _Piece:
    """A stretch of time and the devices whose energy is left in it."""

    from_s: float
    to_s: float
    devices: list[Device] = field(default_factory=list)


def _cut(c: ChargedRun, cuts: dict[str, Periods]) -> list[ChargedRun]:
    whole = [device for device in c.devices if device.id not in cuts]
    pieces = [_part(c, c.run.started_s, c.run.ended_s, whole)] if whole else []
    pieces += [_part(c, piece.from_s, piece.to_s, piece.devices) for piece in _pieces(c, cuts)]
    return [replace(p, run=replace(p.run, id=c.run.id if i == 0 else f"{c.run.id}+{i}")) for i, p in enumerate(pieces)]


def _pieces(c: ChargedRun, cuts: dict[str, Periods]) -> Iterable[_Piece]:
    """Stretches in which the same devices are left, those without a device left out."""
    edges_s = sorted({edge for periods in cuts.values() for period in periods for edge in period})
    pieces: list[_Piece] = []
    for from_s, to_s in pairwise(edges_s):
        middle_s = (from_s + to_s) / 2
        devices = [d for d in c.devices if any(a < middle_s < b for a, b in cuts.get(d.id, ()))]
        if pieces and pieces[-1].to_s == from_s and pieces[-1].devices == devices:
            pieces[-1].to_s = to_s
        elif devices:
            pieces.append(_Piece(from_s, to_s, devices))
    return pieces


def _part(c: ChargedRun, from_s: float, to_s: float, devices: Sequence[Device]) -> ChargedRun:
    """Some of the devices, between two moments, at the intensities of their own time."""
    inner = c.edges_s[(c.edges_s > from_s) & (c.edges_s < to_s)]
    edges_s = np.concatenate([[from_s], inner, [to_s]])
    slices = np.searchsorted(c.edges_s, edges_s[:-1], side="right") - 1
    ids = {device.id for device in devices}
    is_whole = from_s == c.run.started_s and to_s == c.run.ended_s
    traces = {trace.device: trace for trace in c.run.traces if trace.device in ids}
    run = replace(
        c.run,
        started_s=from_s,
        duration_s=to_s - from_s,
        devices=tuple(devices),
        traces=tuple(traces.values()) if is_whole else tuple(_clipped(trace, c.run, from_s, to_s) for trace in traces.values()),
        spans=tuple(_spans_of(c, ids)) if is_whole else (),
        sums=tuple(sums for sums in c.run.sums if is_whole and sums.device in ids),
    )
    it_joules = np.zeros((len(devices), edges_s.size - 1))
    for row, device in enumerate(devices):
        trace = traces.get(device.id)
        if trace and trace.offsets_s:
            it_joules[row] = np.diff(np.interp(edges_s - c.run.started_s, trace.offsets_s, trace.joules))
    return replace(
        c,
        run=run,
        edges_s=edges_s,
        devices=tuple(devices),
        it_joules=it_joules,
        pue=c.pue[slices],
        grams_per_kwh=c.grams_per_kwh[slices],
        quality=c.quality[slices],
    )


def _spans_of(c: ChargedRun, ids: set[str]) -> Iterable[Span]:
    return (replace(span, joules={d: j for d, j in span.joules.items() if d in ids}) for span in c.run.spans)


def _clipped(trace: EnergyTrace, run: RunRecord, from_s: float, to_s: float) -> EnergyTrace:
    """The curve between two moments, counted from the first."""
    begin, end = from_s - run.started_s, to_s - run.started_s
    zero = trace.joules_at(begin)
    inner = [(t, j) for t, j in zip(trace.offsets_s, trace.joules, strict=True) if begin < t < end]
    points = [(begin, zero), *inner, (end, trace.joules_at(end))]
    gaps = tuple((max(a, begin) - begin, min(b, end) - begin) for a, b in trace.gaps if a < end and b > begin)
    return EnergyTrace(trace.device, tuple(t - begin for t, _ in points), tuple(j - zero for _, j in points), gaps)


# Periods


def _read(run: RunRecord, device: str) -> Periods:
    """When a device was read: from its first to its last point, inside the run, without the gaps."""
    trace = next((t for t in run.traces if t.device == device and t.offsets_s), None)
    if trace is None:
        return ()
    first, last = max(trace.offsets_s[0], 0.0), min(trace.offsets_s[-1], run.duration_s)
    periods = _without((first, last), _joined(trace.gaps))
    return tuple((run.started_s + a, run.started_s + b) for a, b in periods)


def _joined(periods: Iterable[tuple[float, float]]) -> Periods:
    """Rising periods, those that meet made one."""
    joined: list[tuple[float, float]] = []
    for a, b in sorted(periods):
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(b, joined[-1][1]))
        elif b > a:
            joined.append((a, b))
    return tuple(joined)


def _common(one: Periods, other: Periods) -> Periods:
    pairs = ((max(a, c), min(b, d)) for a, b in one for c, d in other)
    return _joined(pair for pair in pairs if pair[1] > pair[0])


def _without(period: tuple[float, float], holes: Periods) -> Periods:
    """What is left of a period."""
    left, at_s = [], period[0]
    for a, b in holes:
        if a > at_s:
            left.append((at_s, min(a, period[1])))
        at_s = max(at_s, b)
    left.append((at_s, period[1]))
    return tuple((a, b) for a, b in left if b > a)


def wall_seconds(runs: Iterable[RunRecord]) -> float:
    """Wall-clock time of runs: that of a job's records together once, whatever their number. [s]"""
    by_job: dict[str, list[RunRecord]] = {}
    for run in runs:
        by_job.setdefault(run.job or run.id, []).append(run)
    return sum(_job_seconds(job) for job in by_job.values())


def one_a_job(charged: Sequence[ChargedRun]) -> list[ChargedRun]:
    """The runs as a reader counts them: of the records of one job, from whatever ranks and hosts, the longest."""
    longest: dict[str, ChargedRun] = {}
    for c in charged:
        key = c.run.job or f"run {id(c)}"
        if key not in longest or c.run.duration_s > longest[key].run.duration_s:
            longest[key] = c
    return list(longest.values())


def _job_seconds(runs: Sequence[RunRecord]) -> float:
    if len(runs) == 1:
        return runs[0].duration_s
    return sum(to_s - from_s for from_s, to_s in _joined((run.started_s, run.ended_s) for run in runs))
