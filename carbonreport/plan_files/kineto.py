"""Traces of the PyTorch profiler (Chrome trace JSON, also gzipped): kernels on one GPU, with the step that launched them."""

import gzip
import re
from bisect import bisect_right
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import error as ZlibError

import msgspec

from carbonreport.plan.launches import Launch
from carbonreport.plan.table import PlanError

_MICRO = 1e-6
_STEP = re.compile(r"ProfilerStep#(\d+)")
_LAUNCHERS = ("cuda_runtime", "cuda_driver")
_WAY_OUT = "give a trace of torch.profiler's export_chrome_trace (.json or .json.gz)"


class _Event(msgspec.Struct):
    ph: str = ""
    cat: Any = None
    name: Any = None
    ts: Any = None
    dur: Any = None
    args: Any = None


class _Trace(msgspec.Struct):
    traceEvents: list[_Event]  # the profiler's own name


def read_kineto(path: Path) -> list[Launch]:
    """Kernels of the GPU that ran most of them, in the order of their begins.

    Raises:
        PlanError: It is no trace, or has no kernels; the message names the file.
    """
    events = _events(path)
    kernels = [event for event in events if event.cat == "kernel" and event.ph == "X"]
    if not kernels:
        raise PlanError(f"{path.name} has no kernels; record it with ProfilerActivity.CUDA on a GPU")
    device = Counter(_argument(event, "device") for event in kernels).most_common(1)[0][0]
    steps = _Steps(events)
    return sorted(
        (_launch(path, event, steps) for event in kernels if _argument(event, "device") == device), key=lambda launch: launch.start_s
    )


def _events(path: Path) -> list[_Event]:
    try:
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}; {_WAY_OUT}") from error
    except (EOFError, ZlibError) as error:
        raise PlanError(f"{path.name} is cut off ({error}); {_WAY_OUT}") from error
    try:
        return msgspec.json.decode(text, type=_Trace).traceEvents
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PlanError(f"{path.name} is no profiler trace ({error}); {_WAY_OUT}") from error


def _argument(event: _Event, name: str) -> Any:
    return event.args.get(name) if isinstance(event.args, dict) else None


def _launch(path: Path, event: _Event, steps: "_Steps") -> Launch:
    try:
        start_s, seconds = float(event.ts) * _MICRO, float(event.dur) * _MICRO
        grid, block = (tuple(int(size) for size in _argument(event, name) or ()) for name in ("grid", "block"))
        shared, stream = int(_argument(event, "shared memory") or 0), int(_argument(event, "stream") or 0)
    except (TypeError, ValueError) as error:
        raise PlanError(f"{path.name}: the kernel {str(event.name)[:60]!r} has no usable time or launch ({error})") from error
    return Launch(str(event.name), grid, block, shared, stream, start_s, seconds, steps.of(event, start_s))


class _Steps:
    """Which ProfilerStep a kernel belongs to: by its time on the GPU, else by the time of its launch."""

    def __init__(self, events: list[_Event]) -> None:
        on_gpu = _spans(events, "gpu_user_annotation")
        self._is_by_launch = not on_gpu
        self._spans = on_gpu or _spans(events, "user_annotation")
        self._begins = [begin for begin, _, _ in self._spans]
        launchers = (event for event in events if self._is_by_launch and event.cat in _LAUNCHERS)
        self._launched_s = {_argument(event, "correlation"): _seconds(event.ts) for event in launchers}

    def of(self, kernel: _Event, start_s: float) -> int | None:
        """Number of the step, or None."""
        at_s = self._launched_s.get(_argument(kernel, "correlation")) if self._is_by_launch else start_s
        if at_s is None:
            return None
        i = bisect_right(self._begins, at_s) - 1
        return self._spans[i][2] if i >= 0 and at_s <= self._spans[i][1] else None


def _spans(events: list[_Event], category: str) -> list[tuple[float, float, int]]:
    """Begin, end and number of the profiler's steps."""
    spans = []
    for event in events:
        found = _STEP.fullmatch(str(event.name)) if event.cat == category else None
        begin, length = _seconds(event.ts), _seconds(event.dur)
        if found is not None and begin is not None and length is not None:
            spans.append((begin, begin + length, int(found.group(1))))
    return sorted(spans)


def _seconds(micros: Any) -> float | None:
    return float(micros) * _MICRO if isinstance(micros, int | float) else None
