"""Savings by shifting in 2020, as published and as recomputed, out of files that are given as `--grid FILE.csv`.

A job of some hours may start up to 24 h later (one block, "shifted") or also pause (the cleanest parts of its window, "paused"). The saving
is the ratio of the means over all starts whose window ends in 2020. Published values take every second quarter hour for a half hour.
"""

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.combine.footprint import footprint
from carbonreport.grid.sources.csv import create
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import Array, IntensitySeries
from carbonreport.store.writer import save
from carbonreport.testing.records import make_record
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions

ROOT = Path(__file__).resolve().parents[2]
RAW = Path(os.environ.get("CARBONREPORT_RAW", ROOT.parent / "shared" / "data")) / "grid"
TWIN = ROOT / "tests" / "data" / "grid" / "twin_2020.csv"
NO_PUE = PueProfile(1.0, 1.0, 1.0, "reported", "no facility")
HOUR = 3600.0
LENGTHS_H = (1, 6, 24, 168)
SLACK_H = 24
BEGIN_S, END_S = (datetime.fromisoformat(text).timestamp() for text in ("2020-01-01T00:00Z", "2021-01-01T00:00Z"))

needs_raw = pytest.mark.skipif(not (RAW / "ger_ci.csv").is_file(), reason="the raw files are not here")


def utc_file(name: str, folder: Path) -> Path:
    """A raw file under a header that says that its times are UTC, as --grid wants it."""
    text = (RAW / name).read_text(encoding="utf-8")
    path = folder / name
    path.write_text(text.replace("Time,Carbon Intensity", "Time (UTC),Carbon Intensity", 1), encoding="utf-8")
    return path


def intensities(path: Path, step_s: float, begin_s: float = BEGIN_S, end_s: float = END_S) -> Array:
    """What the source makes of a period, at the begin of each step. [g/kWh]"""
    grid = create({"path": str(path)})

    def last_one(zone: str, hole_s: float, until_s: float) -> IntensitySeries:
        """A missing quarter hour is taken to be like the one before, as the published figures do."""
        before = grid.series(zone, hole_s - 900, hole_s)
        return replace(before, edges_s=np.array([hole_s, until_s]), grams_per_kwh=before.grams_per_kwh[-1:], quality=before.quality[-1:])

    series = replace(grid, fill=last_one).series("DE", begin_s, end_s)
    at = np.arange(begin_s, end_s, step_s)
    return series.grams_per_kwh[np.searchsorted(series.edges_s, at, side="right") - 1]


