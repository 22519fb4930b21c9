"""Replay hands out a trace as the clock passes it."""

import pytest

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.replay import ReplayMeter, create
from carbonreport.model.run import Device
from carbonreport.testing.clock import FakeClock

GPU = Device("GPU-a", "NVIDIA H200", "gpu", "anchored", 0.99, 1.08, "test")


def points(poll):
    return [(round(reading.offset_s, 6), reading.joules) for reading in poll.readings]


def test_points_come_out_once_when_the_clock_has_passed_them():
    clock = FakeClock()
    meter = ReplayMeter([(GPU, (0.0, 1.0, 2.0, 3.0), (0.0, 100.0, 300.0, 600.0))])

    assert meter.open(RunClock(clock)) == (GPU,)
    assert points(meter.poll(is_last=False)) == [(0.0, 0.0)]
    clock.advance(2.5)
    assert points(meter.poll(is_last=False)) == [(1.0, 100.0), (2.0, 300.0)]
    assert points(meter.poll(is_last=False)) == []


def test_the_last_poll_ends_the_trace_at_this_moment():
    clock = FakeClock()
    meter = ReplayMeter([(GPU, (0.0, 2.0), (0.0, 200.0))])
    meter.open(RunClock(clock))
    clock.advance(1.5)

    assert points(meter.poll(is_last=True)) == [(0.0, 0.0), (1.5, 150.0)]


def test_gaps_come_out_when_they_end():
    clock = FakeClock()
    meter = ReplayMeter([(GPU, (0.0, 4.0), (0.0, 200.0))], {"GPU-a": ((1.0, 2.0),)})
    meter.open(RunClock(clock))
    clock.advance(1.5)
    assert not meter.poll(is_last=False).gaps

    clock.advance(1.0)
    assert [(gap.from_s, gap.to_s) for gap in meter.poll(is_last=False).gaps] == [(1.0, 2.0)]


def test_a_replay_without_a_path_is_refused():
    with pytest.raises(MeterError, match="path"):
        create({})
