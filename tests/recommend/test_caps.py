"""Power caps: only points that are worth choosing from, and what a job becomes under one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx

from carbonreport.recommend.caps import CapPoint, capped, choose, energy_ratio, is_dominated, undominated
from carbonreport.recommend.rates import Job
from carbonreport.workflows.caps import reported_caps


def point(cap_watts, energy, time):
    return CapPoint(cap_watts, energy, time, energy, energy, 1, "a test")


INFERENCE = reported_caps("V100", "inference")


@pytest.mark.parametrize(("slowdown", "cap_watts"), [(1.10, 200), (1.25, 150), (math.inf, 150)])
def test_published_inference_points_as_input(slowdown, cap_watts):
    """McDonald et al. 2022: at most 10 % slower 200 W; at most 25 %, or any, 150 W."""
    chosen = choose(INFERENCE, slowdown)

    assert chosen is not None
    assert chosen.cap_watts == cap_watts


def test_the_lowest_cap_is_dominated_for_inference():
    assert {p.cap_watts: is_dominated(p, INFERENCE) for p in INFERENCE} == {100: True, 150: False, 200: False}


def test_published_training_point():
    (training,) = reported_caps("V100", "training")

    assert (training.cap_watts, training.energy_ratio, training.time_ratio) == (150, 0.863, 1.068)
    assert training.energy_ratio / training.time_ratio == approx(0.808, abs=1e-3)
    assert training.energy_ratio * training.time_ratio == approx(0.922, abs=1e-3)
    assert training.low < training.energy_ratio < training.high
    assert training.reports > 2


def test_nothing_is_chosen_where_no_cap_saves():
    assert choose([point(100, 1.02, 1.3)]) is None
    assert choose([]) is None
    assert choose([point(100, 0.9, 1.3)], gpu_share=0.5) is None, "the rest of the node takes more than the cap saves"


points = st.lists(st.builds(point, st.sampled_from(range(100, 400, 25)), st.floats(0.5, 1.5), st.floats(0.9, 3.0)), max_size=8)


@given(points, st.floats(1.0, 3.0))
def test_the_choice_is_the_best_of_all_points(points, slowdown):
    chosen = choose(points, slowdown)
    allowed = [p.energy_ratio for p in points if p.time_ratio <= slowdown + 1e-9 and p.energy_ratio < 1]

    assert (chosen.energy_ratio if chosen else None) == min(allowed, default=None)
    assert all(not is_dominated(p, points) for p in undominated(points))


@given(st.floats(0.5, 1.0), st.floats(1.0, 2.0), st.floats(0.0, 1.0))
def test_a_capped_job_does_the_same_work_in_longer_time(energy, time, share):
    job = Job(np.array([0.0, 600.0, 4000.0]), np.array([500.0, 900.0]))

    under = capped(job, point(150, energy, time), share)

    assert under.seconds == approx(job.seconds * time)
    assert under.joules == approx(job.joules * energy_ratio(point(150, energy, time), share))


@pytest.mark.parametrize("numbers", [(0, 0.9, 1.1), (150, 0.0, 1.1), (150, 0.9, 0.0), (math.nan, 0.9, 1.1), (150, 0.9, math.inf)])
def test_points_that_cannot_be_are_refused(numbers):
    with pytest.raises(ValueError):
        point(*numbers)
