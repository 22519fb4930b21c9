"""What a real H200 recorded: known loads with their edges, and training steps. Skipped where the recordings are not here.

A, B, C, D are an fp32 multiplication, a copy, a spin and a bf16 multiplication; the mixes put C and D of so many milliseconds
between A and B. A synthetic twin of each claim is in test_attribute.py.
"""

import importlib.util
import json
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.combine.attribute import attribute
from carbonreport.combine.calibrate import fit_response
from carbonreport.combine.lattice import Lattice
from carbonreport.combine.powers import solve_powers
from carbonreport.combine.single import seen, single_spans
from carbonreport.combine.solve import solved
from carbonreport.combine.tally import Tally
from carbonreport.model.sensor import Sensor
from carbonreport.model.sums import Excerpt, Rhythm

FOLDER = Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data")) / "h200"
pytestmark = pytest.mark.skipif(not (FOLDER / "loads" / "edges.json").is_file(), reason="the recordings are not here")

H200 = Sensor("low-pass", 0.0127, 0.00335, 0.02, 0.0003, 0.0003, "two recordings")
ALONE_WATTS = {"A": 578.0, "B": 596.0, "C": 119.3}  # each load alone, by the counter


class Recording:
    """Samples of the driver, on their lattice, and their curve."""

    def __init__(self, folder):
        self.rows = np.loadtxt(folder / "samples.csv", delimiter=",", skiprows=1)
        self.zero_us = self.rows[0, 0]
        self.stamps_s = (self.rows[:, 0] - self.zero_us) / 1e6
        self.watts = self.rows[:, 1] / 1000
        lattice, self.samples = Lattice(0.02), []
        for i in range(0, self.stamps_s.size, 50):
            slots = lattice.snap(self.stamps_s[i : i + 50].tolist())
            self.samples += [(slot, w) for slot, w in zip(slots, self.watts[i : i + 50].tolist(), strict=True) if slot is not None]
        self.joules = np.concatenate([[0.0], np.cumsum(np.diff(self.stamps_s) * (self.watts[1:] + self.watts[:-1]) / 2)])

    def joules_at(self, at_s):
        return float(np.interp(at_s, self.stamps_s, self.joules))

    def stretches(self, edges):
        """(label, from_s, to_s): an edge ends the stretch that its label names."""
        times = [(label, (us - self.zero_us) / 1e6) for label, us in edges]
        return [(label, from_s, to_s) for (_, from_s), (label, to_s) in pairwise(times)]

    def sums(self, stretches, sensor=H200):
        begin_s, end_s = stretches[0][1], stretches[-1][2]
        tally = Tally("GPU", sensor, self.joules_at, begin_s)
        tally.add([s for s in self.samples if begin_s + 0.2 < s[0] < end_s + 0.1])
        rhythms, began = {}, {}
        for path, from_s, _ in stretches:
            tally.turn(from_s, {path: 1.0} if path else {})
            if path in began:
                rhythms.setdefault(path, Rhythm()).add(from_s - began[path])
            began[path] = from_s
        tally.turn(end_s, {})
        tally.until(end_s)
        return tally.sums(rhythms)

    def found(self, stretches, sensor=H200):
        return attribute(self.sums(stretches, sensor), {})

    def inside(self, stretches):
        return [s for s in self.samples if stretches[0][1] + 0.2 < s[0] < stretches[-1][2]]


@pytest.fixture(scope="module")
def loads():
    recording = Recording(FOLDER / "loads")
    recording.edges = json.loads((FOLDER / "loads" / "edges.json").read_text())["E"]
    return recording


@pytest.mark.parametrize(("mix", "half_width_watts"), [("mix16", 13), ("mix8", 23), ("mix4", 41)])
def test_loads_in_a_mix_draw_what_they_draw_alone_within_the_printed_interval(loads, mix, half_width_watts):
    found = loads.found(loads.stretches(loads.edges[mix]))

    assert not found.told
    for path, alone_watts in ALONE_WATTS.items():
        half = 1.645 * found.sd_watts(path)
        assert abs(found.mean_watts(path) - alone_watts) < half + 0.03 * alone_watts, path
    assert 1.645 * found.sd_watts("C") == approx(half_width_watts, abs=3)
    assert found.free_gain == approx(1.0, abs=0.01)


