"""Another start hour, or another month, for a run like this one: by the typical profile and the PUE profile of its place.

Two windows h hours apart differ by ln(I_alt / I_now) with Var = 2 sum s^2 (rho(0) - rho(h)), rho the mean of exp(-|u| / tau)
over pairs of hours; the level cancels. Printed with s^2 = (1.1 sd)^2 + (0.3 ln ratio)^2 + 0.01^2. The expected saving is 0.8 of
the promised logarithm. Advised only where it is at least 5 %, the chance of a gain at least 0.75, and the run at most 12 h long:
held out, longer runs gain nothing from a typical profile alone (method, section 4).
"""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from statistics import NormalDist
from zoneinfo import ZoneInfo

import numpy as np

from carbonreport.combine.charge import charge
from carbonreport.combine.intervals import Z90
from carbonreport.combine.pue import pue_at
from carbonreport.combine.seasonal import expand
from carbonreport.model.pue import PueProfile
from carbonreport.model.recommendation import Action, Recommendation
from carbonreport.model.run import RunRecord
from carbonreport.model.series import Array, SeasonalProfile
from carbonreport.units import SECONDS_PER_HOUR, hours

SHRINK = 0.8
LEAST_SAVING = 0.05
LEAST_CHANCE = 0.75
LONGEST_H = 12.0
_MOST_HOURS = 2000  # of a run whose hours are paired one by one; a longer one is never advised


def start_hour(run: RunRecord, profile: SeasonalProfile, pue: PueProfile, time_zone: str) -> Recommendation | None:
    """The best start hour of the run's own day for a run like it; None where there is nothing to compare (no length, no energy, no day curve)."""
    starts, grams = start_grams(run, profile, pue, time_zone)
    if not grams:
        return None
    shift = int(np.argmin(grams))
    own, best = _local(run.started_s, time_zone).hour, _local(starts[shift], time_zone).hour
    log_ratio = math.log(grams[shift] / grams[0])
    sd = _shift_sd(run, profile, min(shift, 24 - shift))
    return _verdict(profile, own, best, log_ratio, sd, hours(run.duration_s))


def start_grams(run: RunRecord, profile: SeasonalProfile, pue: PueProfile, time_zone: str) -> tuple[list[float], list[float]]:
    """The run's own start and the 23 hours after it, POSIX seconds, and what each costs, gCO2e; both empty where there is nothing to compare."""
    if profile.shape is None or run.duration_s <= 0:
        return [], []
    starts = [run.started_s + shift * SECONDS_PER_HOUR for shift in range(24)]
    grams = [_grams(run, start, profile, pue, time_zone) for start in starts]
    return (starts, grams) if grams[0] > 0 else ([], [])


def month(run: RunRecord, profile: SeasonalProfile, pue: PueProfile, time_zone: str) -> Recommendation | None:
    """The best month by the facility's own PUE, None without a PUE by month. What the grid adds by season is not promised: month means miss by up to 20 %."""
    if not pue.months:
        return None
    moment = _local(run.started_s, time_zone)
    ratios = [_pue_of_month(run, pue, time_zone, moment, m) for m in range(1, 13)]
    best = int(np.argmin(ratios)) + 1
    saving = 1 - ratios[best - 1] / ratios[moment.month - 1]
    if saving < LEAST_SAVING:
        lowers = f"the facility's PUE by month lowers it by {saving * 100:.0f} % at best"
        because = "its own month has the facility's lowest PUE" if saving < 0.005 else lowers
        return Recommendation("none", "month", profile.zone, moment.month, best, saving, saving, saving, 1.0, because)
    because = (
        f"the facility's PUE is {ratios[best - 1]:.2f} then, against {ratios[moment.month - 1]:.2f}; this is energy, whatever the grid does"
    )
    return Recommendation("season", "month", profile.zone, moment.month, best, saving, saving, saving, 1.0, because)


