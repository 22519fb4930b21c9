"""Great Britain, half-hourly, without a key: the Carbon Intensity API of the National Energy System Operator.

CO2 alone, direct, of generation with factors for imports: not a number to set beside life-cycle ones. What was never observed is
the operator's forecast, and marked so.
"""

import os
from collections.abc import Mapping

import msgspec

from carbonreport.errors import BadAnswer, UnknownZone
from carbonreport.grid.answers import DAY_S, Ask, Point, checked, chunks, decoded, iso_minute, short, utc_s
from carbonreport.grid.cache import GridCache
from carbonreport.grid.online import OnlineGrid, Provider, online
from carbonreport.grid.readings import FORECAST, MEASURED, Fill, Readings
from carbonreport.model.series import Family
from carbonreport.request import Fetch, Request

BASE = "https://api.carbonintensity.org.uk"
TITLE = "the UK Carbon Intensity API"
SOURCE = "UK Carbon Intensity API of NESO (CC BY 4.0), CO2 alone"
FAMILY = Family("direct", "production", "average", "CO2")
ZONE = "GB"
LONGEST_S = 14 * DAY_S


def create(
    options: Mapping[str, str],
    *,
    fill: Fill | None = None,
    fetch: Fetch | None = None,
    cache: GridCache | None = None,
    environ: Mapping[str, str] = os.environ,
) -> OnlineGrid:
    """The API of Great Britain; option "url" for another address of it."""
    base = options.get("url", BASE)
    return online(Provider("uk", TITLE, FAMILY, SOURCE, lambda ask: requests(ask, base), parse), fetch, cache, fill, environ)


def available() -> str | None:
    """Why it cannot be asked: never, but for a network."""
    return None


def requests(ask: Ask, base: str = BASE) -> tuple[Request, ...]:
    """What to ask for: 14 days at a time.

    Raises:
        UnknownZone: Not Great Britain.
    """
    if ask.zone != ZONE:
        raise UnknownZone(ask.zone, [f"{ZONE}, the only one of {TITLE}"])
    if ask.kind == "latest":
        return (Request(f"{base}/intensity/{iso_minute(ask.now_s)}/pt24h"),)
    if ask.kind == "forecast":
        return (Request(f"{base}/intensity/{iso_minute(ask.start_s)}/fw48h"),)
    pieces = chunks(ask.start_s, ask.end_s, LONGEST_S)
    return tuple(Request(f"{base}/intensity/{iso_minute(begin)}/{iso_minute(end)}") for begin, end in pieces)


def parse(ask: Ask, body: bytes) -> Readings:
    """One answer; for times too far away it is empty.

    Raises:
        BadAnswer: It cannot be believed.
    """
    answer = decoded(body, _Answer, TITLE)
    if answer.error is not None:
        raise BadAnswer(f"{TITLE} refused the request: {short(answer.error.message or answer.error.code)}")
    points = []
    for row in answer.data:
        begin_s, end_s = utc_s(row.from_, TITLE), utc_s(row.to, TITLE)
        if end_s <= begin_s:
            raise BadAnswer(f"{TITLE} gave a half hour that ends before it begins")
        observed = row.intensity.actual
        quality = FORECAST if observed is None else MEASURED
        points.append(Point(begin_s, end_s - begin_s, row.intensity.forecast if observed is None else observed, quality))
    return checked(points, zone=ask.zone, name=TITLE, family=FAMILY, source=SOURCE)


class _Intensity(msgspec.Struct):
    forecast: float | None = None
    actual: float | None = None


class _HalfHour(msgspec.Struct):
    from_: str = msgspec.field(name="from")
    to: str
    intensity: _Intensity


class _Error(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Answer(msgspec.Struct):
    data: list[_HalfHour] = []
    error: _Error | None = None
