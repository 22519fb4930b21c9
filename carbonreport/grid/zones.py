"""Names of grid zones: aliases, nearest names, time zones. Stdlib only: the tracer asks at its start and cannot wait for numpy."""

import csv
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from carbonreport.errors import UnknownZone

DATA = Path(__file__).resolve().parent.parent / "data"
_LONGEST_CODE_PART = 3  # a shorter text is a code, not a part of a name
_ALIKE = 0.7  # similarity from which a spelling is worth naming
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

# What people call a zone beside the names in the tables: short names of countries, those of the language that is spoken there, and large
# states that one market covers nearly alone -> zone.
COMMON_NAMES: dict[str, str] = {
    "KOREA": "KR",
    "REPUBLIC-OF-KOREA": "KR",
    "UNITED-KINGDOM": "GB",
    "BRITAIN": "GB",
    "ENGLAND": "GB",
    "SCOTLAND": "GB",
    "WALES": "GB",
    "HOLLAND": "NL",
    "CZECH-REPUBLIC": "CZ",
    "TURKIYE": "TR",
    "VIET-NAM": "VN",
    "UAE": "AE",
    "EMIRATES": "AE",
    "BURMA": "MM",
    "AMERICA": "US",
    "UNITED-STATES-OF-AMERICA": "US",
    "CHILE": "CL-SEN",
    "CALIFORNIA": "US-CAL-CISO",
    "TEXAS": "US-TEX-ERCO",
    "NEW-YORK": "US-NY-NYIS",
    "NEW-ENGLAND": "US-NE-ISNE",
    "BELGIE": "BE",
    "BELGIQUE": "BE",
    "BRASIL": "BR",
    "CESKO": "CZ",
    "DANMARK": "DK",
    "DEUTSCHLAND": "DE",
    "ESPANA": "ES",
    "ITALIA": "IT",
    "MAGYARORSZAG": "HU",
    "NEDERLAND": "NL",
    "NIHON": "JP",
    "NIPPON": "JP",
    "NORGE": "NO",
    "OSTERREICH": "AT",
    "POLSKA": "PL",
    "SCHWEIZ": "CH",
    "SUISSE": "CH",
    "SUOMI": "FI",
    "SVERIGE": "SE",
}
# Names in the tables that mean several places, or none without the country: refused, with their zones among the nearest.
_SEVERAL_PLACES = frozenset({"CONGO", "EAST", "GEORGIA", "MAIN-ISLANDS", "PENINSULA", "SOUTH-ISLAND", "VICTORIA", "VIRGIN-ISLANDS"})

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

    Accepts any zone in any case, two- and three-letter country codes, names of market areas (DE_LU, CAISO, PJM), English names that mean
    one zone (Germany, Hong Kong, California), and what ENTSO-E, EIA, WattTime and the clouds call them (aliases.py). Where the package was built without the table of zones, the country of the zone is all
    that can be told.

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
    from carbonreport.grid.aliases import other_name, successor  # tables that few names need

    if named := _named(data).get(_plain(text)):
        return named
    if (zone := other_name(key, zones)) in zones:
        return str(zone)
    if (now := successor(key, zones)) in zones:
        raise UnknownZone(text, [f"{now} ({zones[str(now)].name}), where its hours are now"])
    raise UnknownZone(text, _nearest(text, data))


def sub_zones(country: str, data: Path = DATA) -> tuple[str, ...]:
    """Zones inside a country, without the country itself; none where the country is one zone."""
    return tuple(code for code, row in _zones(data).items() if row.country == country and code != country)


def all_zones(data: Path = DATA) -> tuple[ZoneRow, ...]:
    """Every zone of the table, by code."""
    return tuple(_zones(data).values())


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

    zones, asked = _zones(data), _plain(text)
    codes = {code: code for code in zones} | {name: code for name, code in ALIASES.items() if code in zones}
    codes |= {iso3: iso2 for iso3, iso2 in _countries(data).items() if iso2 in zones}
    names = {_plain(row.name): code for code, row in reversed(zones.items())} | {n: c for n, c in _named(data).items() if c in zones}
    holding = [names[name] for name in sorted(names, key=len) if len(asked) > _LONGEST_CODE_PART and asked in name]
    spellings = codes if len(asked) <= _LONGEST_CODE_PART or asked.split("-")[0] in zones else names | codes
    close = [spellings[spelling] for spelling in get_close_matches(asked, spellings, n=9, cutoff=_ALIKE)]
    found = dict.fromkeys([*holding, *close])
    return [f"{code} ({zones[code].name})" for code in list(found)[:3]]


def _plain(text: str) -> str:
    """A name in capitals without accents, with hyphens between its words and nothing in brackets."""
    from unicodedata import combining, normalize

    bare = "".join(c for c in normalize("NFKD", text.partition("(")[0].partition("[")[0]) if not combining(c))
    words = bare.upper().replace("_", " ").replace("-", " ").split()
    return "-".join(words[1:] if len(words) > 1 and words[0] == "THE" else words)


@lru_cache(maxsize=4)
def _named(data: Path) -> dict[str, str]:
    """Plain English name -> zone, of names that mean one zone alone."""
    zones = _zones(data)
    pairs = [(_plain(row.name), code) for code, row in zones.items()]
    pairs += [(_plain(row["name"]), ALIASES.get(row["iso2"], row["iso2"])) for row in _rows(data / "ember_yearly.csv")]
    codes: dict[str, set[str]] = {}
    for name, code in pairs:
        codes.setdefault(name, set()).add(code)
    known = {code for _, code in pairs}
    single = {name: min(found) for name, found in codes.items() if len(found) == 1 and name not in _SEVERAL_PLACES}
    return single | {name: code for name, code in COMMON_NAMES.items() if code in known}


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
