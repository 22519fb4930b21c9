"""Which boards the processes of a run use, and which of them others use too."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from carbonreport.errors import DeviceLost
from carbonreport.measure.nvml_power import Calls
from carbonreport.measure.processes import PROC, descendants
from carbonreport.model.notes import Note

LOOK_PERIOD_S = 5.0
TREE_PERIOD_S = 1.0
# What says that somebody chose the boards; a container's variable chooses none where it says all of them.
CHOICES = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "NVIDIA_VISIBLE_DEVICES")
NO_CHOICES = ("", "all", "void", "none")
# With their versions: the plain name raises an error of another kind on drivers that are older than the binding.
PROCESS_LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
# Linux's first namespace of process ids (PROC_PID_INIT_INO in include/linux/proc_ns.h); a container has another one.
FIRST_NAMESPACE = "pid:[4026531836]"


def is_chosen(environ: Mapping[str, str]) -> bool:
    """Whether user, scheduler or container chose the boards: then all of them are reserved for the run, used or not."""
    if "CUDA_VISIBLE_DEVICES" in environ:
        return True
    return any(environ.get(name, "") not in NO_CHOICES for name in CHOICES)


class ProcessTree:
    """Ids of a run's processes.

    Args:
        roots: Processes at the top of the run; their descendants belong to it.
        proc: Linux's /proc.
    """

    def __init__(self, roots: Iterable[int], proc: Path = PROC) -> None:
        self._roots, self._proc = tuple(roots), proc
        self._known: frozenset[int] = frozenset()
        self._latest: frozenset[int] | None = None
        self._read_s = float("-inf")

    def pids(self) -> frozenset[int] | None:
        """Those of the run that live, and those that lived when last asked; None where they cannot be seen.

        A process whose parent has ended stays with the run.
        """
        if not any((self._proc / f"{root}/task/{root}/children").exists() for root in self._roots):
            return None
        now = {pid for root in self._roots for pid in (root, *descendants(root, self._proc))}
        found = self._known | now
        self._known = frozenset(pid for pid in found if (self._proc / str(pid)).exists())
        return found

    def pids_lately(self, now_s: float) -> frozenset[int] | None:
        """The same, read at most once a second: a tree of many threads takes some milliseconds."""
        if now_s - self._read_s >= 0.9 * TREE_PERIOD_S:
            self._latest, self._read_s = self.pids(), now_s
        return self._latest

    @property
    def is_of_host(self) -> bool:
        """Whether process ids here are those of the whole machine, as the driver may give them."""
        try:
            return os.readlink(self._proc / "self/ns/pid") == FIRST_NAMESPACE
        except OSError:
            return False

    def knows(self, pids: Iterable[int]) -> bool:
        """Whether the driver's ids are those of this tree; in a container it may give the machine's."""
        return self.is_of_host or all((self._proc / str(pid)).exists() for pid in pids)


class BoardUse:
    """On which boards processes of the run, and of others, were seen so far.

    Args:
        boards: How to ask each board, by the id of its device.
        tree: The run's processes.
        is_chosen: Whether somebody chose the boards; all of them count then.
        split: Boards whose energy is split among their users already.
    """

    def __init__(self, boards: Mapping[str, Calls], tree: ProcessTree, *, is_chosen: bool, split: frozenset[str] = frozenset()) -> None:
        self._boards, self._tree, self._is_chosen, self._split = boards, tree, is_chosen, split
        self._answered: set[str] = set()
        self._used: set[str] = set()
        self._others: dict[str, int] = {}
        self._told: set[str] = set()
        self._due_s = 0.0

    def look(self, now_s: float, *, is_last: bool = False) -> None:
        """See who is on the boards, at most every five seconds; nothing happens where that cannot be seen."""
        if now_s < self._due_s and not is_last:
            return
        self._due_s = now_s + LOOK_PERIOD_S
        found = {device: pids for device, calls in self._boards.items() if (pids := pids_on(calls)) is not None}
        own = self._tree.pids()
        if own is None or not self._tree.knows(pid for pids in found.values() for pid in pids):
            return
        for device, pids in found.items():
            self._answered.add(device)
            if pids & own:
                self._used.add(device)
            if pids - own:
                self._others[device] = max(len(pids - own), self._others.get(device, 0))

    def is_used(self) -> dict[str, bool]:
        """Whether the run was seen on a board, of boards that say; empty where all boards count."""
        if self._is_chosen or not self._used:
            return {}
        return {device: device in self._used for device in self._boards if device in self._answered}

    def notes(self, *, is_last: bool) -> list[Note]:
        """Counted boards on which others were seen since the last call; which boards count may be known at the end alone."""
        is_used = self.is_used()
        is_known = self._is_chosen or is_used or is_last
        news = [d for d in self._others if d not in self._told | self._split and is_used.get(d, True)] if is_known else []
        if not news:
            return []
        self._told.update(news)
        named = ", ".join(f"{self._boards[device].label} ({_processes(self._others[device])})" for device in news)
        return [Note("shared-board", f"{named}: processes outside the run were seen there; what they drew is included")]


def pids_on(calls: Calls) -> frozenset[int] | None:
    """Processes that compute on a board; None where it does not say: an old driver, no permission, MIG, a lost board."""
    try:
        if is_mig(calls):
            return None
        for function in PROCESS_LISTS:
            processes = calls.ask(function)
            if processes is not None:
                return frozenset(process.pid for process in processes)
    except DeviceLost:
        return None
    return None


def is_mig(calls: Calls) -> bool:
    """Whether a board is cut into MIG instances now."""
    modes = calls.ask("nvmlDeviceGetMigMode")
    return modes is not None and modes[0] != 0


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
