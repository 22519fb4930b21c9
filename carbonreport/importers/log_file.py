"""A foreign log as bytes and as text: encodings, byte order marks, and what is never opened."""

import hashlib
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from carbonreport.errors import RecordError

MOST_BYTES = 1 << 29  # half a gigabyte; yearly dumps have a reader of their own
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_CLOSED = (
    (b"\x1f\x8b", "is compressed with gzip; unpack it first"),
    (b"PK\x03\x04", "is a zip archive; unpack it first"),
    (b"BZh", "is compressed with bzip2; unpack it first"),
    (b"\xfd7zXZ", "is compressed with xz; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it first"),
    (b"PAR1", "is a Parquet file; export it as CSV first"),
    (b"\x89HDF", "is an HDF5 file; export it as CSV first"),
    (b"SQLite format 3", "is a database; export the table as CSV first"),
)
_PROGRAM = b"\x7fELF"
_CONTROLS = bytes({*range(1, 32), 127} - set(b"\t\n\v\f\r\b\x1a\x1b"))
_LOOKED_AT, _MOST_CONTROLS = 8192, 0.02
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth")


def _nothing_beside(name: str) -> bytes | None:
    return None


class UnknownLog(RecordError):
    """A file that is no log of any format that is known here."""


@dataclass(frozen=True)
class LogFile:
    """A file that some tool wrote.

    Attributes:
        name: Its file name.
        content: Its bytes.
        beside: Reads a file of the same folder by its name; None where there is none.
    """

    name: str
    content: bytes
    beside: Callable[[str], bytes | None] = field(default=_nothing_beside, compare=False)

    @cached_property
    def text(self) -> str:
        """The content as text: by its byte order mark, else UTF-8, else Latin-1; without NUL, with plain line ends."""
        return decoded(self.content)

    @cached_property
    def head(self) -> str:
        """Its first 64 kB as text, for recognition."""
        return decoded(self.content[:65536])

    @cached_property
    def sha256(self) -> str:
        """Hash of the content."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def stem(self) -> str:
        """The name without its last suffix."""
        return Path(self.name).stem


def open_log(path: Path) -> LogFile:
    """Read a file.

    Raises:
        RecordError: It cannot be read, is no regular file, is too large, or is of a kind that is never opened, such as a pickle.
    """
    if path.suffix.lower() in _PICKLES:
        raise RecordError(f"{path} is a pickle by its name, which can run any program; it is never loaded: export it as CSV or JSON")
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise RecordError(f"{path} is a folder; name the files in it")
        if not stat.S_ISREG(found.st_mode):  # a pipe would be waited for, a device may never end
            raise RecordError(f"{path} is a {_special(found.st_mode)}; only regular files are read: save what comes out of it first")
        if found.st_size > MOST_BYTES:
            raise RecordError(f"{path} has over {MOST_BYTES >> 20} MB; split it, or export fewer columns")
        content = path.read_bytes()
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    if why := closed(content):
        raise RecordError(f"{path} {why}")
    if _is_binary(content[:_LOOKED_AT]):
        raise UnknownLog(f"{path} is binary, no text")
    return LogFile(path.name, content, lambda name: _beside(path, name))


def _special(mode: int) -> str:
    kinds = ((stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "special file")


def closed(content: bytes) -> str | None:
    """Why bytes are never read as a log; None where they may be."""
    if content[:1] == b"\x80" and content[1:2] in b"\x02\x03\x04\x05" and content.rstrip()[-1:] == b".":
        return "is a pickle, which can run any program; it is never loaded: export it as CSV or JSON"
    return next((why for mark, why in _CLOSED if content.startswith(mark)), None)


def _is_binary(head: bytes) -> bool:
    """Whether bytes are no text in any encoding that is read: they hold control characters that no tool writes into a log.

    NUL is not one of them: a log that a crash cut off may be padded with it, and UTF-16 has one in every second place.
    """
    if head.startswith(tuple(mark for mark, _ in _MARKS)):
        return False
    return head.startswith(_PROGRAM) or len(head) - len(head.translate(None, _CONTROLS)) > _MOST_CONTROLS * len(head)


def decoded(content: bytes) -> str:
    """Bytes as text; see LogFile.text."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _plain(content[len(mark) :].decode(encoding, errors="replace"))
    if content[:200].count(b"\x00") > len(content[:200]) // 4:
        even, odd = content[:200:2].count(b"\x00"), content[1:200:2].count(b"\x00")
        return _plain(content.decode("utf-16-le" if odd >= even else "utf-16-be", errors="replace"))
    try:
        return _plain(content.decode("utf-8"))
    except UnicodeDecodeError:
        return _plain(content.decode("latin-1"))


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "").removeprefix("\ufeff")


def _beside(path: Path, name: str) -> bytes | None:
    other = path.with_name(Path(name).name)
    try:
        return other.read_bytes() if other.is_file() and other.stat().st_size <= MOST_BYTES else None
    except OSError:
        return None
