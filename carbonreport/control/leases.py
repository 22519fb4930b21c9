"""The journal: one small file a board that says what was there before, written and synced before anything is set.

A lease names the processes that hold it. The last of them to leave puts the board back; where all have died, whoever looks next does.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from carbonreport.control.controller import ControlError
from carbonreport.control.holder import Holder
from carbonreport.model.knobs import Knobs

FORMAT_VERSION = 1
FOLDER_VARIABLE = "CARBONREPORT_CONTROL_DIR"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DEVICE = re.compile(r"GPU-[0-9A-Fa-f-]{4,64}")
_MOST_BYTES = 65_536
_MOST_HOLDERS = 1024
_TURN_S, _PAUSE_S = 30.0, 0.01


class Lease(msgspec.Struct, frozen=True):
    """What is set on a board, and by whom.

    Attributes:
        carbonreport_lease: Version of the format.
        device: UUID of the board.
        boot_id: The host's boot during which it was set: a restart loses limits and locks by itself.
        uid: User who set it.
        before_watts: Power limit that was asked of the driver before. [W]
        knobs: What was set.
        holders: Processes that want it so.
        pid_namespace: In which the holders' numbers count: a container's are not the host's.
        is_turned: Whether its one holder turns clocks while it holds the board: nobody else holds it meanwhile.
        job: Equal for the ranks of one job; "" where the holder is a rank of none.
    """

    carbonreport_lease: int
    device: str
    boot_id: str
    uid: int
    before_watts: float | None
    knobs: Knobs
    holders: tuple[Holder, ...]
    pid_namespace: str = ""
    is_turned: bool = False
    job: str = ""


class BadLease(ControlError):
    """A file among the leases that is none, or nobody's that may be believed; nothing is set for it."""


def control_folder(uid: int, environ: Mapping[str, str]) -> Path:
    """Where a user's leases lie on this host. Not in TMPDIR or XDG_RUNTIME_DIR: both go with the job, before its epilog."""
    chosen = environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).absolute() / str(uid)  # the guardian has another working folder
    return Path("/run/carbonreport") if uid == 0 else Path(f"/tmp/carbonreport-{uid}/control")


def foreign_lease(device: str, uid: int, environ: Mapping[str, str]) -> Lease | None:
    """Another user's lease of a board from this boot, as far as it can be read; believed only to refuse.

    Two users that begin in the same moment may still miss each other: no lock is shared among users.
    """
    chosen = environ.get(FOLDER_VARIABLE)
    folders = (
        sorted(Path(chosen).glob("*")) if chosen else [Path("/run/carbonreport"), *sorted(Path("/tmp").glob("carbonreport-*/control"))]
    )
    for folder in folders:
        with contextlib.suppress(OSError, ControlError):
            owner = folder.lstat().st_uid
            if owner == uid or folder.absolute() == control_folder(uid, environ):
                continue
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                lease = Turn(handle, folder, owner).read(device)
            finally:
                os.close(handle)
            if lease is not None and lease.boot_id == boot_id():
                return lease
    return None


def boot_id() -> str:
    """The kernel's name of this boot; "" where it has none."""
    return _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""


