"""What the records of a trial say: time, energy of the boards, and items that the command counted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from carbonreport.errors import CarbonreportError
from carbonreport.model.run import EnergyTrace, RunRecord
from carbonreport.store import load

# Shorter commands are over before the meters were polled twice at the default interval.
LEAST_TRIAL_S = 2.0
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Counted:
    """What a trial used, and what it did with it.

    Attributes:
        seconds: How long. [s]
        joules: Energy of the boards. [J]
        items: What was counted, or None.
        path: Span that counted it.
    """

    seconds: float
    joules: float
    items: float | None = None
    path: str | None = None


def counted_by(run: RunRecord, nested: Sequence[RunRecord]) -> Counted:
    """Time, energy and items of a trial.

    A command that traces itself counts its items; where it does so in one record that has the boards too, that record's time and energy
    count, so that its start does not blur the ratio.

    Raises:
        CarbonreportError: No GPU of the run could be read, or the command was over before one was.
    """
    joules = gpu_joules(run)
    if joules is None or joules <= 0:
        if run.duration_s < LEAST_TRIAL_S:
            raise CarbonreportError(
                f"the command was over after {_short(run.duration_s)}, too short for the meter to see a GPU at work: "
                f"give one that lasts some seconds, better a minute"
            )
        raise CarbonreportError(f"no energy of a GPU could be read in the trial {run.name!r}: there is nothing to compare")
    items: dict[str, float] = {}
    for path, count in ((span.path, span.items) for one in nested for span in one.spans):
        if count:
            items[path] = items.get(path, 0.0) + count
    if not items:
        return Counted(run.duration_s, joules)
    path = max(items, key=lambda name: (items[name], name))
    inner = gpu_joules(nested[0]) if len(nested) == 1 else None
    if inner:
        return Counted(nested[0].duration_s, inner, items[path], path)
    return Counted(run.duration_s, joules, items[path], path)


def _short(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def gpu_joules(run: RunRecord) -> float | None:
    """Energy of the boards that a run used; None where it has none. [J]"""
    traces = _gpu_traces(run)
    return sum(trace.joules[-1] - trace.joules[0] for trace in traces) if traces else None


def span_cost(run: RunRecord) -> dict[str, tuple[float, float]]:
    """Seconds, and joules of the boards that were used, of each path of spans, nested ones excluded. [s, J]

    From the sums that were made while the run lasted: the record's own curve is thinned, and does not bend at every change of a cap.
    """
    used = _used_gpus(run)
    costs: dict[str, tuple[float, float]] = {}
    for span in run.spans if used else ():
        seconds, joules = costs.get(span.path, (0.0, 0.0))
        costs[span.path] = (seconds + span.seconds, joules + sum(own for device, own in span.joules.items() if device in used))
    return costs


def _gpu_traces(run: RunRecord) -> list[EnergyTrace]:
    used = _used_gpus(run)
    return [trace for trace in run.traces if trace.device in used and trace.offsets_s]


def _used_gpus(run: RunRecord) -> set[str]:
    return {device.id for device in run.devices if device.kind == "gpu" and device.id not in run.unused}


def nested_runs(run: RunRecord, folders: Iterable[Path], since_s: float) -> list[RunRecord]:
    """Records that the command itself made inside a run, in the order of their start."""
    mark = f'"parent":"{run.id}"'
    found: dict[str, RunRecord] = {}
    for path in (path for folder in folders for path in folder.glob("*.jsonl")):
        try:
            if path.stat().st_mtime < since_s - 1 or mark not in _head(path).replace(" ", ""):
                continue
            inner = load(path)
        except (OSError, CarbonreportError):
            continue  # somebody else's file
        found[inner.id] = inner
    return sorted(found.values(), key=lambda inner: inner.started_s)


def _head(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES).decode("utf-8", errors="replace")
