"""The error numbers of a profile: found again from errors that were made with known ones."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "grid_errors.py"


@pytest.fixture(scope="module")
def errors() -> ModuleType:
    spec = importlib.util.spec_from_file_location("grid_errors", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_a_zone_s_own_changes_draw_its_level_away_from_its_class(errors):
    everybody = {upper: [0.1, -0.1, 0.1] for upper in errors.LEVEL_CLASSES}
    alone = errors.level_sd([], everybody, 200.0)
    assert alone == pytest.approx(0.1 / 1.645, rel=1e-3)
    assert errors.level_sd([0.0, 0.0], everybody, 200.0) < alone < errors.level_sd([0.4, 0.3], everybody, 200.0)


def test_a_year_is_predicted_by_the_others_alone(errors):
    years = {2021: np.full(100, 200.0), 2022: np.full(100, 100.0), 2023: np.full(100, 50.0)}
    asked: list[tuple[int, list[int]]] = []

    def typical(year: int, others: list[int]) -> np.ndarray:
        asked.append((year, list(others)))
        return np.ones(100)

    assert all(np.allclose(e, 0) for e in errors.residuals(years, typical))
    assert asked == [(2021, [2022, 2023]), (2022, [2021, 2023]), (2023, [2021, 2022])]
