"""`carbonreport.toml`: what a lab knows of itself. Every field is checked; an error names the file and the field."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from carbonreport.errors import BadPue, BadSeries, BadTime, SiteError
from carbonreport.model.embodied import Contract, EmbodiedSource
from carbonreport.model.pue import PueProfile
from carbonreport.model.pue_model import PueModel
from carbonreport.model.statement import Facts
from carbonreport.model.water import WaterUse
from carbonreport.site_pue import PueTable, site_pue

FILE_NAME = "carbonreport.toml"
_MOST_HOST_WATTS = 1e6


class _Wue(msgspec.Struct, forbid_unknown_fields=True):
    value: float
    low: float | None = None
    high: float | None = None
    source: str = "site file"


class _Place(msgspec.Struct, forbid_unknown_fields=True):
    zone: str | None = None
    time_zone: str | None = None
    site: str | None = None
    pue: PueTable | float | str | None = None
    wue_litres_per_kwh: _Wue | float | None = None


class Price(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What electricity costs.

    Attributes:
        per_kwh: Money for a kWh at the facility's meter.
        currency: Which money.
    """

    per_kwh: float
    currency: str


class _Contract(msgspec.Struct, forbid_unknown_fields=True):
    grams_per_kwh: float
    instrument: str
    share: float = 1.0


class _Embodied(msgspec.Struct, forbid_unknown_fields=True):
    kg: float
    lifetime_years: float
    utilisation: float
    source: str
    per_gpus: float = 1.0


class _EmbodiedTable(msgspec.Struct, forbid_unknown_fields=True):
    devices: dict[str, _Embodied]


class _Host(msgspec.Struct, forbid_unknown_fields=True):
    idle_watts: float
    busy_watts: float

    def __post_init__(self) -> None:
        if not 0 <= self.idle_watts <= self.busy_watts < _MOST_HOST_WATTS:
            raise ValueError(
                f"idle_watts {self.idle_watts:g} and busy_watts {self.busy_watts:g}: give 0 or more, the busy power not below the idle one"
            )


class _File(msgspec.Struct, forbid_unknown_fields=True):
    place: _Place = msgspec.field(default_factory=_Place)
    price: Price | None = None
    contract: _Contract | None = None
    embodied: _EmbodiedTable | None = None
    host: _Host | None = None
    facts: dict[str, Any] = msgspec.field(default_factory=dict)


class Site(msgspec.Struct, frozen=True):
    """What a site file says.

    Attributes:
        zone: Grid zone, or None.
        time_zone: IANA name, or None.
        name: Name of the site, or None.
        pue: PUE of the facility, or None; of one with a model its annual value.
        pue_model: How the PUE goes with the weather, or None.
        water: Water that the facility uses, or None.
        contract: Contract for the market-based figure, or None.
        embodied: Embodied emissions by device name.
        price: What electricity costs, or None.
        host_watts: Idle and busy power of the host without GPUs, or None. [W]
        facts: What the author says of the project: parameters, memory, functional unit.
        path: The file, for messages.
    """

    zone: str | None = None
    time_zone: str | None = None
    name: str | None = None
    pue: PueProfile | None = None
    pue_model: PueModel | None = None
    water: WaterUse | None = None
    contract: Contract | None = None
    embodied: tuple[EmbodiedSource, ...] = ()
    price: Price | None = None
    host_watts: tuple[float, float] | None = None
    facts: Facts = Facts()
    path: str = ""


def find_site(given: str | Path | None, folder: Path) -> Path | None:
    """The site file: the given one, else `carbonreport.toml` in a folder, else None."""
    if given is not None:
        return Path(given)
    path = folder / FILE_NAME
    return path if path.is_file() else None


