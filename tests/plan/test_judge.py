"""What is judged by what: kernels by their noise, caps and whole passes by their own errors, all by the slowdown that was asked for."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.judge import judged
from carbonreport.plan.noise import drawn_together, noise_of
from carbonreport.plan.problem import Problem
from carbonreport.plan.result import Cap
from carbonreport.plan.solver import solve
from carbonreport.plan.special import digamma, trigamma, trigamma_inverse
from carbonreport.plan.switching import FREE_SWITCHING, Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError, PlanTable

SWITCHING = Switching(Latency.exactly(1e-3), 50.0)
PAIRS = (UNLOCKED, ClockPair(1500), ClockPair(1200))


def noisy(share=0.02, **more):
    """Two kernels of a second: one waits for its memory and saves, the other pays in time; cells with an error of a share."""
    seconds = np.array([[1, 1.005, 1.01], [1, 1.2, 1.5]])
    joules = np.array([[300, 250, 200.0], [300, 290, 310]])
    return PlanTable(("a", "b"), np.array([0, 1]), PAIRS, seconds, joules, (), seconds * share, joules * share, **more)


@pytest.mark.parametrize("slowdown", [0.01, 0.02, 0.05])
def test_a_cap_in_time_is_taken_however_noisy_the_kernels_are(slowdown):
    found = judged(noisy(), slowdown, SWITCHING, caps=(Cap(300, 1.009, 0.7),))

    assert (found.verdict, found.plan.kind, found.plan.way.cap_watts) == ("one-setting", "cap", 300)
    assert (found.time_ratio[0], found.energy_ratio[0], found.margin) == (1.009, 0.7, 0.0)
    assert found.plan.of("cap") is not None and found.plan.slowdown == slowdown
    assert "a cap of 300 W needs 30.0 % less energy" in found.because


def test_a_cap_is_judged_by_the_errors_of_its_own_sweep():
    sure = judged(noisy(), 0.02, SWITCHING, caps=(Cap(300, 1.009, 0.97, (1.0, 1.02), (0.96, 0.98)),))
    unsure = judged(noisy(), 0.02, SWITCHING, caps=(Cap(300, 1.009, 0.97, (1.0, 1.02), (0.93, 1.01)),))
    late = judged(noisy(), 0.02, SWITCHING, caps=(Cap(300, 1.03, 0.7),))

    assert (sure.plan.kind, sure.energy_ratio) == ("cap", (0.97, 0.96, 0.98))
    assert unsure.plan.kind == "none" and "the saving of a cap of 300 W is not sure enough" in unsure.because
    assert late.plan.kind == "none"


def test_passes_measured_as_a_whole_are_judged_by_their_own_errors():
    """Kernels of 5 % noise leave no time at all; the whole iteration was measured to 0.01 %."""
    whole = PlanTable(
        ("iteration",), np.array([0]), PAIRS, np.array([[2.0, 2.01, 2.2]]), np.array([[600.0, 500.0, 510.0]]), (),
        np.full((1, 3), 2e-4), np.full((1, 3), 0.06),
    )  # fmt: skip
    found = judged(noisy(0.05, whole=whole), 0.01, SWITCHING)

    assert (found.plan.kind, found.plan.way.is_whole, found.plan.pairs) == ("static", True, (ClockPair(1500),) * 2)
    assert found.energy_ratio[0] == approx(5 / 6, abs=1e-3) and 0 < found.margin < 0.002
    assert found.energy_ratio[2] - found.energy_ratio[1] < 0.002


def test_nothing_done_for_the_noise_alone_is_said_with_what_is_kept_back():
    found = judged(noisy(), 0.01, SWITCHING)

    assert found.verdict == "do-nothing" and found.margin > 0.01
    assert "clocks kernel by kernel would need 16.6 % less energy at +0.6 % of time, too near the limit" in found.because
    assert f"{100 * found.margin:.2f} % of time is kept back" in found.because


def test_bound_and_slowdown_are_those_that_were_asked_for(layer):
    table = layer(noise=0.01, seed=2)
    found, plan = judged(table, 0.03, FREE_SWITCHING), solve(table, 0.03)

    assert found.margin > 0.002
    assert (found.plan.slowdown, found.plan.bound) == (0.03, plan.bound)
    assert found.plan.gap_percent >= 100 * (1 - plan.energy_ratio / found.plan.energy_ratio) - 1e-9 > 0.1


def test_a_plan_that_is_expected_to_be_late_is_not_taken():
    """Where less than nothing is kept back, plans are made for more time than is allowed."""
    exact = judged(noisy(0.004), 0.02, SWITCHING)
    found = judged(noisy(0.004), 0.02, SWITCHING, sigmas=-60.0)

    assert exact.verdict == "switch"
    assert found.verdict == "do-nothing" and "the time of" in found.because and "is not sure enough" in found.because


def test_a_negative_slowdown_keeps_its_aggregation_and_unlocked_clocks_are_no_way_out(layer):
    table = layer()
    local = judged(table, -0.001, FREE_SWITCHING, aggregation="local") if _reaches(table, -0.001) else None
    assert local is None or local.plan.way == solve(table, -0.001, aggregation="local").way
    fast = PlanTable(("a",), np.array([0]), (UNLOCKED, ClockPair(900)), np.array([[1.0, 0.99]]), np.array([[1.0, 0.9]]))
    assert judged(fast, -0.005, FREE_SWITCHING).time_ratio[0] == approx(0.99)
    rough = replace(fast, seconds_sd=np.full((1, 2), 0.02), joules_sd=np.full((1, 2), 0.001))
    with pytest.raises(PlanError, match=r"no plan surely takes -0\.50 % of time: .* kept back"):
        judged(rough, -0.005, FREE_SWITCHING)
    with pytest.raises(PlanError, match=r"no plan takes -2\.00 % of time"):
        judged(fast, -0.02, FREE_SWITCHING)


def test_local_choices_of_a_negative_slowdown_are_no_slower_each():
    seconds = np.array([[1.0, 0.98, 0.97], [1.0, 1.01, 0.98]])
    joules = np.array([[1.0, 0.80, 0.85], [1.0, 0.65, 0.99]])
    table = PlanTable(("A", "B"), np.array([0, 1]), PAIRS, seconds, joules)

    free, local = (judged(table, -0.005, FREE_SWITCHING, aggregation=which) for which in ("global", "local"))
    assert free.energy_ratio[0] == approx(0.725) and local.energy_ratio[0] == approx(0.895)


def _reaches(table, slowdown):
    try:
        solve(table, slowdown, aggregation="local")
    except PlanError:
        return False
    return True


# How exact cells are


def repeated(random, rows, k, repeats, noise):
    """Kernels of roofline type measured a few times: the truth, and the table of means."""
    f = np.linspace(1, 0.5, k - 1)
    seconds = np.c_[np.ones((rows, 1)), np.maximum(1, random.uniform(0.2, 1.2, (rows, 1)) / f)] * random.uniform(0.5, 2, (rows, 1))
    seconds[:, 0] = seconds[:, 1]
    joules = seconds * np.c_[np.full((rows, 1), 400.0), (120 + 280 * f**2.5)[None] * np.ones((rows, 1))]
    pairs = (UNLOCKED, *(ClockPair(2000 - 40 * i) for i in range(k - 1)))
    draws = [cells[..., None] * (1 + noise * random.normal(size=(*cells.shape, repeats))) for cells in (seconds, joules)]
    means, sds = [d.mean(axis=2) for d in draws], [d.std(axis=2, ddof=1) / repeats**0.5 for d in draws]
    names, order = tuple(map(str, range(rows))), np.arange(rows)
    counts = np.full(seconds.shape, repeats)
    return PlanTable(names, order, pairs, seconds, joules), PlanTable(names, order, pairs, *means, (), *sds, repeats=counts)


def test_intervals_from_two_repeats_hold_nine_times_in_ten_and_little_luck_is_left():
    hits, promised, expected, seen = [], [], [], []
    for rows, repeats, seeds in ((3, 2, 60), (20, 2, 25), (7, 4, 40)):
        for seed in range(seeds):
            truth, table = repeated(np.random.default_rng(1000 * rows + seed), rows, 12, repeats, 0.01)
            found = judged(table, 0.02, FREE_SWITCHING)
            if found.verdict == "do-nothing":
                continue
            choices = np.array([truth.pairs.index(pair) for pair in found.plan.pairs])
            energy = Problem.of(truth, FREE_SWITCHING).cost(choices)[1] / truth.baseline_joules
            hits.append(found.energy_ratio[1] <= energy <= found.energy_ratio[2])
            promised.append(found.plan.energy_ratio)
            expected.append(found.energy_ratio[0])
            seen.append(energy)

    assert len(hits) > 110
    assert 0.84 <= np.mean(hits) <= 0.96
    curse = np.mean(seen) - np.mean(promised)
    assert curse > 5e-4, "the promise is too good"
    assert abs(np.mean(seen) - np.mean(expected)) < 0.6 * curse, "and the expectation much less so"


def test_variances_of_few_repeats_are_drawn_together_as_far_as_chance_explains_them():
    random = np.random.default_rng(0)
    one = 4e-4 * random.chisquare(1, 200)
    drawn, _ = drawn_together(one, np.ones(200))
    assert drawn == approx(np.full(200, 4e-4), rel=0.25), "they differ by chance alone"
    two = np.where(np.arange(200) < 100, 1e-4, 1e-2) * random.chisquare(20, 200) / 20
    drawn, _ = drawn_together(two, np.full(200, 20.0))
    assert drawn[:100].mean() == approx(1e-4, rel=0.2) and drawn[100:].mean() == approx(1e-2, rel=0.2), "these do not"


def test_unlocked_clocks_have_a_noise_of_their_own(layer):
    table = layer(noise=0.02)
    sds = [sd.copy() for sd in (table.seconds_sd, table.joules_sd)]
    for sd in sds:
        sd[:, table.unlocked] /= 4
    found = noise_of(replace(table, seconds_sd=sds[0], joules_sd=sds[1]))
    relative = found.joules_sd / table.joules

    assert relative[:, table.unlocked] == approx(0.005, rel=0.1)
    assert np.delete(relative, table.unlocked, axis=1) == approx(0.02, rel=0.1)
    assert noise_of(replace(table, seconds_sd=None)) is None


def test_cells_measured_once_have_the_noise_of_the_others():
    table = noisy(0.02)
    for sd in (table.seconds_sd, table.joules_sd):
        sd[1] = np.nan

    assert noise_of(table).joules_sd / table.joules == approx(np.full((2, 3), 0.02))


def test_digamma_and_trigamma():
    assert digamma(np.array([0.5, 1.0, 30.0])) == approx([-1.9635100260, -0.5772156649, 3.3844381300], abs=1e-8)
    assert trigamma(np.array([0.5, 1.0, 30.0])) == approx([4.9348022005, 1.6449340668, 0.0338950590], abs=1e-8)
    assert trigamma_inverse(4.9348022005) == approx(0.5)
