"""How often a 90 % interval of a typical profile holds the truth, on years that nothing was learnt from.

    python benchmarks/grid_coverage.py RAW_FOLDER

RAW_FOLDER/grid holds the hourly files and `profile_transfer_error.csv`, which names 31 series and their last year. Of each series the
profile (`scripts/grid_shapes.py`, as the shipped ones) and its four error numbers (`scripts/grid_errors.py`) are made from the years before that year, of this
series and of all others; random runs in it are charged at last year's level. How much a zone is believed beside its class is estimated
anew from those years (`scripts/grid_levels.py`), so that no constant stands between them and the year of the test.

Printed: coverage by length of run with its standard error, on which side the truth lay else, and the worst zones; coverage if the level had
been known, and if hours were independent; coverage by test year; the mean interval score beside a flat climatology's; the error after
correction by the last observed hour as a share of that before; and what was learnt of levels before each test year. Exits with 1 where
a figure leaves its band, on either side, by more than its standard error. `level_coverage.py` looks at the level alone.
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from grid_errors import level_sd, residuals, terms  # noqa: E402
from grid_levels import WEIGHTS, Spread, spread  # noqa: E402
from grid_shapes import laid_on, typical_relative, typical_shape, weekend_ratio  # noqa: E402

from carbonreport.combine.forecast import shares  # noqa: E402
from carbonreport.combine.intervals import Z90, grid_sd  # noqa: E402
from carbonreport.model.series import GridErrors  # noqa: E402

Array = NDArray[np.float64]
LENGTHS_H = (1, 6, 24, 168, 720)
LEADS_H = (1, 2, 4, 7, 13, 25, 49)
RUNS = 400
BAND = (0.86, 0.96)
LEAD_BANDS = {1: (0.15, 0.27), 7: (0.58, 0.72), 13: (0.67, 0.82)}
INDEPENDENT_BAND = (0.2, 0.4)
# Zones of the files that are not spelled as in the table of time zones.
TIME_ZONES = {
    "CISO": "US-CAL-CISO",
    "ERCO": "US-TEX-ERCO",
    "ISNE": "US-NE-ISNE",
    "MISO": "US-MIDW-MISO",
    "PJM": "US-MIDA-PJM",
    "EPE": "US-SW-EPE",
}


@dataclass(frozen=True, slots=True)
class Held:
    """A series with its last year apart.

    Attributes:
        name: Data set and zone.
        time_zone: IANA name.
        years: Hours by year before the last. [gCO2e/kWh]
        test_year: The last year.
        test: Its hours.
    """

    name: str
    time_zone: str
    years: dict[int, Array]
    test_year: int
    test: Array

    def relative(self, year: int, others: Sequence[int]) -> Array:
        """Relative intensity of a year's hours by the profile of others, of mean one."""
        return typical_relative(self.time_zone, year, {other: self.years[other] for other in others})

    def changes(self, before: int | None = None) -> list[float]:
        """Changes of ln(level) from one year to the next that were known before a year, else before the test year."""
        years = [year for year in sorted(self.years) if before is None or year < before]
        return [float(np.log(self.years[b].mean() / self.years[a].mean())) for a, b in pairwise(years)]


def read(raw: Path) -> list[Held]:
    """The 31 series."""
    wanted = {(row["ds"], row["zone"]): int(row["test"]) for row in rows(raw / "profile_transfer_error.csv")}
    zones = {row["zone"]: row["tz"] for row in rows(raw / "zone_timezones.csv")}
    tall: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in ("hourly_2021_2024_20zones_direct_lifecycle.csv.gz", "hourly_open_sources_18zones.csv.gz"):
        for row in rows(raw / name):
            key = row["dataset"], row["zone"]
            if row["factor"] == "lifecycle" and key in wanted:
                tall[key][int(row["datetime_utc"][:4])].append(float(row["g_per_kwh"]))
    found = []
    for (dataset, zone), test_year in wanted.items():
        years = {y: np.array(g) for y, g in tall[dataset, zone].items()}
        before = {y: g for y, g in years.items() if y < test_year and g.size >= 8760}
        found.append(Held(f"{zone} ({dataset}, {test_year})", zones[TIME_ZONES.get(zone, zone)], before, test_year, years[test_year]))
    return found


def rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def yearly_levels(raw: Path) -> dict[str, dict[int, float]]:
    """Yearly means of the zones that have hours: the levels of many others follow from constants of the provider and do not move. [gCO2e/kWh]"""
    with gzip.open(raw / "hourly_2022_123zones_lifecycle.csv.gz", "rt", encoding="utf-8") as lines:
        zones = set(next(csv.reader(lines)))
    levels: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows(raw / "annual_averages.csv"):
        if row["source"] == "electricitymaps_via_co2js" and row["zone"] in zones:
            levels[row["zone"]][int(row["year"])] = float(row["g_per_kwh"])
    return levels


