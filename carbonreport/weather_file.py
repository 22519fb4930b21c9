"""Hourly temperatures out of a CSV file: time and temperature in °C; for the wet bulb that itself, or temperature and humidity."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from carbonreport.errors import BadSeries
from carbonreport.model.weather import COLDEST_CELSIUS, WARMEST_CELSIUS, Bulb, Weather, lasting
from carbonreport.series_file import first_column, normalised, read_lines, time_s

_WAY_OUT = "give the columns time,temperature in °C, with times like 2026-01-14T18:00Z"
_WET, _HUMIDITY = r"\bwet\b", r"\b(relative )?humidity\b|^rh\b"
_DRY = (r"^((air|outdoor|outside) )?(temperature|temp|dry bulb)\b", r"\b(temperature|temp|dry bulb|celsius)\b")  # not an apparent one first
_OTHER_UNIT = r"fahrenheit|°f\b|\bkelvin\b|\(k\)"
# A row that lasts longer than three hours is a hole: the temperature in between is not known.
_LONGEST_S = 3 * 3600.0


def read_weather(path: Path, bulb: Bulb) -> Weather:
    """The temperatures of a file; each row lasts until the next one.

    Raises:
        BadSeries: A wrong header or value, with file and line; it cannot be read, or has no rows.
        BadTime: A time without a zone.
    """
    delimiter, lines = read_lines(path, _WAY_OUT)
    titles, name = lines[0][1], path.name
    words = normalised(titles)
    time = first_column(words, "datetime", r"^(time|timestamp|start|date)\b")
    columns, celsius_of = _columns(words, bulb)
    if time is None or not columns:
        wanted = "the wet bulb, or of temperature and humidity" if bulb == "wet-bulb" else "temperature"
        raise BadSeries(f"{name}:1: no columns of time and {wanted} among {', '.join(titles)}; {_WAY_OUT}")
    if first_column([words[i] for i in columns], _OTHER_UNIT) is not None:
        raise BadSeries(f"{name}:1: temperatures must be in °C; {_WAY_OUT}")
    rows = []
    for n, cells in lines[1:]:
        where = f"{name}:{n}"
        at_s = time_s(cells[time], "utc" in words[time] or "gmt" in words[time], where) if len(cells) > max(time, *columns) else None
        if at_s is None:
            raise BadSeries(f"{where}: the line ends before its temperature; {_WAY_OUT}")
        if all(cells[i] for i in columns):  # an empty cell is an hour that nobody knows
            rows.append((at_s, _checked(celsius_of(*(_number(cells[i], delimiter, where) for i in columns)), where)))
    rows.sort()
    if any(b[0] <= a[0] for a, b in pairwise(rows)):
        raise BadSeries(f"{name} has one time twice; keep one of the two")
    if len(rows) < 2:
        raise BadSeries(f"{name} has less than two temperatures; {_WAY_OUT}")
    starts = [at_s for at_s, _ in rows]
    usual_s = min(min(b - a for a, b in pairwise(starts)), _LONGEST_S)
    ends = (*lasting(starts, _LONGEST_S)[:-1], starts[-1] + usual_s)
    return Weather(bulb, tuple(starts), ends, tuple(celsius for _, celsius in rows), f"file {name}")


def stull(celsius: float, humidity: float) -> float:
    """Wet-bulb temperature from that of the air and the relative humidity in percent, at sea level (Stull 2011). [°C]"""
    return (
        celsius * math.atan(0.151977 * math.sqrt(humidity + 8.313659))
        + math.atan(celsius + humidity)
        - math.atan(humidity - 1.676331)
        + 0.00391838 * humidity * math.sqrt(humidity) * math.atan(0.023101 * humidity)
        - 4.686035
    )


def _columns(words: Sequence[str], bulb: Bulb) -> tuple[tuple[int, ...], Callable[..., float]]:
    """Columns to read and what makes a temperature of them; none where something is missing."""
    wet = first_column(words, _WET)
    dry = first_column(["" if i == wet else word for i, word in enumerate(words)], *_DRY)
    if bulb == "dry-bulb":
        return ((), _itself) if dry is None else ((dry,), _itself)
    if wet is not None:
        return (wet,), _itself
    humidity = first_column(words, _HUMIDITY)
    return ((), _itself) if dry is None or humidity is None else ((dry, humidity), stull)


def _itself(celsius: float) -> float:
    return celsius


def _number(text: str, delimiter: str, where: str) -> float:
    try:
        return float(text.replace(",", ".") if delimiter != "," else text)
    except ValueError as error:
        raise BadSeries(f"{where}: {text!r} is no temperature or humidity; {_WAY_OUT}") from error


def _checked(celsius: float, where: str) -> float:
    if not COLDEST_CELSIUS <= celsius <= WARMEST_CELSIUS:
        raise BadSeries(f"{where}: {celsius:g} °C is no temperature of a place on earth; {_WAY_OUT}")
    return celsius
