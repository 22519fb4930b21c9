"""The benchmark of the profiles' intervals: nothing of a test year, or of a later one, reaches the numbers that are tested on it."""

import csv
import gzip
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ZONES = [f"Z{i}" for i in range(40)]


@pytest.fixture(scope="module")
def coverage() -> ModuleType:
    before = list(sys.path)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return import_module("grid_coverage")
    finally:
        sys.path[:] = before


def raw_folder(folder: Path, levels: dict[int, np.ndarray]) -> Path:
    """Yearly levels of 40 zones with hours, and of one that moves wildly and has none."""
    with gzip.open(folder / "hourly_2022_123zones_lifecycle.csv.gz", "wt", newline="") as file:
        csv.writer(file).writerow(["datetime_utc", *ZONES])
    with (folder / "annual_averages.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["source", "zone", "year", "g_per_kwh"])
        for year, values in levels.items():
            rows.writerows(["electricitymaps_via_co2js", zone, year, value] for zone, value in zip(ZONES, values, strict=True))
            rows.writerow(["electricitymaps_via_co2js", "NO-HOURS", year, 10.0 ** (year % 2 + 1)])
    return folder


def levels_of_five_years() -> dict[int, np.ndarray]:
    random = np.random.default_rng(8)
    steps = random.normal(0, 0.1, (5, len(ZONES)))
    return {2021 + i: 300 * np.exp(step) for i, step in enumerate(np.cumsum(steps, axis=0))}


@pytest.fixture
def series(coverage):
    """Three years of a zone, the last one apart."""
    random = np.random.default_rng(5)
    years = {year: 300 * np.exp(random.normal(0, 0.2, 8760)) for year in (2021, 2022, 2023)}
    return coverage.Held("Z0 (made up, 2023)", "Europe/Berlin", {y: years[y] for y in (2021, 2022)}, 2023, years[2023])


def test_what_is_known_of_levels_before_a_year_does_not_depend_on_that_year_or_later_ones(coverage, tmp_path):
    levels = levels_of_five_years()
    wild = levels | {year: levels[year] * np.linspace(0.1, 9, len(ZONES)) for year in (2024, 2025)}
    folders = [tmp_path / name for name in ("as it was", "wild")]
    for folder in folders:
        folder.mkdir()
    calm, other = (raw_folder(folder, given) for folder, given in zip(folders, (levels, wild), strict=True))

    assert coverage.changes_before(calm, 2024, []) == coverage.changes_before(other, 2024, [])
    assert coverage.changes_before(calm, 2025, []) != coverage.changes_before(other, 2025, [])


def test_before_any_yearly_table_the_changes_of_all_series_count_up_to_that_year(coverage, series, tmp_path):
    raw = raw_folder(tmp_path, levels_of_five_years())
    old = replace(series, years={2019: series.years[2021], 2020: 1.2 * series.years[2022], 2021: 5.0 * series.test}, test_year=2022)
    other = replace(old, years=old.years | {2021: 0.1 * series.test})

    assert coverage.changes_before(raw, 2021, [old]) == coverage.changes_before(raw, 2021, [other])
    assert coverage.changes_before(raw, 2022, [old]) != coverage.changes_before(raw, 2022, [other])


def test_profile_and_error_terms_do_not_depend_on_the_test_year(coverage, series):
    wild = replace(series, test=series.test[::-1] * 4)

    assert np.array_equal(coverage.predicted(series), coverage.predicted(wild))
    assert series.changes() == wild.changes()
    one, two = (coverage.terms(coverage.residuals(s.years, s.relative)) for s in (series, wild))
    assert one == two


def test_an_interval_can_be_missed_on_both_sides(coverage):
    sides = coverage._sides(np.array([-2.0, -0.5, 0.0, 0.5, 3.0, 4.0, 0.1, 0.2]), 1.0)

    assert (sides.inside, sides.above, sides.below) == (0.625, 0.25, 0.125)
    assert "above" in coverage._verdict(0.97) and "below" in coverage._verdict(0.85) and "within" in coverage._verdict(0.9)
