"""Clocks that boards really have while something runs on them: once a second, in a thread of its own."""

import contextlib
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from carbonreport import nvml

_SM, _MEMORY = 1, 2  # nvml.h: NVML_CLOCK_SM, NVML_CLOCK_MEM
_IDLE = 0x1  # nvml.h: nvmlClocksEventReasonGpuIdle
_EVERY_S = 1.0
_MOST_KEPT = 100_000  # a day; later ones are left out


@dataclass(frozen=True, slots=True)
class ClocksNow:
    """Clocks of a board at a moment.

    Attributes:
        sm_mhz: Of the cores. [MHz]
        mem_mhz: Of the memory. [MHz]
        is_idle: Whether the board says that nothing runs on it; clocks say little then.
    """

    sm_mhz: int
    mem_mhz: int
    is_idle: bool = False


ReadClocks = Callable[[str], ClocksNow | None]


@dataclass(slots=True)
class Achieved:
    """What was seen of each board while it was busy."""

    seen: dict[str, list[ClocksNow]] = field(default_factory=dict)

    def add(self, device: str, clocks: ClocksNow | None) -> None:
        """Take one look; None where the board did not answer."""
        kept = self.seen.setdefault(device, [])
        if clocks is not None and not clocks.is_idle and len(kept) < _MOST_KEPT:
            kept.append(clocks)

    def median_mhz(self, device: str) -> tuple[float | None, float | None]:
        """Median core and memory clock; None where the board was never seen busy. [MHz]"""
        kept = self.seen.get(device)
        if not kept:
            return None, None
        return statistics.median(one.sm_mhz for one in kept), statistics.median(one.mem_mhz for one in kept)


def nvml_clocks(binding: Any) -> ReadClocks:
    """Reads clocks through a started module `pynvml`, or what behaves like it."""

    def read(device: str) -> ClocksNow | None:
        try:
            handle = binding.nvmlDeviceGetHandleByUUID(device)
            clocks = [int(binding.nvmlDeviceGetClockInfo(handle, kind)) for kind in (_SM, _MEMORY)]
        except binding.NVMLError:
            return None
        try:
            reasons = int(binding.nvmlDeviceGetCurrentClocksEventReasons(handle))
        except (binding.NVMLError, AttributeError):  # an older driver or binding: every look counts
            reasons = 0
        return ClocksNow(clocks[0], clocks[1], bool(reasons & _IDLE))

    return read


@contextlib.contextmanager
def watched_by_nvml(devices: Sequence[str], every_s: float = _EVERY_S) -> Iterator[Achieved]:
    """Look at boards once a second while the block lasts."""
    binding = nvml.binding()
    nvml.start(binding)
    achieved, stop, read = Achieved(), threading.Event(), nvml_clocks(binding)

    def look() -> None:
        while not stop.wait(every_s):
            for device in devices:
                achieved.add(device, read(device))

    thread = threading.Thread(target=look, name="carbonreport-clocks", daemon=True)
    thread.start()
    try:
        yield achieved
    finally:
        stop.set()
        thread.join(every_s)
        nvml.stop(binding)
