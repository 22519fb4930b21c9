"""How long it takes to price every start, and to find the best schedule with pauses.

    python benchmarks/schedules.py

Every start of a 200-hour job within a year, at quarter hours, in 123 zones (goal 0.5 s); and the best schedule of a job that may pause within
30 days, each pause at its cost (goal 0.5 s). Grids are the embedded profiles with hourly noise on top; making them is not counted. The best of three
runs counts. Exits with 1 where a goal is missed.
"""

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from carbonreport.combine.seasonal import expand
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.grid.zones import all_zones
from carbonreport.recommend.pauses import Schedule, best_schedule
from carbonreport.recommend.rates import Job, Rates
from carbonreport.recommend.windows import starts
from carbonreport.units import SECONDS_PER_HOUR

ZONES = 123
BEGIN_S = 1_767_225_600.0  # 2026-01-01
YEAR_H, JOB_H, MONTH_H = 8760, 200, 720
GOAL_S = 0.5
WATTS = 2000.0
T = TypeVar("T")


def noisy(zone: str, length_h: int, random: np.random.Generator) -> Rates:
    """Hours of a zone: its profile, and an error that the next hour mostly keeps."""
    series = expand(EmbeddedGrid().profile(zone), BEGIN_S, BEGIN_S + length_h * SECONDS_PER_HOUR)
    walk = np.zeros(series.grams_per_kwh.size)
    for i, step in enumerate(random.normal(0, 0.05, walk.size)):
        walk[i] = 0.95 * walk[i - 1] + step
    return Rates.of(series.edges_s, series.grams_per_kwh * np.exp(walk), np.full(walk.size, 1.2))


def best_of_three(work: Callable[[], T]) -> tuple[float, T]:
    """Shortest time of three, and what came out."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        found = work()
        times.append(time.perf_counter() - begin)
    return min(times), found


def every_start(grids: list[Rates]) -> bool:
    """Price all starts of all zones; whether in time."""
    job, until = Job.steady(WATTS, JOB_H * SECONDS_PER_HOUR), BEGIN_S + YEAR_H * SECONDS_PER_HOUR
    seconds, priced = best_of_three(lambda: [starts(job, rates, earliest_s=BEGIN_S, latest_end_s=until) for rates in grids])
    saved = [1 - float(np.nanmin(p.grams)) / float(p.grams[0]) for p in priced]
    print(
        f"{len(grids)} zones x {priced[0].at_s.size:,} starts of {JOB_H} h: {seconds:.3f} s (goal {GOAL_S}, {seconds / GOAL_S:.2f} of it); "
        f"best start of the year saves {np.median(saved) * 100:.1f} % (median)"
    )
    return seconds <= GOAL_S


def with_pauses(rates: Rates, hours: float, most_pauses: int | None, pause_s: float) -> bool:
    """Find the best schedule; whether in time."""
    until = BEGIN_S + MONTH_H * SECONDS_PER_HOUR
    seconds, schedule = best_of_three(
        lambda: best_schedule(
            WATTS, hours * SECONDS_PER_HOUR, rates, earliest_s=BEGIN_S, latest_end_s=until, most_pauses=most_pauses, pause_s=pause_s
        )
    )
    assert isinstance(schedule, Schedule)
    job = Job.steady(WATTS, hours * SECONDS_PER_HOUR)
    whole = starts(job, rates, earliest_s=BEGIN_S, latest_end_s=until).grams
    now, best = float(whole[0]), float(np.nanmin(whole))
    most = "any number of" if most_pauses is None else f"at most {most_pauses}"
    print(
        f"{hours:g} h within 30 days, {most} pauses of {pause_s / 60:g} min: {seconds:.3f} s (goal {GOAL_S}, {seconds / GOAL_S:.2f} of it); "
        f"{schedule.pauses} pauses, {schedule.grams / now:.3f} of now, one piece {best / now:.3f}"
    )
    return seconds <= GOAL_S


def main() -> int:
    """Print the figures; 1 where a goal is missed."""
    random = np.random.default_rng(6)
    shaped = [row.code for row in all_zones() if EmbeddedGrid().profile(row.code).shape is not None]
    others = [row.code for row in all_zones() if row.code not in set(shaped)]
    grids = [noisy(zone, YEAR_H, random) for zone in (shaped + others)[:ZONES]]
    are_met = [every_start(grids)]
    month = noisy("DE", MONTH_H, random)
    for hours, most_pauses, pause_s in ((24.0, None, 300.0), (200.0, None, 900.0), (200.0, None, 300.0), (24.0, 5, 300.0)):
        are_met.append(with_pauses(month, hours, most_pauses, pause_s))
    return int(not all(are_met))


if __name__ == "__main__":
    sys.exit(main())
