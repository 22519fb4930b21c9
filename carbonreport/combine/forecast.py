"""What is ahead: a forecast as far as it reaches, then typical hours, corrected by the last observed value.

With C(d) the covariance of the profile's error at a distance of d hours (terms and level, as everywhere), an hour at lead h after the
observed one is `ln f = ln typical + C(h) / C(0) * e`, e = ln(observed / typical) of the observed hour. The mean of [h, h + L] has
`phi = (sum s^2 exp(-h/tau) (1 - exp(-L/tau)) tau/L + level^2) / C(0)`. Nothing is fitted: the numbers are those of the profile
(method, section 2.3). What is left of the error is `var - phi^2 C(0)`.
"""

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from carbonreport.combine.intervals import Z90, covariance
from carbonreport.combine.seasonal import expand
from carbonreport.errors import FamilyMix
from carbonreport.model.series import QUALITIES, Array, GridErrors, IntensitySeries, SeasonalProfile
from carbonreport.units import SECONDS_PER_HOUR

# An observed value that is older says nothing that the level does not.
OLDEST_S = 30 * 24 * SECONDS_PER_HOUR
_FORECAST = QUALITIES.index("forecast")


def ahead(
    profile: SeasonalProfile,
    start_s: float,
    end_s: float,
    *,
    observed: IntensitySeries | None = None,
    forecast: IntensitySeries | None = None,
) -> IntensitySeries:
    """Intensities of a period that lies ahead, each slice marked "forecast" or "typical".

    Args:
        profile: The zone's typical year.
        start_s: Begin, POSIX seconds.
        end_s: End, POSIX seconds.
        observed: What was seen last; its last hour corrects the typical hours after it.
        forecast: A provider's forecast; it may end before the period does.

    Raises:
        FamilyMix: Profile, observation and forecast are not of one family.
    """
    for other in (observed, forecast):
        if other is not None and other.family != profile.family:
            raise FamilyMix(f"{profile.source} ({profile.family})", f"{other.source} ({other.family})")
    typical = expand(profile, start_s, end_s)
    if observed is not None:
        typical = corrected(typical, profile, observed)
    if forecast is None:
        return typical
    begin_s, horizon_s = max(float(forecast.edges_s[0]), start_s), min(float(forecast.edges_s[-1]), float(typical.edges_s[-1]))
    return typical if horizon_s <= begin_s else _overlaid(typical, forecast, begin_s, horizon_s)


def corrected(typical: IntensitySeries, profile: SeasonalProfile, observed: IntensitySeries) -> IntensitySeries:
    """A typical series, its hours after the observed one moved by what is still left of that one's error.

    Raises:
        FamilyMix: They are not of one family.
    """
    if observed.family != typical.family:
        raise FamilyMix(str(typical.family), str(observed.family))
    at_s, grams = last_hour(observed)
    lead_s = typical.edges_s[:-1] - at_s
    quality = QUALITIES[int(typical.quality[0])]
    errors = typical.errors[quality]
    there = expand(profile, at_s, at_s + SECONDS_PER_HOUR)
    usual = float(np.average(there.grams_per_kwh, weights=np.diff(there.edges_s)))
    if grams <= 0 or usual <= 0 or lead_s[0] > OLDEST_S or covariance(errors, np.zeros(1))[0] <= 0:
        return typical
    share = np.where(lead_s >= 0, shares(errors, np.maximum(lead_s, 0.0) / SECONDS_PER_HOUR), 0.0)
    when = datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")
    text = f"typical hours of {typical.zone} were corrected by {grams:.3g} g/kWh, observed at {when} UTC, where {usual:.3g} is typical"
    return replace(
        typical,
        grams_per_kwh=typical.grams_per_kwh * np.exp(share * math.log(grams / usual)),
        errors={**typical.errors, quality: replace(errors, observed_s=at_s)},
        notes=(*typical.notes, ("grid-corrected", text)),
    )


