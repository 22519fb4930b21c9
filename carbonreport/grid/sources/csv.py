"""Intensities out of a CSV file: Electricity Maps' downloads in their three headers, or plain `time,g_per_kwh`."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from carbonreport.errors import BadSeries, UnknownZone
from carbonreport.grid.readings import ESTIMATED, MEASURED, Fill, Readings
from carbonreport.grid.zones import WORLD_ZONE, resolve_zone
from carbonreport.model.series import Array, Family, IntensitySeries
from carbonreport.series_file import first_column, normalised, read_lines, time_s

# A step longer than this many median steps is a gap.
GAP_STEPS = 1.5
PLAIN = Family("not stated", "not stated", "average")
# Normalised titles: a mass of grams per kWh; the mean of the old academic export; a plain file's column (without a unit it is g/kWh in every tool known).
PER_KWH = r"\bg(rams?|co2\w*)?\b.*kwh"
ACADEMIC = "^carbon intensity avg$"
PLAIN_COLUMN = rf"{PER_KWH}|^(carbon )?intensity$"
ENDING = r"^(datetime|time|timestamp|hour|period|interval) (end|ends|ending)\b"
WAY_OUT = "give a header such as time,g_per_kwh, or a file downloaded from Electricity Maps"


def create(options: Mapping[str, str], *, fill: Fill | None = None) -> "CsvGrid":
    """Read a file of intensities.

    Args:
        options: "path"; "zone" where the file does not name it; "factor" = "direct" for that column instead of the life-cycle one.
        fill: Where missing hours are taken from, such as `EmbeddedGrid().series`; without it they are an error.

    Raises:
        BadSeries: Wrong header, value or zone, with file and line.
        BadTime: A time without a zone, or that cannot be read, with file and line.
    """
    if "path" not in options:
        raise BadSeries("the csv source needs the path of a file")
    path = Path(options["path"])
    factor = options.get("factor", "lifecycle")
    if factor not in ("lifecycle", "direct"):
        raise BadSeries(f"factor {factor!r} is neither lifecycle nor direct")
    delimiter, lines = read_lines(path, WAY_OUT)
    header = _header(lines[0][1], path.name, factor)
    rows = _sorted([_row(cells, header, delimiter, f"{path.name}:{number}") for number, cells in lines[1:]], path.name)
    held, given = _zone_of(rows), options.get("zone")
    if given:
        _refuse_other(held, given, path.name)
    starts, ends, grams, quality = _intervals(rows, path.name, is_ending=header.is_ending)
    return CsvGrid(Readings(given or held or "", path.name, header.family, f"file {path.name}", starts, ends, grams, quality), fill)


def available() -> str | None:
    """Why CSV files cannot be read: never."""
    return None


@dataclass(frozen=True, slots=True, eq=False)
class CsvGrid:
    """Intensities of one file.

    Attributes:
        readings: What it holds; without a zone where neither it nor its reader names one.
        fill: Where missing hours are taken from, or None.
    """

    readings: Readings
    fill: Fill | None = None

    def series(self, zone: str, start_s: float, end_s: float) -> IntensitySeries:
        """The file's intensities over a period, cut at its ends; missing hours are filled aloud or refused.

        Args:
            zone: Zone of the run; "" or "WORLD" where nobody gave one, then the file's own is taken.
            start_s: Begin, POSIX seconds.
            end_s: End, POSIX seconds; a period shorter than a second is taken as one second.

        Raises:
            BadSeries: The file holds another zone.
            GridGap: Hours are missing and cannot be filled.
        """
        asked = "" if zone == WORLD_ZONE else zone
        if asked:
            _refuse_other(self.readings.zone, asked, self.readings.name)
        return self.readings.series(asked, start_s, end_s, self.fill)


@dataclass(frozen=True, slots=True)
class _Header:
    """Where the columns are; None for one that the file has not."""

    time: int
    grams: int
    estimated: int | None
    zone: int | None
    width: int
    is_utc: bool
    is_ending: bool
    family: Family


@dataclass(frozen=True, slots=True)
class _Row:
    """One line: its place in the file, its begin, its intensity or None for an empty cell."""

    where: str
    time_s: float
    grams_per_kwh: float | None
    is_estimated: bool
    zone: str


def _header(titles: Sequence[str], name: str, factor: str) -> _Header:
    """Find the columns by keywords: the spelling of Electricity Maps' headers has changed twice."""
    words = normalised(titles)
    time = first_column(words, ENDING, "datetime", r"^(time|timestamp|start|date)\b")
    if time is None:
        raise BadSeries(f"{name}:1: no column of times among {', '.join(titles)}; {WAY_OUT}")
    grams, family = _grams_column(words, name, factor)
    if grams is None:
        kind = "direct " if factor == "direct" else ""
        raise BadSeries(
            f"{name}:1: no column of {kind}intensities in g/kWh among {', '.join(titles)} (1 lb/MWh is 0.4536 g/kWh); {WAY_OUT}"
        )
    # The academic export of Electricity Maps has the code where the others have the zone in words.
    zone = (
        first_column(words, "^zone( id)?$", "^zone name$")
        if first_column(words, ACADEMIC) == grams
        else first_column(words, "^zone( id)?$")
    )
    is_utc, is_ending = bool(re.search(r"\butc\b", words[time])), bool(re.search(ENDING, words[time]))
    return _Header(time, grams, first_column(words, r"\bestimated\b"), zone, len(titles), is_utc, is_ending, family)


