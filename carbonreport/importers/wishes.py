"""What somebody says of a log that the log itself does not: time zone, columns, units."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from carbonreport.errors import BadTime, CarbonreportError
from carbonreport.importers.cells import JOULES, WATTS, number


@dataclass(frozen=True, slots=True)
class Wishes:
    """Options of an importer, read.

    Attributes:
        zone: Time zone of stamps that have none, or None.
        columns: Names of the columns of a table without a header; () where it has one.
        time: Column of the time, or "".
        power: Columns of the power, or ().
        energy: Column of the energy, or "".
        duration: Column of the duration, or "".
        device: Column that tells devices apart, or "".
        unit: Unit of the power or energy, over what the header says, or "".
        energy_is: "counter" where energies grow, "interval" where each row has its own; "" where nobody said.
        period_s: Seconds between rows without times, or None. [s]
        date_order: "dmy", "mdy", or "" where nobody said.
        pue: PUE that the energy contains, over what the log says, or None.
    """

    zone: ZoneInfo | None = None
    columns: tuple[str, ...] = ()
    time: str = ""
    power: tuple[str, ...] = ()
    energy: str = ""
    duration: str = ""
    device: str = ""
    unit: str = ""
    energy_is: Literal["", "counter", "interval"] = ""
    period_s: float | None = None
    date_order: Literal["", "dmy", "mdy"] = ""
    pue: float | None = None


MAPPING_KEYS = tuple(field.name for field in fields(Wishes) if field.name != "zone")


def wishes_of(options: Mapping[str, str]) -> Wishes:
    """Options as typed.

    Raises:
        CarbonreportError: An unknown key, or a value that it cannot have.
        BadTime: No such time zone.
    """
    unknown = sorted(set(options) - {*MAPPING_KEYS, "time_zone"})
    if unknown:
        raise CarbonreportError(f"unknown mapping {unknown[0]!r}: there are {', '.join(MAPPING_KEYS)}")
    unit = options.get("unit", "").strip()
    if unit and unit.casefold() not in {**WATTS, **JOULES}:
        raise CarbonreportError(f"mapping unit={unit}: give one of W, mW, kW, uW, J, mJ, kJ, Wh, kWh")
    return Wishes(
        zone=zone_named(options["time_zone"]) if options.get("time_zone") else None,
        columns=_names(options.get("columns", "")),
        time=options.get("time", "").strip().casefold(),
        power=_names(options.get("power", "")),
        energy=options.get("energy", "").strip().casefold(),
        duration=options.get("duration", "").strip().casefold(),
        device=options.get("device", "").strip().casefold(),
        unit=unit,
        energy_is=_one_of(options, "energy_is", ("counter", "interval")),  # type: ignore[arg-type]
        period_s=_positive(options, "period_s"),
        date_order=_one_of(options, "date_order", ("dmy", "mdy")),  # type: ignore[arg-type]
        pue=_positive(options, "pue", at_least=1.0),
    )


def zone_named(name: str) -> ZoneInfo:
    """A time zone.

    Raises:
        BadTime: There is none of that name here.
    """
    try:
        zone = ZoneInfo(name)
        datetime(2026, 1, 1, tzinfo=zone).utcoffset()
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadTime(f"unknown time zone {name!r}; give an IANA name such as Europe/Berlin, or UTC") from error
    return zone


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().casefold() for name in text.split(",")) if text.strip() else ()


def _one_of(options: Mapping[str, str], key: str, allowed: tuple[str, ...]) -> str:
    value = options.get(key, "").strip().casefold()
    if value and value not in allowed:
        raise CarbonreportError(f"mapping {key}={value}: give {' or '.join(allowed)}")
    return value


def _positive(options: Mapping[str, str], key: str, at_least: float = 0.0) -> float | None:
    if key not in options:
        return None
    value = number(options[key])
    if value is None or value <= 0 or value < at_least:
        raise CarbonreportError(f"mapping {key}={options[key]}: give a number {f'of {at_least:g} or more' if at_least else 'above 0'}")
    return value
