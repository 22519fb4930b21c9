"""The error numbers of a profile: found again from errors that were made with known ones."""

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
Z90 = 1.645


@pytest.fixture(scope="module")
def scripts() -> tuple[ModuleType, ModuleType]:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return import_module("grid_errors"), import_module("grid_levels")
    finally:
        sys.path.pop(0)


@pytest.fixture
def errors(scripts) -> ModuleType:
    return scripts[0]


@pytest.fixture
def levels(scripts) -> ModuleType:
    return scripts[1]


def exponential(sd: float, tau_h: float, hours: int, random: np.random.Generator) -> np.ndarray:
    """A year of errors that are forgotten with one time constant."""
    decay = np.exp(-1 / tau_h)
    steps = random.normal(size=hours) * sd * np.sqrt(1 - decay**2)
    values = np.empty(hours)
    values[0] = random.normal() * sd
    for i in range(1, hours):
        values[i] = decay * values[i - 1] + steps[i]
    return values


def test_known_terms_are_found_again(errors):
    random = np.random.default_rng(3)
    years = [exponential(0.2, 6, 8760, random) + exponential(0.3, 48, 8760, random) for _ in range(40)]
    (fast, tau_fast), (middle, tau_middle), (slow, tau_slow) = errors.terms(years)
    assert (tau_fast, tau_middle, tau_slow) == (6, 48, 1440)
    scale = np.sqrt(errors.fewer_years(40))
    assert fast == pytest.approx(0.2 * scale, abs=0.03)
    assert middle == pytest.approx(0.3 * scale, abs=0.03)
    assert slow < 0.06


def test_no_variance_is_negative_and_the_fit_is_exact_where_it_can_be(errors):
    basis = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    assert errors.nonnegative(basis, basis @ np.array([2.0, 3.0])) == pytest.approx([2, 3])
    assert errors.nonnegative(basis, np.array([1.0, -5.0, 0.0])) == pytest.approx([0.5, 0])
    assert list(errors.nonnegative(basis, np.array([-1.0, -1.0, -1.0]))) == [0, 0]


def made_up_zones(random: np.random.Generator, *, d0: float, s0: float, zones: int, changes: int, level: float = 200.0):
    """Zones whose variances are spread with d0 and s0, each with its changes and one that is still to come."""
    variances = s0**2 * d0 / random.chisquare(d0, zones)
    drawn = random.normal(size=(zones, changes + 1)) * np.sqrt(variances)[:, None]
    return [(level, list(row[:-1])) for row in drawn], drawn[:, -1]


def test_the_weight_of_the_class_and_its_size_are_found_again(levels):
    zones, _ = made_up_zones(np.random.default_rng(1), d0=4, s0=0.1, zones=3000, changes=3)
    found = levels.spread(zones)
    assert found.weight == pytest.approx(4, rel=0.2)
    assert found.sd_at(200.0) == pytest.approx(0.1, rel=0.05)


def test_where_zones_are_all_alike_the_class_alone_is_believed(levels, errors):
    random = np.random.default_rng(2)
    found = levels.spread([(200.0, list(random.normal(size=3) * 0.1)) for _ in range(3000)])
    assert found.weight > 50
    assert errors.level_sd([], found, 200.0) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(("d0", "changes"), [(1.5, 1), (1.5, 3), (4, 2), (30, 2)])
def test_nine_of_ten_next_changes_lie_in_an_interval_made_of_the_changes_before(levels, errors, d0, changes):
    zones, coming = made_up_zones(np.random.default_rng(7), d0=d0, s0=0.1, zones=2000, changes=changes)
    found = levels.spread(zones)
    inside = [abs(change) <= Z90 * errors.level_sd(own, found, level) for (level, own), change in zip(zones, coming, strict=True)]
    assert np.mean(inside) == pytest.approx(0.9, abs=0.02)


def test_zones_of_another_level_have_another_size(levels):
    random = np.random.default_rng(4)
    small, _ = made_up_zones(random, d0=5, s0=0.3, zones=400, changes=2, level=40.0)
    large, _ = made_up_zones(random, d0=5, s0=0.05, zones=400, changes=2, level=600.0)
    found = levels.spread(small + large)
    assert found.sd_at(40.0) == pytest.approx(0.3, rel=0.2)
    assert found.sd_at(600.0) == pytest.approx(0.05, rel=0.2)


def test_few_zones_are_one_class_and_zones_without_a_change_say_nothing(levels):
    zones = [(100.0 * i, [0.1 * (-1) ** i]) for i in range(1, 11)]
    found = levels.spread(zones)
    assert found.uppers == (float("inf"),)
    assert levels.spread([*zones, (5.0, []), (9999.0, [])]) == found
    with pytest.raises(ValueError, match="no change"):
        levels.spread([(100.0, [])])


def test_a_zone_s_own_changes_draw_its_level_away_from_its_class(levels, errors):
    everybody = levels.Spread(4.0, (float("inf"),), (0.1,))
    alone = errors.level_sd([], everybody, 200.0)
    assert alone == pytest.approx(0.1 * 2.1318 / 1.6449, rel=1e-3)  # the 95 % quantile of a t with 4 degrees of freedom
    assert errors.level_sd([0.0, 0.0], everybody, 200.0) < alone < errors.level_sd([0.4, 0.3], everybody, 200.0)


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 6.3138), (2, 2.9200), (5, 2.0150), (30, 1.6973), (500, 1.6479)])
def test_quantiles_of_the_t_are_those_of_the_tables(levels, freedom, quantile):
    assert levels.t95(freedom) == pytest.approx(quantile, rel=1e-3)


def test_a_year_is_predicted_by_the_others_alone(errors):
    years = {2021: np.full(100, 200.0), 2022: np.full(100, 100.0), 2023: np.full(100, 50.0)}
    asked: list[tuple[int, list[int]]] = []

    def typical(year: int, others: list[int]) -> np.ndarray:
        asked.append((year, list(others)))
        return np.ones(100)

    assert all(np.allclose(e, 0) for e in errors.residuals(years, typical))
    assert asked == [(2021, [2022, 2023]), (2022, [2021, 2023]), (2023, [2021, 2022])]
