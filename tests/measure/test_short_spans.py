"""A traced loop on a virtual H200: phases shorter than its sensor's response, from the first span to the shown table."""

import json
import random
import time
from bisect import bisect_right
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.testing import FakeClock, VirtualGpu, virtual_trace

PHASES = (("forward", 0.026, 640.0), ("backward", 0.052, 680.0), ("optimiser", 0.009, 260.0))
IDLE_WATTS = 120.0


class Loop:
    """Training steps of a known length and power; the virtual board draws what the phase of the moment draws."""

    def __init__(self, steps: int, *, jitter: float = 0.15, scale: float = 1.0, seed: int = 4) -> None:
        rng = random.Random(seed)
        self.steps = [[(name, s * scale * (1 + rng.uniform(-jitter, jitter)), w) for name, s, w in PHASES] for _ in range(steps)]
        self.begins, self.watts = [0.5], []
        for step in self.steps:
            for _, seconds, watts in step:
                self.watts.append(watts)
                self.begins.append(self.begins[-1] + seconds)

    def draws(self, s: float) -> float:
        i = bisect_right(self.begins, s) - 1
        return self.watts[i] if 0 <= i < len(self.watts) else IDLE_WATTS

    def joules(self, name: str) -> float:
        return sum(seconds * watts for step in self.steps for n, seconds, watts in step if n == name)

    def trace(self, folder: Path, *, wait_at: int | None = None, **board: object):
        """Run the loop in virtual time; at one step, wait until the sampler has written what it knows."""
        clock, gpu = FakeClock(), VirtualGpu(self.draws, **board)
        with virtual_trace(clock, gpu, out=folder, name="train") as run:
            clock.advance(0.5)
            for i, step in enumerate(self.steps):
                if i == wait_at:
                    wait_for_sums(run.path)
                with run.span("step"):
                    for name, seconds, _ in step:
                        with run.span(name):
                            clock.advance(seconds)
            clock.advance(0.5)
        return run


def wait_for_sums(path: Path) -> None:
    """The sampler is a thread of its own, in real time."""
    give_up_s = time.monotonic() + 30
    while '"sums"' not in path.read_text():
        assert time.monotonic() < give_up_s
        time.sleep(0.05)


def shown(path: Path, *options: str) -> dict:
    result = CliRunner().invoke(cli, ["show", str(path), "--json", *options])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    loop = Loop(400)
    return loop, loop.trace(tmp_path_factory.mktemp("runs"))


def test_each_phase_has_its_energy_within_its_printed_interval(training):
    loop, run = training
    spans = {s["path"]: s for s in shown(run.path)["spans"]}

    for name, _, _ in PHASES:
        span = spans[f"step/{name}"]
        assert span["count"] == 400
        assert span["it_joules_low"] < loop.joules(name) < span["it_joules_high"], name
        assert span["it_joules"] == approx(loop.joules(name), rel=0.08)


def test_the_curve_alone_would_smear_the_short_phase(training):
    loop, run = training
    by_curve = sum(s.joules["GPU-virtual"] for s in run.record.spans if s.path == "step/optimiser")

    assert by_curve > 1.3 * loop.joules("optimiser")


def test_spans_and_the_rest_are_the_total(training):
    _, run = training
    show = shown(run.path)
    top = [s for s in show["spans"] if "/" not in s["path"]]

    for part in ("it_joules", "grams"):
        assert sum(s[part] for s in top) + show["rest"][part] == approx(show[part]["value"], rel=1e-6)
    (step,) = top
    assert sum(s["it_joules"] for s in show["spans"] if s["path"].startswith("step/")) + step["own_it_joules"] == approx(
        step["it_joules"], rel=1e-6
    )


def test_a_span_is_shown_with_its_nested_ones_or_alone_on_request(training):
    _, run = training
    with_nested, alone = (CliRunner().invoke(cli, ["show", str(run.path), *option]).output for option in ((), ("--exclusive",)))
    row = {
        name: next(line for line in text.splitlines() if line.startswith("step"))
        for name, text in (("with", with_nested), ("alone", alone))
    }

    assert "Wh" in row["with"]
    assert "span alone" in alone
    assert row["alone"] != row["with"]


def test_a_record_keeps_sums_and_no_samples(training):
    _, run = training

    assert run.path.stat().st_size < 30_000
    assert all(not sums.excerpts for sums in run.record.sums)


def test_a_killed_run_keeps_the_sums_of_its_first_minutes(training, tmp_path):
    """The last line of sums may be half a run old: their powers hold for the spans of the whole."""
    loop = Loop(1600)
    run = loop.trace(tmp_path, wait_at=1200)
    lines = run.path.read_text().splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if '"type":"sums"' in line.replace(" ", "")]
    assert len(at) >= 2
    torn = tmp_path / "torn.jsonl"
    torn.write_text("".join(line for i, line in enumerate(lines) if i != at[-1] and '"type":"end"' not in line.replace(" ", "")))
    spans = {s["path"]: s for s in shown(torn)["spans"]}

    optimiser = spans["step/optimiser"]
    assert optimiser["count"] == 1600
    assert optimiser["it_joules_low"] < loop.joules("optimiser") < optimiser["it_joules_high"]
    assert optimiser["it_joules"] == approx(loop.joules("optimiser"), rel=0.12)