def _grams_column(words: Sequence[str], name: str, factor: str) -> tuple[int | None, Family]:
    """The column of intensities that was asked for, and what kind it is."""
    direct, lifecycle, academic = (
        first_column(words, rf"{PER_KWH}.*\bdirect\b"),
        first_column(words, rf"{PER_KWH}.*(\blca\b|life ?cycle)"),
        first_column(words, ACADEMIC),
    )
    if factor == "direct":
        return direct, Family("direct", "consumption", "average")
    if lifecycle is not None:
        return lifecycle, Family("lifecycle", "consumption", "average")
    if direct is not None:
        raise BadSeries(f"{name}:1: only direct intensities, no life-cycle ones; ask for them with factor=direct if they are meant")
    if academic is not None:  # the provider's own default is life-cycle
        return academic, Family("lifecycle", "consumption", "average")
    plain = [i for i, word in enumerate(words) if re.search(PLAIN_COLUMN, word)]
    if len(plain) > 1:
        raise BadSeries(f"{name}:1: {len(plain)} columns of intensities; leave the one that is meant, as g_per_kwh")
    if plain and "marginal" in words[plain[0]]:
        return plain[0], Family("not stated", "not stated", "marginal")
    return (plain[0] if plain else None), PLAIN


def _row(cells: Sequence[str], header: _Header, delimiter: str, where: str) -> _Row:
    if len(cells) < header.width or any(cells[header.width :]):
        way_out = "the line was cut off" if len(cells) < header.width else "write numbers with a point, or separate columns by semicolons"
        raise BadSeries(f"{where}: {len(cells)} cells under a header of {header.width}; {way_out}")
    return _Row(
        where,
        time_s(cells[header.time], header.is_utc, where),
        _grams(cells[header.grams], delimiter != ",", where),
        header.estimated is not None and cells[header.estimated].lower() in ("true", "1", "yes"),
        cells[header.zone] if header.zone is not None else "",
    )


def _grams(text: str, has_decimal_commas: bool, where: str) -> float | None:
    """Intensity in gCO2e/kWh, or None for an empty cell."""
    if not text:
        return None
    number = text.replace(",", ".") if has_decimal_commas and "." not in text else text
    try:
        grams = float(number)
    except ValueError as error:
        raise BadSeries(f"{where}: {text!r} is not a number of g/kWh; leave the cell empty where nothing is known") from error
    if not math.isfinite(grams) or grams < 0:
        raise BadSeries(f"{where}: {text} g/kWh is not a possible intensity; leave the cell empty where nothing is known")
    return grams


def _sorted(rows: Sequence[_Row], name: str) -> list[_Row]:
    """Rows by time; a time given twice must be given alike."""
    ordered: list[_Row] = []
    for row in sorted(rows, key=lambda row: row.time_s):
        if not ordered or row.time_s != ordered[-1].time_s:
            ordered.append(row)
        elif row.grams_per_kwh != ordered[-1].grams_per_kwh:
            raise BadSeries(f"{row.where}: the time of {ordered[-1].where} again, with another intensity; keep one of the two")
    if len(ordered) < 2:
        raise BadSeries(f"{name} has one time only, so that nobody knows how long it lasts; give two rows or more")
    return ordered


def _intervals(rows: Sequence[_Row], name: str, *, is_ending: bool) -> tuple[Array, Array, Array, NDArray[np.int8]]:
    """Begins, ends, intensities and qualities of the rows with a value.

    Each lasts until the next row, the last as long as the one before; where the stamps are ends, each since the row before.
    """
    times = np.array([row.time_s for row in rows])
    steps = np.diff(times)
    usual_s = float(np.median(steps))
    lengths = np.where(steps > GAP_STEPS * usual_s, usual_s, steps)
    starts, ends = (times - np.append(lengths[0], lengths), times) if is_ending else (times, times + np.append(lengths, lengths[-1]))
    known = np.array([row.grams_per_kwh is not None for row in rows])
    if not known.any():
        raise BadSeries(f"{name} has no intensity in any row")
    grams = np.array([row.grams_per_kwh for row in rows if row.grams_per_kwh is not None], dtype=np.float64)
    quality = np.where([row.is_estimated for row in rows], ESTIMATED, MEASURED).astype(np.int8)
    return starts[known], ends[known], grams, quality[known]


def _zone_of(rows: Sequence[_Row]) -> str | None:
    """The one zone that the file names, or None."""
    first = next((row for row in rows if row.zone), None)
    if first is None:
        return None
    for row in rows:
        if row.zone and row.zone != first.zone:
            raise BadSeries(f"{row.where}: zone {row.zone} in a file of {first.zone}; make it one file for each zone")
    return first.zone


def _refuse_other(held: str | None, asked: str, name: str) -> None:
    """Raise where the file names a zone and another one is asked for."""
    if held and _known(held) != _known(asked):
        raise BadSeries(f"{name} holds zone {held}, not {asked}; give the file of {asked}, or --zone {held}")


def _known(zone: str) -> str:
    """Zone in its usual spelling, or as it stands where nobody knows it: a file may hold a zone of its own."""
    try:
        return resolve_zone(zone)
    except UnknownZone:
        return zone.upper()