def known_before(levels: Mapping[int, float], year: int) -> tuple[float, list[float]]:
    """Newest level of a zone before a year, and the changes of its logarithm. [gCO2e/kWh]"""
    years = [y for y in sorted(levels) if y < year]
    return levels[years[-1]], [float(np.log(levels[b] / levels[a])) for a, b in pairwise(years)]


def changes_before(raw: Path, year: int, held: Sequence[Held]) -> Spread:
    """How levels move, as far as it was known before a year: of all zones with hours, else, before 2023, of the series themselves."""
    levels = yearly_levels(raw)
    zones = [known_before(by_year, year) for by_year in levels.values() if min(by_year) < year]
    if not any(changes for _, changes in zones):
        zones = [(s.years[max(y for y in s.years if y < year)].mean(), s.changes(year)) for s in held if min(s.years) < year]
    return spread(zones)


def predicted(series: Held) -> Array:
    """Hours of the test year by the profile of the years before, at the level of the last of them. [gCO2e/kWh]"""
    level = series.years[max(series.years)].mean()
    shape, ratio = typical_shape(series.time_zone, series.years), weekend_ratio(series.time_zone, series.years)
    return np.asarray(level * laid_on(series.time_zone, series.test_year, shape, ratio), dtype=np.float64)[: series.test.size]


@dataclass(frozen=True, slots=True)
class Sides:
    """Shares of the random runs of a series whose truth lay in the interval, above it and below it."""

    inside: float
    above: float
    below: float


def main(folder: str) -> int:
    """Print the figures; 1 where one leaves its band."""
    raw = Path(folder) / "grid"
    held = read(raw)
    covered: dict[int, dict[str, Sides]] = {length: {} for length in LENGTHS_H}
    alone: dict[int, list[float]] = {length: [] for length in LENGTHS_H}
    known: dict[int, list[float]] = {length: [] for length in LENGTHS_H}
    by_lead: dict[int, list[float]] = {lead: [] for lead in LEADS_H}
    scores: dict[int, list[tuple[float, float]]] = {length: [] for length in LENGTHS_H}
    random = np.random.default_rng(20)
    spreads = {year: changes_before(raw, year, held) for year in sorted({series.test_year for series in held})}
    for series in held:
        level = series.years[max(series.years)].mean()
        sd = level_sd(series.changes(), spreads[series.test_year], level)
        errors = GridErrors(terms(residuals(series.years, series.relative)), sd)
        typical = predicted(series)
        e = np.log(np.maximum(series.test, 0.5) / typical)
        truth, guess = np.cumsum(np.append(0.0, series.test)), np.cumsum(np.append(0.0, typical))
        for length in LENGTHS_H:
            starts = random.integers(0, series.test.size - length, RUNS)
            off = np.log(np.maximum(truth[starts + length] - truth[starts], 0.5) / (guess[starts + length] - guess[starts]))
            hours, weights = 3600.0 * np.arange(length, dtype=np.float64), np.full(length, 1 / length)
            half = Z90 * grid_sd(hours, weights, errors)
            covered[length][series.name] = _sides(off, half)
            flat = np.log(np.maximum(truth[starts + length] - truth[starts], 0.5) / (length * level))
            scores[length].append((_score(off, -half, half), _score(flat, *_flat_interval(series, length, sd))))
            level_known = Z90 * grid_sd(hours, weights, GridErrors(errors.terms))
            known[length].append(_sides(off - np.log(truth[-1] / guess[-1]), level_known).inside)
            alone[length].append(_sides(off, Z90 * float(np.sqrt(sum(s**2 for s, _ in errors.terms) / length))).inside)
        for lead in LEADS_H:
            share = float(shares(errors, np.array([float(lead)]))[0])
            by_lead[lead].append(float(np.sqrt(np.mean((e[lead:] - share * e[:-lead]) ** 2) / np.mean(e[lead:] ** 2))))
    outside = [report(covered, known, alone), report_leads(by_lead), report_scores(scores)]
    report_years(held, covered)
    report_spreads(spreads)
    return max(outside)


def _flat_interval(series: Held, length: int, level_sd_: float) -> tuple[float, float]:
    """What a flat climatology says: 90 % of the means of such windows in the years before, each over its year's level, and the level's own error."""
    offs = []
    for hours in series.years.values():
        total = np.cumsum(np.append(0.0, hours))
        offs.append(np.log(np.maximum(total[length:] - total[:-length], 0.5) / (length * hours.mean())))
    low, high = np.quantile(np.concatenate(offs), [0.05, 0.95])
    return -float(np.hypot(min(low, 0.0), Z90 * level_sd_)), float(np.hypot(max(high, 0.0), Z90 * level_sd_))


