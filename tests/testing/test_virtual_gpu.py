"""A virtual GPU stands in for a real one in users' own tests."""

import math
import time
from pathlib import Path

import pytest
from pytest import approx

from carbonreport import trace
from carbonreport.testing import FakeClock, LowPass, VirtualGpu, virtual_trace
from carbonreport.testing.nvml import FakeBoard, FakeNvml


def training(s):
    return 650.0 if s % 0.5 < 0.4 else 120.0


def traced(folder: Path, *gpus: VirtualGpu, seconds: float = 120.0):
    clock = FakeClock()
    with virtual_trace(clock, *gpus, out=folder) as run:
        clock.advance(seconds)
    return run.record


def joules(record, device="GPU-virtual"):
    (curve,) = [one for one in record.traces if one.device == device]
    return curve.joules[-1]


def test_virtual_hours_are_measured_in_moments(tmp_path):
    began_s, gpu = time.monotonic(), VirtualGpu(300.0)

    record = traced(tmp_path, gpu, seconds=3600)

    assert record.duration_s == 3600
    assert joules(record) == approx(300 * 3600, rel=0.001)
    assert [device.method for device in record.devices] == ["anchored"]
    assert not record.notes
    assert time.monotonic() - began_s < 30


def test_power_that_changes_is_measured_through_sensor_buffer_and_counter(tmp_path):
    gpu = VirtualGpu(training)

    assert joules(traced(tmp_path, gpu)) == approx(gpu.true_joules(120), rel=0.01)


def test_a_counter_that_counts_too_much_shows_as_gain(tmp_path):
    record = traced(tmp_path, VirtualGpu(400.0, counter_share=1.05))

    assert joules(record) == approx(1.05 * 400 * 120, rel=0.005)


def test_spans_lie_in_virtual_time(tmp_path):
    clock, gpu = FakeClock(), VirtualGpu(lambda s: 100.0 if s < 60 else 500.0)
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        with run.span("load"):
            clock.advance(60)
        with run.span("train"):
            clock.advance(60)

    spans = {span.path: span for span in run.record.spans}
    assert spans["load"].seconds == spans["train"].seconds == approx(60)
    assert spans["load"].joules["GPU-virtual"] == approx(100 * 60, rel=0.01)
    assert spans["train"].joules["GPU-virtual"] == approx(500 * 60, rel=0.01)


def test_several_gpus_are_measured_each_by_itself(tmp_path):
    record = traced(tmp_path, VirtualGpu(300.0, uuid="GPU-a"), VirtualGpu(200.0, uuid="GPU-b", missing=frozenset({"nvmlDeviceGetSamples"})))

    assert [joules(record, device) for device in ("GPU-a", "GPU-b")] == [approx(300 * 120, rel=0.01), approx(200 * 120, rel=0.01)]


def test_a_lost_gpu_is_noted_and_keeps_what_was_read(tmp_path):
    record = traced(tmp_path, VirtualGpu(300.0, lost_at_s=60.0))

    assert "device-lost" in {note.slug for note in record.notes}
    assert joules(record) == approx(300 * 60, rel=0.03)


def test_a_frozen_buffer_is_a_gap(tmp_path):
    record = traced(tmp_path, VirtualGpu(300.0, frozen_from_s=100.0))

    assert "reading-gap" in {note.slug for note in record.notes}
    assert record.traces[0].gaps[0][0] == approx(100.0, abs=0.05)


def test_a_machine_that_sleeps_uses_nothing_meanwhile(tmp_path):
    clock, gpu = FakeClock(), VirtualGpu(300.0)
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        clock.advance(60)
        clock.sleep(3600)
        clock.advance(60)

    assert joules(run.record) == approx(300 * 120, rel=0.05)


def test_in_real_time_it_is_a_meter_like_any_other(tmp_path, monkeypatch):
    (tmp_path / "my_gpus.py").write_text("from carbonreport.testing import VirtualGpu\n\ndef gpu(options):\n    return VirtualGpu(300.0)\n")
    monkeypatch.syspath_prepend(tmp_path)

    with trace("job", meters=("my_gpus:gpu",), out=tmp_path / "runs", zone="DE", pue=1.1) as run:
        time.sleep(1.2)

    assert joules(run.record) == approx(300 * run.record.duration_s, rel=0.05)


@pytest.mark.parametrize("at_s", [-0.001, 0.002, 0.0127, 0.03, 0.2])
def test_a_low_pass_answers_a_step_as_the_formula_says(at_s):
    sensor = LowPass(time_constant_s=0.0127, delay_s=0.00335)
    expected = 100 + 500 * (1 - math.exp(-max(at_s, 0) / 0.0127))

    assert sensor.watts_at(lambda s: 600.0 if s >= 0 else 100.0, at_s + 0.00335) == approx(expected, abs=12)


@pytest.mark.parametrize(("time_constant_s", "delay_s"), [(0.0, 0.0), (-1.0, 0.0), (0.01, -0.001), (float("nan"), 0.0)])
def test_a_sensor_without_sense_is_refused(time_constant_s, delay_s):
    with pytest.raises(ValueError, match="time constant"):
        LowPass(time_constant_s, delay_s)


def test_a_board_without_sensor_samples_its_power_as_it_is():
    clock = FakeClock()
    plain, sensed = FakeBoard("GPU-a", training), FakeBoard("GPU-b", training, sensor=LowPass(0.02))
    nvml = FakeNvml(clock, [plain, sensed])
    clock.advance(5)

    assert {s.sampleValue.uiVal for s in nvml.nvmlDeviceGetSamples(plain, 0, 0)[1]} == {650_000, 120_000}
    assert len({s.sampleValue.uiVal for s in nvml.nvmlDeviceGetSamples(sensed, 0, 0)[1]}) > 10
