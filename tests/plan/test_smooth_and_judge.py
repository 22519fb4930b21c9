"""The smooth model of a table, and what is left of a plan once the luck of its cells is taken off."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.judge import judged
from carbonreport.plan.smooth import smoothed
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import FREE_SWITCHING, Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanTable


def on(table, way):
    """Time and energy ratios of a way by another table, without switches."""
    columns = np.array([table.pairs.index(pair) for pair in way.pairs])
    seconds, joules = (cells[table.sequence, columns].sum() for cells in (table.seconds, table.joules))
    return seconds / table.baseline_seconds, joules / table.baseline_joules


def test_a_table_of_the_models_own_form_is_met_exactly():
    sm, mem = np.meshgrid(np.linspace(600, 1800, 7).round(), [5001, 9501])
    f, m = sm.ravel() / 1800, mem.ravel() / 9501
    seconds = 1e-3 * (0.1 + 0.6 / f + 0.3 / m)
    joules = seconds * (50 + 30 * m)
    pairs = (UNLOCKED, *(ClockPair(int(a), int(b)) for a, b in zip(sm.ravel(), mem.ravel(), strict=True)))
    table = PlanTable(("k",), np.array([0]), pairs, np.append(2e-3, seconds)[None], np.append(0.2, joules)[None])
    (fit,) = smoothed(table).fits

    assert fit.time_rms_percent == approx(0, abs=1e-3)
    assert fit.energy_rms_percent == approx(0, abs=1e-2)
    assert (fit.time_r2, fit.energy_r2, fit.cells) == (approx(1), approx(1, abs=1e-6), 14)


def test_missing_cells_are_filled_near_the_truth_and_unlocked_is_left_alone(layer):
    truth = layer(cores=8)
    random = np.random.default_rng(3)
    hidden = random.random(truth.seconds.shape) < 0.4
    hidden[:, truth.unlocked] = False
    table = replace(truth, seconds=np.where(hidden, np.nan, truth.seconds), joules=np.where(hidden, np.nan, truth.joules))
    smooth = smoothed(table)

    assert smooth.filled == hidden.sum()
    errors = [np.abs(a[hidden] / b[hidden] - 1) for a, b in ((smooth.table.seconds, truth.seconds), (smooth.table.joules, truth.joules))]
    assert 100 * np.median(errors[0]) < 1.5 and 100 * np.median(errors[1]) < 2.5
    assert np.array_equal(smooth.table.seconds[:, truth.unlocked], truth.seconds[:, truth.unlocked])
    assert np.median([fit.time_r2 for fit in smooth.fits]) > 0.98


def test_unlocked_cores_are_never_interpolated(kernels, passes):
    """The published kernels have too few cells for a model; of the passes, cells with unlocked cores stay as they were."""
    assert smoothed(kernels).filled == 0
    unlocked_cores = [i for i, pair in enumerate(passes.pairs) if pair.sm_mhz is None]
    smooth = smoothed(passes).table
    assert np.array_equal(smooth.seconds[:, unlocked_cores], passes.seconds[:, unlocked_cores])


def test_the_model_takes_noise_out_of_the_cells(layer):
    truth = layer()
    for noise in (0.03, 0.06):
        table = layer(noise=noise, seed=5)
        locked = [i for i in range(len(table.pairs)) if i != table.unlocked]
        rms = [
            np.sqrt(np.mean((cells[:, locked] / truth.joules[:, locked] - 1) ** 2))
            for cells in (table.joules, smoothed(table).table.joules)
        ]
        assert rms[1] < 0.7 * rms[0]


def test_a_promise_from_noisy_cells_is_too_good_and_the_judged_one_is_not(layer):
    truth, promised, expected, in_time, covered = layer(), [], [], [], []
    for seed in range(8):
        table = layer(noise=0.02, seed=seed)
        naive = solve(table, 0.01).way
        promised.append(on(truth, naive)[1] - naive.energy_ratio)
        found = judged(table, 0.01, FREE_SWITCHING, seed=seed)
        time, energy = on(truth, found.plan.way)
        expected.append(energy - found.energy_ratio[0])
        in_time.append(time <= 1.01)
        covered.append(found.energy_ratio[1] - 1e-9 <= energy <= found.energy_ratio[2] + 1e-9)
        assert found.is_noise_known and found.margin > 0

    assert np.mean(promised) > 0.004, "the optimiser's curse is there"
    assert -np.mean(promised) < np.mean(expected) < 0.2 * np.mean(promised), "little of it is left, and not much too much was taken off"
    assert np.mean(in_time) >= 0.85
    assert np.mean(covered) >= 0.75


def test_exact_cells_need_no_margin(layer):
    table = layer()
    exact = replace(table, seconds_sd=np.zeros_like(table.seconds), joules_sd=np.zeros_like(table.joules))
    found, plan = judged(exact, 0.02, FREE_SWITCHING), solve(table, 0.02)

    assert found.margin == approx(0, abs=1e-9)
    assert found.energy_ratio == approx((plan.energy_ratio,) * 3)
    assert found.verdict == "switch"


def test_without_known_noise_nothing_is_kept_back_and_that_is_said(layer):
    found = judged(layer(noise=0.02, repeats_known=False), 0.02, FREE_SWITCHING)

    assert (found.is_noise_known, found.margin) == (False, 0.0)


def test_a_latency_that_may_be_long_says_do_not_switch(layer):
    table = layer(layers=4)
    surely = judged(table, 0.02, Switching(Latency.exactly(1e-4), 100.0))
    perhaps = judged(table, 0.02, Switching(Latency(1e-4, 1e-5, 5e-2, "wide"), 100.0))

    assert surely.verdict == "switch"
    assert perhaps.verdict != "switch"
    assert perhaps.plan.switches == 0
    assert "switching clocks would need" in perhaps.because


def test_noise_above_the_saving_says_leave_the_clocks_alone():
    """Two runs at clocks that change nothing."""
    pairs = (UNLOCKED, ClockPair(1000), ClockPair(1100))
    table = PlanTable(
        ("k",),
        np.zeros(5, dtype=int),
        pairs,
        np.array([[1.0, 0.999, 1.001]]),
        np.array([[1.0, 0.995, 1.002]]),
        seconds_sd=np.full((1, 3), 0.01),
        joules_sd=np.full((1, 3), 0.02),
    )
    found = judged(table, 0.05, FREE_SWITCHING)

    assert (found.verdict, found.plan.kind, found.energy_ratio) == ("do-nothing", "none", (1.0, 1.0, 1.0))


@pytest.mark.parametrize("slowdown", [0.0, 0.003])
def test_a_margin_longer_than_the_slowdown_is_no_failure(layer, slowdown):
    found = judged(layer(noise=0.05, seed=1), slowdown, FREE_SWITCHING)

    assert found.time_ratio[0] <= 1 + slowdown + 1e-6
