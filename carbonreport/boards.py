"""Rated power of GPU boards, by name: for estimates only, never for a measurement."""

import csv
import difflib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_TABLE = Path(__file__).resolve().parent / "data" / "boards.csv"
_MOST_NEAREST, _MOST_SPELLINGS = 3, 12


@dataclass(frozen=True, slots=True)
class Board:
    """A board as its vendor rates it.

    Attributes:
        name: As the table has it, or as it was asked for.
        rated_watts: Vendor's board power, or None where the table has no such board. [W]
        source: Where the rating comes from.
        nearest: Boards of similar names, where there is no rating.
    """

    name: str
    rated_watts: float | None
    source: str
    nearest: tuple[str, ...] = ()


def find_board(name: str) -> Board:
    """The board of that name, with or without the vendor's, in any case; without a rating where the table has none."""
    boards = _boards()
    found = boards.get(_key(name))
    if found is not None:
        return found
    near = difflib.get_close_matches(_key(name), boards, n=_MOST_SPELLINGS, cutoff=0.3)  # a board has several
    return Board(name, None, "", tuple(dict.fromkeys(boards[key].name for key in near))[:_MOST_NEAREST])


@lru_cache(maxsize=1)
def _boards() -> dict[str, Board]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    boards = {}
    for row in rows:
        board = Board(row["name"], float(row["rated_watts"]), row["source"])
        for alias in (row["name"], *filter(None, row["aliases"].split(";"))):
            boards[_key(alias)] = board
    return boards


def _key(name: str) -> str:
    words = "".join(c if c.isalnum() else " " for c in name.casefold()).split()
    return "".join(word for word in words if word not in ("nvidia", "geforce", "tesla", "amd", "instinct", "quadro"))
