"""Calls to CUDA that end no capture of another thread.

While a graph is captured in CUDA's global mode, the default, an event that any thread looks at ends the capture with an error, unless that thread's own
mode is relaxed (CUDA Runtime API, cudaThreadExchangeStreamCaptureMode).
"""

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_RELAXED = 2  # cudaStreamCaptureModeRelaxed

Exchange = Callable[[int], int]


def exchange_of(torch: Any) -> Exchange | None:
    """Sets the calling thread's capture mode and gives back the one before; None where the program's CUDA runtime cannot be called by name."""
    version = getattr(getattr(torch, "version", None), "cuda", None)
    if not isinstance(version, str):
        return None
    try:
        library = ctypes.CDLL(f"libcudart.so.{version.partition('.')[0]}", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)  # PyTorch's own, or none
        call = library.cudaThreadExchangeStreamCaptureMode
    except (OSError, AttributeError):
        return None

    def exchange(mode: int) -> int:
        held = ctypes.c_int(mode)
        call(ctypes.byref(held))
        return held.value

    return exchange


@contextmanager
def beside_captures(exchange: Exchange | None) -> Iterator[None]:
    """The block's calls to CUDA end no capture of another thread."""
    if exchange is None:
        yield
        return
    before = exchange(_RELAXED)
    try:
        yield
    finally:
        exchange(before)
