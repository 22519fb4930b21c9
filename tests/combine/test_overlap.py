"""Ranks of one job: each second of each device once, and everything that no other rank read."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.combine.nested import counted_runs
from carbonreport.combine.overlap import wall_seconds
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.pue import PueProfile
from carbonreport.model.run import ORIGIN_OF_METHOD, Device, EnergyTrace, RunRecord
from carbonreport.model.series import Family, GridErrors, IntensitySeries
from carbonreport.testing import make_record
from carbonreport.units import JOULES_PER_KWH

START_S = 1_767_225_600.0  # a whole hour
PUE = PueProfile(1.0, 1.0, 1.0, "reported", "none")


def grid_of(grams):
    edges_s = START_S + 900.0 * np.arange(len(grams) + 1)
    return IntensitySeries(
        "XX", edges_s, np.array(grams), np.zeros(len(grams), np.int8), {"measured": GridErrors(level_sd=0.04)}, Family(), "a test"
    )


GRID = grid_of([100.0, 500.0, 300.0, 50.0])


def charged(*runs: RunRecord) -> list[ChargedRun]:
    return [charge(run, grid=GRID, pue=PUE) for run in runs]


def rank(number, watts, hours=0.5, *, start="2026-01-01T00:00Z", job="job", host="host-a", **more):
    record = make_record(watts, hours, start=start, name="train", host=host, run_id=f"run-{number}", **more)
    return replace(record, job=job, rank=number, world_size=4)


def test_the_header_of_a_job_changes_nothing_where_ranks_measured_other_devices():
    runs = charged(rank(0, {"GPU-0": 300.0}), rank(1, {"GPU-1": 200.0}))
    counted, _, notes = counted_runs(runs)

    assert counted == runs and notes == []
    assert total(runs).it_joules.value == approx(500 * 1800)


def test_a_device_that_two_ranks_measured_all_the_time_counts_once_and_its_hours_too():
    both = total(charged(rank(0, {"GPU-0": 300.0, "GPU-1": 200.0}), rank(1, {"GPU-1": 200.0, "GPU-2": 100.0})))

    assert both.it_joules.value == approx(600 * 1800)
    assert both.gpu_seconds == approx(3 * 1800)
    assert both.covered == 1.0
    assert [note.slug for note in both.notes if note.slug == "run-not-counted"] == ["run-not-counted"]


def test_what_a_later_rank_measured_after_the_first_had_ended_counts_at_its_own_intensity():
    first, second = rank(0, {"GPU-0": 1000.0}, 0.25), rank(1, {"GPU-0": 1000.0}, 0.5)

    both = total(charged(first, second))

    assert both.it_joules.value == approx(1000 * 1800)
    assert both.gpu_seconds == approx(1800)
    assert both.grams.value == approx(1000 * 900 / JOULES_PER_KWH * (100 + 500))


def test_other_hosts_other_jobs_and_runs_without_a_job_each_count():
    watts = {"host-model": 100.0}
    for other in (rank(1, watts, host="host-b"), rank(1, watts, job="other"), rank(1, watts, job=None)):
        assert total(charged(rank(0, watts), other)).it_joules.value == approx(200 * 1800)


def test_a_rank_fills_the_gap_of_the_one_that_measured_before():
    first = rank(0, {"GPU-0": 100.0})
    trace = EnergyTrace("GPU-0", (0.0, 600.0, 1200.0, 1800.0), (0.0, 60_000.0, 60_000.0, 120_000.0), ((600.0, 1200.0),))

    both = total(charged(replace(first, traces=(trace,)), rank(1, {"GPU-0": 100.0})))

    assert both.it_joules.value == approx(100 * 1800)


def test_spans_stay_with_the_devices_that_are_whole_and_spans_and_the_rest_are_the_total():
    first = rank(0, {"GPU-0": 300.0, "GPU-1": 200.0}, spans={"step": 0.5})
    second = rank(1, {"GPU-1": 200.0, "GPU-2": 100.0}, 0.75, spans={"step": 0.5})

    both = total(charged(first, second))
    top = sum(span.it_joules for span in both.spans if span.is_top_level)

    assert both.it_joules.value == approx(500 * 1800 + 100 * 2700 + 200 * 900)
    assert top + both.rest_joules == approx(both.it_joules.value)
    assert both.rest_joules >= 0


def test_cutting_twice_cuts_nothing_more():
    counted, _, _ = counted_runs(charged(rank(0, {"GPU-0": 300.0}, 0.25), rank(1, {"GPU-0": 300.0, "GPU-1": 10.0}, 0.5)))
    again, _, notes = counted_runs(counted)

    assert again == counted and notes == []
    assert len({c.run.id for c in counted}) == len(counted) == 3


SECONDS = 40
DEVICES = ("GPU-0", "GPU-1", "cpu-package-0")


@st.composite
def ranks_of_a_job(draw):
    """Runs on whole seconds, with power that changes every second and gaps."""
    runs = []
    for number in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, SECONDS - 2))
        length = draw(st.integers(1, SECONDS - begin))
        devices = draw(st.lists(st.sampled_from(DEVICES), min_size=1, unique=True))
        read = {d: draw(st.lists(st.booleans(), min_size=length, max_size=length)) for d in devices}
        watts = {d: draw(st.lists(st.integers(0, 500), min_size=length, max_size=length)) for d in devices}
        job, host = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["x", "y"]))
        runs.append((number, begin, length, job, host, read, watts))
    return runs


def record(number, begin, length, job, host, read, watts):
    traces = []
    for device, is_read in read.items():
        steps = [w if r else 0 for w, r in zip(watts[device], is_read, strict=True)]
        gaps = tuple((float(i), float(i + 1)) for i, r in enumerate(is_read) if not r)
        joules = tuple(float(j) for j in np.concatenate([[0], np.cumsum(steps)]))
        traces.append(EnergyTrace(device, tuple(float(i) for i in range(length + 1)), joules, gaps))
    devices = tuple(Device(d, d, "gpu", "counter", 0.9, 1.1, "made up", origin=ORIGIN_OF_METHOD["counter"]) for d in read)
    return RunRecord(f"run-{number}", "train", "training", host, START_S + 880 + begin, float(length), devices, tuple(traces), job=job)


@settings(max_examples=150, deadline=None)
@given(ranks_of_a_job())
def test_second_by_second_the_first_rank_that_read_a_device_is_the_one_that_counts(runs):
    joules = grams = 0.0
    seen = set()
    for _number, begin, length, job, host, read, watts in sorted(runs, key=lambda run: (run[1], run[0])):
        taken = {(job, host, d, begin + i) for d, is_read in read.items() for i in range(length) if is_read[i]}
        for key in taken - seen:
            second = key[3]
            energy = watts[key[2]][second - begin]
            joules += energy
            grams += energy * (100.0 if 880 + second < 900 else 500.0) / JOULES_PER_KWH
        seen |= taken

    result = total(charged(*(record(*run) for run in runs)))

    assert result.it_joules.value == approx(joules)
    assert result.grams.value == approx(grams)


def test_a_job_takes_its_wall_clock_once_whatever_its_ranks_and_hosts():
    watts = {"GPU-a": 300.0}
    job = [rank(i, watts, host=f"host-{i}") for i in range(3)]
    later = rank(3, watts, host="host-3", start="2026-01-01T02:00Z")
    alone = rank(0, watts, job=None)

    assert wall_seconds(job) == approx(1800)
    assert wall_seconds([*job, later]) == approx(3600)
    assert wall_seconds([*job, alone]) == approx(3600)
    assert total(charged(*job)).run_seconds == approx(1800)
    assert total(charged(*job)).it_joules.value == approx(3 * 300 * 1800)
