"""The packaged table of switch latencies."""

import csv
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from carbonreport.plan.latencies import LatencyRow, latency_of
from carbonreport.plan.switching import Latency

_TABLE = Path(__file__).resolve().parent / "data" / "switch_latency.csv"


def assumed_latency(board: str, clock: str = "core") -> Latency:
    """What is assumed of a board of that name or architecture: core or memory clocks."""
    return latency_of(latency_rows(), board, clock)


@lru_cache(maxsize=1)
def latency_rows() -> tuple[LatencyRow, ...]:
    """All rows of the table."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(_row(row) for row in csv.DictReader(line for line in file if not line.startswith("#")))


def _row(row: Mapping[str, str]) -> LatencyRow:
    value, low, high = (float(row[f"{name}_ms"]) / 1000 for name in ("value", "low", "high"))
    boards = tuple(entry.strip() for entry in row["boards"].split(";") if entry.strip())
    return LatencyRow(row["architecture"], boards, row["clock"], Latency(value, low, high, row["source"]))
