"""Edges of spans as CUDA events of PyTorch, from a pool. The only file of the tracer that imports torch."""

from collections import deque
from collections.abc import Callable
from importlib import import_module
from typing import Any

from carbonreport.errors import CarbonreportError
from carbonreport.measure.captures import Exchange, beside_captures, exchange_of
from carbonreport.measure.clock import boot_ns

POOL_SIZE = 8192
WIDEST_BRACKET_NS = 200_000  # a pairing of the clocks that took longer is not used: the thread was held up meanwhile
TRIES = 4
NANOSECONDS_PER_MILLISECOND = 1e6


HOST_EDGES = "edges='host' stamps spans on the host"


def create(why: str = "edges='gpu' puts CUDA events into the work of PyTorch", way_out: str = HOST_EDGES) -> "TorchEdges":
    """The source of edges of this process.

    Args:
        why: What needs PyTorch, for the message.
        way_out: What works without it.

    Raises:
        CarbonreportError: torch is not installed, or sees no CUDA device.
    """
    try:
        torch = import_module("torch")
    except ModuleNotFoundError as error:
        raise CarbonreportError(f"{why}, which is not installed; {way_out}") from error
    if not torch.cuda.is_available():
        raise CarbonreportError(f"{why}, which sees no GPU (torch.cuda.is_available() is False); {way_out}")
    return TorchEdges(torch, boot_ns)


class TorchEdges:
    """Marks in the current stream of the caller, and when the GPU reached them.

    Args:
        torch: The module, or what behaves like it.
        now_ns: The host's clock.
    """

    def __init__(self, torch: Any, now_ns: Callable[[], int]) -> None:
        self.torch, self._now_ns = torch, now_ns
        self._calls = Calls(torch)
        self._exchange: Exchange | None = exchange_of(torch)
        self._pools: dict[int, deque[Any]] = {}
        self._streams: dict[int, Any] = {}
        self._own_streams: dict[int, Any] = {}
        self._anchors: dict[int, tuple[Any, int]] = {}
        self.mark = self._marker()

    def _marker(self) -> Callable[[], object | None]:
        """`mark` of EdgeSource as a closure: it runs in the caller's thread, where each attribute costs time.

        An event in the caller's stream; None before CUDA is used and inside a graph's capture.
        """
        torch, calls, pools, streams = self.torch, self._calls, self._pools, self._streams
        current_device, stream_address, record = calls.device, calls.stream_address, calls.record
        new_event = self.torch.cuda.Event
        is_ready = False

        def mark() -> object | None:
            nonlocal is_ready
            if not is_ready:
                is_ready = torch.cuda.is_initialized()
                if not is_ready:
                    return None
            device = current_device()
            address = stream_address(device)
            if address and calls.is_capturing():  # the default stream, at address 0, cannot be captured
                return None
            try:
                event = pools[device].popleft()
                stream = streams[address or device]  # an address is no small number
            except (KeyError, IndexError):
                pools.setdefault(device, deque(maxlen=POOL_SIZE))
                stream = streams[address or device] = torch.cuda.current_stream()
                event = new_event(enable_timing=True)
            record(event, stream)
            return (device, event)

        return mark

    def resolve(self, mark: object) -> int | None:
        """See EdgeSource."""
        assert isinstance(mark, tuple)
        with beside_captures(self._exchange):
            return self._resolve(mark)

    def _resolve(self, mark: tuple[int, Any]) -> int | None:
        device: int = mark[0]
        event: Any = mark[1]
        try:
            if not event.query():
                return None
            if device not in self._anchors:
                self._align(device)
            base, base_ns = self._anchors[device]
            reached_ns: int = base_ns + round(base.elapsed_time(event) * NANOSECONDS_PER_MILLISECOND)
        except RuntimeError:  # a device error of the program's own; the host's stamp will have to do
            return None
        self._pools[device].append(event)
        return reached_ns

    def align(self) -> None:
        """See EdgeSource."""
        with beside_captures(self._exchange):
            for device in list(self._pools):
                self._align(device)

    def _align(self, device: int) -> None:
        """Record an event in a stream of our own, with nothing before it, between two looks at the host's clock."""
        stream = self._own_streams.get(device)
        if stream is None:
            stream = self._own_streams[device] = self.torch.cuda.Stream(device=device)
        pairings = [self._pair(stream) for _ in range(TRIES)]
        width_ns, event, at_ns = min(pairings, key=lambda pairing: pairing[0])
        if width_ns <= WIDEST_BRACKET_NS or device not in self._anchors:
            self._anchors[device] = (event, at_ns)

    def _pair(self, stream: Any) -> tuple[int, Any, int]:
        """How long it took, the event, and the host's time of it. [ns]"""
        event = self.torch.cuda.Event(enable_timing=True)
        before_ns = self._now_ns()
        event.record(stream)
        event.synchronize()
        after_ns = self._now_ns()
        return after_ns - before_ns, event, (before_ns + after_ns) // 2


class Calls:
    """The calls of an edge: torch's own inner ones where they are found, which take a third of the time of the public ones."""

    def __init__(self, torch: Any) -> None:
        inner = getattr(torch, "_C", None)
        self.device: Callable[[], int] = getattr(inner, "_cuda_getDevice", torch.cuda.current_device)
        self.is_capturing: Callable[[], bool] = getattr(inner, "_cuda_isCurrentStreamCapturing", torch.cuda.is_current_stream_capturing)
        self.stream_address: Callable[[int], int] = getattr(inner, "_cuda_getCurrentRawStream", None) or (
            lambda device: int(torch.cuda.current_stream(device).cuda_stream)
        )
        event = getattr(inner, "_CudaEventBase", None)
        self.record: Callable[[Any, Any], None] = torch.cuda.Event.record if event is None else event.record
