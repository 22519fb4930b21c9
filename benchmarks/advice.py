"""Whether advice on another start holds, on years that nothing was learnt from.

    python benchmarks/advice.py RAW_FOLDER [--all-years | --newest] [--days-alike] [--observed]

RAW_FOLDER/grid holds the hourly files and `profile_transfer_error.csv`, which names 31 series and their last year. Of each series the profile
and its error numbers are made from the years before that year, as in `grid_coverage.py`. In the last year 1,000 random jobs of steady power
(length log-uniform from 1 to 168 h in quarter hours, any quarter hour as "now", 24 h of slack) are priced by the profile at every quarter hour
through `carbonreport.recommend`, and the best start is then charged with the hours as they were. A zone whose hours repeat or were
estimated is marked as in the shipped tables. No constant of the rule is fitted here.

Printed: how often the interval of the saving holds, over the jobs for which the profile names another start; the stated chances against the
share of jobs that gained, by fifths of the chance; the share of the advised jobs that gained; for five sunny zones the share of jobs up to 6 h that
are advised, and what they save against the same rule with the profile of the very year ("hindsight") and against every hour known ("oracle");
and the share of runs of 24 h and more that are advised. Exits with 1 where a goal is missed.

The flags try what is not shipped: the mean shape of all years, the newest year's alone, all days of a week alike (`advice_shapes.py`); and, which the
product does with `--grid electricitymaps`, the last observed hour before each "now".
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent))

from grid_coverage import Held, changes_before, read  # it also finds the scripts

from advice_shapes import Variant, corrected  # isort: skip

from build_grid_data import CONSTANT, ESTIMATED  # isort: skip
from grid_errors import level_sd, residuals, terms  # isort: skip
from grid_shapes import begin_s, laid_on, typical_shape, weekend_ratio  # isort: skip

from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries
from carbonreport.recommend.rates import Job, Rates, cost_of_starts
from carbonreport.recommend.windows import starts
from carbonreport.recommend.worth import difference_sd, has_typical_shape, is_typical, reason_against, saving_of
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR

Array = NDArray[np.float64]
JOBS = 1000
LONGEST_H = 168.0
SLACK_H = 24.0
SHORT_H = 6.0
LONG_H = 24.0
SUNNY = ("US-CAL-CISO", "CL-SEN", "AU-NSW", "DE", "ES")
COVERAGE = (0.86, 0.96)
MOST_OFF = 0.08
LEAST_GAINING = 0.90
LEAST_ADVISED = 0.60
LEAST_OF_HINDSIGHT = 0.80
MOST_LONG = 0.02


@dataclass(frozen=True, slots=True)
class Tried:
    """One job. Savings are shares of the emissions of starting at once.

    Attributes:
        series: Which of the 31.
        hours: Its length.
        is_named: Whether the profile names another start.
        low: Lower end of the stated saving.
        high: Upper end.
        chance: Stated chance of a gain.
        is_advised: Whether the rule advises it.
        realised: What the named start saved.
        hindsight: What the rule would have advised and saved with the profile of the very year; 0 where it would not have.
        oracle: The most that could be saved.
        promised: Stated saving.
    """

    series: str
    hours: float
    is_named: bool
    low: float
    high: float
    chance: float
    is_advised: bool
    realised: float
    hindsight: float
    oracle: float
    promised: float


def main(folder: str, variant: Variant) -> int:
    """Print the tables; 1 where a goal is missed."""
    raw = Path(folder) / "grid"
    held = read(raw)
    random = np.random.default_rng(6)
    tried = []
    for series in held:
        level = series.years[max(series.years)].mean()
        sd = level_sd(series.changes(), changes_before(raw, series.test_year, held), level)
        errors = GridErrors(terms(residuals(series.years, _relative(series, variant))), sd)
        tried += jobs_of(series, errors, random, variant)
    return report(tried, variant)


def _relative(series: Held, variant: Variant) -> Callable[[int, Sequence[int]], Array]:
    """The typical year of a series, for its error numbers: as long as the year that it is compared with."""

    def relative(year: int, others: Sequence[int]) -> Array:
        hours = variant.hours(series, year, others)
        return np.asarray(hours / hours.mean(), dtype=np.float64)[: series.years[year].size]

    return relative


def jobs_of(series: Held, errors: GridErrors, random: np.random.Generator, variant: Variant) -> list[Tried]:
    """Random jobs in the last year of a series."""
    edges = begin_s(series.test_year) + SECONDS_PER_HOUR * np.arange(series.test.size + 1, dtype=np.float64)
    level = series.years[max(series.years)].mean()
    hours = variant.hours(series, series.test_year, tuple(series.years))[: series.test.size]
    typical = _series(series.name, edges, level * hours, errors)
    of_itself = {series.test_year: series.test}
    own_form = typical_shape(series.time_zone, of_itself), weekend_ratio(series.time_zone, of_itself)
    own_hours = laid_on(series.time_zone, series.test_year, *own_form)[: series.test.size]
    own = _series(series.name, edges, series.test.mean() * own_hours, errors)
    truth = Rates.of(edges, np.maximum(series.test, 0.5), np.ones(series.test.size))
    zone = series.name.split()[0]
    marks = [mark for mark, zones in (("constant", CONSTANT), ("estimated", ESTIMATED)) if zone in zones]
    quarters = np.exp(random.uniform(0, np.log(LONGEST_H), JOBS)) * 4
    found = []
    for length_s in np.maximum(np.round(quarters), 4) * QUARTER_HOUR_S:
        last_s = edges[-1] - length_s - SLACK_H * SECONDS_PER_HOUR
        now_s = edges[0] + QUARTER_HOUR_S * random.integers(0, int((last_s - edges[0]) / QUARTER_HOUR_S))
        hours_ahead = corrected(typical, series.test, float(now_s)) if variant.observed else typical
        found.append(_tried(series.name, hours_ahead, own, truth, Job.steady(1000.0, float(length_s)), float(now_s), marks))
    return found


def _series(name: str, edges_s: Array, grams: Array, errors: GridErrors) -> IntensitySeries:
    quality = np.full(grams.size, QUALITIES.index("typical"), dtype=np.int8)
    return IntensitySeries(name, edges_s, grams, quality, {"typical": errors}, Family(), "years before")


def _tried(name: str, typical: IntensitySeries, own: IntensitySeries, truth: Rates, job: Job, now_s: float, marks: Sequence[str]) -> Tried:
    end_s = now_s + job.seconds + SLACK_H * SECONDS_PER_HOUR
    low, high, chance, promised, is_advised, best_s = _advice(_cut(typical, now_s, end_s), job, now_s, end_s, marks)
    _, _, _, _, is_own_advised, own_s = _advice(_cut(own, now_s, end_s), job, now_s, end_s, marks)
    begin, end = _hours_around(truth.edges_s, now_s, end_s)
    known = Rates(truth.edges_s[begin : end + 1], truth.grams_per_joule[begin:end])
    now, named, hindsight = cost_of_starts(job, known, np.array([now_s, best_s, own_s]))
    every = starts(job, known, earliest_s=now_s, latest_end_s=end_s, step_s=QUARTER_HOUR_S)
    return Tried(
        series=name,
        hours=job.seconds / SECONDS_PER_HOUR,
        is_named=best_s != now_s,
        low=low,
        high=high,
        chance=chance,
        is_advised=is_advised,
        realised=float(1 - named / now),
        hindsight=float(1 - hindsight / now) if is_own_advised else 0.0,
        oracle=float(1 - np.nanmin(every.grams) / now),
        promised=promised,
    )


def _advice(
    series: IntensitySeries, job: Job, now_s: float, end_s: float, marks: Sequence[str]
) -> tuple[float, float, float, float, bool, float]:
    """Interval, chance and size of the stated saving, whether it is advised, and the start that is named."""
    rates = Rates.of(series.edges_s, series.grams_per_kwh, np.ones(series.grams_per_kwh.size))
    priced = starts(job, rates, earliest_s=now_s, latest_end_s=end_s, step_s=QUARTER_HOUR_S)
    best = priced.best or 0
    best_s = float(priced.at_s[best])
    sd = difference_sd(series, ((now_s, now_s + job.seconds),), ((best_s, best_s + job.seconds),))
    saving = saving_of(float(priced.grams[0]), float(priced.grams[best]), sd, is_typical=has_typical_shape(series))
    against = reason_against(saving, length_h=job.seconds / SECONDS_PER_HOUR, rests_on_typical=is_typical(series), marks=marks)
    return saving.low, saving.high, saving.chance, saving.value, best > 0 and not against, best_s


def _cut(series: IntensitySeries, from_s: float, to_s: float) -> IntensitySeries:
    """The hours of a series that touch a period."""
    begin, end = _hours_around(series.edges_s, from_s, to_s)
    return replace(
        series,
        edges_s=series.edges_s[begin : end + 1],
        grams_per_kwh=series.grams_per_kwh[begin:end],
        quality=series.quality[begin:end],
    )


def _hours_around(edges_s: Array, from_s: float, to_s: float) -> tuple[int, int]:
    return int(np.searchsorted(edges_s, from_s, side="right")) - 1, int(np.searchsorted(edges_s, to_s, side="left"))


def report(tried: Sequence[Tried], variant: Variant) -> int:
    """Print the tables; 1 where a goal is missed."""
    named = [job for job in tried if job.is_named]
    advised = [job for job in tried if job.is_advised]
    print(f"{len(tried):,} jobs on {len({job.series for job in tried})} series; the profile names another start for {len(named):,}")
    missed = _coverage(named) + _chances(named) + _gains(advised, tried) + _sunny(tried) + _long(tried, variant)
    print("missed: " + ("; ".join(missed) or "none"))
    return int(bool(missed))


def _coverage(named: Sequence[Tried]) -> list[str]:
    share = _mean([job.low <= job.realised <= job.high for job in named])
    print(f"interval of the realised saving holds {share * 100:.1f} % (goal {COVERAGE[0] * 100:.0f} to {COVERAGE[1] * 100:.0f})")
    for low, high in ((1, 6), (6, 12), (12, 24), (24, 72), (72, 169)):
        part = [job for job in named if low <= job.hours < high]
        print(f"  {low:3d} to {high:3d} h: {_mean([job.low <= job.realised <= job.high for job in part]) * 100:.1f} % of {len(part):,}")
    by_zone = {name: _mean([j.low <= j.realised <= j.high for j in named if j.series == name]) for name in {j.series for j in named}}
    worst = sorted(by_zone.items(), key=lambda pair: pair[1])[:4]
    print("  worst: " + ", ".join(f"{name} {share * 100:.0f} %" for name, share in worst))
    return [] if COVERAGE[0] <= share <= COVERAGE[1] else ["coverage"]


def _chances(named: Sequence[Tried]) -> list[str]:
    print(f"stated chance and share that gained, by fifths (goal: within {MOST_OFF})")
    missed = []
    for i, part in enumerate(np.array_split(sorted(named, key=lambda job: job.chance), 5), start=1):
        stated, seen = _mean([job.chance for job in part]), _mean([job.realised > 0 for job in part])
        is_off = abs(stated - seen) > MOST_OFF
        print(f"  fifth {i}: stated {stated:.3f}  seen {seen:.3f}{'  MISSED' if is_off else ''}")
        missed += [f"chance of fifth {i}"] if is_off else []
    return missed


def _gains(advised: Sequence[Tried], tried: Sequence[Tried]) -> list[str]:
    share = _mean([job.realised > 0 for job in advised])
    short = [job for job in tried if job.hours <= 12]
    print(
        f"advised: {len(advised) / len(tried) * 100:.1f} % of all, {_mean([j.is_advised for j in short]) * 100:.1f} % of those up to 12 h; "
        f"of them {share * 100:.1f} % gained (goal at least {LEAST_GAINING * 100:.0f}); "
        f"promised {_mean([j.promised for j in advised]) * 100:.1f} %, realised {_mean([j.realised for j in advised]) * 100:.1f} %"
    )
    return [] if share >= LEAST_GAINING else ["gains of the advised"]


def _sunny(tried: Sequence[Tried]) -> list[str]:
    print(f"jobs up to {SHORT_H:.0f} h (goals: {LEAST_ADVISED * 100:.0f} % advised, {LEAST_OF_HINDSIGHT * 100:.0f} % of hindsight)")
    missed = []
    for name in sorted({job.series for job in tried}):
        if name.split()[0] not in SUNNY:
            continue
        part = [job for job in tried if job.series == name and job.hours <= SHORT_H]
        advised = _mean([job.is_advised for job in part])
        error = math.sqrt(advised * (1 - advised) / len(part))
        realised, hindsight = _mean([j.realised * j.is_advised for j in part]), _mean([j.hindsight for j in part])
        of_hindsight, of_oracle = realised / hindsight, realised / _mean([j.oracle for j in part])
        could = _mean([j.hindsight > 0 for j in part])
        is_missed = advised < LEAST_ADVISED or of_hindsight < LEAST_OF_HINDSIGHT
        print(
            f"  {name:48s} {len(part)} jobs: advised {advised * 100:.0f} ± {error * 100:.0f} % (hindsight would {could * 100:.0f} %), realised "
            f"{realised * 100:.1f} %, {of_hindsight * 100:.0f} % of hindsight, {of_oracle * 100:.0f} % of the oracle"
            f"{'  MISSED' if is_missed else ''}"
        )
        missed += [name] if is_missed else []
    return missed


def _long(tried: Sequence[Tried], variant: Variant) -> list[str]:
    """An observed hour may advise long runs; a typical day alone may not."""
    long = [job for job in tried if job.hours >= LONG_H]
    share, advised = _mean([job.is_advised for job in long]), [job for job in long if job.is_advised]
    goal = "no goal where an hour was observed" if variant.observed else f"goal at most {MOST_LONG * 100:.0f}"
    gained = f"; {_mean([job.realised > 0 for job in advised]) * 100:.1f} % of them gained" if advised else ""
    print(f"runs of {LONG_H:.0f} h and more: {share * 100:.2f} % advised ({goal}){gained}")
    return [] if variant.observed or share <= MOST_LONG else ["long runs"]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Whether advice on another start holds, on years that nothing was learnt from.")
    parser.add_argument("folder", metavar="RAW_FOLDER")
    for name in ("all-years", "newest", "days-alike", "observed"):
        parser.add_argument(f"--{name}", action="store_true")
    given = parser.parse_args()
    raise SystemExit(main(given.folder, Variant(given.all_years, given.newest, given.days_alike, given.observed)))
