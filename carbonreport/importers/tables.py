"""Delimited text as rows: any delimiter, repeated or missing headers, quoted line breaks, torn lines put aside with their numbers."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from carbonreport.importers.imported import Rejected

Cells = Sequence[str]

DELIMITERS = (",", ";", "\t", "^|^", "|")
_HEAD_LINES = 40  # a header comes within these
_MOST_BREAKS = 4  # line breaks in one cell; more is a quote that nobody closed
_MOST_CELL = 1 << 20
_RULES = {"-", ":", "="}
_DATA = ("a row of data",)

csv.field_size_limit(1 << 28)


@dataclass(frozen=True, slots=True)
class Row:
    """One row, its cells by the lower-case name of the column."""

    line: int
    cells: Cells
    where: dict[str, int]

    def get(self, name: str) -> str:
        """The cell of a column, without outer spaces; "" where there is none."""
        i = self.where.get(name)
        return self.cells[i].strip() if i is not None and i < len(self.cells) else ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table out of a text file.

    Attributes:
        columns: Names in lower case, of the first header.
        rows: Data rows.
        seen: How many rows there were, the rejected ones too.
        rejected: Rows that are not of the header's width.
        delimiter: What separates the cells.
        repeats: How often the header came again.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    seen: int
    rejected: list[Rejected] = field(default_factory=list)
    delimiter: str = ","
    repeats: int = 0

    @property
    def comma_is_point(self) -> bool:
        """Whether a comma inside a cell is a decimal comma."""
        return self.delimiter != ","


def read_table(text: str, is_header: Callable[[Cells], bool], *, columns: Cells = (), keeps_short: bool = False) -> Table | None:
    """The table of a text, or None where no line is a header.

    Args:
        text: With plain line ends.
        is_header: Whether cells, in lower case, are a header of the wanted kind.
        columns: Names of the columns where the text has no header.
        keeps_short: Whether rows with fewer cells than the header are kept, for formats that are known to write them.
    """
    if columns:
        delimiter = _by_width(text, len(columns))
        return None if delimiter is None else _rows(text, delimiter, is_header, tuple(columns), keeps_short)
    delimiter = header_delimiter(text, is_header)
    return None if delimiter is None else _rows(text, delimiter, is_header, (), keeps_short)


def header_delimiter(text: str, is_header: Callable[[Cells], bool]) -> str | None:
    """What separates the cells of the header within the first lines; None where there is none. The most cells win."""
    best: tuple[int, str] | None = None
    for line in _first_lines(text):
        for delimiter in DELIMITERS:
            names = lower_names(_split(line, delimiter))
            if len(names) > 1 and is_header(names) and (best is None or len(names) > best[0]):
                best = (len(names), delimiter)
    return best[1] if best else None


def _first_lines(text: str) -> list[str]:
    end = 0
    for _ in range(_HEAD_LINES):
        end = text.find("\n", end) + 1
        if end == 0:
            return text.splitlines()
    return text[:end].splitlines()


def _by_width(text: str, width: int) -> str | None:
    """The delimiter that gives most lines the wanted number of cells."""
    counts = Counter({d: sum(len(_split(line, d)) == width for line in _first_lines(text)) for d in DELIMITERS})
    delimiter, count = counts.most_common(1)[0]
    return delimiter if count else None


def _split(line: str, delimiter: str) -> list[str]:
    if len(delimiter) > 1 or delimiter == "|":
        cells = line.split(delimiter)
        return cells[1:-1] if delimiter == "|" and line.startswith("|") and line.rstrip().endswith("|") else cells
    return next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])


def lower_names(cells: Cells) -> tuple[str, ...]:
    """Cells as names of columns, in lower case, without quotes, a comment's mark and empty ends."""
    names = [cell.strip().strip('"').strip().lstrip("#").strip().casefold() for cell in cells]
    while names and not names[-1]:
        names.pop()
    return tuple(names)


def _rows(text: str, delimiter: str, is_header: Callable[[Cells], bool], columns: tuple[str, ...], keeps_short: bool) -> Table:
    header = columns
    where, width = _where(columns), len(columns)
    rows, rejected, seen, repeats = [], [], 0, 0
    for line, cells in records(text, delimiter):
        names = lower_names(cells) if not header or _may_be_names(cells, where) else _DATA
        if not names or all(set(name) <= _RULES for name in names):
            continue
        if len(names) > 1 and not columns and is_header(names):
            repeats += 1 if header else 0
            header, where, width = header or names, _where(names), len(names)
            continue
        if not header:
            continue
        seen += 1
        cells = _without_empty_end(cells, width)
        if len(cells) == width or (keeps_short and len(cells) < width):
            rows.append(Row(line, cells, where))
        else:
            rejected.append((line, f"{len(cells)} cells where the header has {width}"))
    return Table(header, tuple(rows), seen, rejected, delimiter, repeats)


def _may_be_names(cells: Cells, where: dict[str, int]) -> bool:
    """Whether a row may be a header again: its first cell is a column's name, or says nothing."""
    first = cells[0].strip().strip('"').lstrip("#").strip().casefold()
    return first in where or set(first) <= _RULES


def _where(names: Cells) -> dict[str, int]:
    """Position of each column; the first of two equal names counts."""
    places: dict[str, int] = {}
    for i, name in enumerate(names):
        places.setdefault(name, i) if name else places.setdefault(f"column {i + 1}", i)
    return places


def _without_empty_end(cells: Cells, width: int) -> Cells:
    end = len(cells)
    while end > width and not cells[end - 1].strip():
        end -= 1
    return cells[:end]


def records(text: str, delimiter: str) -> Iterator[tuple[int, Cells]]:
    """Line number and cells of each record. Where a quote is never closed, quotes mean nothing."""
    if len(delimiter) > 1 or delimiter == "|":
        yield from ((i, _split(line, delimiter)) for i, line in enumerate(text.split("\n"), start=1) if line.strip())
        return
    if '"' not in text:
        yield from _parsed(text, delimiter, csv.QUOTE_NONE)
        return
    found = list(_parsed(text, delimiter, csv.QUOTE_MINIMAL))
    if any(cell.count("\n") > _MOST_BREAKS or len(cell) > _MOST_CELL for _, cells in found for cell in cells):
        found = list(_parsed(text, delimiter, csv.QUOTE_NONE))
    yield from found


def _parsed(text: str, delimiter: str, quoting: int) -> Iterator[tuple[int, Cells]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True, quoting=quoting)  # type: ignore[arg-type]
    begins = 1
    for cells in reader:
        if cells:
            yield begins, cells
        begins = reader.line_num + 1
