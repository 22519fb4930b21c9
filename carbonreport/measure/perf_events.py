"""perf_event_open(2), which the C library does not wrap: one 64-bit counter of the whole system on one CPU."""

import ctypes
import errno
import os
import struct
import sys
from typing import Protocol

SYSCALLS = {"x86_64": 298, "aarch64": 241}  # perf_event_open, from the kernel's syscall tables
CLOSE_ON_EXEC = 8
ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr up to its first published size, of 64 bytes: type, size, config, …
WAYS_OUT = "sudo sysctl kernel.perf_event_paranoid=0, or for one interpreter sudo setcap cap_perfmon+ep $(readlink -f $(which python3))"


class Opener(Protocol):
    """Opens counters; the kernel, or a test's."""

    def open(self, kind: int, config: int, cpu: int) -> int:
        """A handle of one counter on one CPU, counting for the whole system; raises OSError."""

    def read(self, handle: int) -> int:
        """What it counts; raises OSError."""

    def close(self, handle: int) -> None:
        """Give it back."""


class Kernel:
    """Linux's own counters."""

    def open(self, kind: int, config: int, cpu: int) -> int:
        """See Opener."""
        number = SYSCALLS.get(os.uname().machine) if sys.platform == "linux" else None
        if number is None:
            raise OSError(errno.ENOSYS, "perf events of this system are not known here")
        attribute = ctypes.create_string_buffer(ATTRIBUTE.pack(kind, ATTRIBUTE.size, config, 0, 0, 0, 0, 0, 0, 0), ATTRIBUTE.size)
        syscall = ctypes.CDLL(None, use_errno=True).syscall
        syscall.restype = ctypes.c_long
        nobody, no_group = ctypes.c_int(-1), ctypes.c_int(-1)
        handle = syscall(ctypes.c_long(number), attribute, nobody, ctypes.c_int(cpu), no_group, ctypes.c_ulong(CLOSE_ON_EXEC))
        if handle < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return int(handle)

    def read(self, handle: int) -> int:
        """See Opener."""
        return int.from_bytes(os.read(handle, 8), sys.byteorder)

    def close(self, handle: int) -> None:
        """See Opener."""
        os.close(handle)