def test_a_short_run_tells_its_phases_as_one_and_says_why(tmp_path):
    run = Loop(60).trace(tmp_path)
    show = shown(run.path)
    spans = {s["path"]: s for s in show["spans"]}

    assert spans["step/optimiser"]["it_joules"] is None
    assert spans["step/optimiser"]["told_with"] == "step/backward"
    assert "16 s are needed" in spans["step/optimiser"]["because"]
    assert "step/optimiser" in spans["step/backward"]["includes"]
    assert "spans-told-together" in {n["slug"] for n in show["notes"]}
    table = CliRunner().invoke(cli, ["show", str(run.path)]).output
    assert "told with" in table


def test_long_phases_of_a_short_run_are_told_by_the_curve(tmp_path):
    loop = Loop(4, scale=60.0)
    spans = {s["path"]: s for s in shown(loop.trace(tmp_path).path)["spans"]}

    assert spans["step/forward"]["it_joules"] == approx(loop.joules("forward"), rel=0.03)
    assert spans["step/backward"]["it_joules"] == approx(loop.joules("backward"), rel=0.03)


def test_a_step_in_time_with_the_sensor_is_noted(tmp_path):
    clock, gpu = FakeClock(), VirtualGpu(lambda s: 600.0 if s % 0.1 < 0.06 else 200.0)
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        for _ in range(300):
            with run.span("a"):
                clock.advance(0.06)
            with run.span("b"):
                clock.advance(0.04)

    assert "sensor-aliasing" in {note.slug for note in run.record.notes}


def test_a_board_without_buffered_samples_tells_short_phases_as_one(tmp_path):
    loop = Loop(400)
    show = shown(loop.trace(tmp_path, missing=frozenset({"nvmlDeviceGetSamples"})).path)
    spans = {s["path"]: s for s in show["spans"]}

    assert spans["step/forward"]["told_with"] == "step/backward"
    assert "do not resolve" in spans["step/forward"]["because"]
    assert {"spans-told-together", "spans-by-time"} <= {n["slug"] for n in show["notes"]}
    total = sum(loop.joules(name) for name, _, _ in PHASES)
    assert spans["step/backward"]["it_joules"] == approx(total, rel=0.03)


def test_a_gain_of_the_counter_reaches_the_spans(tmp_path):
    loop = Loop(500)
    spans = {s["path"]: s for s in shown(loop.trace(tmp_path, counter_share=1.05).path)["spans"]}

    assert spans["step/backward"]["it_joules"] == approx(1.05 * loop.joules("backward"), rel=0.03)


def test_few_long_enough_spans_are_told_one_by_one(tmp_path):
    clock = FakeClock()
    begins = [1.0 + 0.9 * i for i in range(12)]
    lengths = [0.03 + 0.01 * i for i in range(12)]
    gpu = VirtualGpu(lambda s: 560.0 if any(b <= s < b + n for b, n in zip(begins, lengths, strict=True)) else IDLE_WATTS)
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        now = 0.0
        for begin, length in zip(begins, lengths, strict=True):
            clock.advance(begin - now)
            with run.span("query"):
                clock.advance(length)
            now = begin + length
        clock.advance(1.0)
    (span,) = shown(run.path)["spans"]

    assert span["it_joules"] == approx(560 * sum(lengths), rel=0.03)
    assert span["it_joules_low"] < 560 * sum(lengths) < span["it_joules_high"]


def test_grams_follow_the_energy_of_the_samples(training):
    _, run = training
    per_joule = [s["grams"] / s["it_joules"] for s in shown(run.path)["spans"]]

    assert max(per_joule) == approx(min(per_joule), rel=1e-6)


@pytest.mark.parametrize("items", ["32", [1], -5, float("nan"), float("inf"), b"1", object()])
def test_items_that_are_no_number_are_left_out_and_said(tmp_path, items):
    clock = FakeClock()
    with virtual_trace(clock, VirtualGpu(300.0), out=tmp_path) as run, run.span("train", items=items):
        clock.advance(5)

    (span,) = run.record.spans
    assert span.items is None
    assert span.count == 1
    assert "items-dropped" in {note.slug for note in run.record.notes}


def test_numbers_of_other_libraries_count_as_items(tmp_path):
    clock = FakeClock()
    with virtual_trace(clock, VirtualGpu(300.0), out=tmp_path) as run:
        for items in (np.int64(32), np.float32(2.5), np.array([4])[0], True):
            with run.span("train", items=items):
                clock.advance(2)

    assert sum(span.items for span in run.record.spans) == approx(39.5)