@pytest.mark.parametrize("mix", ["mix16", "mix8", "mix4"])
def test_samples_read_as_20_ms_means_fail_for_c_by_over_100_watts(loads, mix):
    found = loads.found(loads.stretches(loads.edges[mix]), Sensor("boxcar", 0.02, 0.0, 0.02, 0.0003, 0.0003, "as means"))

    assert found.watts[found.paths.index("C")] - ALONE_WATTS["C"] > 100


def test_spans_of_1_and_2_ms_are_refused(loads):
    for mix in ("mix1", "mix2"):
        assert "C" in loads.found(loads.stretches(loads.edges[mix])).told


def test_a_step_of_80_ms_is_refused_because_the_sensor_always_meets_the_same_part(loads):
    found = loads.found(loads.stretches(loads.edges["lock"]))

    assert "a multiple of the sensor's 20 ms" in found.aliased
    assert "C" in found.told


@pytest.mark.parametrize("segment", ["telA", "telB"])
def test_the_response_is_found_from_a_random_load(loads, segment):
    labels = ["", "A", "B", "C", "D"]
    stretches = [(labels.index(p), a, b, 1.0) for p, a, b in loads.stretches(loads.edges[segment])]
    inside = [s for s in loads.samples if stretches[0][1] < s[0] < stretches[-1][2]]
    fit = fit_response(inside, stretches, period_s=0.02, source="recording")

    assert fit.is_good
    assert fit.sensor.kernel == "low-pass"
    assert fit.sensor.width_s * 1000 == approx(12.7, abs=0.5)
    assert fit.sensor.delay_s * 1000 == approx(3.4, abs=0.5)


@pytest.mark.parametrize("segment", ["telA", "telB"])
def test_late_samples_fit_known_loads_as_well_as_timely_ones(loads, segment):
    """On their slots those over 3.5 ms late miss by tens of watts."""
    labels = ["", "A", "B", "C"]
    stretches = [(labels.index(p), a, b, 1.0) for p, a, b in loads.stretches(loads.edges[segment])]
    taken_s, power = np.array(loads.inside(loads.stretches(loads.edges[segment]))).T
    of_part = np.array([[s[0] == part for part in range(4)] for s in stretches], float)[:, [1 if segment == "telA" else 2, 3]]
    phase_s = np.median(taken_s % 0.02)
    late_s = (taken_s - phase_s + 0.002) % 0.02 - 0.002

    def left(at_s):
        return power - seen(stretches, at_s, H200) @ of_part @ watts

    watts = np.linalg.lstsq(seen(stretches, taken_s, H200) @ of_part, power, rcond=None)[0]
    is_late, is_very_late = late_s > 0.0005, late_s > 0.005
    assert is_late.sum() > 30
    assert is_very_late.sum() > 10
    for chosen in (is_late, is_very_late):
        assert np.percentile(np.abs(left(taken_s)[chosen]), 80) < 12
        assert np.percentile(np.abs(left(taken_s - late_s)[chosen]), 80) > 15
    assert np.percentile(np.abs(left(taken_s)[~is_late]), 80) < 8


