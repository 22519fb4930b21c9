"""The best start of a job that runs in one piece: every start is priced, none is guessed. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.model.series import Array
from carbonreport.recommend.rates import Job, Rates, cost_of_starts

_ALIKE = 1e-9  # costs that differ by rounding alone
Periods = Sequence[tuple[float, float]]
"""(from_s, to_s) in POSIX seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Starts:
    """What every start costs.

    Attributes:
        at_s: POSIX seconds, rising; the first is "now". Shape (n,).
        grams: Emissions with waiting, NaN where the job cannot run. [gCO2e] Shape (n,).
        waiting_grams: Part of it that reserved equipment draws until the start. [gCO2e] Shape (n,).
    """

    at_s: Array
    grams: Array
    waiting_grams: Array

    @property
    def best(self) -> int | None:
        """The cheapest start, the earliest of several; None where the job cannot run at all."""
        if np.isnan(self.grams).all():
            return None
        least = float(np.nanmin(self.grams))
        return int(np.flatnonzero(self.grams <= least + _ALIKE * abs(least))[0])


def starts(
    job: Job,
    rates: Rates,
    *,
    earliest_s: float,
    latest_end_s: float,
    step_s: float = 900.0,
    closed: Periods = (),
    idle_watts: float = 0.0,
) -> Starts:
    """Every start from the earliest one on, in steps, such that the job has ended in time.

    Args:
        job: What runs.
        rates: What a joule costs when.
        earliest_s: First start. [s]
        latest_end_s: Deadline. [s]
        step_s: Distance of starts. [s]
        closed: Periods in which it must not run: busy equipment, hours that are not allowed.
        idle_watts: What reserved equipment draws while it waits. [W]
    """
    count = max(0, int((latest_end_s - job.seconds - earliest_s) / step_s + 1e-9)) + 1
    at_s: Array = earliest_s + step_s * np.arange(count, dtype=np.float64)
    grams = cost_of_starts(job, rates, at_s)
    waiting = idle_watts * (rates.cumulative(at_s) - rates.cumulative(np.array([earliest_s])))
    is_late = at_s + job.seconds > latest_end_s + 1e-6
    is_closed = np.zeros(count, bool)
    for from_s, to_s in closed:
        is_closed |= (at_s < to_s - 1e-6) & (at_s + job.seconds > from_s + 1e-6)
    is_out = is_closed | is_late
    is_out[0] = is_closed[0]  # now is now, also where the deadline cannot be met
    return Starts(at_s, np.where(is_out, np.nan, grams + waiting), waiting)
