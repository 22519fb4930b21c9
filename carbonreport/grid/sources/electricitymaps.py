"""Zones of the world, hourly, with a key: Electricity Maps, version 4 of the API; version 3 answers alike.

Consumption-based CO2e, life-cycle or direct. Without `disableCallerLookup` an unknown zone would be answered with that of the caller's
address; it is always sent, and the zone of the answer is compared with the one that was asked for.
"""

import os
from collections.abc import Mapping

import msgspec

from carbonreport.errors import BadAnswer, BadSeries, KeyRefused
from carbonreport.grid.answers import DAY_S, Ask, Point, checked, chunks, decoded, iso_minute, lengths, short, utc_s
from carbonreport.grid.cache import GridCache
from carbonreport.grid.online import OnlineGrid, Provider, online
from carbonreport.grid.readings import ESTIMATED, FORECAST, MEASURED, Fill, Readings
from carbonreport.model.series import Family
from carbonreport.request import Fetch, Request
from carbonreport.units import SECONDS_PER_HOUR

BASE = "https://api.electricitymaps.com"
TITLE = "Electricity Maps"
SOURCE = "Electricity Maps API"
KEY = "ELECTRICITYMAPS_API_KEY"
LONGEST_S = 10 * DAY_S
# The last day is open to every key, older hours are not.
RECENT_S = DAY_S
STEP_S = {"5_minutes": 300.0, "15_minutes": 900.0, "hourly": SECONDS_PER_HOUR}
UNIT = "gco2eq/kwh"


def create(
    options: Mapping[str, str],
    *,
    fill: Fill | None = None,
    fetch: Fetch | None = None,
    cache: GridCache | None = None,
    environ: Mapping[str, str] = os.environ,
) -> OnlineGrid:
    """Electricity Maps: options "factor" (lifecycle or direct), "version" (v4 or v3), "url" for another address of it.

    Raises:
        BadSeries: No such factor or version.
    """
    factor, version, base = options.get("factor", "lifecycle"), options.get("version", "v4"), options.get("url", BASE)
    if factor not in ("lifecycle", "direct") or version not in ("v4", "v3"):
        raise BadSeries(f"factor {factor!r} must be lifecycle or direct, version {version!r} v4 or v3")
    key, family = environ.get(KEY, "").strip(), Family(factor, "consumption", "average")
    provider = Provider(
        "electricitymaps",
        TITLE,
        family,
        SOURCE,
        lambda ask: requests(ask, key, factor, f"{base}/{version}"),
        lambda ask, body: parse(ask, body, factor),
    )
    return online(provider, fetch, cache, fill, environ)


def available() -> str | None:
    """Why it cannot be asked, or None."""
    return None if os.environ.get(KEY, "").strip() else f"it wants a key: set {KEY}"


def requests(ask: Ask, key: str, factor: str = "lifecycle", base: str = f"{BASE}/v4") -> tuple[Request, ...]:
    """What to ask for: ten days at a time, the last day by a call that every key may use.

    Raises:
        KeyRefused: There is no key.
    """
    if not key:
        raise KeyRefused(f"{TITLE} wants a key: set {KEY}")
    common = (("zone", ask.zone), ("emissionFactorType", factor), ("disableCallerLookup", "true"))
    headers = (("auth-token", key),)
    if ask.kind == "forecast":
        horizon = str(round((ask.end_s - ask.start_s) / SECONDS_PER_HOUR))
        return (Request(f"{base}/carbon-intensity/forecast", (*common, ("horizonHours", _horizon(horizon))), headers, KEY),)
    if ask.kind == "latest" or ask.start_s >= ask.now_s - RECENT_S:
        return (Request(f"{base}/carbon-intensity/history", common, headers, KEY),)
    return tuple(
        Request(f"{base}/carbon-intensity/past-range", (*common, ("start", iso_minute(begin)), ("end", iso_minute(end))), headers, KEY)
        for begin, end in chunks(ask.start_s, ask.end_s, LONGEST_S)
    )


def _horizon(hours: str) -> str:
    """The smallest horizon on offer that reaches so far. [h]"""
    return next((str(h) for h in (6, 24, 48) if int(hours) <= h), "72")


def parse(ask: Ask, body: bytes, factor: str = "lifecycle") -> Readings:
    """One answer, whichever call it is of; hours that the provider estimated are marked.

    Raises:
        BadAnswer: It cannot be believed: another zone, factor or unit than was asked for, or nothing.
    """
    answer = decoded(body, _Answer, TITLE)
    if answer.error or answer.status == "no-data":
        raise BadAnswer(f"{TITLE} has no data of {ask.zone}: {short(answer.error or 'no data')}")
    rows = answer.data if answer.data is not None else answer.history if answer.history is not None else answer.forecast
    is_forecast = answer.forecast is not None and rows is answer.forecast
    if rows is None:
        rows = (
            [_Hour(answer.datetime, answer.carbonIntensity, answer.zone, answer.isEstimated, answer.emissionFactorType)]
            if answer.datetime
            else []
        )
    for zone in {answer.zone, *(row.zone for row in rows)} - {"", ask.zone}:
        raise BadAnswer(f"{TITLE} answered for zone {short(zone)}, not {ask.zone}")
    for found in {answer.emissionFactorType, *(row.emissionFactorType for row in rows)} - {"", factor}:
        raise BadAnswer(f"{TITLE} answered with {short(found)} factors, not {factor} ones")
    for unit in {answer.unit, *answer.units.values()} - {""}:
        if unit.lower() != UNIT:
            raise BadAnswer(f"{TITLE} answered in {short(unit)}, not in gCO2eq/kWh")
    rows = sorted(rows, key=lambda row: row.datetime) if answer.history is not None else rows  # the newest comes first in some versions
    starts = [utc_s(row.datetime, TITLE) for row in rows]
    step_s = STEP_S.get(answer.temporalGranularity)
    spans = [step_s] * len(starts) if step_s else [min(length, SECONDS_PER_HOUR) for length in lengths(starts)]
    points = [
        Point(at, span, row.carbonIntensity, FORECAST if is_forecast else ESTIMATED if row.isEstimated else MEASURED)
        for at, span, row in zip(starts, spans, rows, strict=True)
    ]
    return checked(points, zone=ask.zone, name=TITLE, family=Family(factor, "consumption", "average"), source=SOURCE)


class _Hour(msgspec.Struct):
    datetime: str
    carbonIntensity: float | None = None
    zone: str = ""
    isEstimated: bool | None = None
    emissionFactorType: str = ""


class _Answer(msgspec.Struct):
    zone: str = ""
    data: list[_Hour] | None = None
    history: list[_Hour] | None = None
    forecast: list[_Hour] | None = None
    datetime: str = ""
    carbonIntensity: float | None = None
    isEstimated: bool | None = None
    emissionFactorType: str = ""
    temporalGranularity: str = ""
    unit: str = ""
    units: dict[str, str] = {}
    error: str = ""
    status: str = ""