def test_single_spans_at_460_watts_contrast(loads):
    """24-32 ms within 12 W and 48-72 ms within 8 W, nine in ten."""
    labels = ["", "A", "B", "C", "D"]
    rows = [(labels.index(p), a, b, 1.0) for p, a, b in loads.stretches(loads.edges["telA"])]
    samples = loads.inside(loads.stretches(loads.edges["telA"]))
    truth = {1: 576.0, 3: 120.0}
    errors = {"short": [], "long": []}
    inside = total = 0
    for column, from_s, to_s, _ in rows:
        near = tuple(s for s in samples if from_s - 0.15 <= s[0] <= to_s + 0.15)
        window = tuple(r for r in rows if r[2] > from_s - 0.4 and r[1] < to_s + 0.15)
        found = [row for row in single_spans(Excerpt(near, window), H200, 350.0) if row[0] == column and row[1] == approx(to_s - from_s)]
        if not found or column not in truth:
            continue
        (_, seconds, watts, sd_watts) = found[0]
        total += 1
        inside += abs(watts - truth[column]) < 1.645 * sd_watts
        kind = "short" if seconds < 0.032 else "long" if 0.048 <= seconds <= 0.072 else None
        if kind:
            errors[kind].append(abs(watts - truth[column]))
    assert 0.86 < inside / total < 0.99
    assert np.percentile(errors["short"], 90) < 12
    assert np.percentile(errors["long"], 90) < 8


@pytest.fixture(scope="module")
def steps():
    """122 training steps at the board's limiter, 10 s: forward, backward, optimiser, by the host's clock after a synchronisation."""
    recording = Recording(FOLDER)
    recording.stretches_s = []
    previous_s = None
    for marks_us in json.loads((FOLDER / "phases.json").read_text())["edges"]:
        at_s = [(us - recording.zero_us) / 1e6 for us in marks_us]
        if previous_s is not None:
            recording.stretches_s.append(("", previous_s, at_s[0]))
        recording.stretches_s += [(path, *pair) for path, pair in zip(("forward", "backward", "optimiser"), pairwise(at_s), strict=True)]
        previous_s = at_s[-1]
    return recording


def test_recorded_training_steps_draw_what_the_limiter_allows(steps):
    sums = steps.sums(steps.stretches_s)
    solution = solved(sums.blocks, [[0, 3], [1], [2]])
    watts = dict(zip(("optimiser", "forward", "backward"), solution.watts, strict=True))
    optimiser = sums.times[sums.paths.index("optimiser")]

    assert 690 < watts["forward"] < 730
    assert 690 < watts["backward"] < 730
    assert 0.9 < watts["optimiser"] * optimiser.stretch_s < 1.6
    model_joules = sum(watts.get(path, watts["optimiser"]) * times.seconds for path, times in zip(sums.paths, sums.times, strict=True))
    assert model_joules == approx(sums.joules, rel=0.01)


def test_ten_seconds_of_training_are_told_as_one(steps):
    found = steps.found(steps.stretches_s)

    assert set(found.told) == {"forward", "optimiser"}
    assert all(told.within == "backward" and "16 s are needed" in told.because for told in found.told.values())


ORACLE = FOLDER.parents[1] / "reference" / "attribution_reference.py"


@pytest.mark.skipif(not ORACLE.is_file(), reason="the independent solution is not here")
@pytest.mark.parametrize("mix", ["mix16", "mix8", "mix4", "mix2", "mix1"])
def test_an_independent_solution_finds_the_same_powers(loads, mix):
    spec = importlib.util.spec_from_file_location("oracle", ORACLE)
    assert spec is not None and spec.loader is not None
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    stretches = loads.stretches(loads.edges[mix])
    kernel = oracle.OneKernel(sorted({path for path, _, _ in stretches}), H200.width_s, H200.delay_s)
    begin_s, end_s = stretches[0][1], stretches[-1][2]
    events = [(s[0] - H200.delay_s, 2, s) for s in loads.samples if begin_s + 0.2 < s[0] < end_s]
    events += [(from_s, 1, (path, True)) for path, from_s, _ in stretches] + [(to_s, 0, (path, False)) for path, _, to_s in stretches]
    for at_s, kind, what in sorted(events, key=lambda event: event[:2]):
        if kind == 2:
            kernel.sample(at_s, what[1])
        else:
            kernel.edge(at_s, *what)
    theirs = dict(zip(kernel.names, oracle.solve(kernel)["watts"], strict=True))
    powers = solve_powers(loads.sums(stretches))
    assert powers is not None
    ours = dict(zip(loads.sums(stretches).paths, powers.watts, strict=True))

    for path in "ABCD":
        assert ours[path] == approx(theirs[path], abs=1.0)
