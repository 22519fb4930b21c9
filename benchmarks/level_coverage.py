"""How often the level of a year lay in the 90 % interval made of the years before, in every zone with hours; and the shipped error of levels beside built ones.

    python benchmarks/level_coverage.py RAW_FOLDER

Levels of 2023 by those of 2021 and 2022, of 2024 by the three before, and so on (`scripts/grid_levels.py`): as in `grid_coverage.py`, but over all
zones that have hours, and with one draw of the market a year, which all of them share. The shipped errors of levels (`odbl/zones.csv`) were made by
another program out of all years; here they are divided by what the builder makes of all years, so that one sees how far a test of the builder
speaks for them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from grid_coverage import ROOT, known_before, rows, yearly_levels  # it also finds the scripts

from grid_errors import level_sd  # isort: skip
from grid_levels import spread  # isort: skip

from carbonreport.combine.intervals import Z90

FIRST_YEAR = 2023
AFTER_ALL = 9999

Levels = dict[str, dict[int, float]]
Shipped = dict[str, dict[str, str]]


def main(folder: str) -> None:
    """Print the figures."""
    raw = Path(folder) / "grid"
    levels = yearly_levels(raw)
    shipped = {row["zone"]: row for row in rows(ROOT / "carbonreport" / "data" / "odbl" / "zones.csv")}
    print("level alone, one year ahead: share of zones in the 90 % interval, above it, below it")
    for year in range(FIRST_YEAR, 1 + max(max(by_year) for by_year in levels.values())):
        one_year(levels, year)
    level_ratios(levels, shipped)


def one_year(levels: Levels, year: int) -> None:
    """Print on which side of their intervals the levels of a year lay."""
    whole = [by_year for by_year in levels.values() if year in by_year and sum(y < year for y in by_year) > 1]
    before = [known_before(by_year, year) for by_year in whole]
    everybody = spread(before)
    halves = np.array([Z90 * level_sd(own, everybody, level) for level, own in before])
    off = np.array([np.log(by_year[year] / level) for by_year, (level, _) in zip(whole, before, strict=True)])
    above, below = float(np.mean(off > halves)), float(np.mean(off < -halves))
    print(f"  {year} ({off.size} zones): {(1 - above - below) * 100:.1f} %, {above * 100:.1f} %, {below * 100:.1f} %")


def level_ratios(levels: Levels, shipped: Shipped) -> None:
    """Print the shipped sd of the level after a year over the built one."""
    newest = {zone: known_before(by_year, AFTER_ALL) for zone, by_year in levels.items()}
    everybody = spread(list(newest.values()))
    ratios = [
        float(shipped[zone]["sd_level_per_sqrt_year"]) / level_sd(own, everybody, level) for zone, (level, own) in newest.items() if own
    ]
    print(f"shipped over built, level after a year: {_middle(ratios)} ({len(ratios)} zones)")


def _middle(ratios: Sequence[float]) -> str:
    low, median, high = np.quantile(ratios, [0.1, 0.5, 0.9])
    return f"median {median:.2f}, 80 % from {low:.2f} to {high:.2f}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: level_coverage.py RAW_FOLDER")
    main(sys.argv[1])