def last_hour(observed: IntensitySeries) -> tuple[float, float]:
    """Begin of the last observed hour, POSIX seconds, and its mean. [gCO2e/kWh]"""
    end_s = float(observed.edges_s[-1])
    begin_s = max(end_s - SECONDS_PER_HOUR, float(observed.edges_s[0]))
    lengths = np.diff(np.maximum(observed.edges_s, begin_s))
    return end_s - SECONDS_PER_HOUR, float(np.average(observed.grams_per_kwh, weights=lengths))


def shares(errors: GridErrors, lead_h: Array) -> Array:
    """How much of the observed hour's error an hour so much later still has, 1 to 0. Shape (n,)."""
    return covariance(errors, lead_h) / covariance(errors, np.zeros(1))


def mean_share(errors: GridErrors, lead_h: float, length_h: float) -> float:
    """The same for the mean of a stretch that begins at the lead."""
    part = sum(sd**2 * math.exp(-lead_h / tau) * -math.expm1(-length_h / tau) * tau / length_h for sd, tau in errors.terms)
    return float((part + errors.level_sd**2) / covariance(errors, np.zeros(1))[0])


def sd_by_lead(errors: GridErrors, lead_h: Array) -> Array:
    """What is left of the error of a single hour at each lead, as sd of ln. Shape (n,)."""
    whole = float(covariance(errors, np.zeros(1))[0])
    if whole <= 0:
        return np.zeros(lead_h.shape)
    return np.sqrt(np.maximum(whole - shares(errors, lead_h) ** 2 * whole, 0.0))


def hour_factors(series: IntensitySeries) -> Array:
    """90 % factor of each interval taken alone, by its quality and lead. Shape (n,)."""
    found = np.ones(series.grams_per_kwh.shape)
    for quality, errors in series.errors.items():
        here = series.quality == QUALITIES.index(quality)
        if errors.observed_s is None:
            sd = np.full(here.shape, math.sqrt(float(covariance(errors, np.zeros(1))[0])))
        else:
            sd = sd_by_lead(errors, np.maximum(series.edges_s[:-1] - errors.observed_s, 0.0) / SECONDS_PER_HOUR)
        found[here] = np.exp(Z90 * sd[here])
    return found


def _overlaid(typical: IntensitySeries, forecast: IntensitySeries, begin_s: float, horizon_s: float) -> IntensitySeries:
    """The forecast where it reaches, the typical hours before and after it."""
    edges = np.unique(np.concatenate([typical.edges_s, forecast.edges_s, [begin_s, horizon_s]]))
    edges = edges[(edges >= typical.edges_s[0]) & (edges <= typical.edges_s[-1])]
    at = edges[:-1]
    is_forecast = (at >= begin_s) & (at < horizon_s)
    ours = np.searchsorted(typical.edges_s, at, side="right") - 1
    theirs = np.clip(np.searchsorted(forecast.edges_s, at, side="right") - 1, 0, forecast.grams_per_kwh.size - 1)
    own = next(iter(typical.errors.values()))
    until = datetime.fromtimestamp(horizon_s, UTC).strftime("%Y-%m-%d %H:%M")
    text = f"the forecast of {forecast.source} for {typical.zone} reaches to {until} UTC; hours after it are typical ones"
    return replace(
        typical,
        edges_s=edges,
        grams_per_kwh=np.where(is_forecast, forecast.grams_per_kwh[theirs], typical.grams_per_kwh[ours]),
        quality=np.where(is_forecast, _FORECAST, typical.quality[ours]).astype(np.int8),
        # How far providers' forecasts are off is not known here: no further, it is assumed, than the typical hour uncorrected.
        errors={**typical.errors, "forecast": replace(own, observed_s=None)},
        source=f"{forecast.source}; {typical.source}",
        retrieved_on=forecast.retrieved_on,
        notes=(*typical.notes, ("grid-forecast", text)),
    )
