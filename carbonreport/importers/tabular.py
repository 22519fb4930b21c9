"""Whether a text of an unknown tool is a table at all: a header with rows under it, or rows of numbers; prose with commas is none."""

from collections.abc import Callable, Sequence

from carbonreport.importers.cells import is_missing, quantity
from carbonreport.importers.tables import DELIMITERS, Cells, lower_names, records

_LONGEST_NAME = 60
_HEAD_LINES, _LOOKED_AT = 40, 400  # a header comes within the first, rows are counted within the second
_MARKS = ("#", ">", "*", "`", "<", "[", "!")  # with which lines of Markdown and HTML begin, and no names of columns


def is_tabular(text: str, is_header: Callable[[Cells], bool]) -> bool:
    """Whether the first line, or one of the first that names what is wanted, is a header with rows under it; or there are rows of numbers alone.

    Args:
        text: The beginning of a file.
        is_header: Whether cells, in lower case, name times, powers or energies.
    """
    lines = "\n".join(line for line in text.split("\n")[:_LOOKED_AT] if line.strip())
    for delimiter in DELIMITERS:
        rows = [cells for _, cells in records(lines, delimiter)]
        for i, row in enumerate(rows[:_HEAD_LINES]):
            names = lower_names(row)
            is_wanted = len(names) > 1 and is_header(names)
            if (is_wanted or i == 0) and _heads(names, rows[i + 1 :], is_wanted=is_wanted):
                return True
        if _are_numbers(rows):
            return True
    return False


def _heads(names: Cells, below: Sequence[Cells], *, is_wanted: bool) -> bool:
    """Whether a row names the columns of those under it: most have its width, and a number in it.

    A header alone is one, too; the rows under one that names what is wanted may have no value.
    """
    if len(names) < 2 or not all(_is_name(name) for name in names):
        return False
    data = [row for row in below if len(row) >= len(names) and any(_is_number(c) or (is_wanted and is_missing(c)) for c in row)]
    return 2 * len(data) > len(below) or (is_wanted and not below)


def _is_name(cell: str) -> bool:
    return len(cell) <= _LONGEST_NAME and not _is_number(cell) and not cell.startswith(_MARKS)


def _are_numbers(rows: Sequence[Cells]) -> bool:
    """Whether most lines have one width of two or more, and a number in it."""
    widths = [len(row) for row in rows]
    usual = max(set(widths), key=widths.count, default=0)
    good = [row for row in rows if len(row) == usual and any(_is_number(cell) for cell in row)]
    return usual > 1 and len(rows) > 1 and 2 * len(good) > len(rows)


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, with its unit or without."""
    value, unit = quantity(cell)
    return value is not None and len(unit.split()) < 2
