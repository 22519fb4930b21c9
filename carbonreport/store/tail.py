"""`X.tail`: two fixed slots written in turn, so that a killed run loses at most what came after the newest one."""

import json
import os
import zlib
from pathlib import Path
from typing import Any

SLOT_BYTES = 64 * 1024
# Exclusively, for writing bytes as they are; two of the flags exist on some systems alone.
CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_HEAD = 19  # checksum, blank, length, two blanks: 8 + 1 + 8 + 2
MAX_PAYLOAD_BYTES = SLOT_BYTES - _HEAD - 1


def tail_path(record: Path) -> Path:
    """The tail that stands beside a record while its run lasts."""
    return record.with_suffix(".tail")


def encode(payload: dict[str, Any]) -> bytes:
    """One line of compact JSON."""
    return json.dumps(payload, separators=(",", ":"), allow_nan=False).encode()


class TailWriter:
    """Writes the state of an unfinished run into the two slots in turn."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, CREATE, 0o644)
        self._sequence = 0

    def write(self, payload: dict[str, Any]) -> bool:
        """Write one slot; False where the payload does not fit and must be flushed to the record first."""
        body = encode({"sequence": self._sequence, **payload})
        if len(body) > MAX_PAYLOAD_BYTES:
            return False
        head = f"{zlib.crc32(body):08x} {len(body):08x}  ".encode()
        os.pwrite(self._fd, head + body + b"\n", (self._sequence % 2) * SLOT_BYTES)
        self._sequence += 1
        return True

    def close(self, *, remove: bool) -> None:
        """Close; a clean end removes the file."""
        os.close(self._fd)
        if remove:
            self._path.unlink(missing_ok=True)


def newest_slot(path: Path) -> bytes | None:
    """Payload of the newest slot whose checksum holds, or None."""
    if not path.is_file():
        return None
    content = path.read_bytes()
    valid = [body for body in (_payload(content[start : start + SLOT_BYTES]) for start in (0, SLOT_BYTES)) if body]
    return max(valid, key=lambda body: int(json.loads(body)["sequence"]), default=None)


def _payload(slot: bytes) -> bytes | None:
    try:
        checksum, length = int(slot[:8], 16), int(slot[9:17], 16)
    except ValueError:
        return None
    body = slot[_HEAD : _HEAD + length]
    return body if len(body) == length and zlib.crc32(body) == checksum else None
