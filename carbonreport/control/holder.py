"""Which process holds something, so that a number that is given to another process is not mistaken for it."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STATE_FIELD, _START_FIELD = 0, 19  # of /proc/PID/stat, counted behind the name in parentheses (proc_pid_stat(5): fields 3 and 22)
_ENDED = frozenset("ZXx")


@dataclass(frozen=True, slots=True)
class Holder:
    """A process.

    Attributes:
        pid: Its number.
        started_ticks: When it started, in ticks since the boot; None where the system does not say.
    """

    pid: int
    started_ticks: int | None


_OWN_NAMESPACE = Path("self/ns/pid")
_INITIAL_NAMESPACE = "pid:[4026531836]"  # include/linux/proc_ns.h: PROC_PID_INIT_INO


def pid_namespace(proc: Path = _PROC) -> str:
    """In which process numbers count; "" where the system does not say."""
    try:
        return os.readlink(proc / _OWN_NAMESPACE)
    except OSError:
        return ""


def is_gone(namespace: str, proc: Path = _PROC) -> bool:
    """Whether a container's process numbers count for nobody any more, which only the host itself can see."""
    if pid_namespace(proc) != _INITIAL_NAMESPACE:
        return False
    for process in proc.iterdir():
        if process.name.isdigit():
            try:
                if os.readlink(process / "ns/pid") == namespace:
                    return False
            except FileNotFoundError:
                continue
            except OSError:  # another user's process: only root may look
                return False
    return True


def this_process() -> Holder:
    """This process."""
    return Holder(os.getpid(), started_ticks(os.getpid()))


def is_alive(holder: Holder, proc: Path = _PROC) -> bool:
    """Whether that very process still runs; one that has ended and waits for its parent does not."""
    fields = _stat(holder.pid, proc)
    if fields is None:
        return not proc.is_dir() and _answers(holder.pid)
    if fields[_STATE_FIELD] in _ENDED:
        return False
    return holder.started_ticks is None or int(fields[_START_FIELD]) == holder.started_ticks


def started_ticks(pid: int, proc: Path = _PROC) -> int | None:
    """When a process started, in ticks since the boot."""
    fields = _stat(pid, proc)
    return None if fields is None else int(fields[_START_FIELD])


def _stat(pid: int, proc: Path) -> list[str] | None:
    try:
        content = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return content.rpartition(")")[2].split()


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