def savings(grams: Array, length: int, slack: int) -> tuple[float, float]:
    """Change of the mean by shifting and by pausing, in per cent, over all starts; lengths in steps."""
    starts = grams.size - length - slack + 1
    sums = np.concatenate([[0.0], np.cumsum(grams)])
    blocks = (sums[length:] - sums[:-length]) / length
    now = blocks[:starts]
    shifted = np.lib.stride_tricks.sliding_window_view(blocks, slack + 1)[:starts].min(axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(grams, length + slack)[:starts]
    paused = np.concatenate([np.partition(part, length - 1, axis=1)[:, :length].mean(axis=1) for part in np.array_split(windows, 40)])
    assert np.all(paused <= shifted + 1e-9) and np.all(shifted <= now + 1e-9)
    return 100 * (shifted.mean() / now.mean() - 1), 100 * (paused.mean() / now.mean() - 1)


@needs_raw
@pytest.mark.parametrize(
    ("name", "step_s", "shifted", "paused"),
    [
        ("ger_ci.csv", 1800.0, (-22.373, -19.551, -9.528, -2.065), (-22.407, -20.388, -14.453, -5.549)),
        ("ger_ci.csv", 900.0, (-22.360, -19.555, -9.528, -2.064), (-22.407, -20.397, -14.458, -5.550)),
        ("gb_ci.csv", 1800.0, (-26.460, -21.949, -9.451, -1.883), (-26.662, -23.597, -16.198, -5.856)),
        ("fr_ci.csv", 1800.0, (-16.301, -12.671, -6.700, -1.440), (-16.349, -13.872, -9.821, -4.061)),
    ],
    ids=["Germany, half hours", "Germany, all rows", "Great Britain", "France"],
)
def test_the_published_savings_of_2020_come_out_of_the_file(tmp_path, name, step_s, shifted, paused):
    grams = intensities(utc_file(name, tmp_path), step_s)
    per_hour = round(HOUR / step_s)
    found = [savings(grams, length * per_hour, SLACK_H * per_hour) for length in LENGTHS_H]
    assert [s for s, _ in found] == approx(shifted, abs=0.005)
    assert [p for _, p in found] == approx(paused, abs=0.005)


@needs_raw
@pytest.mark.parametrize(
    ("step_s", "now", "shifted", "best_start", "paused"),
    [
        (1800.0, 355.6355, 352.0135, "2020-06-16T09:00Z", 348.2205),
        (900.0, 356.0298, 351.9164, "2020-06-16T08:45Z", 348.3417),
    ],
    ids=["half hours", "all rows"],
)
def test_one_job_of_june_2020_has_the_published_intensities(tmp_path, step_s, now, shifted, best_start, paused):
    path, begin_s = utc_file("ger_ci.csv", tmp_path), datetime.fromisoformat("2020-06-15T09:00Z").timestamp()
    grams = intensities(path, step_s, begin_s, begin_s + 30 * HOUR)
    length = round(6 * HOUR / step_s)
    blocks = [grams[i : i + length].mean() for i in range(grams.size - length + 1)]
    assert blocks[0] == approx(now, abs=1e-3)
    assert min(blocks) == approx(shifted, abs=1e-3)
    assert begin_s + int(np.argmin(blocks)) * step_s == datetime.fromisoformat(best_start).timestamp()
    assert np.sort(grams)[:length].mean() == approx(paused, abs=1e-3)


@needs_raw
@pytest.mark.parametrize(("start", "grams_per_kwh"), [("2020-06-15T09:00Z", 356.0298), ("2020-06-16T08:45Z", 351.9164)])
def test_a_record_is_charged_at_the_rows_of_its_own_time(tmp_path, start, grams_per_kwh):
    record = save(make_record({"gpu": 1000}, 6, start=start, zone="DE"), tmp_path / "run.jsonl")
    options = PlaceOptions(pue="1.0", grid=str(utc_file("ger_ci.csv", tmp_path)))
    footprint = charge_records(load_records([record]), options, {}).footprint
    assert footprint.grams.value / 6 == approx(grams_per_kwh, abs=1e-3)


# The same on a small file of our own


def test_the_twin_gives_what_counting_by_hand_gives():
    begin_s = datetime.fromisoformat("2020-06-15T00:00Z").timestamp()
    grams = intensities(TWIN, 1800.0, begin_s, begin_s + 48 * HOUR)
    assert grams.size == 96
    for length, slack in ((2, 48), (12, 20), (4, 0)):
        now, shifted, paused = [], [], []
        for start in range(grams.size - length - slack + 1):
            window = list(grams[start : start + length + slack])
            now.append(sum(window[:length]) / length)
            shifted.append(min(sum(window[i : i + length]) / length for i in range(slack + 1)))
            paused.append(sum(sorted(window)[:length]) / length)
        expected = (100 * (sum(shifted) / sum(now) - 1), 100 * (sum(paused) / sum(now) - 1))
        assert savings(grams, length, slack) == approx(expected, abs=1e-9)
    assert savings(grams, 4, 0) == approx((0, 0), abs=1e-9)


def test_a_run_on_the_twin_is_charged_at_its_own_half_hours_partial_ones_exact():
    run = make_record({"gpu": 1000}, 1.25, start="2020-06-15T10:15Z")
    grid = create({"path": str(TWIN)}).series("DE", run.started_s, run.ended_s)
    rows = intensities(TWIN, 1800.0, datetime.fromisoformat("2020-06-15T10:00Z").timestamp(), run.ended_s)
    assert footprint(run, grid=grid, pue=NO_PUE).grams.value == approx(0.25 * rows[0] + 0.5 * rows[1] + 0.5 * rows[2])
