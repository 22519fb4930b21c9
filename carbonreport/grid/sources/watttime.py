"""Marginal intensity of regions of the world, by five minutes, with an account: WattTime, version 3 of the API.

CO2 of the plants that would answer to a little more load: no number for a statement, and never added to or compared with an average
one. The token of a login lasts half an hour; name and password go to nobody else.
"""

import base64
import os
import time
from collections.abc import Callable, Mapping

import msgspec

from carbonreport.errors import BadAnswer, BadSeries, KeyRefused
from carbonreport.fetch import Fetcher
from carbonreport.grid.aliases import watttime_region
from carbonreport.grid.answers import DAY_S, Ask, Point, checked, chunks, decoded, iso_minute, lengths, short, utc_s
from carbonreport.grid.cache import GridCache
from carbonreport.grid.online import OnlineGrid, Provider, online
from carbonreport.grid.readings import FORECAST, MEASURED, Fill, Readings
from carbonreport.model.series import Family
from carbonreport.request import Fetch, Request, is_offline
from carbonreport.units import SECONDS_PER_HOUR, grams_per_kwh_from_pounds_per_mwh

BASE = "https://api.watttime.org"
TITLE = "WattTime"
USER, PASSWORD = "WATTTIME_USER", "WATTTIME_PASSWORD"
LONGEST_S = 32 * DAY_S
TOKEN_S = 25 * 60.0
MOST_AHEAD_H = 72
UNIT = "lbs_co2_per_mwh"
FAMILIES = {
    "co2_moer": Family("direct", "production", "marginal", "CO2"),
    "co2_aoer": Family("direct", "production", "average", "CO2"),
}


def create(
    options: Mapping[str, str],
    *,
    fill: Fill | None = None,
    fetch: Fetch | None = None,
    cache: GridCache | None = None,
    environ: Mapping[str, str] = os.environ,
) -> OnlineGrid:
    """WattTime: options "signal" (co2_moer, the marginal one, or co2_aoer) and "url" for another address of it.

    Raises:
        BadSeries: No such signal.
    """
    signal, base = options.get("signal", "co2_moer"), options.get("url", BASE)
    if signal not in FAMILIES:
        raise BadSeries(f"signal {signal!r} of {TITLE} is none of {', '.join(FAMILIES)}")
    fetch = fetch or Fetcher(offline=is_offline(environ))
    token = _token(fetch, environ.get(USER, ""), environ.get(PASSWORD, ""), base)
    provider = Provider(
        "watttime",
        TITLE,
        FAMILIES[signal],
        f"{TITLE} {signal}",
        lambda ask: requests(ask, token(), signal, base),
        lambda ask, body: parse(ask, body, signal),
    )
    return online(provider, fetch, cache, fill, environ)


def available() -> str | None:
    """Why it cannot be asked, or None."""
    return None if os.environ.get(USER) and os.environ.get(PASSWORD) else f"it wants an account: set {USER} and {PASSWORD}"


def login(user: str, password: str, base: str = BASE) -> Request:
    """How to ask for a token.

    Raises:
        KeyRefused: There is no account.
    """
    if not (user and password):
        raise KeyRefused(f"{TITLE} wants an account: set {USER} and {PASSWORD}")
    secret = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return Request(f"{base}/login", (), (("Authorization", f"Basic {secret}"),), f"{USER} and {PASSWORD}")


def requests(ask: Ask, token: str, signal: str = "co2_moer", base: str = BASE) -> tuple[Request, ...]:
    """What to ask for: 32 days at a time.

    Raises:
        UnknownZone: No region of that zone is known.
    """
    common = (("region", watttime_region(ask.zone)), ("signal_type", signal))
    headers = (("Authorization", f"Bearer {token}"),)
    if ask.kind == "forecast":
        ahead = min(max(round((ask.end_s - ask.now_s) / SECONDS_PER_HOUR), 1), MOST_AHEAD_H)
        return (Request(f"{base}/v3/forecast", (*common, ("horizon_hours", str(ahead))), headers, USER),)
    return tuple(
        Request(f"{base}/v3/historical", (*common, ("start", iso_minute(begin)), ("end", iso_minute(end))), headers, USER)
        for begin, end in chunks(ask.start_s, ask.end_s, LONGEST_S)
    )


def parse(ask: Ask, body: bytes, signal: str = "co2_moer") -> Readings:
    """One answer, in g/kWh; the source names the date of the model.

    Raises:
        BadAnswer: It cannot be believed: another region, signal or unit than was asked for.
    """
    answer = decoded(body, _Answer, TITLE)
    meta, region = answer.meta, watttime_region(ask.zone)
    if meta.region != region:
        raise BadAnswer(f"{TITLE} answered for region {short(meta.region)}, not {region}")
    if meta.signal_type != signal:
        raise BadAnswer(f"{TITLE} answered with {short(meta.signal_type)}, not {signal}")
    if meta.units != UNIT:
        raise BadAnswer(f"{TITLE} answered in {short(meta.units)}, which is not known here ({UNIT} is)")
    starts = [utc_s(row.point_time, TITLE) for row in answer.data]
    usual_s = float(meta.data_point_period_seconds or 0)
    spans = [usual_s] * len(starts) if usual_s > 0 else lengths(starts)
    quality = FORECAST if ask.kind == "forecast" else MEASURED
    points = [
        Point(at, span, None if row.value is None else grams_per_kwh_from_pounds_per_mwh(row.value), quality)
        for at, span, row in zip(starts, spans, answer.data, strict=True)
    ]
    model = f", model of {short(meta.model.date)}" if meta.model.date else ""
    return checked(points, zone=ask.zone, name=TITLE, family=FAMILIES[signal], source=f"{TITLE} {signal}{model}")


def _token(fetch: Fetch, user: str, password: str, base: str) -> Callable[[], str]:
    """A token whenever one is needed, fetched anew before it runs out."""
    held: list[tuple[float, str]] = []

    def token() -> str:
        if not held or time.monotonic() - held[-1][0] > TOKEN_S:
            held.append((time.monotonic(), decoded(fetch(login(user, password, base)), _Login, TITLE).token))
        return held[-1][1]

    return token


class _Login(msgspec.Struct):
    token: str


class _Model(msgspec.Struct):
    date: str = ""


class _Meta(msgspec.Struct):
    region: str
    signal_type: str
    units: str
    model: _Model = msgspec.field(default_factory=_Model)
    data_point_period_seconds: int | None = None


class _Point(msgspec.Struct):
    point_time: str
    value: float | None = None


class _Answer(msgspec.Struct):
    meta: _Meta
    data: list[_Point] = []
