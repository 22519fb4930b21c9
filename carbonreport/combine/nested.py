"""Runs inside runs: `carbonreport run` around a script that traces itself measures the same watts twice. So may ranks of one job."""

from collections.abc import Sequence

from carbonreport.combine.overlap import each_second_once
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.notes import Note

_SLACK_S = 5.0  # a wrapper begins before and ends after the run inside it; clocks of two processes agree to this


def counted_runs(charged: Sequence[ChargedRun]) -> tuple[list[ChargedRun], list[ChargedRun], list[Note]]:
    """Runs whose energy counts, runs inside one of those (only their spans count), and notes; copies of one run count once.

    Of a whole record and a copy that was cut off, the whole one counts.
    """
    by_id: dict[str, ChargedRun] = {}
    for c in charged:
        before = by_id.get(c.run.id)
        by_id[c.run.id] = c if before is None or _wholeness(c) > _wholeness(before) else before
    inner = [c for c in by_id.values() if _is_inside(c, by_id)]
    notes = [
        Note("nested-run", f"run {c.run.name!r} lies inside {by_id[c.run.parent or ''].run.name!r} and is counted once") for c in inner
    ]
    notes += [
        Note("run-not-counted", f"{c.run.source or c.run.name} is the same run as another file and was left out")
        for c in charged
        if by_id[c.run.id] is not c
    ]
    counted, twice = each_second_once([c for c in by_id.values() if c not in inner])
    return counted, inner, notes + twice


def _wholeness(c: ChargedRun) -> tuple[bool, float, int]:
    """How much of a run its record holds: a clean end, then its length, then its readings."""
    return c.run.is_complete, c.run.duration_s, sum(len(trace.offsets_s) for trace in c.run.traces)


def _is_inside(c: ChargedRun, by_id: dict[str, ChargedRun]) -> bool:
    outer = by_id.get(c.run.parent or "")
    if outer is None or outer.run.host != c.run.host:
        return False
    return outer.run.started_s - _SLACK_S <= c.run.started_s and c.run.ended_s <= outer.run.ended_s + _SLACK_S
