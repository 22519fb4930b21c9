"""Another month for a job: the facility's PUE and the typical grid together, each month priced at the same day and hour. Pure.

The same date is a workday in one month and a Sunday in another, which says nothing of the month: every month has the mean day of its week.

The PUE of a site's own profile is a fact of energy and counts whole; what the grid's months promise is shrunk like every typical saving, and
their error is at least what months of that zone missed by when a year was held out (method, section 4).
"""

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np

from carbonreport.combine.intervals import grid_sd
from carbonreport.combine.pue import pue_at, pue_edges
from carbonreport.combine.seasonal import expand
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import Array, GridErrors, SeasonalProfile
from carbonreport.recommend.rates import Job, Rates, cost_of_starts
from carbonreport.recommend.worth import Saving, saving_of

MONTHS = 12
# Months of zones that nobody held out a year of: the median miss of 31 series was 6 %, the worst 21 %.
UNKNOWN_MISS = 0.21
_SD_OF_MEAN_ERROR = math.sqrt(math.pi / 2)  # sd of a normal error over its mean size


@dataclass(frozen=True, slots=True)
class Month:
    """A job begun in another month.

    Attributes:
        number: 1 to 12.
        start_s: The same day and local hour of it, the next that comes. [POSIX s]
        pue_ratio: Mean PUE over that of now, weighted by energy.
        grid_ratio: What remains of the ratio of emissions: the grid's part.
        sd: Standard deviation of the logarithm of the grid's part.
    """

    number: int
    start_s: float
    pue_ratio: float
    grid_ratio: float
    sd: float

    @property
    def ratio(self) -> float:
        """Emissions over those of now."""
        return self.pue_ratio * self.grid_ratio


def months(
    job: Job, start_s: float, profile: SeasonalProfile, pue: PueProfile, time_zone: str, missed: float | None, *, then: Job | None = None
) -> tuple[Month, ...]:
    """The job in each of the next eleven months.

    Args:
        job: What runs.
        start_s: When it would run now. [POSIX s]
        profile: Typical year of the zone.
        pue: The facility's; a measured series says nothing of other months and is left out.
        time_zone: Of the facility.
        missed: Mean share by which months of this zone were off when held out, or None where nobody knows.
        then: The same work as it would run in the other month, such as under a cap; its own energy is left out of the ratios.
    """
    flat, mean_day = replace(pue, edges_s=(), values=()), replace(profile, weekend_ratio=None)
    held_out_sd = (UNKNOWN_MISS if missed is None else missed) * _SD_OF_MEAN_ERROR * math.sqrt(2)
    now = _Priced.of(job, start_s, mean_day, flat, time_zone)
    found = []
    for ahead in range(1, MONTHS):
        at = _months_later(start_s, ahead, time_zone)
        other = _Priced.of(then or job, at.timestamp(), mean_day, flat, time_zone)
        pue_ratio = other.pue / now.pue
        grid_ratio = other.grams / now.grams / pue_ratio * (job.joules / (then or job).joules)
        found.append(Month(at.month, at.timestamp(), pue_ratio, grid_ratio, max(_sd(now, other, profile), held_out_sd)))
    return tuple(found)


def saving(month: Month, *, energy_log: float = 0.0, energy_sd: float = 0.0) -> Saving:
    """What a month saves: the PUE's part whole, the grid's part shrunk.

    Args:
        month: One of `months`.
        energy_log: ln of the job's IT energy over that of now, such as by a cap.
        energy_sd: Standard deviation of that.
    """
    energy = energy_log + math.log(month.pue_ratio)
    return saving_of(1.0, month.ratio * math.exp(energy_log), month.sd, is_typical=True, energy_log=energy, energy_sd=energy_sd)


def best(found: tuple[Month, ...]) -> Month:
    """The month of the largest expected saving, the earliest of several."""
    return max(found, key=lambda m: (round(saving(m).value, 9), -m.start_s))


@dataclass(frozen=True, slots=True, eq=False)
class _Priced:
    """A window: emissions, mean PUE by energy, and the share of its emissions in each slice."""

    grams: float
    pue: float
    start_s: Array
    weights: Array

    @classmethod
    def of(cls, job: Job, start_s: float, profile: SeasonalProfile, pue: PueProfile, time_zone: str) -> "_Priced":
        end_s = start_s + job.seconds
        series = expand(profile, start_s, end_s)
        cuts = np.union1d(series.edges_s, pue_edges(pue, time_zone, start_s, end_s))
        edges = np.union1d(cuts[(cuts > start_s) & (cuts < end_s)], [start_s, end_s])
        index = np.clip(np.searchsorted(series.edges_s, edges[:-1], side="right") - 1, 0, series.grams_per_kwh.size - 1)
        ratio = pue_at(pue, time_zone, edges)
        rates = Rates.of(edges, series.grams_per_kwh[index], ratio)
        joules = np.diff(_energy(job, edges - start_s))
        grams = joules * rates.grams_per_joule
        whole = float(cost_of_starts(job, rates, np.array([start_s]))[0])
        return cls(whole, float(joules @ ratio / joules.sum()), edges[:-1], np.asarray(grams / grams.sum(), dtype=np.float64))


def _energy(job: Job, at_s: Array) -> Array:
    whole = np.concatenate([[0.0], np.cumsum(job.watts * np.diff(job.edges_s))])
    return np.asarray(np.interp(at_s, job.edges_s, whole), dtype=np.float64)


def _sd(now: _Priced, then: _Priced, profile: SeasonalProfile) -> float:
    """Of ln(then / now); the level cancels."""
    if then.start_s[0] <= now.start_s[-1]:
        return 0.0
    starts = np.concatenate([now.start_s, then.start_s])
    return grid_sd(starts, np.concatenate([-now.weights, then.weights]), GridErrors(profile.terms))


def _months_later(start_s: float, ahead: int, time_zone: str) -> datetime:
    at = datetime.fromtimestamp(start_s, UTC).astimezone(ZoneInfo(time_zone))
    count = at.month - 1 + ahead
    return at.replace(year=at.year + count // MONTHS, month=count % MONTHS + 1, day=min(at.day, 28))