def read_site(path: Path | None) -> Site:
    """Read a site file; an empty Site for None.

    Raises:
        SiteError: It cannot be read, or a field is wrong.
    """
    if path is None:
        return Site()
    try:
        return _site(msgspec.toml.decode(path.read_bytes(), type=_File), path)
    except OSError as error:
        raise SiteError(f"cannot read the site file {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, tomllib.TOMLDecodeError, ValueError, BadPue, BadSeries, BadTime) as error:
        raise SiteError(f"{path}: {in_words(error, _fields_at)}") from error


def in_words(error: Exception, known: Callable[[str], Sequence[str]] = lambda path: ()) -> str:
    """An error of reading TOML in the words of its author, with the field in front.

    Args:
        error: What the reader of TOML or of its types raised.
        known: Names of the fields of a table, by its path: "place.pue".
    """
    text = str(error)
    if "codec can't decode" in text:
        return "it is not UTF-8 text"
    if found := _UNKNOWN_FIELD.search(text):
        name, path = found["name"], found["path"] or ""
        names = known(path)
        near = get_close_matches(name, names, n=1)
        hint = f"; nearest: {near[0]}" if near else f"; there are {', '.join(names)}" if names else ""
        return f"{_joined(path, name)}: unknown field{hint}"
    if found := _MISSING_FIELD.search(text):
        return f"{_joined(found['path'] or '', found['name'])} is missing"
    if found := _WRONG_TYPE.search(text):
        wanted = list(dict.fromkeys(_TYPES[name] for name in found["wanted"].split(" | ") if name != "null" and name in _TYPES))
        return f"{found['path'] or 'the file'}: must be {' or '.join(wanted) or found['wanted']}, not {_got(found['got'], found['wanted'])}"
    if found := _AT_PATH.search(text):
        return f"{found['path']}: {found['text']}"
    return text


_AT = r"(?: - at `\$\.?(?P<path>[^`]*)`)?"
_UNKNOWN_FIELD = re.compile(rf"unknown field `(?P<name>[^`]*)`{_AT}")
_MISSING_FIELD = re.compile(rf"missing required field `(?P<name>[^`]*)`{_AT}")
_WRONG_TYPE = re.compile(rf"Expected `(?P<wanted>[^`]*)`, got `(?P<got>[^`]*)`{_AT}")
_AT_PATH = re.compile(r"^(?P<text>.*) - at `\$\.?(?P<path>[^`]+)`$", re.DOTALL)
_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a time",
    "date": "a date",
    "null": "empty",
}


def _got(name: str, wanted: str) -> str:
    return "one with a fraction" if (name, "int" in wanted) == ("float", True) else _TYPES.get(name, name)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _fields_at(path: str) -> Sequence[str]:
    """Names of the fields of a table of the site file."""
    tables: dict[str, type[msgspec.Struct]] = {
        "": _File,
        "place": _Place,
        "place.pue": PueTable,
        "place.wue_litres_per_kwh": _Wue,
        "price": Price,
        "contract": _Contract,
        "embodied": _EmbodiedTable,
        "host": _Host,
    }
    table = _Embodied if path.startswith("embodied.devices") else tables.get(path)
    return () if table is None else table.__struct_fields__


def _site(file: _File, path: Path) -> Site:
    place, host, contract = file.place, file.host, file.contract
    pue, model = site_pue(place.pue, path)
    return Site(
        zone=place.zone,
        time_zone=place.time_zone,
        name=place.site,
        pue=pue,
        pue_model=model,
        water=_water(place.wue_litres_per_kwh),
        contract=None if contract is None else Contract(contract.grams_per_kwh, contract.share, contract.instrument),
        embodied=tuple(
            EmbodiedSource(name, e.kg, e.lifetime_years, e.utilisation, e.source, e.per_gpus)
            for name, e in (file.embodied.devices if file.embodied else {}).items()
        ),
        price=_price(file.price),
        host_watts=None if host is None else (host.idle_watts, host.busy_watts),
        facts=facts_of(file.facts, "facts."),
        path=str(path),
    )


def _price(price: Price | None) -> Price | None:
    if price is not None and not 0 <= price.per_kwh < float("inf"):
        raise ValueError(f"price.per_kwh is {price.per_kwh:g}; give money for a kWh, 0 or more")
    return price


def facts_of(table: Mapping[str, Any], prefix: str = "") -> Facts:
    """The author's facts out of a table of TOML.

    Raises:
        ValueError: A key is unknown, or its value is of the wrong type or not plausible; the message names the key.
    """
    known = [field.name for field in fields(Facts)]
    for key, value in table.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"nearest: {near[0]}" if near else f"there are {', '.join(known)}"
            raise ValueError(f"{prefix}{key}: unknown fact; {hint}")
        try:
            msgspec.convert({key: value}, Facts, strict=False)  # "1.3e9" is a number too
        except ValueError as error:
            words = in_words(error)
            raise ValueError(prefix + words if words.startswith(f"{key}: ") else f"{prefix}{key}: {words}") from error
    return msgspec.convert(dict(table), Facts, strict=False)


def _water(given: _Wue | float | None) -> WaterUse | None:
    if given is None:
        return None
    if not isinstance(given, _Wue):
        return WaterUse(given, None, None, "site file")
    return WaterUse(given.value, given.low, given.high, given.source)
