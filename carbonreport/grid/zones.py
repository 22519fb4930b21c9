"""Names of grid zones: aliases, nearest names, time zones. Stdlib only: the tracer asks at its start and cannot wait for numpy."""

import csv
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from carbonreport.errors import UnknownZone

DATA = Path(__file__).resolve().parent.parent / "data"
# The zone of a run of which nobody knows where it was.
WORLD_ZONE = "WORLD"

# Other names of a zone, in capitals and with hyphens -> as Electricity Maps spells it.
ALIASES: dict[str, str] = {
    "UK": "GB",
    "EL": "GR",
    "DE-LU": "DE",
    "DE-AT-LU": "DE",
    "IE-SEM": "IE",
    "CL": "CL-SEN",  # nearly all of Chile
    "CHL": "CL-SEN",
    "CL-SIC": "CL-SEN",
    "CAISO": "US-CAL-CISO",
    "CAISO-NORTH": "US-CAL-CISO",
    "CISO": "US-CAL-CISO",
    "ERCOT": "US-TEX-ERCO",
    "ERCO": "US-TEX-ERCO",
    "PJM": "US-MIDA-PJM",
    "MISO": "US-MIDW-MISO",
    "SPP": "US-CENT-SWPP",
    "NYISO": "US-NY-NYIS",
    "NYIS": "US-NY-NYIS",
    "ISONE": "US-NE-ISNE",
    "ISO-NE": "US-NE-ISNE",
    "ISNE": "US-NE-ISNE",
    "BPA": "US-NW-BPAT",
    "BPAT": "US-NW-BPAT",
    "TVA": "US-TEN-TVA",
    **{f"NO-{n}": f"NO-NO{n}" for n in range(1, 6)},
    **{f"SE-{n}": f"SE-SE{n}" for n in range(1, 5)},
    **{f"DK-{n}": f"DK-DK{n}" for n in range(1, 3)},
}

# Names that say a time and no place, though newer tz databases link some of them to a city.
PLACELESS = frozenset({"UTC", "GMT", "EST", "MST", "HST", "EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "CET", "MET", "EET", "WET"})


class ZoneRow(NamedTuple):
    """One line of the table of zones, as text."""

    code: str
    name: str
    time_zone: str
    country: str


def resolve_zone(text: str, data: Path = DATA) -> str:
    """The zone that a text means, spelled as in Electricity Maps.

    Accepts any zone in any case, two- and three-letter country codes, and names of market areas (DE_LU, CAISO, PJM). Where the package was
    built without the table of zones, the country of the zone is all that can be told.

    Raises:
        UnknownZone: No zone of that name; it names the three nearest.
    """
    key = text.strip().upper().replace("_", "-")
    if key == WORLD_ZONE:
        return WORLD_ZONE
    zones, countries = _zones(data), _countries(data)
    key = ALIASES.get(key, key)
    if not zones:
        key = key.split("-")[0]
    if key in zones or key in countries.values():
        return key
    if key in countries:
        return countries[key]
    raise UnknownZone(text, _nearest(text, data))


def sub_zones(country: str, data: Path = DATA) -> tuple[str, ...]:
    """Zones inside a country, without the country itself; none where the country is one zone."""
    return tuple(code for code, row in _zones(data).items() if row.country == country and code != country)


def time_zone_of(zone: str, data: Path = DATA) -> str | None:
    """IANA name of the zone's local time, or None where it is not known."""
    row = _zones(data).get(zone)
    return row.time_zone if row else None


def country_of_time_zone(time_zone: str, data: Path = DATA) -> str | None:
    """Two-letter code of the country of an IANA time zone; None for UTC, Etc/GMT+5, EST and the like, which lie in none.

    Asks the tz database's own table; old names (Asia/Calcutta, US/Pacific) are followed to the new one. Where the machine has no such
    table, zones of the embedded list that keep this time are asked.
    """
    known = _tz_countries()
    if time_zone in known:
        return known[time_zone]
    if not time_zone or time_zone in PLACELESS or time_zone.startswith("Etc/"):
        return None
    linked = _tz_links().get(time_zone, "")
    if linked in known:
        return known[linked]
    countries = {row.country for row in _zones(data).values() if row.time_zone == time_zone}
    return countries.pop() if len(countries) == 1 else None


def _nearest(text: str, data: Path) -> list[str]:
    """Up to three zones with a similar code or name."""
    from difflib import get_close_matches  # only on the way to an error; it loads re

    zones = _zones(data)
    spellings: dict[str, str] = {row.name.upper(): code for code, row in reversed(zones.items())}
    spellings |= {code: code for code in zones} | {name: code for name, code in ALIASES.items() if code in zones}
    spellings |= {iso3: iso2 for iso3, iso2 in _countries(data).items() if iso2 in zones}
    close = get_close_matches(text.strip().upper().replace("_", "-"), spellings, n=9)
    codes = dict.fromkeys(spellings[spelling] for spelling in close)
    return [f"{code} ({zones[code].name})" for code in list(codes)[:3]]


@lru_cache(maxsize=4)
def _zones(data: Path) -> dict[str, ZoneRow]:
    """The table of zones by code; empty where a package was built without it."""
    return {row["zone"]: ZoneRow(row["zone"], row["name"], row["time_zone"], row["country"]) for row in _rows(data / "odbl" / "zones.csv")}


@lru_cache(maxsize=4)
def _countries(data: Path) -> dict[str, str]:
    """Three-letter code -> two-letter code of every country with a yearly mean."""
    return {row["iso3"]: row["iso2"] for row in _rows(data / "ember_yearly.csv")}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as lines:
            yield from csv.DictReader(lines)


@lru_cache(maxsize=1)
def _tz_countries() -> dict[str, str]:
    """Time zone -> country, from the tz database's zone.tab; empty where there is none."""
    lines = (line.split("\t") for line in _tz_lines("zone.tab") if not line.startswith("#"))
    return {fields[2].strip(): fields[0] for fields in lines if len(fields) > 2}


@lru_cache(maxsize=1)
def _tz_links() -> dict[str, str]:
    """Old name -> name of a time zone, from the tz database's tzdata.zi ("L target name"); empty where there is none."""
    links = (line.split() for line in _tz_lines("tzdata.zi") if line.startswith("L "))
    return {name: target for _, target, name in links}


def _tz_lines(name: str) -> list[str]:
    """Lines of a file of the tz database, the system's or that of the tzdata package."""
    from importlib.util import find_spec  # 10 ms that a run with a given zone need not spend
    from zoneinfo import TZPATH

    folders = [Path(folder) for folder in TZPATH]
    package = find_spec("tzdata")
    if package is not None and package.origin is not None:
        folders.append(Path(package.origin).parent / "zoneinfo")
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8").splitlines()
    return []


def name_of_zone(zone: str, data: Path = DATA) -> str | None:
    """The zone in words, or None where it is not known."""
    row = _zones(data).get(zone)
    return row.name if row else None
