"""What the parts of a reconciliation share: findings, exact shares of millijoules, and small tables."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Found:
    """Something that would have been counted twice or wrongly.

    Attributes:
        slug: What it is, for programs.
        text: The same in words that may agree with the count, "[job|jobs]".
        count: How many rows, jobs or hours.
        energy_mj: Energy that it concerns, None where that is not known. [mJ]
    """

    slug: str
    text: str
    count: int
    energy_mj: int | None = None


def share(energy: str, start: str, end: str, a: str, b: str) -> str:
    """SQL of the whole millijoules of [start, end] that lie in [a, b]; of adjoining stretches they add up exactly."""
    length = f"greatest({end} - {start}, 1)::DOUBLE"

    def upto(t: str) -> str:
        return f"round({energy} * ((least(greatest({t}, {start}), {end}) - {start}) / {length}))::BIGINT"

    return f"({upto(b)} - {upto(a)})"


def short(host: str) -> str:
    """Name of a host without its domain."""
    return host.partition(".")[0].lower()


def table(con: Any, name: str, kinds: str, rows: list[tuple[Any, ...]]) -> None:
    """A table of rows."""
    con.execute(f"CREATE OR REPLACE TABLE {name} ({kinds})")
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        con.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
