"""sacct's text as rows, line by line: parsable2, parsable, fixed width, a table of a wiki, any delimiter."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from carbonreport.importers.imported import Rejected
from carbonreport.importers.moments import order_of
from carbonreport.importers.tables import Cells, Row

_DELIMITERS = ("^|^", "|", "\t", ",", ";", "^")
_OTHER_DELIMITER = re.compile(r"\w+([^\w\s:.,/=+\-]{1,3})(?:\w+\1)+(?:\w+)?")  # none that stands inside a time or an id
_DATED = re.compile(r"\d{1,2}([-/])\d{1,2}\1\d{4}[ T,]")  # as spreadsheets write dates, the year last
_HEAD_LINES = 40
_IDS = {"jobid", "jobidraw"}
_OTHERS = {
    "state",
    "elapsed",
    "elapsedraw",
    "alloctres",
    "consumedenergy",
    "consumedenergyraw",
    "maxrss",
    "exitcode",
    "partition",
    "start",
    "end",
    "tresusageintot",
    "tresusageoutave",
    "reqmem",
}
_DASHES = re.compile(r"-{2,}( +-{2,})*\s*")
_WORD = re.compile(r"-+")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lines of a file are cut: by a delimiter, or at fixed columns.

    Attributes:
        columns: Names in lower case.
        delimiter: What separates the cells, "" for fixed columns.
        has_borders: Whether each line begins and ends with the delimiter, outside the cells.
        spans: Fixed columns, from and to.
    """

    columns: tuple[str, ...]
    delimiter: str
    has_borders: bool = False
    spans: tuple[tuple[int, int], ...] = ()

    def cut(self, line: str) -> Cells:
        """The cells of a line."""
        if self.spans:
            last = len(self.spans) - 1
            return [line[a : None if i == last else b].strip() for i, (a, b) in enumerate(self.spans)]
        if self.delimiter in (",", ";", "\t"):
            cells = next(csv.reader([line], delimiter=self.delimiter, skipinitialspace=True), [])
        else:
            cells = line.split(self.delimiter)
            if self.has_borders:
                cells = cells[1:-1] if not cells[-1].strip() else cells[1:]
        return [cell.strip() for cell in cells]


def is_header(names: Cells) -> bool:
    """Whether lower-case names are columns of sacct."""
    return bool(_IDS & set(names)) and bool(_OTHERS & set(names))


def layout_of(head: Sequence[str], columns: Cells = ()) -> Layout | None:
    """How to cut the lines whose first are given; None where no line is a header of sacct.

    Args:
        head: The first lines.
        columns: Names of the columns where the file has no header.
    """
    if columns:
        lines = [line for line in head if line.strip()]
        fits = {d: sum(len(columns) <= len(line.split(d)) <= len(columns) + 1 for line in lines) for d in _DELIMITERS}
        best = max(_DELIMITERS, key=lambda d: fits[d])
        return Layout(tuple(columns), best) if fits[best] and is_header(columns) else None
    for i, line in enumerate(head):
        if i + 1 < len(head) and _DASHES.fullmatch(head[i + 1].strip()) and is_header(tuple(line.casefold().split())):
            spans = tuple((found.start(), found.end()) for found in _WORD.finditer(head[i + 1]))
            return Layout(_fixed_names(line, spans), "", spans=spans)
        other = _OTHER_DELIMITER.fullmatch(line.strip())
        for delimiter in (*_DELIMITERS, other[1]) if other is not None else _DELIMITERS:
            names = _names(line.split(delimiter))
            if len(names) > 1 and is_header(names):
                text = line.strip()
                has_borders = delimiter == "|" and text.startswith("|") and text.endswith("|")
                return Layout(_names(line.strip().strip("|").split("|")) if has_borders else names, delimiter, has_borders)
    return None


def rows_of(lines: Iterable[str], rejected: list[Rejected], columns: Cells = ()) -> Iterator[Row]:
    """Rows of sacct's output, one at a time; lines that do not fit are put aside with their numbers.

    Args:
        lines: With or without line ends.
        rejected: Takes what does not fit.
        columns: Names of the columns where the file has no header.
    """
    source = iter(lines)
    head = [line.rstrip("\r\n") for line in islice(source, _HEAD_LINES)]
    layout = layout_of(head, columns)
    if layout is None:
        return
    where = _where(layout.columns)
    has_begun = bool(columns)
    for number, line in enumerate(chain(head, (line.rstrip("\r\n") for line in source)), start=1):
        if not line.strip("-| :+\t"):
            continue
        cells = layout.cut(line)
        names = _names(cells) if "jobid" in line.casefold() else ()
        if is_header(names) and not columns:
            if has_begun and names != layout.columns and not layout.spans:
                layout = Layout(names, layout.delimiter, layout.has_borders)
                where = _where(names)
            has_begun = True
        elif has_begun:
            whole = _of_width(cells, layout)
            if len(whole) == len(layout.columns):
                yield Row(number, whole, where)
            else:
                rejected.append((number, f"{len(whole)} cells where the header has {len(layout.columns)}"))


def date_order(text: str, columns: Cells = ()) -> str:
    """Whether the day or the month comes first in dates such as 3/7/2026, by one of the file that tells: "dmy", "mdy", or "" where none does."""
    if _DATED.search(text) is None:
        return ""
    return order_of(row.get(name) for row in rows_of(text.split("\n"), [], columns) for name in ("start", "end", "submit"))


def _of_width(cells: Cells, layout: Layout) -> Cells:
    """Cells without the empty one that --parsable adds; a delimiter inside a job's name is taken back where the name comes last."""
    width = len(layout.columns)
    end = len(cells)
    while end > width and not cells[end - 1]:
        end -= 1
    if end > width and layout.columns[-1] == "jobname" and layout.delimiter:
        return [*cells[: width - 1], layout.delimiter.join(cells[width - 1 : end])]
    return cells[:end]


def _where(columns: Cells) -> dict[str, int]:
    """Position of each column; the first of two equal names counts."""
    places: dict[str, int] = {}
    for i, name in enumerate(columns):
        places.setdefault(name, i)
    return places


def _names(cells: Cells) -> tuple[str, ...]:
    names = [cell.strip().strip('"').casefold() for cell in cells]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _fixed_names(line: str, spans: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """Names above the dashes; where they do not stand above them, in their order."""
    above = tuple(line[a:b].strip().casefold() for a, b in spans)
    words = tuple(line.casefold().split())
    return above if above == words or len(words) != len(spans) else words
