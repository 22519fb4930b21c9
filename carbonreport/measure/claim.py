"""One tracer a host, however many ranks a job has there: the first that comes holds a lock, which the kernel frees when it dies."""

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from carbonreport.measure.ranks import Rank

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Meters of what a rank is shown of the host; every other meter is of the host as a whole.
BOARD_METERS = frozenset({"nvml", "amd"})
_TRIES, _PAUSE_S = 100, 0.005


@dataclass(slots=True)
class Claim:
    """What a process measures of its host.

    Attributes:
        has_host: Processors, memory and the rest.
        has_boards: The GPUs that it is shown.
        holder: Rank that measures what this one does not; None where that is nothing.
    """

    has_host: bool = True
    has_boards: bool = True
    holder: int | None = None
    _locks: list[tuple[int, Path]] = field(default_factory=list)

    def covers(self, meter: str) -> bool:
        """Whether a meter of this name is this process's own."""
        return self.has_boards if meter in BOARD_METERS else self.has_host

    def release(self) -> None:
        """Let another rank measure from now on."""
        locks, self._locks = self._locks, []
        for handle, path in locks:
            with contextlib.suppress(OSError), _Turn(path.parent):  # nobody opens the file between its removal and the end of its lock
                path.unlink(missing_ok=True)
            os.close(handle)

    def abandon(self) -> None:
        """This process is a fork: its copies of the locks must not outlive the parent's."""
        locks, self._locks = self._locks, []
        for handle, _ in locks:
            os.close(handle)


def claim(rank: Rank, folder: Path, boot_id: Callable[[], str] = lambda: _boot_id()) -> Claim:
    """Take what no other rank of the job measures on this host; everything where locks cannot be had.

    Two processes of one rank are no ranks of one another (a script that starts two trainings inside one task): each measures.
    """
    key = hashlib.blake2b(f"{boot_id()} {rank.job}".encode(), digest_size=8).hexdigest()
    mine = Claim()
    try:
        _make(folder)
        with _Turn(folder):
            host = _hold(folder / f"{key}-host", rank.rank, mine)
            boards = _hold(folder / f"{key}-boards-{rank.boards}", rank.rank, mine)
    except (OSError, ImportError):  # a folder of somebody else's, a file system without locks, a system without flock
        mine.release()
        return Claim()
    mine.has_host, mine.has_boards = host is None, boards is None
    mine.holder = host if host is not None else boards
    return mine


def runtime_folder(environ: Mapping[str, str]) -> Path:
    """Where locks lie: the user's own folder on this host, gone after a restart."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    if runtime and os.path.isdir(runtime):
        return Path(runtime) / "carbonreport"
    user = os.getuid() if hasattr(os, "getuid") else environ.get("USERNAME", "")
    return Path(environ.get("TMPDIR") or "/tmp") / f"carbonreport-{user}"


class _Turn:
    """Only one process of the user takes or frees locks at a time, which lasts some microseconds."""

    def __init__(self, folder: Path) -> None:
        self._path, self._handle = folder / "turn", -1

    def __enter__(self) -> None:
        self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_TRIES):
            if _locked(self._handle):
                return
            time.sleep(_PAUSE_S)
        os.close(self._handle)
        raise TimeoutError(f"{self._path} is held by another process")

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _hold(path: Path, rank: int, mine: Claim) -> int | None:
    """None where this process may measure, else the rank that does already."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _locked(handle):
        holder = os.read(handle, 20)
        os.close(handle)
        return int(holder) if holder.isdigit() and int(holder) != rank else None
    os.ftruncate(handle, 0)
    os.write(handle, str(rank).encode())
    mine._locks.append((handle, path))
    return None


def _locked(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(folder: Path) -> None:
    """The folder, if it is this user's own and nobody else may write to it; /tmp is everybody's."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022 or folder.is_symlink():
        raise PermissionError(f"{folder} is not this user's own")


def _boot_id() -> str:
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else ""
