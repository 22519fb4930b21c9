"""Boards that NVML knows and cannot measure: "not measured", never 0."""

import time

import pytest

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.model.run import Place
from carbonreport.store import load
from carbonreport.testing import FakeClock, FakeMeter
from carbonreport.testing.nvml import FakeBoard, FakeNvml

POWER = frozenset({"nvmlDeviceGetSamples", "nvmlDeviceGetPowerUsage", "instant", "nvmlDeviceGetFieldValues"})
ENERGY = frozenset({"nvmlDeviceGetTotalEnergyConsumption"})
IDENTITY = frozenset({"nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo"})
LIMITS = frozenset({"nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetArchitecture", "nvmlDeviceGetMaxMigDeviceCount"})


def board(missing, watts=50.0, name="NVIDIA GRID A100-10C", uuid="GPU-a", **more):
    return FakeBoard(uuid, lambda _s: watts, name, missing=frozenset(missing), **more)


def meter_of(*boards):
    clock = FakeClock()
    nvml = FakeNvml(clock, boards)
    clock.advance(10)
    return NvmlMeter(nvml, {}), RunClock(clock), clock, nvml


AWKWARD = {
    "Jetson: NVML starts, nothing is supported": board(POWER | ENERGY | IDENTITY | LIMITS, name="Orin (nvgpu)"),
    "Jetson: the name and no more": board(POWER | ENERGY | LIMITS, name="Orin (nvgpu)"),
    "vGPU guest: neither power nor energy": board(POWER | ENERGY),
    "vGPU guest: power is always 0 and there is no counter": board(ENERGY, watts=0.0),
}


@pytest.mark.parametrize("one", AWKWARD.values(), ids=AWKWARD.keys())
def test_a_board_that_cannot_be_measured_refuses_the_meter_and_gives_nvml_back(one):
    meter, run_clock, _, nvml = meter_of(one)

    with pytest.raises(MeterError):
        meter.open(run_clock)
    assert nvml.users == 0


@pytest.mark.parametrize("one", AWKWARD.values(), ids=AWKWARD.keys())
def test_a_record_of_such_a_board_has_no_device_and_says_why(one, tmp_path):
    meter, _, _, _ = meter_of(one)
    ladders = [[("nvml", lambda m=m: m)] for m in (meter, FakeMeter(10.0, device="cpu-package-0", kind="cpu"))]
    plan = RunPlan("run", "training", tmp_path, Place("DE", "option", "UTC"), "host", ladders, 0.1, {}, load)

    with Run(plan) as run:
        time.sleep(0.2)

    record = run.record
    assert [device.id for device in record.devices] == ["cpu-package-0"]
    assert [trace.device for trace in record.traces] == ["cpu-package-0"]
    assert [note.slug for note in record.notes] == ["tracer-degraded"]


def test_a_counter_that_is_always_zero_is_no_measured_zero():
    """A vGPU guest may pass the counter's call and never move it."""
    meter, run_clock, clock, _ = meter_of(board(POWER, watts=0.0))
    try:
        devices: tuple = meter.open(run_clock)
    except MeterError:
        return
    readings, gaps = {}, []
    for is_last in (False, True):
        clock.advance(30)
        poll = meter.poll(is_last=is_last)
        readings |= {reading.offset_s: reading.joules for reading in poll.readings}
        gaps += poll.gaps

    assert len(devices) == 1
    assert len(readings) <= 1, "a counter that stands still brings no new reading"
    assert [(round(gap.from_s), round(gap.to_s)) for gap in gaps] == [(0, 60)]


def test_the_boards_beside_an_awkward_one_are_measured():
    awkward, good = board(POWER | ENERGY | IDENTITY | LIMITS, uuid="GPU-bad"), board((), name="NVIDIA H200", uuid="GPU-good")
    meter, run_clock, clock, _ = meter_of(awkward, good)

    devices = meter.open(run_clock)
    clock.advance(1)
    poll = meter.poll(is_last=True)

    assert [device.id for device in devices] == ["GPU-good"]
    assert {reading.device for reading in poll.readings} == {"GPU-good"}
    assert any("GPU 0 does not answer" in note.text for note in poll.notes)
