"""GPU edges: a span ends where its GPU work ends, in order, whenever the GPU gets there."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from pytest import approx

from carbonreport import trace
from carbonreport.errors import CarbonreportError
from carbonreport.measure.edges import PATIENCE_NS, EdgeResolver
from carbonreport.measure.spans import Occurrence, SpanQueue
from carbonreport.measure.torch_edges import TorchEdges
from carbonreport.measure.tracer import Run
from carbonreport.testing import FakeClock, VirtualGpu
from carbonreport.testing.clock import NANOSECONDS_PER_SECOND
from carbonreport.testing.gpu import plan_virtual


class Device:
    """A GPU that runs what was launched, in order, after what was launched before; its clock has another zero and rate.

    Args:
        clock: The host's.
        rate: Its seconds in one of the host's.
    """

    def __init__(self, clock, rate=1.0 + 20e-6):
        self.clock, self.rate, self.free_ns = clock, rate, 0
        self.captures = self.broken = False
        self.is_initialized = True
        self.made = 0

    def launch(self, seconds):
        self.free_ns = max(self.free_ns, self.clock.boot_ns()) + round(seconds * NANOSECONDS_PER_SECOND)

    def torch(self):
        """The part of the module that edges use, its inner calls left out."""
        device = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing
                device.made += 1

            def record(self, stream):
                now_ns = device.clock.boot_ns()
                self.at_ns = now_ns if stream == "own" else max(device.free_ns, now_ns)

            def query(self):
                if device.broken:
                    raise RuntimeError("CUDA error: an illegal memory access was encountered")
                return device.clock.boot_ns() >= self.at_ns

            def synchronize(self):
                assert self.query()

            def elapsed_time(self, later):
                return (later.at_ns - self.at_ns) * device.rate / 1e6

        stream = SimpleNamespace(cuda_stream=0)
        cuda = SimpleNamespace(
            Event=Event,
            Stream=lambda device: "own",
            current_device=lambda: 0,
            current_stream=lambda device=None: SimpleNamespace(cuda_stream=7) if self.captures else stream,
            is_current_stream_capturing=lambda: self.captures,
            is_initialized=lambda: self.is_initialized,
        )
        return SimpleNamespace(cuda=cuda)


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
def device(clock):
    return Device(clock)


def edges_of(device):
    return TorchEdges(device.torch(), device.clock.boot_ns)


def asynchronous(clock, device, run, steps):
    """A loop that launches 10 ms of one kernel and 30 ms of another in a moment each, and waits at the end of a step."""
    for _ in range(steps):
        with run.span("short"):
            device.launch(0.010)
            clock.advance(0.0001)
        with run.span("long"):
            device.launch(0.030)
            clock.advance(0.0001)
        clock.advance(0.0399)


def test_spans_are_as_long_as_their_gpu_work(tmp_path, clock, device):
    gpu = VirtualGpu(300.0)
    run = Run(plan_virtual(clock, gpu, out=tmp_path, edges=edges_of(device)))
    with run:
        asynchronous(clock, device, run, 200)
    seconds = {span.path: span.seconds for span in run.record.spans}

    assert seconds["short"] == approx(2.0, rel=0.01)
    assert seconds["long"] == approx(6.0, rel=0.01)
    assert "host-edges" not in {note.slug for note in run.record.notes}


def test_host_edges_of_the_same_loop_are_wrong_and_say_so(tmp_path, clock, device):
    run = Run(plan_virtual(clock, VirtualGpu(300.0), out=tmp_path))
    with run:
        asynchronous(clock, device, run, 200)
    seconds = {span.path: span.seconds for span in run.record.spans}

    assert seconds["short"] < 0.05
    assert "host-edges" in {note.slug for note in run.record.notes}


def queue_of(source, clock):
    return SpanQueue(clock.boot_ns, source.mark)


def test_edges_come_in_order_and_none_before_one_that_still_waits(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    resolver = EdgeResolver(queue, source)
    span = Occurrence(queue, "a", None)
    with span:
        device.launch(5.0)
    with Occurrence(queue, "b", None):
        clock.advance(1.0)

    edges, known_ns = resolver.take(clock.boot_ns())
    assert [(edge[1].path, edge[2]) for edge in edges] == [("a", True)]
    assert known_ns < clock.boot_ns()

    clock.advance(5.0)
    later, _ = resolver.take(clock.boot_ns())
    assert [(edge[1].path, edge[2]) for edge in later] == [("a", False), ("b", True), ("b", False)]
    assert all(a[0] <= b[0] for a, b in pairwise([*edges, *later]))
    assert later[0][0] - edges[0][0] == approx(5.0 * NANOSECONDS_PER_SECOND, rel=1e-4)


def test_clocks_that_drift_apart_are_paired_again(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    resolver = EdgeResolver(queue, source)
    for _ in range(1800):
        with Occurrence(queue, "a", None):
            clock.advance(1.0)
        edges, _ = resolver.take(clock.boot_ns())

    assert edges[-1][0] == approx(clock.boot_ns(), abs=50_000), "half an hour at 20 ppm would be 36 ms"


def test_a_gpu_that_hangs_holds_the_run_back_for_a_minute_only(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    resolver = EdgeResolver(queue, source)
    device.launch(1e6)
    with Occurrence(queue, "a", None):
        pass
    assert resolver.take(clock.boot_ns())[0] == []

    clock.advance(PATIENCE_NS / NANOSECONDS_PER_SECOND + 1)
    assert len(resolver.take(clock.boot_ns())[0]) == 2
    assert resolver.given_up == 2


def test_at_the_end_nothing_is_waited_for(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    resolver = EdgeResolver(queue, source)
    device.launch(1e6)
    with Occurrence(queue, "a", None):
        pass

    assert len(resolver.take(clock.boot_ns(), is_last=True)[0]) == 2


def test_before_cuda_is_used_and_inside_a_capture_the_host_s_stamp_is_the_edge(clock, device):
    device.is_initialized = False
    source = edges_of(device)
    assert source.mark() is None, "marking must not start CUDA"

    device.is_initialized = True
    device.captures = True
    assert source.mark() is None

    device.captures = False
    assert source.mark() is not None


def test_a_broken_device_leaves_the_host_s_stamps(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    source.align()
    with Occurrence(queue, "a", None):
        pass
    mark = source.mark()
    source.resolve(mark)
    device.broken = True

    assert source.resolve(mark) is None


def test_events_are_used_again(clock, device):
    source = edges_of(device)
    queue = queue_of(source, clock)
    resolver = EdgeResolver(queue, source)
    for _ in range(50):
        for _ in range(20):
            with Occurrence(queue, "a", None):
                clock.advance(0.01)
        resolver.take(clock.boot_ns())

    assert device.made < 40 + 50 * 4 + 10, "40 of a second's spans, and four a second to pair the clocks"


def test_gpu_edges_without_a_gpu_are_refused_before_the_first_step():
    with pytest.raises(CarbonreportError, match=r"edges='gpu'.*edges='host'"):
        trace("x", edges="gpu")


def test_unknown_edges_are_refused():
    with pytest.raises(CarbonreportError, match="one of host, gpu"):
        trace("x", edges="cuda")  # type: ignore[arg-type]