def _score(off: Array, low: float, high: float) -> float:
    """Mean interval score of logarithms at 90 % (Gneiting and Raftery 2007): its width, and 20 times what lies outside; less is better."""
    return float(np.mean(high - low + 20 * (np.maximum(low - off, 0.0) + np.maximum(off - high, 0.0))))


def report_scores(scores: Mapping[int, Sequence[tuple[float, float]]]) -> int:
    """Print the mean interval scores; 1 where the flat climatology's is as good."""
    print("mean interval score of ln(true / stated), less is better: the profile's, a flat climatology's")
    outside = 0
    for length, pairs in scores.items():
        ours, flat = np.mean(np.array(pairs), axis=0)
        outside += not ours < flat
        better = sum(a < b for a, b in pairs)
        print(f"  {length:4d} h: {ours:.2f}, {flat:.2f}; better in {better} of {len(pairs)} series")
    return int(outside > 0)


def _sides(off: Array, half: float) -> Sides:
    """Where errors lie against a 90 % interval of this half width."""
    above, below = float(np.mean(off > half)), float(np.mean(off < -half))
    return Sides(1 - above - below, above, below)


def report(covered: Mapping[int, Mapping[str, Sides]], known: Mapping[int, Sequence[float]], alone: Mapping[int, Sequence[float]]) -> int:
    """Print the coverage; 1 where it is outside its band by more than its standard error."""
    outside = 0
    print(f"coverage of the 90 % interval, {len(next(iter(covered.values())))} series, {RUNS} random runs each, last year's level")
    for length, zones in covered.items():
        inside = [sides.inside for sides in zones.values()]
        mean, error = float(np.mean(inside)), float(np.std(inside, ddof=1) / np.sqrt(len(inside)))
        outside += not BAND[0] - error <= mean <= BAND[1] + error
        above, below = (float(np.mean([getattr(sides, side) for sides in zones.values()])) for side in ("above", "below"))
        worst = ", ".join(f"{name} {sides.inside * 100:.0f}" for name, sides in sorted(zones.items(), key=lambda z: z[1].inside)[:3])
        independent = float(np.mean(alone[length]))
        outside += length == 24 and not INDEPENDENT_BAND[0] <= independent <= INDEPENDENT_BAND[1]
        print(
            f"  {length:4d} h: {mean * 100:.1f} ± {error * 100:.1f} % ({_verdict(mean)}); truth above {above * 100:.1f}, below {below * 100:.1f} %; "
            f"level known {float(np.mean(known[length])) * 100:.1f} %; independent hours {independent * 100:.0f} %"
        )
        print(f"          worst: {worst}")
    return int(outside > 0)


def _verdict(mean: float) -> str:
    """Where a mean lies against the band, whatever its standard error."""
    low, high = BAND
    off = (mean - high if mean > high else low - mean if mean < low else 0.0) * 100
    band = f"{low * 100:.0f}-{high * 100:.0f}"
    return f"{off:.1f} {'above' if mean > high else 'below'} {band}" if off else f"within {band}"


def report_leads(by_lead: Mapping[int, Sequence[float]]) -> int:
    """Print what correction by the last hour leaves; 1 where it is outside its band."""
    outside = 0
    print("error after correction by the last observed hour over that before, median of the series")
    for lead, ratios in by_lead.items():
        median = float(np.median(ratios))
        low, high = LEAD_BANDS.get(lead, (0.0, 1.0))
        outside += not low <= median <= high
        print(f"  {lead:3d} h: {median:.2f}")
    return int(outside > 0)


def report_years(held: Sequence[Held], covered: Mapping[int, Mapping[str, Sides]]) -> None:
    """Print the coverage by test year: its zones share one weather and one market, so there are only as many independent draws as years."""
    print("coverage by test year, at " + ", ".join(f"{length} h" for length in covered))
    for year in sorted({series.test_year for series in held}):
        names = [series.name for series in held if series.test_year == year]
        means = [float(np.mean([zones[name].inside for name in names])) for zones in covered.values()]
        print(f"  {year} ({len(names)} series): " + ", ".join(f"{mean * 100:.1f}" for mean in means) + " %")


def report_spreads(spreads: Mapping[int, Spread]) -> None:
    """Print what was learnt of levels before each test year."""
    print("weight of the class, in changes of the zone's own, and sd of ln(level) after a year by class, from the years before")
    for year, found in spreads.items():
        weight = "no difference between zones" if found.weight >= WEIGHTS[-1] else f"{found.weight:.1f}"
        ends = ", ".join(f"{sd:.3f} under {upper:.0f} g" for sd, upper in zip(found.sds, found.uppers, strict=True))
        print(f"  {year}: {weight}; {ends}".replace(" under inf g", " above" if len(found.sds) > 1 else " for all"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: grid_coverage.py RAW_FOLDER")
    raise SystemExit(main(sys.argv[1]))
