"""Run a command and measure it: output untouched, signals and exit code passed through."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from carbonreport.errors import CarbonreportError
from carbonreport.measure.sampler import Result
from carbonreport.measure.tracer import Run
from carbonreport.model.run import RunKind
from carbonreport.store.tail import tail_path
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.place import PlaceOptions

if TYPE_CHECKING:
    from carbonreport.measure.knobs import Setting

_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
_SIGNAL_BASE = 128
_SENT_BY_TERMINAL = 0x80  # si_code SI_KERNEL: the whole foreground group got it, the command too
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_DEFAULTS = ("SIGPIPE", "SIGXFSZ")  # Python ignores these two; the command must not inherit that


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended.

    Attributes:
        code: Its exit code; 128 + n for a signal, 127 not found, 126 not executable.
        record: The record's path, or None where nothing was measured.
        result: The run's numbers, or None where a driver hung.
        message: Why the command could not start, or "".
    """

    code: int
    record: Path | None
    result: Result | None
    message: str = ""


def run_command(
    command: Sequence[str],
    *,
    name: str | None,
    kind: RunKind,
    folder: Path,
    options: PlaceOptions,
    interval_s: float,
    share_gpus: bool = False,
    power_cap: str | None = None,
    is_cap_optional: bool = False,
    clock_plan: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Finished:
    """Run a command to its end under a tracer; one that cannot be started leaves no record.

    Raises:
        CarbonreportError: The place or the folder cannot be used, or a cap or a plan is refused; the command was not started.
    """
    if name is not None and not name.strip():
        raise CarbonreportError("--name is empty; give a name, or leave it out for that of the script")
    plan = plan_run(
        name or name_of(command) or "command",  # "/" has no name, and cannot be executed either
        kind=kind,
        folder=folder,
        options=options,
        interval_s=interval_s,
        meters=None,
        share_gpus=share_gpus,
        power_cap_watts=power_cap,
        is_cap_optional=is_cap_optional,
        environ=environ,
        clock_plan=None if clock_plan is None else _held_by_command(clock_plan, environ),
    )
    run = Run(plan)
    signals = watched_signals()
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before the sampler's thread begins, so that it inherits the mask
    try:
        run.start()
        try:
            code, message = spawn_and_wait(command, signals, old_mask)
        finally:
            result = run.stop()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
    if message:
        _forget(run.path)
        return Finished(code, None, None, message)
    return Finished(code, run.path, result)


def _held_by_command(path: Path, environ: Mapping[str, str]) -> "Setting":
    from carbonreport.plan_file import read_plan
    from carbonreport.workflows.plan_apply import PlanKnobs

    why = "phases of another program cannot be seen from outside; use trace(plan=…) inside it"
    return PlanKnobs(read_plan(path), environ, why_not_followed=why)


def _forget(record: Path | None) -> None:
    """Take away the record of a command that never started: it is no run."""
    for path in () if record is None else (record, tail_path(record)):
        path.unlink(missing_ok=True)


def name_of(command: Sequence[str]) -> str:
    """The script or module of a Python, else the command; never the text after -c."""
    first = Path(command[0]).name
    if not first.startswith("python"):
        return first
    for part, following in zip(command[1:], [*command[2:], ""], strict=True):
        if part == "-m":
            return following or first
        if part == "-c" or not part:
            return first
        if not part.startswith("-"):
            return Path(part).stem
    return first


def watched_signals() -> set[signal.Signals]:
    """What is blocked while a command runs: signals to pass on, and the news of its end."""
    return {getattr(signal, n) for n in (*_FORWARDED, "SIGCHLD") if hasattr(signal, n)}


def spawn_and_wait(command: Sequence[str], signals: set[signal.Signals], old_mask: set[signal.Signals] | set[int]) -> tuple[int, str]:
    """Run a command to its end: its exit code, and why it could not start or "".

    Args:
        command: What to run; it gets the mask that was there before.
        signals: Blocked by the caller, passed on to the command.
        old_mask: The caller's mask before that.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    defaults = [getattr(signal, n) for n in _DEFAULTS if hasattr(signal, n)]
    try:
        pid = os.posix_spawnp(command[0], list(command), os.environ, setsigmask=old_mask, setsigdef=defaults)
    except FileNotFoundError:
        return _NOT_FOUND, f"command not found: {command[0]}"
    except (PermissionError, OSError) as error:
        return _NOT_EXECUTABLE, f"cannot execute {command[0]}: {error.strerror or error}"
    return _wait(pid, signals), ""


def _wait(pid: int, signals: set[signal.Signals]) -> int:
    """Wait for the command; pass on what was sent to us alone, not what the terminal sent to the whole group."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        info = signal.sigwaitinfo(signals)
        if info.si_signo != signal.SIGCHLD and info.si_code != _SENT_BY_TERMINAL:
            os.kill(pid, info.si_signo)
    code = os.waitstatus_to_exitcode(status)
    return _SIGNAL_BASE - code if code < 0 else code
