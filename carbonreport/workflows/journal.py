"""A file of finished work, one line each and on the disk before the next begins, so that what was stopped goes on. One process at a time has it."""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from carbonreport.errors import CarbonreportError, OutputError

_READ_BYTES = 1 << 16


class JournalFile:
    """A journal that is open, and that no other process has.

    Args:
        path: Its name, for messages.
        file: Descriptor, at its end.
        lines: The whole lines that it held, without their ends.
    """

    def __init__(self, path: Path, file: int, lines: Sequence[bytes] = ()) -> None:
        self._path, self._file, self.lines = path, file, tuple(lines)

    def append(self, line: bytes) -> None:
        """Keep a line; it is on the disk when this returns.

        Raises:
            OutputError: It does not fit there; the journal stays as it was.
        """
        content, before = line + b"\n", os.fstat(self._file).st_size
        try:
            if os.write(self._file, content) < len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, before)
            raise OutputError(f"cannot write {self._path}: {error.strerror or error}") from error


@contextlib.contextmanager
def opened_file(path: Path, called: str) -> Iterator[JournalFile]:
    """A journal, a new one or that of before; a last line that a kill cut off is taken away.

    Args:
        path: Its file; folders above it are made.
        called: What it is called where another process has it.

    Raises:
        OutputError: It cannot be written.
        CarbonreportError: Another process goes on with it now.
    """
    import fcntl  # Linux and macOS; this module is imported elsewhere too

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise OutputError(f"cannot lock {path}: {error.strerror or error}; give an --out on a file system with locks") from error
            raise CarbonreportError(f"another process goes on with {called} now; wait for it, or give another --out") from error
        yield JournalFile(path, file, _whole_lines(file))
    finally:
        os.close(file)


def _whole_lines(file: int) -> list[bytes]:
    text = b""
    while part := os.read(file, _READ_BYTES):
        text += part
    whole = text[: text.rfind(b"\n") + 1]
    if whole != text:
        os.ftruncate(file, len(whole))
    return whole.splitlines()
