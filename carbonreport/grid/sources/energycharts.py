"""Countries of Europe, by quarter hours or hours, without a key: Energy-Charts of Fraunhofer ISE.

Life-cycle CO2e of what is produced in the country. The answer does not say for which country it is, so the question must.
"""

import os
from collections.abc import Mapping

import msgspec

from carbonreport.errors import BadAnswer, UnknownZone
from carbonreport.grid.answers import DAY_S, Ask, Point, checked, chunks, decoded, iso_minute, lengths
from carbonreport.grid.cache import GridCache
from carbonreport.grid.online import OnlineGrid, Provider, online
from carbonreport.grid.readings import FORECAST, MEASURED, Fill, Readings
from carbonreport.model.series import Family
from carbonreport.request import Fetch, Request

BASE = "https://api.energy-charts.info"
TITLE = "Energy-Charts"
SOURCE = "Energy-Charts of Fraunhofer ISE (CC BY 4.0)"
FAMILY = Family("lifecycle", "production", "average")
LONGEST_S = 366 * DAY_S
# Countries that it has; zones inside a country (DK-DK1, SE-SE3) it has not.
COUNTRIES = frozenset(
    [
        "AL",
        "AT",
        "BA",
        "BE",
        "BG",
        "CH",
        "CY",
        "CZ",
        "DE",
        "DK",
        "EE",
        "ES",
        "FI",
        "FR",
        "GE",
        "GR",
        "HR",
        "HU",
        "IE",
        "IT",
        "LT",
        "LU",
        "LV",
        "MD",
        "ME",
        "MK",
        "MT",
        "NL",
        "NO",
        "PL",
        "PT",
        "RO",
        "RS",
        "SE",
        "SI",
        "SK",
        "UA",
        "XK",
    ]
)


def create(
    options: Mapping[str, str],
    *,
    fill: Fill | None = None,
    fetch: Fetch | None = None,
    cache: GridCache | None = None,
    environ: Mapping[str, str] = os.environ,
) -> OnlineGrid:
    """Energy-Charts; option "url" for another address of it."""
    base = options.get("url", BASE)
    return online(Provider("energycharts", TITLE, FAMILY, SOURCE, lambda ask: requests(ask, base), parse), fetch, cache, fill, environ)


def available() -> str | None:
    """Why it cannot be asked: never, but for a network."""
    return None


def requests(ask: Ask, base: str = BASE) -> tuple[Request, ...]:
    """What to ask for: a year at a time.

    Raises:
        UnknownZone: Not a country that it has.
    """
    if ask.zone not in COUNTRIES:
        raise UnknownZone(ask.zone, [f"{ask.zone.split('-')[0]}, since {TITLE} has whole countries of Europe only"])
    return tuple(
        Request(f"{base}/co2eq", (("country", ask.zone.lower()), ("start", iso_minute(begin)), ("end", iso_minute(end))))
        for begin, end in chunks(ask.start_s, ask.end_s, LONGEST_S)
    )


def parse(ask: Ask, body: bytes) -> Readings:
    """One answer: what was measured, else what was forecast, else nothing.

    Raises:
        BadAnswer: It cannot be believed.
    """
    answer = decoded(body, _Answer, TITLE)
    count = len(answer.unix_seconds)
    forecast = answer.co2eq_forecast or [None] * count
    if len(answer.co2eq) != count or len(forecast) != count:
        raise BadAnswer(f"{TITLE} gave {count} times for {len(answer.co2eq)} values and {len(forecast)} forecasts")
    points = [
        Point(at, length, then if value is None else value, FORECAST if value is None else MEASURED)
        for at, length, value, then in zip(answer.unix_seconds, lengths(answer.unix_seconds), answer.co2eq, forecast, strict=True)
    ]
    return checked(points, zone=ask.zone, name=TITLE, family=FAMILY, source=SOURCE)


class _Answer(msgspec.Struct):
    unix_seconds: list[int]
    co2eq: list[float | None]
    co2eq_forecast: list[float | None] | None = None
