"""The energy of spans shorter than a sensor's response: found from repeats within the printed interval, or refused by name."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from pytest import approx

from carbonreport.combine.attribute import attribute
from carbonreport.combine.calibrate import fit_response
from carbonreport.combine.excerpts import FEW
from carbonreport.combine.single import single_spans
from carbonreport.combine.solve import nnls
from carbonreport.combine.tally import BLOCK_S, MAX_BLOCKS, Tally
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import REST, Rhythm

HOPPER = Sensor("low-pass", 0.0127, 0.00335, 0.02, 0.0003, 0.0003, "test")
BOXCAR = Sensor("boxcar", 0.025, 0.0, 0.1, 0.001, 0.001, "test")
IDLE_WATTS = 120.0


class Load:
    """Stretches of constant power and what a first-order sensor reads of them.

    Args:
        stretches: (path, seconds, watts); "" is the time outside spans.
        noise_watts: Standard deviation of a sample.
    """

    def __init__(self, stretches, *, sensor=HOPPER, noise_watts=5.0, seed=1):
        self.sensor = sensor
        ends = np.cumsum([seconds for _, seconds, _ in stretches])
        self.edges = np.concatenate([[0.0], ends])
        self.paths = [path for path, _, _ in stretches]
        self.watts = np.array([watts for _, _, watts in stretches])
        self.end_s = float(ends[-1])
        stamps = np.arange(0.0, self.end_s, sensor.period_s) + 0.001
        noise = np.random.default_rng(seed).normal(0, noise_watts, stamps.size)
        self.samples = list(zip(stamps.tolist(), (self._seen(stamps) + noise).tolist(), strict=True))

    def _seen(self, stamps):
        """The closed form: each step of power approaches its end exponentially, or linearly in a window."""
        at = (stamps - self.sensor.delay_s)[:, None] - self.edges[None, :-1]
        steps = np.diff(np.concatenate([[IDLE_WATTS], self.watts]))
        if self.sensor.kernel == "boxcar":
            return IDLE_WATTS + np.clip(at / self.sensor.width_s, 0, 1) @ steps
        return IDLE_WATTS + -np.expm1(-np.maximum(at, 0) / self.sensor.width_s) @ steps

    def joules_at(self, at_s):
        return float(np.interp(at_s, self.edges, np.concatenate([[0.0], np.cumsum(np.diff(self.edges) * self.watts)])))

    def true_watts(self, path):
        chosen = np.array([p == path for p in self.paths])
        seconds = np.diff(self.edges)[chosen]
        return float(self.watts[chosen] @ seconds / seconds.sum())

    def sums(self, sensor=None, *, limited_seconds=None, tick_s=1.0):
        """As the tracer feeds them: samples and edges of a second, then what is sure."""
        tally = Tally("GPU-a", sensor or self.sensor, self.joules_at, 0.0)
        rhythms, began, fed, next_tick_s = {}, {}, 0, tick_s
        for path, (from_s, to_s) in zip(self.paths, pairwise(self.edges.tolist()), strict=True):
            while from_s >= next_tick_s:
                tally.until(next_tick_s)
                next_tick_s += tick_s
            while fed < len(self.samples) and self.samples[fed][0] <= to_s:
                tally.add(self.samples[fed : fed + 1])
                fed += 1
            tally.turn(from_s, {path: 1.0} if path else {})
            if path in began:
                rhythms.setdefault(path, Rhythm()).add(from_s - began[path])
            began[path] = from_s
        tally.turn(self.end_s, {})
        tally.until(self.end_s)
        tally.limited_seconds = limited_seconds
        return tally.sums(rhythms)

    def found(self, sensor=None, **options):
        return attribute(self.sums(sensor, **options), {path: self.true_watts(path) for path in set(self.paths) if path})


def steps(short_ms, *, seconds=20.0, watts=(575.0, 900.0, 595.0, 120.0), jitter=0.1, seed=3):
    """A training step: two long phases with a strong and a weak short one between them."""
    rng, stretches, at_s = random.Random(seed), [], 0.0
    while at_s < seconds:
        lengths = (0.024, short_ms / 1000, 0.024, short_ms / 1000)
        for path, length_s, power in zip(("A", "D", "B", "C"), lengths, watts, strict=True):
            length_s *= 1 + rng.uniform(-jitter, jitter)
            stretches.append((path, length_s, power))
            at_s += length_s
        stretches.append(("", 0.001 * rng.random(), IDLE_WATTS))
    return stretches


@pytest.mark.parametrize(("short_ms", "half_width_watts"), [(16, 20), (8, 30), (4, 60)])
def test_short_spans_are_found_within_their_printed_interval(short_ms, half_width_watts):
    load = Load(steps(short_ms))
    found = load.found()

    for path in "ABCD":
        half = 1.645 * found.sd_watts(path)
        assert half < half_width_watts
        assert abs(found.mean_watts(path) - load.true_watts(path)) < half, path
    assert not found.told
    assert found.free_gain == approx(1.0, abs=0.01)
    assert found.residual_watts == approx(5.0, abs=0.5)


def test_the_intervals_hold_for_nine_runs_in_ten():
    inside = total = 0
    for seed in range(40):
        load = Load(steps(8, seconds=17, seed=seed), seed=seed, noise_watts=12.0)
        found = load.found()
        for path in "ABCD":
            total += 1
            inside += abs(found.mean_watts(path) - load.true_watts(path)) < 1.645 * found.sd_watts(path)
    assert inside / total > 0.88


def test_reading_samples_as_means_of_20_ms_is_wrong_by_over_100_watts_and_does_not_fit():
    load = Load(steps(8))
    naive = Sensor("boxcar", 0.02, 0.0, 0.02, 0.0003, 0.0003, "samples taken for means")
    found = load.found(naive)

    assert abs(found.watts[found.paths.index("C")] - load.true_watts("C")) > 100
    assert found.residual_watts > 5 * load.found().residual_watts


def test_a_sensor_that_averages_a_quarter_of_the_time_is_understood_too():
    load = Load(steps(16, seconds=120, jitter=0.3), sensor=BOXCAR)
    found = load.found()

    for path in "ABCD":
        assert found.mean_watts(path) == approx(load.true_watts(path), abs=1.645 * found.sd_watts(path) + 1)


def test_paths_make_the_device_s_total_by_one_gain():
    load = Load(steps(8))
    sums = load.sums()
    found = attribute(sums, {})

    assert float(found.watts @ found.seconds) == approx(sums.joules, rel=1e-9)
    assert sums.joules == approx(load.joules_at(load.end_s) - load.joules_at(0), rel=0.01)


def refused(load, path, words, sensor=None, **options):
    found = load.found(sensor, **options)
    assert path in found.told, found.told
    assert words in found.told[path].because
    assert found.told[path].within in found.paths
    return found


def test_few_repeats_of_a_short_span_are_refused():
    refused(Load(steps(8)[: 25 * 5] + [("A", 12.0, 575.0), ("B", 6.0, 595.0)] * 2), "C", "repeats of")


def test_a_short_run_is_told_as_one():
    refused(Load(steps(8, seconds=10)), "C", "are needed")


def test_a_sensor_that_nobody_calibrated_does_not_tell_8_ms():
    loose = Sensor("low-pass", 0.0127, 0.00335, 0.02, 0.001, 0.001, "taken from another board")
    refused(Load(steps(8)), "C", "not calibrated", loose)


def test_steps_in_time_with_the_sensor_are_refused():
    load = Load([("A", 0.024, 575.0), ("D", 0.008, 900.0), ("B", 0.040, 595.0), ("C", 0.008, 120.0)] * 260)
    found = refused(load, "C", "a multiple of the sensor's 20 ms")

    assert "every 80.0 ms" in found.aliased


def test_a_board_at_its_limit_does_not_tell_3_ms():
    found = refused(Load(steps(3)), "C", "power limit for 9", limited_seconds=18.5)

    assert found.limited_share == approx(0.92, abs=0.03)


def test_what_is_too_uncertain_is_refused_with_its_number():
    refused(Load(steps(2, seconds=16.5), noise_watts=40), "C", "with a standard deviation of")


def test_power_that_is_not_constant_inside_long_spans_is_noticed():
    stretches = []
    for path, seconds, watts in steps(8, seconds=40):
        parts = [(path, 0.010, watts + 350), (path, seconds - 0.010, watts - 250)]
        stretches += parts if path in ("A", "B") else [(path, seconds, watts)]
    load = Load(stretches)
    load.paths, load.edges, load.watts = joined(load)
    refused(load, "C", "power is not constant inside them")


def joined(load):
    """Neighbouring stretches of one path as one span, its power not constant inside."""
    paths, edges, watts = [], [0.0], []
    for path, from_s, to_s, power in zip(load.paths, load.edges, load.edges[1:], load.watts, strict=False):
        if paths and paths[-1] == path:
            length, new = edges[-1] - edges[-2], to_s - from_s
            watts[-1] = (watts[-1] * length + power * new) / (length + new)
            edges[-1] = to_s
        else:
            paths.append(path)
            edges.append(to_s)
            watts.append(power)
    return paths, np.array(edges), np.array(watts)


def test_two_paths_that_always_come_together_are_told_as_one():
    load = Load(steps(8))
    tally = Tally("GPU-a", HOPPER, load.joules_at, 0.0)
    tally.add(load.samples)
    for path, from_s in zip(load.paths, load.edges, strict=False):
        tally.turn(from_s, {path: 0.5, f"twin-{path}": 0.5} if path else {})
    tally.turn(load.end_s, {})
    tally.until(load.end_s)
    found = attribute(tally.sums({}), {})

    for path in "AB":
        assert found.mean_watts(path, f"twin-{path}") == approx(load.true_watts(path), abs=20)
        assert found.mean_watts(path) == approx(found.mean_watts(f"twin-{path}"), abs=1e-6)


def test_single_spans_of_24_ms_and_more_need_no_repeats():
    stretches = [("", 0.5, IDLE_WATTS)]
    for i in range(20):
        stretches += [("query", 0.026 + 0.002 * i, 580.0), ("", 0.11 + 0.013 * i, IDLE_WATTS)]
    load = Load(stretches)
    sums = load.sums()
    kept = [row for excerpt in sums.excerpts for row in single_spans(excerpt, HOPPER, 300.0) if row[0] == 1]

    assert len(kept) == 20
    for _, seconds, watts, sd_watts in kept:
        assert abs(watts - 580) < 3 * sd_watts
        assert sd_watts < (25 if seconds < 0.040 else 12)
    found = attribute(sums, {})
    assert found.how["query"] == "single"
    assert found.mean_watts("query") == approx(580, abs=2.5 * found.sd_watts("query"))


def test_no_sample_is_kept_of_what_repeats():
    sums = Load(steps(8, seconds=60)).sums()

    assert not sums.excerpts
    assert len(sums.blocks) == approx(60 / BLOCK_S, abs=1)
    assert all(times.stretches > FEW for path, times in zip(sums.paths, sums.times, strict=True) if path)


def test_a_long_run_has_as_few_blocks_as_a_short_one_and_the_same_sums():
    load = Load([("A", 0.3, 500.0), ("B", 0.25, 200.0)] * 1000, noise_watts=0.0)
    sums = load.sums()

    assert load.end_s > 2 * BLOCK_S * MAX_BLOCKS
    assert len(sums.blocks) <= MAX_BLOCKS + 1
    assert sum(block.count for block in sums.blocks) == approx(load.end_s / 0.02, abs=15)
    found = attribute(sums, {})
    assert (found.mean_watts("A"), found.mean_watts("B")) == (approx(500, abs=0.5), approx(200, abs=0.5))


def test_the_pieces_of_a_path_make_the_path():
    sums = Load(steps(16)).sums()
    for column in range(len(sums.paths)):
        pieces = sum(v for key, v in sums.pieces.right.items() if key // 3 == column)
        assert pieces == approx(sum(block.sums.right.get(column, 0.0) for block in sums.blocks), rel=1e-9)


def test_derivatives_are_those_of_a_sensor_that_is_a_little_other():
    load = Load(steps(8), noise_watts=0.0)
    small_s = 1e-6
    for kind, changed in (
        ("by_width", Sensor("low-pass", 0.0127 + small_s, 0.00335, 0.02, 0, 0, "wider")),
        ("by_delay", Sensor("low-pass", 0.0127, 0.00335 + small_s, 0.02, 0, 0, "later")),
    ):
        before, after = load.sums(), load.sums(changed)
        expected = {}
        for sign, sums in ((-1, before), (1, after)):
            for block in sums.blocks:
                for pair, value in block.sums.normal.items():
                    expected[pair] = expected.get(pair, 0.0) + sign * value / small_s
        derivative = getattr(before, kind).normal
        largest = max(map(abs, expected.values()))
        for pair, value in expected.items():
            assert derivative.get(pair, 0.0) == approx(value, abs=0.002 * largest), (kind, pair)


def test_after_a_pause_nothing_is_taken_until_the_sensor_has_forgotten():
    load = Load([("A", 0.3, 500.0), ("B", 0.25, 200.0)] * 40, noise_watts=0.0)
    tally = Tally("GPU-a", HOPPER, load.joules_at, 0.0)
    tally.add(load.samples)
    middle = int(np.searchsorted(load.edges, 10.0))
    for i, (path, from_s) in enumerate(zip(load.paths, load.edges, strict=False)):
        if i < middle:
            continue  # nobody noted these
        if i == middle:
            tally.pause(from_s, {})
        tally.turn(from_s, {path: 1.0})
    tally.turn(load.end_s, {})
    tally.until(load.end_s)
    sums = tally.sums({})

    assert sum(block.count for block in sums.blocks) == approx((load.end_s - load.edges[middle] - 0.2) / 0.02, abs=3)
    assert sums.joules == approx(load.joules_at(load.end_s) - load.joules_at(float(load.edges[middle])))
    assert attribute(sums, {}).mean_watts("A") == approx(500, abs=2)


def test_an_open_span_of_minutes_is_counted_while_it_lasts():
    load = Load([("A", 100.0, 500.0)])
    tally = Tally("GPU-a", HOPPER, load.joules_at, 0.0)
    tally.turn(0.0, {"A": 1.0})
    for second in range(1, 60):
        tally.add([s for s in load.samples if second - 1 <= s[0] < second])
        tally.until(float(second))

    assert tally.sums({}).seconds == approx(59 - 0.01)
    assert len(tally._samples) < 3


def test_power_never_turns_negative_and_agrees_with_brute_force():
    rng = np.random.default_rng(5)
    for _ in range(50):
        design = rng.random((30, 4))
        power = design @ np.array([500.0, 0.0, 20.0, 0.0]) + rng.normal(0, 60, 30)
        normal, right = design.T @ design, design.T @ power
        watts, _ = nnls(normal, right)
        best = min((brute(normal, right, mask) for mask in range(16)), key=lambda x: x @ normal @ x - 2 * x @ right)
        assert watts.min() >= 0
        assert watts == approx(best, abs=1e-6)


def brute(normal, right, mask):
    """Least squares on a subset of columns; zero where that would be negative."""
    on = [i for i in range(right.size) if mask >> i & 1]
    x = np.zeros(right.size)
    if on:
        x[on] = np.linalg.solve(normal[np.ix_(on, on)], right[on])
    return x if x.min() >= 0 else np.zeros(right.size)


def telegraph(seconds=12.0, seed=9):
    rng, at_s, stretches = random.Random(seed), 0.0, []
    while at_s < seconds:
        for path, watts in (("A", 580.0), ("C", 119.0)):
            length_s = rng.uniform(0.004, 0.070)
            stretches.append((path, length_s, watts))
            at_s += length_s
    return stretches


@pytest.mark.parametrize(
    "sensor", [HOPPER, Sensor("low-pass", 0.030, 0.008, 0.02, 0, 0, "test"), Sensor("boxcar", 0.025, 0.004, 0.02, 0, 0, "test")]
)
def test_a_known_load_gives_the_response_back(sensor):
    load = Load(telegraph(), sensor=sensor)
    stretches = [(int(p == "A"), a, b, 1.0) for p, a, b in zip(load.paths, load.edges, load.edges[1:], strict=False)]
    fit = fit_response(load.samples, stretches, period_s=0.02, source="test")

    assert fit.is_good
    assert fit.sensor.kernel == sensor.kernel
    assert fit.sensor.width_s == approx(sensor.width_s, abs=0.0005)
    assert fit.sensor.delay_s == approx(sensor.delay_s, abs=0.0005)


def test_a_load_that_the_response_does_not_explain_is_no_calibration():
    load = Load(telegraph())
    shifted = [
        (int(p == "A"), a + 0.011 * math.sin(37 * a), b + 0.011 * math.sin(37 * b), 1.0)
        for p, a, b in zip(load.paths, load.edges, load.edges[1:], strict=False)
    ]

    assert not fit_response(load.samples, shifted, period_s=0.02, source="test").is_good


def test_too_few_samples_are_no_calibration():
    with pytest.raises(ValueError, match="100 or more"):
        fit_response([(0.0, 100.0)] * 20, [(0, 0.0, 1.0, 1.0)], period_s=0.02, source="test")


def test_time_outside_spans_has_its_own_power():
    load = Load([("A", 0.05, 500.0), ("", 0.04, IDLE_WATTS)] * 300)

    assert load.found().mean_watts(REST) == approx(IDLE_WATTS, abs=10)