class Leases:
    """The leases of one user on this host.

    Args:
        folder: Where they lie; made where it is missing.
        uid: Whose folder and files they must be to be believed.
        is_made: Whether the folder may be made.
        sync: Brings a file to the disk.
    """

    def __init__(self, folder: Path, uid: int, *, is_made: bool = True, sync: Callable[[int], None] = os.fsync) -> None:
        self.folder, self.uid, self._is_made, self._sync = folder, uid, is_made, sync

    @contextlib.contextmanager
    def turn(self, longest_s: float = _TURN_S) -> Iterator["Turn"]:
        """Only one process of the user changes leases at a time; the kernel frees the lock of one that dies.

        Raises:
            ControlError: The folder is not the user's own, cannot be made, or another process does not let go.
        """
        folder = self._opened()
        try:
            lock = self._lock(folder, longest_s)
            try:
                yield Turn(folder, self.folder, self.uid, self._sync)
            finally:
                _unlock(lock)
        finally:
            os.close(folder)

    def exists(self) -> bool:
        """Whether the folder is there at all."""
        return self.folder.is_dir() and not self.folder.is_symlink()

    def _opened(self) -> int:
        try:
            if self._is_made:
                self.folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                self.folder.mkdir(mode=0o755, exist_ok=True)
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise ControlError(
                f"the journal of what is set on boards cannot be kept in {self.folder} ({error.strerror}); {FOLDER_VARIABLE} names another folder of this host"
            ) from error
        status = os.fstat(folder)
        if status.st_uid != self.uid or status.st_mode & 0o022:
            os.close(folder)
            raise BadLease(f"{self.folder} is not user {self.uid}'s own folder, or others may write to it")
        return folder

    def _lock(self, folder: int, longest_s: float) -> int:
        import fcntl  # Linux and macOS; this module is imported elsewhere too

        try:
            lock = os.open("turn", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError as error:
            raise ControlError(f"the lock of {self.folder} cannot be opened ({error.strerror})") from error
        if os.fstat(lock).st_uid != self.uid:  # root made it in a user's folder, who must be able to open it
            with contextlib.suppress(OSError):
                os.fchown(lock, self.uid, -1)
        until = time.monotonic() + longest_s
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return lock
            except OSError as error:
                if time.monotonic() >= until:
                    os.close(lock)
                    raise ControlError(f"another process has held the lock of {self.folder} for {longest_s:g} s") from error
                time.sleep(_PAUSE_S)


class Turn:
    """The leases while no other process changes them.

    Args:
        handle: Open folder.
        folder: Its name, for messages.
        uid: Whose files are believed.
        sync: Brings a file to the disk.
    """

    def __init__(self, handle: int, folder: Path, uid: int, sync: Callable[[int], None] = os.fsync) -> None:
        self._handle, self._folder, self._uid, self._sync = handle, folder, uid, sync

    def devices(self) -> list[str]:
        """Boards that have a lease."""
        names = sorted(name[:-5] for name in os.listdir(self._handle) if name.endswith(".json"))
        return [name for name in names if _DEVICE.fullmatch(name)]

    def read(self, device: str) -> Lease | None:
        """A board's lease, or None.

        Raises:
            BadLease: It is a link, somebody else's, too large, cut off, or of another board.
        """
        path = f"{self._folder}/{_name(device)}"
        try:
            file = os.open(_name(device), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=self._handle)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadLease(f"{path} cannot be opened ({error.strerror})") from error
        try:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != self._uid or status.st_nlink != 1 or status.st_size > _MOST_BYTES:
                raise BadLease(f"{path} is not a file of user {self._uid}'s own")
            content = os.read(file, _MOST_BYTES)
        finally:
            os.close(file)
        return _decoded(content, path, device)

    def write(self, lease: Lease) -> None:
        """Keep a lease, on the disk when this returns.

        Raises:
            ControlError: The disk is full or cannot be written.
        """
        name, fresh = _name(lease.device), f".{_name(lease.device)}.new"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=self._handle)
            file = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=self._handle)
            try:
                content = msgspec.json.encode(lease)
                if os.write(file, content) < len(content):
                    raise OSError(28, "No space left on device")
                self._sync(file)
            finally:
                os.close(file)
            os.rename(fresh, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            self._sync(self._handle)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(fresh, dir_fd=self._handle)
            raise ControlError(
                f"the journal {self._folder}/{name} cannot be written ({error.strerror}), and without it nothing is set: a run that dies could not be taken back"
            ) from error

    def remove(self, device: str) -> None:
        """Forget a lease: its board is as it was."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_name(device), dir_fd=self._handle)


def _unlock(lock: int) -> None:
    """A fork inside the turn has a copy of the descriptor, which closing this one would leave locked."""
    import fcntl

    fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


def _name(device: str) -> str:
    if not _DEVICE.fullmatch(device):
        raise ControlError(f"{device[:80]!r} is not the UUID of a board")
    return f"{device}.json"


def _decoded(content: bytes, path: str, device: str) -> Lease:
    try:
        lease = msgspec.json.decode(content, type=Lease)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise BadLease(f"{path} is no lease ({error})") from error
    if lease.carbonreport_lease != FORMAT_VERSION:
        raise BadLease(f"{path} has format {lease.carbonreport_lease}, this carbonreport reads {FORMAT_VERSION}")
    if lease.device != device or len(lease.holders) > _MOST_HOLDERS:
        raise BadLease(f"{path} is a lease of {lease.device[:80]}")
    return lease
