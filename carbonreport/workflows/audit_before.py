"""Whether the ledger really holds the year before: a file of this year that reaches a day into it is no year to compare with."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from carbonreport.audit.window import Window

LEAST_MONTHS = 2  # of the year before; a file of one year reaches into one month of the other


def months_before(con: Any, before: Window) -> int | None:
    """In how many months of the year before jobs ended or devices were read; None where the ledger has nothing of that year.

    Jobs count where they end: a job over New Year is in the file of the new year.

    Args:
        con: DuckDB with the tables of the ledger.
        before: The year before.
    """
    months = list(pairwise(before.edges_us))
    ended = _any(con, "jobs", [f"end_us > {a} AND end_us <= {b}" for a, b in months])
    read = _any(con, "meters", [f"end_us > {a} AND start_us < {b} AND energy_mj IS NOT NULL" for a, b in months])
    held = sum(map(max, ended, read))
    (is_touched,) = _any(con, "jobs", [f"start_us < {before.until_us} AND end_us > {before.from_us}"])
    return held if held or is_touched else None


def _any(con: Any, table: str, conditions: Sequence[str]) -> Sequence[bool]:
    """Whether any row of a table meets each condition."""
    terms = ", ".join(f"coalesce(bool_or({condition}), false)" for condition in conditions)
    found: Sequence[bool] = con.execute(f"SELECT {terms} FROM {table}").fetchall()[0]
    return found
