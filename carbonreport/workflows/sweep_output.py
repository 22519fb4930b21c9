"""A copy of what a command writes to standard output, while it is still shown."""

import contextlib
import hashlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Set
from pathlib import Path

_PART = 1 << 16
_STDOUT = 1
_LONGEST_REST_S = 10.0


@contextlib.contextmanager
def copied_output(path: Path, signals: Set[signal.Signals]) -> Iterator[None]:
    """Copy the standard output of this process and its children to a file, until all of them have closed it.

    Args:
        path: The copy.
        signals: What the copying thread must leave to the caller.
    """
    sys.stdout.flush()
    shown = os.dup(_STDOUT)
    reader, writer = os.pipe()
    try:
        copy = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    except OSError:
        for one in (shown, reader, writer):
            os.close(one)
        raise
    thread = threading.Thread(target=_copy, args=(reader, shown, copy), name="carbonreport-output", daemon=True)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # the thread inherits it
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.dup2(writer, _STDOUT)
    os.close(writer)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(shown, _STDOUT)
        thread.join(_LONGEST_REST_S)  # a daemon that the command left behind may hold its output for ever


def _copy(reader: int, shown: int, copy: int) -> None:
    is_shown = True
    while part := os.read(reader, _PART):
        os.write(copy, part)
        if is_shown:
            try:
                _write_all(shown, part)
            except OSError:  # the reader of our output has gone; the copy goes on
                is_shown = False
    for one in (reader, shown, copy):
        os.close(one)


def _write_all(file: int, part: bytes) -> None:
    left = memoryview(part)
    while left:
        left = left[os.write(file, left) :]


def digest_of(path: Path, pattern: re.Pattern[str]) -> tuple[str, int]:
    """Hash of the lines that match, in order, and how many they are."""
    lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if pattern.search(line)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16], len(lines)