def _grams(run: RunRecord, start_s: float, profile: SeasonalProfile, pue: PueProfile, time_zone: str) -> float:
    """What the run would have been charged at another start, partial intervals exact. [gCO2e]"""
    moved = replace(run, started_s=start_s, spans=())
    flat = replace(pue, edges_s=(), values=())  # a measured series says nothing of another day
    mean_day = replace(profile, weekend_ratio=None)  # an hour is advised for a run like it, on whatever day of the week
    charged = charge(moved, grid=expand(mean_day, start_s, start_s + run.duration_s), pue=flat, time_zone=time_zone)
    per_joule = charged.pue * charged.grams_per_kwh
    return float(charged.it_joules.sum(axis=0) @ per_joule)


def _local(at_s: float, time_zone: str) -> datetime:
    return datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(time_zone))


def _shift_sd(run: RunRecord, profile: SeasonalProfile, shift_h: float) -> float:
    """Sd of ln(I_alt / I_now) for two windows of this run, some hours apart."""
    weights = _hourly_weights(run)
    at = np.arange(weights.size, dtype=np.float64)
    lag = at[:, None] - at[None, :]
    pairs = weights[:, None] * weights[None, :]
    variance = 0.0
    for sd, tau in profile.terms:
        here = float(np.sum(pairs * np.exp(-np.abs(lag) / tau)))
        there = float(np.sum(pairs * np.exp(-np.abs(lag + shift_h) / tau)))
        variance += 2 * sd**2 * (here - there)
    return math.sqrt(max(variance, 0.0))


def _hourly_weights(run: RunRecord) -> Array:
    """Share of the energy in each hour since the start. Shape (n,)."""
    count = min(max(math.ceil(hours(run.duration_s)), 1), _MOST_HOURS)
    edges = np.minimum(np.arange(count + 1) * SECONDS_PER_HOUR, run.duration_s)
    joules = np.zeros(count)
    for trace in run.traces:
        if trace.offsets_s:
            joules += np.diff(np.interp(edges, trace.offsets_s, trace.joules))
    whole = float(joules.sum())
    return joules / whole if whole > 0 else np.full(count, 1 / count)


def _verdict(profile: SeasonalProfile, own: int, best: int, log_ratio: float, sd: float, length_h: float) -> Recommendation:
    """Advice, or why there is none."""
    s = math.sqrt((1.1 * sd) ** 2 + (0.3 * log_ratio) ** 2 + 0.01**2)
    expected = SHRINK * log_ratio
    saving, low, high = (1 - math.exp(x) for x in (expected, expected + Z90 * s, expected - Z90 * s))
    chance = NormalDist().cdf(-log_ratio / s) if log_ratio < 0 else 0.5
    reason = _reason(profile, saving, chance, length_h)
    action: Action = "none" if reason else "shift"
    because = reason or "a typical day of the month names it"
    return Recommendation(action, "hour", profile.zone, own, best, saving, low, high, chance, because)


def _reason(profile: SeasonalProfile, saving: float, chance: float, length_h: float) -> str:
    """Why another hour is not worth promising, or nothing."""
    if "constant" in profile.marks or "estimated" in profile.marks:
        return "the zone's day curve was not measured"
    if length_h > LONGEST_H:
        return f"for runs of over {LONGEST_H:.0f} h a typical profile alone saves nothing"
    if saving < LEAST_SAVING:
        return f"it would lower the figure by under {LEAST_SAVING * 100:.0f} %"
    if chance < LEAST_CHANCE:
        return f"the chance that this run gains is under {LEAST_CHANCE}"
    return ""


def _pue_of_month(run: RunRecord, pue: PueProfile, time_zone: str, moment: datetime, month_number: int) -> float:
    """Energy-weighted PUE of the run, begun on the same day and hour of another month."""
    day = moment.replace(day=1, month=month_number) + timedelta(days=min(moment.day, 28) - 1)
    start_s = day.timestamp()
    edges = start_s + np.minimum(np.arange(_hourly_weights(run).size + 1) * SECONDS_PER_HOUR, run.duration_s)
    return float(_hourly_weights(run) @ pue_at(replace(pue, edges_s=(), values=()), time_zone, edges))
