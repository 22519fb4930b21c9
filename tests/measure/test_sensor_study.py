"""The interval of a total holds for the sensors that were studied in the field (arXiv 2312.02741), whatever the load's rhythm."""

import math
import random

import numpy as np
import pytest

from carbonreport.combine.intervals import Part, device_factors
from carbonreport.measure.anchor import Integral
from carbonreport.measure.gauges import GAIN_OF_SAMPLES, Unseen
from carbonreport.model.run import Device
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import Rhythm, aliasing_words
from carbonreport.sensors import find_sensor
from carbonreport.testing import FakeClock, VirtualGpu, virtual_trace

# Board classes of the study: update period and averaging window. [s]
CLASSES = {
    "Tesla V100-SXM2-16GB": (0.020, 0.010),
    "Tesla P100-PCIE-16GB": (0.020, 0.010),
    "NVIDIA GeForce GTX 1080 Ti": (0.020, 0.010),
    "Tesla M40": (0.031, 0.014),
    "NVIDIA GeForce RTX 2080 Ti": (0.101, 0.102),
    "NVIDIA TITAN RTX": (0.101, 0.102),
    "Quadro RTX 8000": (0.100, 0.020),
    "NVIDIA A100-SXM4-80GB": (0.101, 0.025),
    "NVIDIA H100 PCIe": (0.100, 0.025),
    "NVIDIA GeForce RTX 3090": (0.100, 0.100),
    "NVIDIA GeForce RTX 4090": (0.100, 0.109),
    "NVIDIA GH200 480GB": (0.100, 0.020),
}


class Square:
    """A square wave and its energy, exactly.

    Args:
        rng: Chooses powers, period, duty and phase.
        away_from_s: A period of a sensor, whose multiples the wave avoids.
    """

    def __init__(self, rng, away_from_s):
        self.low, self.high = rng.uniform(60, 150), rng.uniform(250, 600)
        self.duty = rng.uniform(0.2, 0.8)
        while True:
            self.period_s = math.exp(rng.uniform(math.log(0.03), math.log(3.0)))
            multiple = self.period_s / away_from_s
            nearest = max(1, round(multiple))
            if abs(multiple - nearest) > 0.01 * nearest and abs(1 / multiple - max(1, round(1 / multiple))) > 0.02:
                break
        self.phase_s = rng.uniform(0, self.period_s)

    def joules(self, at_s):
        """Energy since the phase's zero. [J] Works on arrays."""
        turns, part = np.divmod(np.asarray(at_s) + self.phase_s, self.period_s)
        on_s = self.duty * self.period_s
        return self.low * np.asarray(at_s) + (self.high - self.low) * (turns * on_s + np.minimum(part, on_s))


def is_inside(rng, sensor):
    """One run: what the sensor reads, what the record says, and whether the truth lies in the interval."""
    wave, seconds = Square(rng, sensor.period_s), rng.uniform(20, 60)
    ticks = np.arange(rng.uniform(0, sensor.period_s), seconds, sensor.period_s)
    window_s = min(sensor.width_s, 4.0)
    true_watts = (wave.joules(ticks) - wave.joules(ticks - window_s)) / window_s
    points = list(zip(ticks.tolist(), (true_watts / gain(rng)).tolist(), strict=True))
    integral, unseen = Integral(1.0), Unseen(sensor)
    integral.add(points)
    unseen.add(points)
    read = integral.joules_at(ticks[-1])
    truth = float(wave.joules(ticks[-1] - sensor.lag_s) - wave.joules(ticks[0] - sensor.lag_s))
    edge_joules = (unseen.joules() or 0.0) / math.sqrt(2)
    device = Device("GPU-a", "board", "gpu", "instant", *GAIN_OF_SAMPLES, "test", edge_joules)
    factors = device_factors([Part(device, read, 2)])
    return read * factors.low <= truth <= read * factors.high


def gain(rng):
    """True over read: nine in ten boards within the interval of the sensor's gain."""
    z = rng.gauss(0, 1) / 1.645
    return math.exp(z * math.log(GAIN_OF_SAMPLES[1])) if z > 0 else math.exp(-z * math.log(GAIN_OF_SAMPLES[0]))


@pytest.mark.parametrize("board", CLASSES)
def test_a_square_wave_at_random_phase_lies_in_the_interval_nine_times_in_ten(board):
    period_s, window_s = CLASSES[board]
    sensor = find_sensor(board, "", "power")
    assert sensor is not None
    assert (sensor.period_s, sensor.width_s) == (period_s, window_s)
    rng = random.Random(board)
    share = sum(is_inside(rng, sensor) for _ in range(1000)) / 1000

    assert 0.88 <= share <= 0.97, share


def test_without_what_the_sensor_misses_the_interval_of_a_short_run_holds_less_often():
    sensor = Sensor("boxcar", 0.025, 0.0, 0.1, 0.001, 0.0, "test")
    unseen = Unseen(sensor)
    unseen.add([(0.1 * i, 600.0 if i % 2 else 100.0) for i in range(100)])

    assert unseen.joules() == pytest.approx(1.645 * math.sqrt(99 * 0.5 * (500 * 0.1) ** 2 * 0.75), rel=1e-6)


def test_a_sensor_that_sees_all_misses_nothing():
    unseen = Unseen(Sensor("boxcar", 0.1, 0.0, 0.1, 0.001, 0.0, "test"))
    unseen.add([(0.1 * i, 600.0 if i % 2 else 100.0) for i in range(100)])

    assert unseen.joules() is None


@pytest.mark.parametrize("board", CLASSES)
def test_an_aligned_wave_carries_the_note(board, tmp_path):
    period_s = CLASSES[board][0]
    clock = FakeClock()
    gpu = VirtualGpu(
        lambda s: 500.0 if s % (4 * period_s) < 2 * period_s else 100.0, name=board, missing=frozenset({"nvmlDeviceGetSamples"})
    )
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        for _ in range(100):
            with run.span("step"):
                clock.advance(4 * period_s)

    assert "sensor-aliasing" in {note.slug for note in run.record.notes}


def test_a_rhythm_that_wanders_carries_none():
    rng, rhythm = random.Random(3), Rhythm()
    for _ in range(200):
        rhythm.add(0.1 + rng.uniform(-0.004, 0.004))

    assert aliasing_words("step", rhythm, 0.1) == ""
