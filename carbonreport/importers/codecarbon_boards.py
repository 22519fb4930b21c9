"""How many boards of which model CodeCarbon saw: "4 x NVIDIA A100-SXM4-80GB"; of several models with nothing between them."""

import re
from collections.abc import Iterator
from itertools import islice

from carbonreport.importers.cells import number

_COUNTED = re.compile(r"([0-9]{1,4}) x ")
_MOST_BOARDS = 1024  # of one machine; a larger number is none of boards
_MOST_READINGS = 1000  # of a text that no machine wrote


def boards_of(model: str, count: str) -> tuple[str, int, str]:
    """Model, or models joined by "and", and how many boards together; and why the two cells contradict each other, "" where they agree.

    Args:
        model: The cell gpu_model.
        count: The cell gpu_count: boards that were asked for in some versions, and all of the machine in others.
    """
    given = _whole(count)
    readings = list(islice(_readings(model.strip()), _MOST_READINGS))
    readings = [parts for parts in readings if all(1 <= n <= _MOST_BOARDS for n, _ in parts)]
    if not readings:
        return model.strip(), given or 1, ""
    parts = next((reading for reading in readings if sum(n for n, _ in reading) == given), readings[0])
    seen, name = sum(n for n, _ in parts), " and ".join(dict.fromkeys(name for _, name in parts))
    if given is None or given == seen:
        return name, seen, ""
    taken = min(given, seen)
    return name, taken, f"gpu_model is {model.strip()!r} and gpu_count is {given}; {taken} is taken"


def _whole(count: str) -> int | None:
    """Number of boards in a cell, which pandas may have made 4.0; None where it is none."""
    value = number(count)
    return int(value) if value is not None and value == int(value) and 1 <= value <= _MOST_BOARDS else None


def _readings(text: str) -> Iterator[list[tuple[int, str]]]:
    """Every way to read "2 x A1001 x T4" as counts and names; the shortest counts first, for names end with digits."""
    first = _COUNTED.match(text)
    if first is None or not text[first.end() :].strip():
        return
    rest = text[first.end() :]
    other = _COUNTED.search(rest)
    if other is None:
        yield [(int(first[1]), rest.strip())]
        return
    for at in range(other.end(1) - 1, max(other.start(1), 1) - 1, -1):
        for more in _readings(rest[at:]):
            yield [(int(first[1]), rest[:at].strip()), *more]
