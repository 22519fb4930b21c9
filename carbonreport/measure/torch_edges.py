"""Edges of spans as CUDA events of PyTorch, from a pool. The only file of the tracer that imports torch."""

from collections import defaultdict, deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

from carbonreport.errors import CarbonreportError
from carbonreport.measure.clock import boot_ns

POOL_SIZE = 4096
WIDEST_BRACKET_NS = 200_000  # a pairing of the clocks that took longer is not used: the thread was held up meanwhile
TRIES = 4
NANOSECONDS_PER_MILLISECOND = 1e6


def create() -> "TorchEdges":
    """The source of edges of this process.

    Raises:
        CarbonreportError: torch is not installed, or sees no CUDA device.
    """
    try:
        torch = import_module("torch")
    except ModuleNotFoundError as error:
        raise CarbonreportError(
            "edges='gpu' puts CUDA events into the work of PyTorch, which is not installed; edges='host' stamps spans on the host"
        ) from error
    if not torch.cuda.is_available():
        raise CarbonreportError(
            "edges='gpu' needs a GPU that PyTorch can use (torch.cuda.is_available() is False); edges='host' stamps spans on the host"
        )
    return TorchEdges(torch, boot_ns)


class TorchEdges:
    """Marks in the current stream of the caller, and when the GPU reached them.

    Args:
        torch: The module, or what behaves like it.
        now_ns: The host's clock.
    """

    def __init__(self, torch: Any, now_ns: Callable[[], int]) -> None:
        self.torch, self._now_ns = torch, now_ns
        self._pools: dict[int, deque[Any]] = defaultdict(lambda: deque(maxlen=POOL_SIZE))
        self._anchors: dict[int, tuple[Any, int]] = {}
        self._streams: dict[int, Any] = {}
        self._current_device: Callable[[], int] = torch.cuda.current_device
        self._is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        self._event: Callable[..., Any] = torch.cuda.Event
        self._is_initialized = False

    def mark(self) -> tuple[int, Any] | None:
        """An event in the caller's stream; None before CUDA is used and inside a graph's capture."""
        if not self._is_initialized:
            self._is_initialized = self.torch.cuda.is_initialized()
            if not self._is_initialized:
                return None
        if self._is_capturing():
            return None
        device = self._current_device()
        pool = self._pools[device]
        try:
            event = pool.popleft()
        except IndexError:
            event = self._event(enable_timing=True)
        event.record()
        return (device, event)

    def resolve(self, mark: object) -> int | None:
        """See EdgeSource."""
        assert isinstance(mark, tuple)
        device: int = mark[0]
        event: Any = mark[1]
        try:
            if not event.query():
                return None
        except RuntimeError:  # a device error of the program's own; the host's stamp will have to do
            return None
        if device not in self._anchors:
            self._align(device)
        base, base_ns = self._anchors[device]
        reached_ns: int = base_ns + round(base.elapsed_time(event) * NANOSECONDS_PER_MILLISECOND)
        self._pools[device].append(event)
        return reached_ns

    def align(self) -> None:
        """See EdgeSource."""
        for device in list(self._pools):
            self._align(device)

    def _align(self, device: int) -> None:
        """Record an event in a stream of our own, with nothing before it, between two looks at the host's clock."""
        torch = self.torch
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = torch.cuda.Stream(device=device)
        best: tuple[int, Any, int] | None = None
        for _ in range(TRIES):
            event = self._event(enable_timing=True)
            before_ns = self._now_ns()
            event.record(stream)
            event.synchronize()
            after_ns = self._now_ns()
            width_ns = after_ns - before_ns
            if best is None or width_ns < best[0]:
                best = (width_ns, event, (before_ns + after_ns) // 2)
        assert best is not None
        if best[0] <= WIDEST_BRACKET_NS or device not in self._anchors:
            self._anchors[device] = (best[1], best[2])
