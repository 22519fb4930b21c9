"""The files that a sweep writes at its end: whether they can be written is tried before its first trial."""

import os
from pathlib import Path

from carbonreport.errors import OutputError


def check_writable(path: Path) -> None:
    """Try to open a file for writing and leave it as it was: after hours of trials a refusal would come too late.

    Raises:
        OutputError: Its folder is missing, or it cannot be written.
    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would wait for its reader
            return
        is_new = not os.path.lexists(path)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
        if is_new:
            path.unlink()
    except OSError as error:
        raise _refused(path, error) from error


def write_text(text: str, path: Path) -> None:
    """Write a file. Raises OutputError."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: OSError) -> OutputError:
    if not path.parent.is_dir():
        return OutputError(f"cannot write {path}: there is no folder {path.parent}")
    return OutputError(f"cannot write {path}: {error.strerror or error}")
