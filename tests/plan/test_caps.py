"""Caps from trials: published figures with their sources, laws of statistics over many seeds, and that "none" is an answer."""

import csv
import math
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.plan.cap_choice import CapRule, choose, confirmed, zeus_cost
from carbonreport.plan.cap_curve import Scatter, Trial
from carbonreport.plan.caps import curve
from carbonreport.plan.isotonic import falling, rising, smooth_line
from carbonreport.plan.shrink import LEVEL_SD, SPREAD_SD, shrunk
from carbonreport.plan.student import t_probability, t_quantile
from carbonreport.plan.sweep_order import sweep_order

SQUAD_32 = Path(__file__).parents[1] / "data" / "dvfs" / "zeus_v100_squad_32.csv"
ZEUS = Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data")) / "dvfs" / "zeus-traces"

# McDonald et al. 2022 (Findings of NAACL), inference on V100: cap -> time and energy over those at 250 W
MCDONALD_INFERENCE = {100.0: (2.14, 0.890), 150.0: (1.227, 0.758), 200.0: (1.082, 0.880)}


def once(points, seconds=1.0, joules=1.0):
    """Each cap tried once, after a run without one."""
    capped = [Trial(i + 1, cap, t * seconds, e * joules) for i, (cap, (t, e)) in enumerate(points.items())]
    return [Trial(0, None, seconds, joules), *capped]


def squad_32():
    """Zeus's V100 trace: seconds and joules of one epoch by limit; 250 W is the board's own."""
    with SQUAD_32.open() as file:
        rows = {float(r["cap_watts"]): r for r in csv.DictReader(line for line in file if not line.startswith("#"))}
    return {cap: (float(r["seconds"]), float(r["seconds"]) * float(r["watts"])) for cap, r in rows.items()}


def squad_curve():
    points = squad_32()
    free = points.pop(250.0)
    return curve([Trial(0, None, *free), *(Trial(i + 1, cap, *point) for i, (cap, point) in enumerate(points.items()))])


# Published figures


@pytest.mark.parametrize(("slowdown", "cap_watts"), [(0.10, 200), (0.25, 150), (None, 150)])
def test_inference_of_mcdonald_is_capped_by_its_budget(slowdown, cap_watts):
    found = curve(once(MCDONALD_INFERENCE))

    assert choose(found, CapRule(slowdown)).choice.cap_watts == cap_watts
    assert [point.cap_watts for point in found.points if point.is_dominated] == [100]


def test_training_of_mcdonald_at_150_watts_lowers_power_and_edp():
    (point,) = curve(once({150.0: (1.068, 0.863)})).points

    assert point.energy.value / point.time.value == approx(0.808, abs=0.001)
    assert point.edp_ratio == approx(0.922, abs=0.001)
    assert 1 - point.energy.value == approx(0.137, abs=0.001)


@pytest.mark.parametrize(
    ("eta", "cap_watts", "cost"),
    [(0.0, None, 433321.2), (0.25, None, 423882.9), (0.5, 200, 406578.2), (0.75, 175, 369311.1), (1.0, 150, 325220.7)],
)
def test_eta_of_zeus_chooses_as_zeus_does(eta, cap_watts, cost):
    found = choose(squad_curve(), CapRule(slowdown=None, eta=eta, most_watts=250)).choice
    seconds, joules = squad_32()[cap_watts or 250]

    assert (None if found is None else found.cap_watts) == cap_watts
    assert zeus_cost(joules, seconds, eta, 250) == approx(cost, abs=0.1)


@pytest.mark.parametrize(
    ("slowdown", "cap_watts", "percent"), [(0.0, None, 0.0), (0.05, 225, -4.53), (0.1, 200, -10.92), (0.2, 175, -16.37), (0.3, 150, -17.78)]
)
def test_a_greater_slowdown_allows_a_lower_cap(slowdown, cap_watts, percent):
    found = choose(squad_curve(), CapRule(slowdown)).choice

    assert (None if found is None else found.cap_watts) == cap_watts
    assert 100 * (1 if found is None else found.energy.value) - 100 == approx(percent, abs=0.01)


@pytest.mark.skipif(not (ZEUS / "v100.csv").is_file(), reason="the traces of Zeus are not here")
def test_squad_on_v100_gives_the_published_means():
    by_batch = {}
    with (ZEUS / "v100.csv").open() as file:
        for row in csv.DictReader(file):
            if row["dataset"] == "squad":
                seconds = float(row["time_per_epoch"])
                by_batch.setdefault(row["batch_size"], {})[float(row["power_limit"])] = (seconds, seconds * float(row["average_power"]))
    found = []
    for points in by_batch.values():
        free = points.pop(250.0)
        found.append(curve([Trial(0, None, *free), *(Trial(i + 1, cap, *point) for i, (cap, point) in enumerate(points.items()))]))

    def means(cap):
        points = [one.at(cap) for one in found]
        return [round(100 * (np.mean(values) - 1), 1) for values in ([p.energy.value for p in points], [p.time.value for p in points])]

    assert [means(100), means(150), means(200)] == [[-11.6, 99.7], [-19.1, 25.4], [-10.7, 6.6]]
    assert all(one.at(100).is_dominated for one in found)


