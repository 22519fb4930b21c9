"""The NVML meter climbs down one rung at a time and never calls an unread board zero."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pytest
from pytest import approx

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter, available
from carbonreport.testing.clock import FakeClock
from carbonreport.testing.nvml import FakeBoard, FakeNvml

NO_BUFFER = "nvmlDeviceGetSamples"
NO_COUNTER = "nvmlDeviceGetTotalEnergyConsumption"
NO_USAGE = "nvmlDeviceGetPowerUsage"


def steady(_s):
    return 300.0


def square(s):
    return 600.0 if s % 0.3 < 0.1 else 150.0


class Session:
    """A meter on fake boards, polled as the sampler polls it."""

    def __init__(self, *boards, failures=None, returns_bytes=False, **environ):
        self.clock = FakeClock()
        self.nvml = FakeNvml(self.clock, boards, failures, returns_bytes=returns_bytes)
        self.clock.advance(10)
        self.run_clock = RunClock(self.clock)
        self.meter = NvmlMeter(self.nvml, environ)
        self.points, self.gains, self.gaps, self.notes = {}, {}, [], []

    def open(self):
        self.devices = self.meter.open(self.run_clock)
        self.poll()
        return self

    def poll(self, *, is_last=False):
        self.run_clock.look()
        poll = self.meter.poll(is_last=is_last)
        for reading in poll.readings:
            self.points.setdefault(reading.device, []).append((reading.offset_s, reading.joules))
        self.gains.update(poll.gains)
        self.gaps += poll.gaps
        self.notes += poll.notes
        return poll

    def run(self, seconds, *, every_s=None):
        step_s = every_s or self.meter.period_s or 1.0
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.poll()
        return self

    def end(self):
        self.poll(is_last=True)
        self.meter.close()
        return self

    def slugs(self):
        return [note.slug for note in self.notes]

    def joules(self, device="GPU-a", from_s=-math.inf, to_s=math.inf):
        inside = [joules for offset_s, joules in self.points[device] if from_s <= offset_s <= to_s]
        return inside[-1] - inside[0]

    def is_rising(self):
        return all(a[0] < b[0] and a[1] <= b[1] for points in self.points.values() for a, b in pairwise(points))


def board(*missing, watts=steady, uuid="GPU-a", **more):
    return FakeBoard(uuid, watts, missing=frozenset(missing), **more)


@pytest.mark.parametrize(
    ("one", "method", "period_s", "word"),
    [
        (board(), "anchored", 1.0, "buffered"),
        (board(NO_BUFFER), "anchored", 0.1, "instant"),
        (board(NO_BUFFER, "instant", architecture=5, name="Tesla V100-SXM2-16GB"), "anchored", 0.1, "power usage"),
        (board(NO_BUFFER, "instant", architecture=7, name="NVIDIA A100-SXM4-80GB"), "anchored", 0.1, "power usage"),
        (board(NO_BUFFER, "instant"), "counter", None, "counter"),
        (board(NO_BUFFER, "instant", NO_USAGE), "counter", None, "counter"),
        (board(NO_COUNTER), "instant", 1.0, "buffered"),
        (board(NO_COUNTER, NO_BUFFER), "instant", 0.1, "instant"),
        (board(NO_COUNTER, NO_BUFFER, "instant", architecture=4, name="Tesla P100-PCIE-16GB"), "instant", 0.1, "power usage"),
        (board(NO_COUNTER, NO_BUFFER, "instant", name="NVIDIA RTX A3000", architecture=7), "averaged", 0.5, "one-second mean"),
        (board(NO_COUNTER, NO_BUFFER, "instant", "nvmlDeviceGetArchitecture"), "averaged", 0.5, "one-second mean"),
    ],
)
def test_the_best_way_that_a_board_offers_is_taken_and_measures_its_energy(one, method, period_s, word):
    session = Session(one).open().run(45).end()

    (device,) = session.devices
    assert (device.method, session.meter.period_s) == (method, period_s)
    assert word in device.source
    assert session.joules(from_s=0.0, to_s=45.0) == approx(300 * 45, rel=0.03)
    assert session.is_rising()
    assert not session.gaps


def test_a_board_that_gives_nothing_is_left_out_and_never_zero():
    silent = board(NO_BUFFER, "instant", NO_COUNTER, NO_USAGE, uuid="GPU-silent")

    session = Session(board(), silent).open().run(5).end()

    assert [device.id for device in session.devices] == ["GPU-a"]
    assert "GPU-silent" not in session.points
    assert "GPU 1 (NVIDIA H200) gives neither power nor energy" in session.notes[0].text


def test_boards_that_all_give_nothing_refuse_the_meter():
    with pytest.raises(MeterError, match="neither power nor energy"):
        Session(board(NO_BUFFER, "instant", NO_COUNTER, NO_USAGE)).open()


def test_a_power_of_zero_is_an_unknown_power():
    session = Session(board(NO_COUNTER, NO_BUFFER, watts=lambda s: 0.0), board(uuid="GPU-b")).open()

    assert [device.id for device in session.devices] == ["GPU-b"]


def test_the_integral_of_a_square_wave_meets_the_counter_through_the_gain():
    session = Session(board(watts=square, counter_share=1.04)).open().run(120).end()

    true_joules = (600 * 0.1 + 150 * 0.2) / 0.3 * 120
    assert session.joules(from_s=0, to_s=120) * session.gains["GPU-a"] == approx(1.04 * true_joules, rel=0.005)
    assert session.gains["GPU-a"] == approx(1.04, rel=0.01)
    assert not session.notes


def test_the_first_buffer_reaches_back_before_the_meter_was_opened():
    session = Session(board()).open()

    assert session.points["GPU-a"][0][0] == approx(-2.36, abs=0.03)
    assert session.joules() == approx(300 * 2.36, rel=0.01)


def test_a_gain_is_told_only_after_thirty_seconds_of_comparison():
    session = Session(board()).open().run(27)
    assert not session.gains

    session.run(20)
    assert session.gains == {"GPU-a": approx(1.0, abs=0.003)}


def test_a_short_run_says_for_how_long_the_counter_was_compared():
    session = Session(board()).open().run(12).end()

    assert not session.gains
    assert session.slugs() == ["anchor-short"]
    assert "12 s" in session.notes[0].text


def test_the_counter_is_read_seldom_because_a_read_is_dear():
    session = Session(board()).open()
    at_start = session.nvml.calls["nvmlDeviceGetTotalEnergyConsumption"]
    session.run(100).end()

    assert session.nvml.calls["nvmlDeviceGetTotalEnergyConsumption"] - at_start == 7 + 1


def test_a_counter_that_contradicts_the_samples_is_not_believed():
    session = Session(board(counter_share=0.57)).open().run(60).end()

    assert session.gains == {"GPU-a": 1.0}
    assert session.slugs() == ["counter-doubted"]
    assert "the samples are used" in session.notes[0].text


def test_a_counter_reset_restarts_the_comparison_and_is_noted():
    one = board()
    session = Session(one).open().run(50)
    one.reset()
    session.run(50).end()

    assert session.slugs() == ["counter-reset"]
    assert session.gains["GPU-a"] == approx(1.0, abs=0.003)


def test_a_reset_of_a_lone_counter_is_a_gap_and_the_curve_never_falls():
    one = board(NO_BUFFER, "instant", NO_USAGE)
    session = Session(one).open().run(10)
    one.reset()
    session.run(10).end()

    assert session.is_rising()
    assert session.slugs() == ["counter-reset", "reading-gap"]
    assert [gap.to_s - gap.from_s for gap in session.gaps] == [approx(1.0)]
    assert session.joules() == approx(300 * 19, rel=0.02)


def test_a_lost_board_is_noted_once_and_the_others_go_on():
    lost = board(uuid="GPU-lost")
    session = Session(lost, board()).open().run(10)
    lost.lose()
    session.run(35).end()

    assert session.slugs() == ["device-lost"]
    assert "GPU 0 (NVIDIA H200) stopped answering" in session.notes[0].text
    assert session.joules("GPU-lost", from_s=0) == approx(300 * 10, rel=0.01)
    assert session.joules("GPU-a", from_s=0) == approx(300 * 45, rel=0.01)
    assert [(gap.device, gap.to_s) for gap in session.gaps] == [("GPU-lost", approx(45.0))]
    calls = lost.calls
    session.meter.poll(is_last=False)
    assert lost.calls == calls


def test_a_board_lost_before_the_first_poll_keeps_what_was_read_in_open():
    lost = board()
    session = Session(lost, board(uuid="GPU-b"))
    session.meter.open(session.run_clock)
    lost.lose()
    session.clock.advance(1.0)
    session.poll(is_last=True)

    assert session.joules() == approx(300 * 2.36, rel=0.01)
    assert session.gaps[0].from_s == approx(0.0, abs=0.03)


def test_a_board_that_is_lost_when_the_meter_opens_is_left_out():
    session = Session(board(lost_from_call=5), board(uuid="GPU-b")).open()

    assert [device.id for device in session.devices] == ["GPU-b"]
    assert session.slugs() == ["tracer-degraded"]


def test_a_long_pause_is_a_gap_over_which_the_curve_is_flat():
    session = Session(board()).open().run(40)
    before = session.points["GPU-a"][-1]
    session.clock.advance(30)
    session.run(40).end()

    (gap,) = session.gaps
    assert gap.from_s == approx(before[0])
    assert gap.to_s - gap.from_s == approx(30 - 119 * 0.02 + 1, abs=1.05)
    assert session.joules(from_s=gap.from_s, to_s=gap.to_s) == 0
    assert "reading-gap" in session.slugs()
    assert session.gains["GPU-a"] == approx(1.0, abs=0.003), "the counter ran on through the gap, which must not raise the gain"


def test_a_suspended_machine_leaves_a_gap_and_no_energy():
    session = Session(board(watts=lambda s: 300.0), board(NO_BUFFER, uuid="GPU-polled")).open().run(5)
    session.clock.sleep(3600)
    session.run(5).end()

    assert {gap.device for gap in session.gaps} == {"GPU-a", "GPU-polled"}
    assert session.joules("GPU-polled", from_s=0) == approx(300 * 10, rel=0.03)


def test_polled_power_bridges_a_short_stall_and_not_a_long_one():
    session = Session(board(NO_BUFFER)).open().run(5)
    session.clock.advance(0.8)
    session.run(5)
    assert not session.gaps

    session.clock.advance(1.5)
    session.run(5)
    assert len(session.gaps) == 1


def test_a_buffer_that_stands_still_ends_in_a_gap():
    session = Session(board(frozen_from_s=20.0)).open().run(30).end()

    (gap,) = session.gaps
    assert (gap.from_s, gap.to_s) == (approx(10.0, abs=0.03), approx(30.0))
    assert "reading-gap" in session.slugs()


def test_a_poll_without_news_brings_nothing():
    session = Session(board()).open()

    assert session.poll().readings == ()


def test_a_call_that_fails_for_a_while_costs_no_board():
    session = Session(board()).open().run(5)
    session.nvml.fail("nvmlDeviceGetSamples", "Timeout")
    session.run(2)
    session.nvml.fail("nvmlDeviceGetSamples", None)
    session.run(5).end()

    assert "device-lost" not in session.slugs()
    assert session.joules(from_s=0) == approx(300 * 12, rel=0.01 + 0.7 / 12)


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, 0.4, -0.4])
def test_setting_the_wall_clock_costs_at_most_a_second(step_s):
    session = Session(board()).open().run(10)
    session.clock.step_wall(step_s)
    session.run(40).end()

    assert session.is_rising()
    assert session.joules(from_s=0, to_s=50.0) == approx(300 * 50, abs=300 * 1.05)
    assert session.points["GPU-a"][-1][0] == approx(50.0, abs=0.03)


def test_late_and_repeated_stamps_are_put_in_order():
    class Shuffled(FakeNvml):
        def nvmlDeviceGetSamples(self, handle, kind, since_us):
            value_type, samples = super().nvmlDeviceGetSamples(handle, kind, since_us)
            return value_type, [*reversed(samples), *samples[:3], SimpleNamespace(timeStamp=0, sampleValue=samples[0].sampleValue)]

    session = Session()
    session.nvml = Shuffled(session.clock, [board()])
    session.clock.advance(5)
    session.run_clock = RunClock(session.clock)
    session.meter = NvmlMeter(session.nvml, {})
    session.open().run(10)

    assert session.is_rising()
    assert session.joules(from_s=0) == approx(3000, rel=0.01)
    assert not session.gaps


def test_boards_of_different_kinds_are_each_read_at_their_own_pace():
    session = Session(board(), board(NO_BUFFER, uuid="GPU-polled"), board(NO_BUFFER, "instant", uuid="GPU-counted")).open().run(50).end()

    assert session.meter.period_s == 0.1
    assert [device.method for device in session.devices] == ["anchored", "anchored", "counter"]
    assert session.nvml.calls["nvmlDeviceGetSamples"] < 65
    for device in session.devices:
        assert session.joules(device.id, from_s=0) == approx(300 * 50, rel=0.03)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", ["GPU-b"]),
        ("GPU-b,GPU-a", ["GPU-b", "GPU-a"]),
        ("MIG-GPU-a/1/0", ["GPU-a"]),
        ("MIG-2,MIG-1", ["GPU-b"]),
        ("0,-1,1", ["GPU-a"]),
    ],
)
@pytest.mark.parametrize("returns_bytes", [False, True])
def test_only_boards_that_the_program_may_use_are_read(value, expected, returns_bytes):
    boards = board(), board(uuid="GPU-b", migs=("MIG-1", "MIG-2"))

    session = Session(*boards, returns_bytes=returns_bytes, CUDA_VISIBLE_DEVICES=value).open()

    assert [device.id for device in session.devices] == expected
    assert session.devices[0].name == "NVIDIA H200"


@pytest.mark.parametrize("value", ["", "-1,0", "7"])
def test_no_visible_board_is_an_error_that_names_the_variable(value):
    with pytest.raises(MeterError, match="no NVIDIA GPU is visible: CUDA_VISIBLE_DEVICES="):
        Session(board(), CUDA_VISIBLE_DEVICES=value).open()


def test_no_board_at_all_is_an_error_and_the_driver_is_released():
    session = Session()

    with pytest.raises(MeterError, match="no NVIDIA GPU is visible"):
        session.open()
    assert session.nvml.users == 0


@pytest.mark.parametrize("error", ["LibraryNotFound", "DriverNotLoaded", "LibRmVersionMismatch", "NoPermission", "Unknown"])
def test_a_driver_that_does_not_start_is_one_line(error):
    with pytest.raises(MeterError) as caught:
        Session(board(), failures={"nvmlInit": error}).open()

    assert ("\n" not in str(caught.value) and "driver" in str(caught.value).lower()) or error == "Unknown"


def test_mixed_models_counted_by_index_are_noted():
    boards = board(), board(uuid="GPU-b", name="NVIDIA T4")

    assert "PCI order" in Session(*boards, CUDA_VISIBLE_DEVICES="0").open().notes[0].text
    assert not Session(*boards, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="PCI_BUS_ID").open().notes


def test_an_averaged_board_has_blurred_ends_and_says_so():
    session = Session(board(NO_COUNTER, NO_BUFFER, "instant")).open()

    assert session.devices[0].edge_joules == approx(350)
    assert session.slugs() == ["averaged-power"]


def test_intervals_and_edges_follow_the_method():
    anchored, instant = Session(board(), board(NO_COUNTER, uuid="GPU-b")).open().devices

    assert (anchored.gain_low, anchored.gain_high, anchored.edge_joules) == (0.99, 1.08, 1.0)
    assert (instant.gain_low, instant.gain_high) == (0.95, 1.08)


def test_the_environment_names_driver_and_models():
    session = Session(board(), board(uuid="GPU-b"), board(uuid="GPU-c", name="NVIDIA T4"))
    assert session.meter.environment() == {}

    session.open()
    assert session.meter.environment() == {"driver": "580.159.04", "gpus": "2 x NVIDIA H200, 1 x NVIDIA T4"}


def test_available_says_in_one_line_what_is_missing():
    reason = available()

    assert reason is None or "\n" not in reason
