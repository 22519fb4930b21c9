"""Rows of the cache and the file that holds a month of them: what is kept, how long it is believed, and how a torn file is told."""

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carbonreport.grid.readings import ESTIMATED, FORECAST, MEASURED
from carbonreport.model.series import Array
from carbonreport.units import SECONDS_PER_HOUR

# Values change for about two days after their hour; those of an older hour are kept for good if they were measured, else for a day.
SETTLED_S, DAY_S, RECENT_S = 48 * SECONDS_PER_HOUR, 24 * SECONDS_PER_HOUR, 1800.0
# Begin and end, POSIX seconds; intensity or temperature, NaN where the provider was asked and knew nothing; quality; when it was fetched.
ROW = np.dtype([("start_s", "<f8"), ("end_s", "<f8"), ("value", "<f8"), ("quality", "<i1"), ("retrieved_s", "<f8")])
Rows = NDArray[Any]
_MAGIC = b"CRGRID1\n"
_HEAD = len(_MAGIC) + 4


def is_fresh(rows: Rows, now_s: float) -> NDArray[np.bool_]:
    """Whether each row may still be believed."""
    age_s = now_s - rows["retrieved_s"]
    settled = rows["retrieved_s"] - rows["end_s"] >= SETTLED_S
    measured = (rows["quality"] == MEASURED) & ~np.isnan(rows["value"])
    fresh: NDArray[np.bool_] = (settled & (measured | (age_s < DAY_S))) | (age_s < RECENT_S)
    return fresh


def blank(start_s: float, end_s: float, now_s: float) -> Rows:
    """Rows that say: asked, and nothing was there; one an hour, so that each lies in one month."""
    first, last = np.floor(start_s / SECONDS_PER_HOUR) + 1, np.ceil(end_s / SECONDS_PER_HOUR)
    edges = np.concatenate([[start_s], np.arange(first, last) * SECONDS_PER_HOUR, [end_s]])
    rows = np.empty(edges.size - 1, ROW)
    rows["start_s"], rows["end_s"], rows["value"] = edges[:-1], edges[1:], np.nan
    rows["quality"], rows["retrieved_s"] = ESTIMATED, now_s
    return rows[rows["end_s"] > rows["start_s"]]


def merged(old: Rows | None, new: Rows) -> Rows:
    """Both; of the same begin the newer, a value before a blank, what was observed before a forecast; cut so that none overlap."""
    rows = new if old is None else np.concatenate([old, new])
    rank = np.where(np.isnan(rows["value"]), 0, np.where(rows["quality"] == FORECAST, 1, 2))
    order = np.lexsort((np.arange(rows.size), rank, rows["start_s"]))
    rows = rows[order]
    kept: Rows = rows[np.append(np.diff(rows["start_s"]) > 0, True)]
    kept["end_s"][:-1] = np.minimum(kept["end_s"][:-1], kept["start_s"][1:])
    return kept


def month_of(starts_s: Array) -> NDArray[np.int64]:
    """Months since 1970 in UTC. Shape (n,)."""
    return np.floor(starts_s).astype(np.int64).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)


def months_of(start_s: float, end_s: float) -> range:
    """Months whose files may know of a period, POSIX seconds."""
    first, last = month_of(np.array([start_s - SECONDS_PER_HOUR, max(end_s - 1, start_s)])).tolist()  # an interval may begin before
    return range(first, last + 1)


def load_rows(path: Path) -> Rows | None:
    """Rows of a file, or None where there is none that is whole."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    body = raw[_HEAD:]
    if raw[: len(_MAGIC)] != _MAGIC or len(body) % ROW.itemsize or zlib.crc32(body).to_bytes(4, "little") != raw[len(_MAGIC) : _HEAD]:
        return None
    return np.frombuffer(body, ROW)


def save_rows(path: Path, rows: Rows) -> None:
    """Write a month whole beside its file and put it in its place."""
    body = rows.tobytes()
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    beside.write_bytes(_MAGIC + zlib.crc32(body).to_bytes(4, "little") + body)
    beside.replace(path)
