"""Intervals agree with a Monte Carlo that draws every error, hour by hour and board by board."""

import math

import numpy as np
import pytest
from numpy.random import Generator, default_rng
from pytest import approx

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.combine.intervals import Z90, Factors, grid_sd, independent_sum, product
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.pue import PueProfile, pue_from_text
from carbonreport.model.run import RunRecord
from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries
from carbonreport.testing import make_record

DRAWS = 20_000
DE = GridErrors(((0.1345, 6.0), (0.311, 48.0), (0.0683, 1440.0)), 0.13)
MILD = GridErrors(((0.06, 6.0), (0.1, 48.0), (0.04, 1440.0)), 0.05)


def typical(run: RunRecord, errors: GridErrors, *, zone: str = "DE", seed: int = 1) -> IntensitySeries:
    """Hours of random intensity around 300 g/kWh, quality typical."""
    first = np.floor(run.started_s / 3600) * 3600
    count = int((run.ended_s - first) // 3600) + 1
    grams = default_rng(seed).uniform(150, 450, count)
    quality = np.full(count, QUALITIES.index("typical"), dtype=np.int8)
    return IntensitySeries(zone, first + 3600.0 * np.arange(count + 1), grams, quality, {"typical": errors}, Family(), f"profile {zone}")


def two_sided(rng: Generator, low: float, high: float, size: int | tuple[int, ...] = DRAWS) -> np.ndarray:
    """Factors whose 5th and 95th percentile are low and high, half of them on each side of 1."""
    z = rng.standard_normal(size)
    return np.exp(np.where(z > 0, z * math.log(high) / Z90, -z * math.log(low) / Z90))


def drawn_hours(rng: Generator, hours: np.ndarray, errors: GridErrors) -> np.ndarray:
    """ln errors of hours: three Ornstein-Uhlenbeck processes and a level. Shape (draws, hours)."""
    result = errors.level_sd * rng.standard_normal((DRAWS, 1)) + np.zeros((DRAWS, hours.size))
    for sd, tau_hours in errors.terms:
        state = sd * rng.standard_normal(DRAWS)
        result[:, 0] += state
        for i in range(1, hours.size):
            keep = math.exp(-(hours[i] - hours[i - 1]) / 3600 / tau_hours)
            state = keep * state + sd * math.sqrt(1 - keep**2) * rng.standard_normal(DRAWS)
            result[:, i] += state
    return result


def simulated(charged: list[ChargedRun], rng: Generator) -> tuple[float, float, float]:
    """5th, 50th and 95th percentile of the emissions."""
    common: dict[str, np.ndarray] = {}
    boards: dict[str, np.ndarray] = {}
    shared: dict[str, np.ndarray] = {}
    grids: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    every_hour = {c.grid.zone: np.unique(np.concatenate([_hours(d) for d in charged if d.grid.zone == c.grid.zone])) for c in charged}
    for c in charged:
        if c.grid.zone not in grids:
            hours = every_hour[c.grid.zone]
            grids[c.grid.zone] = (hours, np.exp(drawn_hours(rng, hours, c.grid.errors["typical"])))
    pues = {c.pue_source: two_sided(rng, *c.pue_factors) for c in charged}
    grams = np.zeros(DRAWS)
    for c in charged:
        hours, factors = grids[c.grid.zone]
        index = np.searchsorted(hours, _hours(c))
        for device, joules in zip(c.devices, c.it_joules, strict=True):
            if device.kind == "gpu":
                half = math.sqrt(0.5)
                bounds = device.gain_low**half, device.gain_high**half
                if device.name not in common:
                    common[device.name] = two_sided(rng, *bounds)
                if device.id not in boards:
                    boards[device.id] = two_sided(rng, *bounds)
                gain = common[device.name] * boards[device.id]
            else:
                if device.kind not in shared:
                    shared[device.kind] = two_sided(rng, device.gain_low, device.gain_high)
                gain = shared[device.kind]
            weights = joules / 3.6e6 * c.pue * c.grams_per_kwh
            grams += gain * pues[c.pue_source] * (factors[:, index] @ weights)
    return tuple(np.percentile(grams, (5, 50, 95)))


def _hours(c: ChargedRun) -> np.ndarray:
    return np.floor(c.edges_s[:-1] / 3600) * 3600


def cases() -> dict[str, list[ChargedRun]]:
    pue = PueProfile(1.35, 1.30, 1.40, "reported", "site")
    unknown = pue_from_text("datacentre")
    one_day = make_record({"H200": 600.0}, 24)
    month = make_record({"H200": 600.0}, 30 * 24)
    with_host = make_record({"H200": 300.0, "host": 150.0}, 12, kinds={"host": "cpu"}, name="with host")
    model_host = _wide_host(with_host)
    eight = make_record({f"GPU-{i}": 500.0 for i in range(8)}, 6)
    project = [make_record({"H200": 500.0}, 5, start=f"2026-{m:02}-03T08:00Z", name=f"run {m}") for m in range(1, 11)]
    return {
        "one GPU, one day, DE": [charge(one_day, grid=typical(one_day, DE), pue=pue)],
        "one GPU, one day, unknown data centre": [charge(one_day, grid=typical(one_day, DE), pue=unknown)],
        "one GPU, thirty days": [charge(month, grid=typical(month, DE), pue=pue)],
        "a mild grid, annual PUE": [charge(one_day, grid=typical(one_day, MILD), pue=pue_from_text("1.2"))],
        "GPU and RAPL": [charge(with_host, grid=typical(with_host, MILD), pue=pue)],
        "GPU and a host model": [charge(model_host, grid=typical(model_host, MILD), pue=pue)],
        "eight GPUs": [charge(eight, grid=typical(eight, MILD), pue=pue)],
        "a project of ten runs": [charge(run, grid=typical(run, DE, seed=i), pue=pue) for i, run in enumerate(project)],
        "two zones": [
            charge(one_day, grid=typical(one_day, DE), pue=pue),
            charge(with_host, grid=typical(with_host, MILD, zone="PL"), pue=unknown),
        ],
    }


def _wide_host(run: RunRecord) -> RunRecord:
    from dataclasses import replace

    gpu, host = run.devices
    return replace(run, devices=(gpu, replace(host, method="model", gain_low=0.5, gain_high=2.0, origin="estimated")))


@pytest.mark.parametrize("name", cases())
def test_the_width_of_the_interval_is_within_ten_percent_of_the_monte_carlos(name):
    charged = cases()[name]

    stated = total(charged).grams
    low, middle, high = simulated(charged, default_rng(7))

    assert math.log(stated.high / stated.low) == approx(math.log(high / low), rel=0.10)
    assert math.log(stated.value / middle) == approx(0, abs=0.25 * math.log(high / low))


def test_hours_of_a_profile_are_not_independent():
    start_s = 3600.0 * np.arange(24)
    weights = np.full(24, 1 / 24)

    together = grid_sd(start_s, weights, DE)
    independent = math.hypot(0.1345, 0.311, 0.0683, 0.13) / math.sqrt(24)

    assert together > 3 * independent


@pytest.mark.parametrize("hours", [1, 6, 24, 168, 720])
def test_a_run_at_constant_power_agrees_with_the_closed_form(hours):
    def g(x):
        return 2 * (x - 1 + math.exp(-x)) / x**2

    expected = math.sqrt(sum(sd**2 * g(hours / tau) for sd, tau in DE.terms) + DE.level_sd**2)

    quarters = grid_sd(900.0 * np.arange(4 * hours), np.full(4 * hours, 1 / (4 * hours)), DE)

    assert quarters == approx(expected, rel=0.01)


def test_the_sd_of_any_weights_agrees_with_the_full_covariance_matrix():
    rng = default_rng(3)
    start_s = np.sort(rng.choice(5000, 60, replace=False)) * 3600.0
    weights = rng.dirichlet(np.ones(60))
    lag_hours = np.abs(start_s[:, None] - start_s[None, :]) / 3600
    covariance = sum(sd**2 * np.exp(-lag_hours / tau) for sd, tau in DE.terms) + DE.level_sd**2

    assert grid_sd(start_s, weights, DE) == approx(math.sqrt(weights @ covariance @ weights))


def test_boards_of_one_model_share_half_of_their_gain_error():
    def width(count):
        run = make_record({f"GPU-{i}": 100.0 for i in range(count)}, 1)
        named = _same_name(run)
        grid = typical(named, GridErrors())
        return total([charge(named, grid=grid, pue=PueProfile(1.0, 1.0, 1.0, "reported", "none"))]).it_joules.high / (count * 360e3) - 1

    assert width(1) == approx(0.08, rel=0.01)
    assert width(8) == approx(0.08 * math.sqrt(0.5 + 0.5 / 8), rel=0.01)
    assert width(1000) == approx(0.08 * math.sqrt(0.5), rel=0.01)


def _same_name(run: RunRecord) -> RunRecord:
    from dataclasses import replace

    return replace(run, devices=tuple(replace(d, name="H200") for d in run.devices))


def test_each_side_of_an_interval_combines_on_its_own():
    both = product(Factors(0.99, 1.08), Factors(0.99, 1.08))

    assert both.low == approx(math.exp(math.sqrt(2) * math.log(0.99)))
    assert both.high == approx(math.exp(math.sqrt(2) * math.log(1.08)))


def test_independent_parts_of_a_sum_add_in_quadrature():
    half = independent_sum([(1.0, Factors(0.9, 1.1)), (1.0, Factors(0.9, 1.1))])

    assert half.high - 1 == approx(0.1 / math.sqrt(2))
