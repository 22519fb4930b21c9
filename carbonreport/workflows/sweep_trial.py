"""One trial of a sweep: the command under a cap with the tracer, and what its record says."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from carbonreport.errors import CarbonreportError
from carbonreport.model.run import EnergyTrace, RunRecord
from carbonreport.store import load
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.run import name_of, run_command, watched_signals
from carbonreport.workflows.sweep_journal import Tried
from carbonreport.workflows.sweep_output import copied_output, digest_of

# A trial with one of these says nothing of its cap: the sweep stops.
SPOILT = ("device-lost", "counter-reset", "cap-not-held", "cap-unproven", "knobs-changed-by-others", "knobs-not-restored", "interrupted")
# These are passed on to the reader of the sweep.
_TOLD = ("cap-lower-elsewhere", "cap-without-effect", "shared-board", "tracer-degraded", "reading-gap", "suspended", "averaged-power")
_HEAD_BYTES = 4096
# Shorter commands are over before the meters were polled twice at the default interval.
LEAST_TRIAL_S = 2.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial ended.

    Attributes:
        code: Exit code of the command.
        tried: Its figures; None where the command failed.
        message: Why it could not start, or "".
    """

    code: int
    tried: Tried | None
    message: str = ""


@dataclass(frozen=True, slots=True)
class CommandTrials:
    """Runs a command once for each trial.

    Attributes:
        command: What is run.
        folder: Where the records go.
        place: Where the host is.
        interval_s: How often the meters are polled. [s]
        same_lines: Lines of standard output that must not change, or None.
        environ: Environment of the command.
        now_s: The wall clock by which files are stamped. [POSIX s]
    """

    command: Sequence[str]
    folder: Path
    place: PlaceOptions
    interval_s: float
    same_lines: re.Pattern[str] | None
    environ: Mapping[str, str]
    now_s: Callable[[], float]

    def run(self, key: str, cap_watts: float | None) -> Ended:
        """One trial.

        Raises:
            CarbonreportError: The cap is refused, or the record says nothing of it.
        """
        began_s = self.now_s()
        output = self.folder / f"{key.replace(':', '-')}.out"
        with nullcontext() if self.same_lines is None else copied_output(output, watched_signals()):
            done = run_command(
                self.command,
                name=f"sweep {name_of(self.command) or 'command'} {'no cap' if cap_watts is None else f'{cap_watts:g} W'}",
                kind="search",
                folder=self.folder,
                options=self.place,
                interval_s=self.interval_s,
                power_cap=None if cap_watts is None else f"{cap_watts:g}",
                environ=self.environ,
            )
        if done.code != 0 or done.record is None:
            return Ended(done.code, None, done.message)
        if done.result is None:
            raise CarbonreportError(f"a driver did not answer at the end of the trial; its record is {done.record}")
        run = load(done.record)
        _refuse_spoilt(run, done.record)
        counted = counted_by(run, nested_runs(run, (Path.cwd(), Path.cwd() / "runs", self.folder), began_s))
        digest, lines = (None, 0) if self.same_lines is None else digest_of(output, self.same_lines)
        if self.same_lines is not None and not lines:
            raise CarbonreportError(
                f"--same-lines {self.same_lines.pattern!r} matches no line of the command's standard output in {output}"
            )
        notes = tuple(note for note in run.notes if note.slug in _TOLD)
        return Ended(
            0,
            Tried(key, cap_watts, counted.seconds, counted.joules, counted.items, counted.path, digest, lines, done.record.name, notes),
        )


def _refuse_spoilt(run: RunRecord, path: Path) -> None:
    spoilt = next((note for note in run.notes if note.slug in SPOILT), None)
    if spoilt is not None:
        raise CarbonreportError(f"the trial says nothing of its cap ({spoilt.slug}: {spoilt.text}); its record is {path}")


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
    for span in (span for one in nested for span in one.spans if span.items):
        items[span.path] = items.get(span.path, 0.0) + (span.items or 0.0)
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
