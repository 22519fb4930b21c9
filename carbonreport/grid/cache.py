"""Hours that were fetched before, on disk: a file for each provider, family, zone and month.

A file is replaced as a whole (written beside, then renamed), so that a reader sees the old or the new one and `kill -9` leaves at worst
a stray file, which the next writer removes. A lock keeps two writers from losing each other's hours; without locks (Windows, some network
disks) the later one wins, and what it lost is fetched again. A checksum tells a torn file, which counts as absent.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from carbonreport.grid.cache_file import ROW, blank, is_fresh, load_rows, merged, month_of, months_of, save_rows
from carbonreport.grid.readings import Readings, holes
from carbonreport.model.series import Array, Family

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER_VARIABLE = "CARBONREPORT_CACHE"
LIMIT_BYTES = 256 * 2**20


@dataclass(frozen=True, slots=True)
class Key:
    """Whose hours: provider, zone, family (of weather the bulb), and whether they are what was or what is forecast."""

    provider: str
    zone: str
    family: Family | str
    kind: str = "history"

    def folder(self, root: Path) -> Path:
        """Where its months lie."""
        family = self.family
        if isinstance(family, Family):
            family = "-".join((family.signal, family.factor, family.accounting, family.gas)).replace(" ", "_")
        return root.joinpath(*(quote(part, safe="") for part in (self.provider, f"{family}.{self.kind}", self.zone)))


@dataclass(frozen=True, slots=True)
class Entry:
    """What the cache holds of one zone: files, size in bytes, first and last month."""

    provider: str
    family: str
    zone: str
    files: int
    size_bytes: int
    first: str
    last: str


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Hourly values to keep; all arrays have shape (n,).

    Attributes:
        starts_s: Begin of each interval, POSIX seconds, rising.
        ends_s: End of each.
        values: Intensity of each [gCO2e/kWh], or temperature [°C].
        quality: Index into QUALITIES of each.
    """

    starts_s: Array
    ends_s: Array
    values: Array
    quality: NDArray[np.int8]


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What the cache knows of a period.

    Attributes:
        starts_s: Begin of each known interval. Shape (n,).
        ends_s: End of each. Shape (n,).
        values: Intensity of each [gCO2e/kWh], or temperature [°C]. Shape (n,).
        quality: Index into QUALITIES. Shape (n,).
        missing: Stretches that have to be asked for, POSIX seconds.
        oldest_s: When the oldest of it was fetched, POSIX seconds; infinite where nothing is known.
    """

    starts_s: Array
    ends_s: Array
    values: Array
    quality: NDArray[np.int8]
    missing: tuple[tuple[float, float], ...]
    oldest_s: float


def default_folder(environ: Mapping[str, str]) -> Path:
    """The user's cache: CARBONREPORT_CACHE, else below XDG_CACHE_HOME or ~/.cache."""
    if given := environ.get(FOLDER_VARIABLE):
        return Path(given)
    return Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home()) / ".cache") / "carbonreport" / "grid"


@dataclass(frozen=True, slots=True)
class GridCache:
    """Hours on disk.

    Attributes:
        root: Its folder; one that cannot be written is a cache that never knows anything.
        limit_bytes: Size beyond which the files that were written longest ago go.
    """

    root: Path
    limit_bytes: int = LIMIT_BYTES

    def read(self, key: Key, start_s: float, end_s: float, now_s: float, *, also_stale: bool = False) -> Found:
        """What is known of a period; what is too old counts as missing unless `also_stale`."""
        months = [load_rows(_file(key.folder(self.root), month)) for month in months_of(start_s, end_s)]
        rows = np.concatenate([m for m in months if m is not None] or [np.empty(0, ROW)])
        rows = rows[(rows["end_s"] > start_s) & (rows["start_s"] < end_s)]
        if not also_stale:
            rows = rows[is_fresh(rows, now_s)]
        missing = holes(np.maximum(rows["start_s"], start_s), np.minimum(rows["end_s"], end_s), start_s, end_s)
        known = rows[~np.isnan(rows["value"])]
        oldest_s = float(known["retrieved_s"].min()) if known.size else float("inf")
        return Found(known["start_s"], known["end_s"], known["value"], known["quality"], tuple(missing), oldest_s)

    def write(self, key: Key, readings: Readings, asked: tuple[float, float], now_s: float) -> None:
        """Keep what an answer said of the period that was asked for, and that it said nothing of the rest."""
        self.keep(key, Known(readings.starts_s, readings.ends_s, readings.grams_per_kwh, readings.quality), asked, now_s)

    def keep(self, key: Key, answer: Known, asked: tuple[float, float], now_s: float) -> None:
        """The same of any hourly values."""
        known = np.empty(answer.starts_s.size, ROW)
        known["start_s"], known["end_s"], known["value"] = answer.starts_s, answer.ends_s, answer.values
        known["quality"], known["retrieved_s"] = answer.quality, now_s
        inside = (answer.ends_s > asked[0]) & (answer.starts_s < asked[1])
        begins, ends = np.maximum(answer.starts_s[inside], asked[0]), np.minimum(answer.ends_s[inside], asked[1])
        blanks = [blank(begin, min(end, now_s), now_s) for begin, end in holes(begins, ends, *asked) if begin < now_s]
        rows = np.concatenate([known, *blanks])
        folder = key.folder(self.root)
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with _locked(folder / "lock"):
                for month in np.unique(month_of(rows["start_s"])).tolist():
                    path = _file(folder, month)
                    save_rows(path, merged(load_rows(path), rows[month_of(rows["start_s"]) == month]))
            self._bound()

    def entries(self) -> list[Entry]:
        """What is there, by provider, family and zone."""
        found = []
        for folder in sorted({path.parent for path in self._files()}):
            provider, family, zone = (unquote(part) for part in folder.relative_to(self.root).parts)
            files = sorted(folder.glob("*.crg"))
            sizes = sum(path.stat().st_size for path in files)
            found.append(Entry(provider, family, zone, len(files), sizes, files[0].stem, files[-1].stem))
        return found

    def clear(self) -> int:
        """Remove everything; the number of files that went."""
        files = self._files()
        for path in files:
            path.unlink(missing_ok=True)
        return len(files)

    def _files(self) -> list[Path]:
        return list(self.root.glob("*/*/*/*.crg"))

    def _bound(self) -> None:
        """Remove the files that were written longest ago until the rest fits."""
        sizes = [(stat.st_mtime, stat.st_size, path) for path in self._files() if (stat := _stat(path))]
        excess = sum(size for _, size, _ in sizes) - self.limit_bytes
        for _, size, path in sorted(sizes, key=lambda row: row[0]):
            if excess <= 0:
                return
            path.unlink(missing_ok=True)
            excess -= size


def _file(folder: Path, month: int) -> Path:
    return folder / f"{np.datetime64(month, 'M')}.crg"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:  # another process removed it
        return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time; the kernel frees the lock of a process that ends, however it ends."""
    with path.open("ab") as file:
        if fcntl is not None:
            with suppress(OSError):  # a disk without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        _remove_strays(path.parent)
        yield


def _remove_strays(folder: Path) -> None:
    """Files that a killed writer left; a minute old, because without locks another writer may be at it."""
    for path in folder.glob("*.tmp"):
        stat = _stat(path)
        if stat and time.time() - stat.st_mtime > 60:
            path.unlink(missing_ok=True)
