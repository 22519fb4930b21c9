"""Real files that users brought, with their right values. Skipped where the folder is not here; a small twin of each trap is in test_traps.py."""

import csv
import importlib.util
import os
from pathlib import Path

import pytest

RAW = Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data"))
INDEX = RAW / "cases" / "INDEX.csv"
pytestmark = pytest.mark.skipif(not INDEX.is_file(), reason="the cases are not here")

_SPEC = importlib.util.spec_from_file_location("carbonreport_cases", Path(__file__).resolve().parents[2] / "benchmarks" / "cases.py")
cases = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(cases)


def rows():
    if not INDEX.is_file():
        return []
    with INDEX.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
def test_a_real_file_gives_its_right_energy_or_the_reason_why_not(row):
    right = float(row["right_value"]) if row["right_unit"] == "kWh" and row["right_value"] not in ("", "0") else None

    ours, why, _ = cases.outcome(RAW / "cases" / row["file"], {})
    verdict, words = cases.judged(ours, why, right)

    assert verdict in ("right", "refused"), words
    assert verdict == "right" or right is None or row["file"] in cases.SAID, words


@pytest.mark.parametrize("name", sorted(cases.SAID))
def test_what_a_file_does_not_say_its_author_can(name):
    row = next(row for row in rows() if row["file"] == name)

    ours, _, _ = cases.outcome(RAW / "cases" / name, cases.SAID[name])

    assert ours == pytest.approx(float(row["right_value"]), rel=cases.GOAL)


@pytest.mark.parametrize(
    ("log", "watts"),
    [
        ("ct_multigpu_carbontracker/8gpu", 1612.5),
        ("ct_multigpu_carbontracker/2gpu", 400.0),
        ("ct_multigpu_ct125/8gpu", 1612.5),
        ("ct_multigpu_ct125/2gpu", 400.0),
    ],
)
def test_carbontrackers_mean_over_boards_becomes_their_sum(log, watts):
    for path in (RAW / "cases" / "peers" / log).iterdir():
        ours, why, _ = cases.outcome(path, {})
        assert ours == pytest.approx(watts * 6.4 / 3.6e6, rel=cases.GOAL), why