# What is worth it


def test_no_cap_is_worth_it_where_the_saving_is_lost_in_noise():
    rng = np.random.default_rng(1)
    trials = noisy({300.0: (1.0, 0.995), 400.0: (1.0, 1.0)}, repeats=3, sd=0.03, rng=rng)

    verdict = choose(curve(trials), CapRule(0.05))

    assert verdict.choice is None
    assert "no cap" in verdict.because


def test_a_saving_below_a_hundredth_is_not_worth_it_however_sure():
    rng = np.random.default_rng(1)
    trials = noisy({300.0: (1.0, 0.994)}, repeats=4, sd=1e-4, rng=rng)

    assert choose(curve(trials), CapRule(0.05)).choice is None


def test_time_must_keep_the_budget_with_confidence():
    """4.5 % slower by two noisy repeats may well be more than 5 %."""
    steady = noisy({300.0: (1.045, 0.9)}, repeats=3, sd=1e-4, rng=np.random.default_rng(1))
    noisy_ones = [Trial(t.position, t.cap_watts, t.seconds * (1 + 0.03 * (-1) ** (t.position // 2)), t.joules) for t in steady]

    assert choose(curve(steady), CapRule(0.05)).choice is not None
    verdict = choose(curve(noisy_ones), CapRule(0.05))
    assert verdict.choice is None
    assert "90 % confidence" in verdict.because


def test_one_repeat_has_no_interval_and_says_so():
    found = curve(once(MCDONALD_INFERENCE))

    assert all(point.energy.low is None and point.time.bound is None for point in found.points)
    assert {note.slug for note in found.notes} == {"work-assumed-equal", "sweep-one-repeat"}


def test_a_cap_that_only_loses_is_dominated_by_none_at_all():
    (point,) = curve(once({600.0: (1.01, 1.02)})).points

    assert point.is_dominated
    assert choose(curve(once({600.0: (1.01, 1.02)})), CapRule(None)).choice is None


# Arithmetic


def test_energy_and_time_are_of_an_item_where_all_trials_count_them():
    trials = [Trial(0, None, 100, 1000, items=50), Trial(1, 300, 110, 440, items=25), Trial(2, None, 100, 1000, items=50)]

    found = curve(trials)

    assert found.is_per_item
    assert (found.seconds, found.joules) == approx((2.0, 20.0))
    assert found.at(300).energy.value == approx(0.88)
    assert found.at(300).time.value == approx(2.2)


def test_a_drift_of_the_machine_is_no_effect_of_a_cap():
    """Each trial draws 1 % more than the one before; with baselines on both sides nothing of it is left."""
    order = sweep_order([200, 300, 400], 3, seed=4)
    trials = [Trial(i, cap, 10.0, 1000 * 1.01**i * (0.9 if cap == 300 else 1)) for i, cap in enumerate(order)]

    found = curve(trials)

    assert [point.energy.value for point in found.points] == approx([1, 0.9, 1])


def test_results_that_differ_under_a_cap_are_said():
    trials = [
        Trial(0, None, 1, 1, digest="a"),
        Trial(1, 300, 1, 1, digest="a"),
        Trial(2, 200, 1, 1, digest="b"),
        Trial(3, None, 1, 1, digest="a"),
    ]

    assert "results under 200 W differ" in next(note.text for note in curve(trials).notes if note.slug == "sweep-results-differ")
    assert not [note for note in curve(trials[:2]).notes if note.slug == "sweep-results-differ"]


def test_the_order_has_baselines_first_last_and_between_and_is_the_same_for_a_seed():
    order = sweep_order([200, 300, 400, 500, 600], 3, seed=7)

    assert order == sweep_order([600, 500, 400, 300, 200], 3, seed=7)
    assert order != sweep_order([200, 300, 400, 500, 600], 3, seed=8)
    assert order[0] is order[-1] is None
    assert sorted(cap for cap in order if cap) == sorted([200, 300, 400, 500, 600] * 3)
    between = [i for i, cap in enumerate(order) if cap is None]
    assert max(b - a for a, b in pairwise(between)) <= 5


def test_pooling_neighbours_gives_the_nearest_monotone_curve():
    values, weights = np.array([1.0, 3.0, 2.0, 2.0, 5.0]), np.array([1.0, 1.0, 1.0, 2.0, 1.0])

    assert rising(values, weights) == approx([1, 2.25, 2.25, 2.25, 5])
    assert falling(-values, weights) == approx([-1, -2.25, -2.25, -2.25, -5])


def test_the_fitted_curve_never_gets_slower_with_a_higher_cap():
    found = curve(once({200.0: (1.2, 0.8), 300.0: (1.22, 0.9), 400.0: (0.99, 0.97)}), uncapped_watts=700)

    times = [*(point.fitted[0] for point in found.points), 1.0]
    powers = [*(point.fitted[1] / point.fitted[0] for point in found.points), 1.0]
    assert all(a >= b - 1e-12 for a, b in pairwise(times))
    assert all(a <= b + 1e-12 for a, b in pairwise(powers))


def test_the_smooth_line_meets_its_points_and_has_no_bump():
    x, y = np.array([1.0, 2.0, 4.0, 5.0]), np.array([5.0, 3.0, 2.9, 1.0])
    at = np.linspace(1, 5, 401)

    assert smooth_line(x, y, x) == approx(y)
    assert np.all(np.diff(smooth_line(x, y, at)) <= 1e-12)


@pytest.mark.parametrize(("degrees", "t"), [(1, 6.3138), (2, 2.9200), (3, 2.3534), (4, 2.1318), (9, 1.8331), (30, 1.6973)])
def test_quantiles_of_t_are_those_of_the_tables(degrees, t):
    assert t_quantile(0.95, degrees) == approx(t, abs=1e-4)
    assert t_probability(-t, degrees) == approx(0.05, abs=1e-4)


# Statistics over many seeds


def noisy(points, *, repeats, sd, rng, drift=0.0):
    order = sweep_order(list(points), repeats, seed=int(rng.integers(1 << 30)))
    trials = []
    for i, cap in enumerate(order):
        t, e = (1.0, 1.0) if cap is None else points[cap]
        common, own = rng.normal(0, sd, 2)
        trials.append(Trial(i, cap, 60 * t * math.exp(common), 9e3 * e * math.exp(drift * i + own)))
    return trials


def test_intervals_hold_ninety_percent_of_the_time():
    rng, hits, bounds, total = np.random.default_rng(3), 0, 0, 0
    truth = {200.0: (1.3, 0.8), 300.0: (1.1, 0.85), 400.0: (1.0, 0.95)}
    for _ in range(500):
        for point in curve(noisy(truth, repeats=3, sd=0.02, rng=rng, drift=0.003)).points:
            t, e = truth[point.cap_watts]
            hits += (point.time.low <= t <= point.time.high) + (point.energy.low <= e <= point.energy.high)
            bounds += (t <= point.time.bound) + (e <= point.energy.bound)
            total += 2

    assert 0.86 <= hits / total <= 0.94
    assert 0.86 <= bounds / total <= 0.94


def promises(rng, spread, worlds, level=lambda: -0.15):
    """Promise over truth of the best of five caps, as logarithms: raw, and drawn to the common level; and how often its interval holds."""
    raw, drawn, inside = [], [], 0
    for _ in range(worlds):
        logs = level() + rng.normal(0, spread(), 5)
        truth = {100.0 * (i + 2): (1.0, math.exp(log)) for i, log in enumerate(logs)}
        found = curve(noisy(truth, repeats=2, sd=0.03, rng=rng))
        best = min(found.points, key=lambda point: point.expected.value)
        true = truth[best.cap_watts][1]
        raw.append(math.log(best.energy.value / true))
        drawn.append(math.log(best.expected.value / true))
        inside += best.expected.low <= true <= best.expected.high
    return np.array(raw), np.array(drawn), inside / worlds


def test_shrunk_promises_are_unbiased_where_raw_ones_are_not():
    """Worlds as published caps are: their own level and spread each time."""
    rng = np.random.default_rng(5)

    raw, drawn, held = promises(rng, lambda: abs(rng.normal(0, SPREAD_SD)), 800, lambda: rng.normal(0, LEVEL_SD))

    error = np.std(drawn) / math.sqrt(drawn.size)
    assert np.mean(raw) < -5 * error
    assert abs(np.mean(drawn)) < 2.5 * error
    assert 0.86 <= held <= 0.94


@pytest.mark.parametrize(("spread", "left"), [(0.0, 0.45), (0.02, 0.3)])
def test_most_of_the_curse_is_gone_even_where_all_caps_are_alike(spread, left):
    """The hardest case: caps that differ by no more than their noise."""
    raw, drawn, _ = promises(np.random.default_rng(6), lambda: spread, 600)

    assert np.mean(raw) < -0.015
    assert abs(np.mean(drawn)) < left * abs(np.mean(raw))


def test_figures_without_error_are_not_drawn_to_each_other():
    logs = np.array([-0.11, -0.19, -0.10])

    means, sds = shrunk(logs, 1e-10 * np.eye(3))

    assert means == approx(logs, abs=1e-6)
    assert sds == approx([1e-5] * 3, rel=0.01)


def test_a_confirmation_holds_its_interval_and_refuses_what_was_luck():
    rng, hits, false = np.random.default_rng(9), 0, 0
    rule = CapRule(0.05)
    for _ in range(1000):
        scatters = tuple(Scatter(float(np.sum(rng.normal(0, 0.02, 8) ** 2)), 8) for _ in range(2))
        draw = lambda e: (math.exp(rng.normal(0, 0.02)), e * math.exp(rng.normal(0, 0.02)))  # noqa: E731
        real = confirmed([(draw(0.9), draw(1.0)) for _ in range(2)], scatters, rule)
        luck = confirmed([(draw(1.0), draw(1.0)) for _ in range(2)], scatters, rule)
        hits += real.energy.low <= 0.9 <= real.energy.high
        false += luck.holds

    assert 0.87 <= hits / 1000 <= 0.93
    assert false / 1000 <= 0.07
