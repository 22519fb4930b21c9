"""The hours of one run, and its facility's PUE by the weather, kept in `X.grid.json` beside its record `X.jsonl`, which stays as it is."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from carbonreport import __version__
from carbonreport.errors import GridError, OutputError
from carbonreport.model.pue_model import PueHours
from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries, Quality

FORMAT = 1


class _Hour(msgspec.Struct):
    start: str
    start_s: float
    g_per_kwh: float
    quality: Quality


class _Errors(msgspec.Struct, omit_defaults=True):
    terms: tuple[tuple[float, float], ...] = ()
    level_sd: float = 0.0
    observed_s: float | None = None


class _PueHour(msgspec.Struct):
    start: str
    start_s: float
    end_s: float
    celsius: float
    pue: float


class _Pue(msgspec.Struct):
    model: str
    weather: str
    fitted_on: str
    retrieved_on: str
    factors: tuple[float, float]
    hours: list[_PueHour]


class _File(msgspec.Struct, omit_defaults=True):
    written_by: str
    format: int
    run: str
    zone: str
    factor: str
    accounting: str
    signal: str
    gas: str
    source: str
    retrieved_on: str
    errors: dict[Quality, _Errors]
    notes: list[tuple[str, str]]
    hours: list[_Hour]
    end: str
    end_s: float
    pue: _Pue | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What lies beside a record.

    Attributes:
        series: Intensities of the run's hours.
        pue: PUE of its hours by a model and the weather, or None.
        name: Name of the file.
        sha256: Its hash.
    """

    series: IntensitySeries
    pue: PueHours | None
    name: str
    sha256: str


def path_beside(record: Path) -> Path:
    """Where the hours of a record are kept."""
    return record.with_name(f"{record.name.removesuffix('.jsonl')}.grid.json")


def write_beside(record: Path, run_id: str, series: IntensitySeries, pue: PueHours | None = None) -> Path:
    """Keep the hours of a run; an earlier file of ours is replaced as a whole.

    Raises:
        OutputError: It cannot be written, or another program's file is in the way.
    """
    path = path_beside(record)
    if path.exists():
        read_beside(path, run_id)  # raises where it is not ours
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(msgspec.json.format(msgspec.json.encode(_as_file(run_id, series, pue)), indent=1) + b"\n")
        beside.replace(path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def read_beside(path: Path, run_id: str) -> Kept:
    """The hours of a run.

    Raises:
        GridError: The file is of another run or format, or damaged; removing it helps.
    """
    try:
        raw = path.read_bytes()
        file = msgspec.json.decode(raw, type=_File)
        kept = Kept(_as_series(file, path), None if file.pue is None else _as_pue(file.pue), path.name, hashlib.sha256(raw).hexdigest())
    except OSError as error:
        raise GridError(f"cannot read {path}: {error.strerror or error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise GridError(f"{path} does not hold hours that carbonreport kept ({error}); remove it, or give --grid") from error
    if file.format != FORMAT or file.run != run_id:
        what = f"format {file.format}" if file.format != FORMAT else f"another run ({file.run})"
        raise GridError(f"{path} is of {what}; remove it, or give --grid")
    return kept


def _as_file(run_id: str, series: IntensitySeries, pue: PueHours | None) -> _File:
    family, starts = series.family, series.edges_s[:-1].tolist()
    return _File(
        written_by=f"carbonreport {__version__}",
        format=FORMAT,
        run=run_id,
        zone=series.zone,
        factor=family.factor,
        accounting=family.accounting,
        signal=family.signal,
        gas=family.gas,
        source=series.source,
        retrieved_on=series.retrieved_on,
        errors={quality: _Errors(e.terms, e.level_sd, e.observed_s) for quality, e in series.errors.items()},
        notes=list(series.notes),
        hours=[
            _Hour(_iso(at), at, grams, QUALITIES[quality])
            for at, grams, quality in zip(starts, series.grams_per_kwh.tolist(), series.quality.tolist(), strict=True)
        ],
        end=_iso(float(series.edges_s[-1])),
        end_s=float(series.edges_s[-1]),
        pue=None if pue is None else _pue_in_file(pue),
    )


def _pue_in_file(pue: PueHours) -> _Pue:
    rows = zip(pue.starts_s, pue.ends_s, pue.celsius, pue.values, strict=True)
    return _Pue(pue.model, pue.weather, pue.basis, pue.retrieved_on, pue.factors, [_PueHour(_iso(row[0]), *row) for row in rows])


def _as_pue(file: _Pue) -> PueHours:
    columns = (tuple(getattr(hour, name) for hour in file.hours) for name in ("start_s", "end_s", "celsius", "pue"))
    return PueHours(file.model, file.weather, file.fitted_on, file.retrieved_on, file.factors, *columns)


def _as_series(file: _File, path: Path) -> IntensitySeries:
    when = f", fetched on {file.retrieved_on}," if file.retrieved_on else ""
    said = f"the hours of {file.zone} are those of {file.source}{when} as kept in {path.name}"
    if unknown := {hour.quality for hour in file.hours} - set(file.errors):
        raise ValueError(f"no error is given of {', '.join(sorted(unknown))} hours")
    errors: Mapping[Quality, GridErrors] = {quality: GridErrors(e.terms, e.level_sd, e.observed_s) for quality, e in file.errors.items()}
    return IntensitySeries(
        zone=file.zone,
        edges_s=np.array([*(hour.start_s for hour in file.hours), file.end_s]),
        grams_per_kwh=np.array([hour.g_per_kwh for hour in file.hours]),
        quality=np.array([QUALITIES.index(hour.quality) for hour in file.hours], dtype=np.int8),
        errors=errors,
        family=Family(file.factor, file.accounting, file.signal, file.gas),
        source=file.source,
        retrieved_on=file.retrieved_on,
        notes=(("grid-refreshed", said), *file.notes),
    )


def _iso(time_s: float) -> str:
    """A moment for people to read: 2026-03-29T00:00:00Z."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
