"""How the power readings of each kind of board follow its power: shipped, or found on this machine by `doctor --calibrate`."""

import csv
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from carbonreport.model.sensor import Kernel, Sensor

ReadingKind = Literal["samples", "power"]

_TABLE = Path(__file__).resolve().parent / "data" / "sensors.csv"
COLUMNS = ("board", "reading", "kernel", "width_ms", "delay_ms", "period_ms", "width_sd_ms", "delay_sd_ms", "source")
_KERNELS: dict[str, Kernel] = {"low-pass": "low-pass", "boxcar": "boxcar"}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table: words of the board's name, or its UUID."""

    board: str
    reading: str
    sensor: Sensor

    def fits(self, name: str, uuid: str, reading: ReadingKind) -> bool:
        """Whether the row is about this board."""
        words = name.replace("-", " ").upper().split()
        return self.reading == reading and (self.board == uuid or all(word in words for word in self.board.upper().split()))


def calibrations_path(environ: Mapping[str, str]) -> Path:
    """Where this user's own calibrations are kept."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".config")
    return Path(base) / "carbonreport" / "sensors.csv"


def find_sensor(name: str, uuid: str, reading: ReadingKind, calibrations: Path | None = None) -> Sensor | None:
    """The response of a board's readings, its own calibration first; None where nobody measured it.

    Raises:
        ValueError: A calibration file with a row that cannot be read.
    """
    own = _rows(calibrations) if calibrations is not None and calibrations.is_file() else ()
    return next((row.sensor for row in (*own, *_shipped()) if row.fits(name, uuid, reading)), None)


@lru_cache(maxsize=1)
def _shipped() -> tuple[Row, ...]:
    return _rows(_TABLE)


def _rows(path: Path) -> tuple[Row, ...]:
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(_row(path, row) for row in csv.DictReader(line for line in file if not line.startswith("#")))


def _row(path: Path, row: Mapping[str, str]) -> Row:
    try:
        width, delay, period, width_sd, delay_sd = (
            float(row[f"{name}_ms"]) / 1000 for name in ("width", "delay", "period", "width_sd", "delay_sd")
        )
        return Row(row["board"], row["reading"], Sensor(_KERNELS[row["kernel"]], width, delay, period, width_sd, delay_sd, row["source"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: row {dict(row)} is not a sensor ({error}); its columns are {', '.join(COLUMNS)}") from error


def keep(path: Path, uuid: str, sensor: Sensor) -> None:
    """Write a calibration, in place of an older one of the same board."""
    kept = [row for row in (_rows(path) if path.is_file() else ()) if row.board != uuid]
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_cells([*kept, Row(uuid, "samples", sensor)]))
    beside.replace(path)


def _cells(rows: Iterable[Row]) -> Iterable[list[str]]:
    for row in rows:
        s = row.sensor
        numbers = (s.width_s, s.delay_s, s.period_s, s.width_sd_s, s.delay_sd_s)
        yield [row.board, row.reading, s.kernel, *(f"{1000 * n:.4g}" for n in numbers), s.source]
