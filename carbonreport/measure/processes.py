"""Whose work a host's counters hold: processor time of the run's own processes beside the whole machine's, from Linux's /proc."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from carbonreport.measure.ranks import rank_of
from carbonreport.model.notes import Note

PROC = Path("/proc")
LOOK_PERIOD_S = 10.0  # reading a tree of some dozen processes takes about a millisecond
SHARED_BELOW = 0.8
# Others who used less than this part of the machine's processor time are its system services.
OTHERS_AT_LEAST = 0.01
# Columns of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal; guest time is inside user's.
_COLUMNS = 8
_NOT_BUSY = (3, 4, 7)
# Fields of /proc/<pid>/stat after the name, which may hold blanks: utime stime cutime cstime; the last two are of waited-for children.
_TICKS = slice(11, 15)


class RunShare:
    """Part of the machine's busy time that the run's own processes had while the host was measured.

    Args:
        roots: Process ids at the top of the run; their descendants belong to it.
        proc: Linux's /proc.
        machine: Busy and all processor time since boot, in clock ticks; None for those of the whole machine.
    """

    def __init__(self, roots: Iterable[int], proc: Path = PROC, machine: Callable[[], tuple[int, int] | None] | None = None) -> None:
        self._roots, self._proc = tuple(roots), proc
        self._machine = machine or (lambda: machine_ticks(proc))
        self._first: tuple[int, int, int] | None = None
        self._newest: tuple[int, int, int] | None = None
        self._due_s = 0.0

    def look(self, now_s: float, *, is_last: bool = False) -> None:
        """Read both, at most every ten seconds; nothing happens where /proc does not say."""
        if now_s < self._due_s and not is_last:
            return
        self._due_s = now_s + LOOK_PERIOD_S
        machine, own = self._machine(), tree_ticks(self._roots, self._proc)
        if machine is None or own is None:
            return
        own = max(own, self._newest[0]) if self._newest else own  # a child that nobody waited for takes its time with it
        self._newest = (own, *machine)
        self._first = self._first or self._newest

    def share(self) -> float | None:
        """Own over busy time, 0 to 1; 1 where others hardly used the machine, None where it is not known."""
        if self._first is None or self._newest is None:
            return None
        own, busy, every = (b - a for a, b in zip(self._first, self._newest, strict=True))
        if every <= 0:
            return None
        if busy - own < OTHERS_AT_LEAST * every:
            return 1.0
        return max(own / busy, 0.0)

    def notes(self) -> list[Note]:
        """What the reader must know: nothing where the run had the machine to itself."""
        share = self.share()
        if share is None or share >= SHARED_BELOW:
            return []
        text = f"the run's own processes had {share * 100:.0f} % of the machine's busy processor time; its counters hold all of it"
        return [Note("shared-host", text)]


def roots_of_run(environ: Mapping[str, str], pid: int, parent_pid: int) -> tuple[int, ...]:
    """Processes at the top of a run: this one, or what launched it and the other ranks of its job."""
    rank = rank_of(environ, parent_pid)
    return (pid,) if rank is None or rank.world_size == 1 or parent_pid <= 1 else (parent_pid,)


def machine_ticks(proc: Path = PROC) -> tuple[int, int] | None:
    """Busy and all processor time of the whole machine since boot, in clock ticks; None where it cannot be read."""
    content = _read(proc / "stat")
    if content is None or not content.startswith(b"cpu "):
        return None
    ticks = [int(column) for column in content.partition(b"\n")[0].split()[1 : 1 + _COLUMNS]]
    return sum(ticks) - sum(ticks[i] for i in _NOT_BUSY if i < len(ticks)), sum(ticks)


def tree_ticks(roots: Iterable[int], proc: Path = PROC) -> int | None:
    """Processor time of processes and their descendants, with that of children that ended and were waited for, in clock ticks.

    None where no root can be read, or where the kernel does not list children.
    """
    roots = tuple(roots)
    if not any((proc / f"{root}/task/{root}/children").exists() for root in roots):
        return None
    pids = dict.fromkeys(pid for root in roots for pid in (root, *descendants(root, proc)))
    return sum(_ticks(proc / f"{pid}/stat") for pid in pids)


def descendants(pid: int, proc: Path = PROC) -> tuple[int, ...]:
    """Children, their children, and so on, each once; those that ended meanwhile may be missing."""
    found: dict[int, None] = {}
    waiting = [pid]
    while waiting:
        for child in _children(proc / str(waiting.pop()) / "task"):
            if child not in found and child != pid:
                found[child] = None
                waiting.append(child)
    return tuple(found)


def _children(tasks: Path) -> list[int]:
    """Children of every thread of one process."""
    try:
        threads = os.listdir(tasks)
    except OSError:  # it ended
        return []
    return [int(child) for thread in threads for child in (_read(tasks / thread / "children") or b"").split()]


def _ticks(stat: Path) -> int:
    content = _read(stat)
    if content is None:  # it ended; its parent has its time
        return 0
    return sum(int(field) for field in content.rpartition(b")")[2].split()[_TICKS])


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
