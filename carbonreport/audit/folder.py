"""Where the ledger's files lie: a local folder, or anything that fsspec knows. A file appears whole or not at all."""

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from carbonreport.errors import MissingExtra, OutputError, RecordError

_PART = ".part"  # what is being written; never read


class Folder(Protocol):
    """Takes files and lists them."""

    filesystem: Any  # of fsspec, for DuckDB; None for a local folder

    def put(self, path: Path, name: str, *, is_new: bool = False) -> None:
        """Move a finished local file to a name, whole or not at all; where `is_new`, never over another one."""

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none."""

    def paths(self, pattern: str) -> Sequence[str]:
        """Finished files that match, as DuckDB opens them."""


def folder_at(url: str) -> Folder:
    """The folder that a path or URL names.

    Raises:
        MissingExtra: A URL needs fsspec.
        RecordError: Its protocol is not known, or needs a package that is not installed.
    """
    if "://" not in url:
        path = Path(url)
        if path.absolute() == Path(path.absolute().anchor):
            raise RecordError(f"a ledger needs a folder of its own; {url} is the root of all files")
        return LocalFolder(path)
    try:
        fsspec = import_module("fsspec")
    except ImportError as error:
        raise MissingExtra(f"a ledger at {url.partition('://')[0]}://", "audit") from error
    try:
        filesystem, _, paths = fsspec.get_fs_token_paths(url)
    except (ImportError, ValueError) as error:  # ImportError: fsspec names the package of that protocol
        raise RecordError(f"cannot open the ledger {url}: {error}") from error
    if url.startswith(("file://", "local://")):
        return LocalFolder(Path(paths[0]))
    return RemoteFolder(filesystem, paths[0])


class LocalFolder:
    """A folder of this machine."""

    filesystem = None

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, path: Path, name: str, *, is_new: bool = False) -> None:
        """Copy beside the target and rename; rows that are there under the name already have the same content."""
        target = self.path / name
        beside = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}{_PART}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, beside)
            _sync(beside)
            if is_new:
                _link(beside, target)
            else:
                beside.replace(target)
        except OSError as error:
            with suppress(OSError):
                beside.unlink(missing_ok=True)
            raise OutputError(f"cannot write to the ledger {self.path}: {error.strerror or error}") from error

    def read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise OutputError(f"cannot write to the ledger {self.path}: it is no folder") from error
        except OSError as error:
            raise RecordError(f"cannot read the ledger {self.path}: {error.strerror or error}") from error

    def paths(self, pattern: str) -> Sequence[str]:
        return sorted(str(path) for path in self.path.glob(pattern) if not path.name.startswith("."))


class RemoteFolder:
    """A folder behind fsspec."""

    def __init__(self, filesystem: Any, root: str) -> None:
        self.filesystem, self._root = filesystem, PurePosixPath(root)

    def put(self, path: Path, name: str, *, is_new: bool = False) -> None:
        """Upload under a name that is not read, then move."""
        if is_new and self.read(name) is not None:
            return
        target = self._root / name
        beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}{_PART}")
        try:
            self.filesystem.makedirs(str(target.parent), exist_ok=True)
            self.filesystem.put_file(str(path), str(beside))
            self.filesystem.mv(str(beside), str(target))
        except OSError as error:
            raise OutputError(f"cannot write to the ledger {self._root}: {error.strerror or error}") from error

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self.filesystem.cat_file(str(self._root / name)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise RecordError(f"cannot read the ledger {self._root}: {error.strerror or error}") from error

    def paths(self, pattern: str) -> Sequence[str]:
        found = self.filesystem.glob(str(self._root / pattern))
        names = (str(path) for path in found if not PurePosixPath(str(path)).name.startswith("."))
        return sorted(self.filesystem.unstrip_protocol(name) for name in names)


def _link(beside: Path, target: Path) -> None:
    """Give a file its name where nothing has it yet."""
    try:
        os.link(beside, target)
    except FileExistsError:
        pass  # another process was faster, and its file counts
    finally:
        beside.unlink()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
