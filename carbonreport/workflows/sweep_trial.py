"""One trial of a sweep: the command under a cap with the tracer, and what its record says."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from carbonreport.errors import CarbonreportError
from carbonreport.model.run import RunRecord
from carbonreport.store import load
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.run import name_of, run_command, watched_signals
from carbonreport.workflows.sweep_counted import counted_by, nested_runs
from carbonreport.workflows.sweep_journal import Tried
from carbonreport.workflows.sweep_output import copied_output, digest_of

# A trial with one of these says nothing of its cap: the sweep stops.
SPOILT = ("device-lost", "counter-reset", "cap-not-held", "cap-unproven", "knobs-changed-by-others", "knobs-not-restored", "interrupted")
# These are passed on to the reader of the sweep.
_TOLD = ("cap-lower-elsewhere", "cap-without-effect", "shared-board", "tracer-degraded", "reading-gap", "suspended", "averaged-power")


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
