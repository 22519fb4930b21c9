"""doctor --calibrate finds a sensor's response from a load that it makes itself, and keeps it for later runs."""

from bisect import bisect_right
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from pytest import approx

from carbonreport.errors import CarbonreportError, MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.torch_edges import TorchEdges
from carbonreport.sensors import calibrations_path, find_sensor
from carbonreport.testing import FakeClock, LowPass
from carbonreport.testing.clock import NANOSECONDS_PER_SECOND
from carbonreport.testing.nvml import FakeBoard, FakeNvml
from carbonreport.workflows.calibrate import Bench, calibrate, this_machine


class Gpu:
    """Draws power while it works through what was launched; PyTorch as far as the load needs it."""

    def __init__(self, clock, *, busy_watts=580.0, spin_watts=120.0):
        self.clock, self.zero_ns = clock, clock.boot_ns()
        self.free_ns = 0
        self.begins, self.watts = [0.0], [100.0]
        self.power = {"busy": busy_watts, "spin": spin_watts}

    def launch(self, kind, seconds):
        begin_ns = max(self.free_ns, self.clock.boot_ns())
        if begin_ns > self.free_ns:
            self._turn(self.free_ns, 100.0)
        self._turn(begin_ns, self.power[kind])
        self.free_ns = begin_ns + round(seconds * NANOSECONDS_PER_SECOND)

    def _turn(self, at_ns, watts):
        at_s = (at_ns - self.zero_ns) / NANOSECONDS_PER_SECOND
        if at_s > self.begins[-1] and watts != self.watts[-1]:
            self.begins.append(at_s)
            self.watts.append(watts)

    def draws(self, at_s):
        return self.watts[max(bisect_right(self.begins, at_s) - 1, 0)]

    def synchronize(self, _device=None):
        while self.clock.boot_ns() < self.free_ns:
            self.clock.advance((self.free_ns - self.clock.boot_ns()) / NANOSECONDS_PER_SECOND)
        self.clock.advance(0.002)

    def torch(self):
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                self.at_ns = 0

            def record(self, stream=None):
                self.at_ns = gpu.clock.boot_ns() if stream == "own" else max(gpu.free_ns, gpu.clock.boot_ns())

            def query(self):
                return gpu.clock.boot_ns() >= self.at_ns

            def synchronize(self):
                assert self.query()

            def elapsed_time(self, later):
                return (later.at_ns - self.at_ns) / 1e6

        cuda = SimpleNamespace(
            Event=Event,
            Stream=lambda device: "own",
            current_device=lambda: 0,
            current_stream=lambda device=None: SimpleNamespace(cuda_stream=0),
            is_current_stream_capturing=lambda: False,
            is_initialized=lambda: True,
            synchronize=self.synchronize,
            device=lambda _index: nullcontext(),
            _sleep=lambda _cycles: self.launch("spin", 0.0005),
        )
        return SimpleNamespace(
            cuda=cuda,
            randn=lambda *_size, device: None,
            empty_like=lambda _matrix: None,
            matmul=lambda _a, _b, out: self.launch("busy", 0.0004),
        )


def bench(sensor, *, missing=frozenset(), watts=None):
    clock = FakeClock()
    gpu = Gpu(clock)
    board = FakeBoard("GPU-a", watts or gpu.draws, sensor=sensor, missing=missing)
    nvml = FakeNvml(clock, [board])
    clock.advance(3)
    gpu.zero_ns = clock.boot_ns() - 3 * NANOSECONDS_PER_SECOND
    return Bench(TorchEdges(gpu.torch(), clock.boot_ns), nvml, RunClock(clock))


def test_the_response_of_a_board_is_found_and_kept_for_it_alone(tmp_path):
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    said = []
    (found,) = calibrate(bench(LowPass(0.017, 0.005)), seconds=8, environ=environ, say=said.append)

    assert found.fit.sensor.kernel == "low-pass"
    assert found.fit.sensor.width_s == approx(0.017, abs=0.0005)
    assert found.fit.sensor.delay_s == approx(0.005, abs=0.0005)
    assert found.kept == calibrations_path(environ)
    kept = find_sensor("NVIDIA H200", "GPU-a", "samples", found.kept)
    other = find_sensor("NVIDIA H200", "GPU-b", "samples", found.kept)
    assert kept is not None
    assert other is not None
    assert kept.width_s == approx(0.017, abs=0.0005)
    assert other.width_s == approx(0.0127)
    assert "NVIDIA H200" in said[0]


def test_a_board_that_somebody_else_uses_is_not_kept(tmp_path):
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    (found,) = calibrate(bench(LowPass(0.0127, 0.003), watts=lambda s: 300.0 + 200.0 * (int(s * 3.7) % 2)), seconds=8, environ=environ)

    assert found.kept is None
    assert not calibrations_path(environ).exists()


def test_a_board_without_a_buffer_is_refused_by_name(tmp_path):
    with pytest.raises(MeterError, match=r"GPU 0 \(NVIDIA H200\) has no buffer"):
        calibrate(bench(None, missing=frozenset({"nvmlDeviceGetSamples"})), seconds=2, environ={"XDG_CONFIG_HOME": str(tmp_path)})


def test_without_a_gpu_calibration_says_what_is_missing():
    with pytest.raises(CarbonreportError, match="doctor --calibrate makes its load with PyTorch"):
        this_machine()
