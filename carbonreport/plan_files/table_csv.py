"""Tables of kernels by clocks out of CSV: one row a kernel and pair of clocks, several rows for repeats."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from carbonreport.plan.order import in_loops
from carbonreport.plan.table import ClockPair, PlanError, PlanTable

COLUMNS = ("kernel", "count", "sm_mhz", "mem_mhz", "seconds", "joules")
WHOLE = "*"
_WAY_OUT = f"a table has the columns {','.join(COLUMNS)} and, if known, pass and position; auto stands for a clock that is not locked"
_MOST_INVOCATIONS = 1_000_000


@dataclass(slots=True)
class _Kernel:
    """A kernel as it is read: all its cells, with repeats."""

    name: str
    pass_name: str
    count: int
    positions: tuple[int, ...]
    cells: dict[ClockPair, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table, and what had to be guessed of it.

    Attributes:
        table: What a plan is made from.
        notes: Sentences on what was guessed.
        kernels: Rows of the file in its order: name and pass.
    """

    table: PlanTable
    notes: tuple[str, ...]
    kernels: tuple[tuple[str, str], ...]


def read_table(path: Path) -> ReadTable:
    """The table of a file; seconds and joules are of one invocation.

    A kernel named * is a whole pass (or the whole iteration, without a pass) that was measured under one pair of clocks.

    Raises:
        PlanError: It cannot be read; the message names file and line.
    """
    kernels = _kernels(path)
    fine = [kernel for kernel in kernels.values() if kernel.name != WHOLE]
    coarse = [kernel for kernel in kernels.values() if kernel.name == WHOLE]
    if not fine:
        if not coarse:
            raise PlanError(f"{path.name} has no rows below its header; {_WAY_OUT}")
        fine, coarse = coarse, []
    try:
        whole = _table(coarse, tuple(range(len(coarse))), None) if coarse else None
        sequence, notes = _sequence(path, fine)
        table = _table(fine, sequence, whole)
    except PlanError as error:
        raise PlanError(f"{path.name}: {error}") from error
    _check_passes(path, table)
    return ReadTable(table, notes, tuple((kernel.name, kernel.pass_name) for kernel in fine))


def _kernels(path: Path) -> dict[tuple[str, str, tuple[int, ...]], _Kernel]:
    """Kernels in the order of the file; same name, pass and positions are one."""
    kernels: dict[tuple[str, str, tuple[int, ...]], _Kernel] = {}
    for line, row in _rows(path):
        where = f"{path.name}:{line}"
        name, pass_name = row["kernel"], row.get("pass", "")
        if not name:
            raise PlanError(f"{where}: no kernel is named; {_WAY_OUT}")
        positions = tuple(_integer(where, "position", cell) for cell in row.get("position", "").replace(";", " ").split())
        count = _integer(where, "count", row["count"])
        if not 1 <= count <= _MOST_INVOCATIONS:
            raise PlanError(f"{where}: count is {count}; it must be 1 to {_MOST_INVOCATIONS}")
        if positions and len(positions) != count:
            raise PlanError(f"{where}: {len(positions)} positions for a count of {count}")
        kernel = kernels.setdefault((name, pass_name, positions), _Kernel(name, pass_name, count, positions))
        if kernel.count != count:
            raise PlanError(f"{where}: count of {name} is {count} here and {kernel.count} before")
        pair = _pair(where, row)
        kernel.cells.setdefault(pair, []).append((_number(where, "seconds", row["seconds"]), _number(where, "joules", row["joules"])))
    return kernels


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [(number, line) for number, line in enumerate(file, 1) if line.strip() and not line.startswith("#")]
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}; give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path.name} is no UTF-8 text; {_WAY_OUT}") from error
    try:
        reader = list(csv.reader(line for _, line in lines))
    except csv.Error as error:
        raise PlanError(f"{path.name} is no CSV file ({error}); {_WAY_OUT}") from error
    if not reader:
        raise PlanError(f"{path.name} is empty; {_WAY_OUT}")
    titles = [title.strip().lower() for title in reader[0]]
    missing = [column for column in COLUMNS if column not in titles]
    if missing:
        raise PlanError(f"{path.name}:{lines[0][0]}: no column {', '.join(missing)}; {_WAY_OUT}")
    numbers = [number for number, _ in lines[1:]]
    found = []
    for number, cells in zip(numbers, reader[1:], strict=False):
        if len(cells) < len(titles):
            raise PlanError(f"{path.name}:{number}: {len(cells)} cells under {len(titles)} titles")
        found.append((number, {title: cell.strip() for title, cell in zip(titles, cells, strict=False)}))
    return found


def _pair(where: str, row: Mapping[str, str]) -> ClockPair:
    try:
        return ClockPair(_clock(where, "sm_mhz", row["sm_mhz"]), _clock(where, "mem_mhz", row["mem_mhz"]))
    except ValueError as error:
        raise PlanError(f"{where}: {error}") from error


def _clock(where: str, name: str, text: str) -> int | None:
    if text.lower() in ("auto", "unlocked"):
        return None
    return round(_number(where, name, text))


def _number(where: str, name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise PlanError(f"{where}: {name} is {text!r}, no number; {_WAY_OUT}") from error
    if not (number > 0 and math.isfinite(number)):
        raise PlanError(f"{where}: {name} is {text}; it must be above 0")
    return number


def _integer(where: str, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise PlanError(f"{where}: {name} is {text!r}, no whole number; {_WAY_OUT}") from error


def _sequence(path: Path, kernels: list[_Kernel]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Row of each invocation, and what was guessed of the order."""
    if sum(kernel.count for kernel in kernels) > _MOST_INVOCATIONS:
        raise PlanError(f"over {_MOST_INVOCATIONS} invocations; a plan is made for one iteration")
    if all(kernel.positions for kernel in kernels):
        at = sorted((position, row) for row, kernel in enumerate(kernels) for position in kernel.positions)
        twice = next((a[0] for a, b in pairwise(at) if a[0] == b[0]), None)
        if twice is not None:
            raise PlanError(f"two kernels have the position {twice}")
        return tuple(row for _, row in at), ()
    if any(kernel.positions for kernel in kernels):
        raise PlanError("some kernels have a position and others have none; give all or none")
    counts = [kernel.count for kernel in kernels]
    sequence = in_loops(counts, [kernel.pass_name for kernel in kernels])
    guessed = f"{path.name} has no positions: kernels are taken to run in the order of the file, neighbours of one count as a loop"
    return sequence, (guessed,) if max(counts) > 1 else ()


def _table(kernels: list[_Kernel], sequence: tuple[int, ...], whole: PlanTable | None) -> PlanTable:
    pairs = tuple(sorted({pair for kernel in kernels for pair in kernel.cells}, key=lambda p: (p.mem_mhz or 0, p.sm_mhz or 0)))
    shape = (len(kernels), len(pairs))
    seconds, joules, seconds_sd, joules_sd = (np.full(shape, np.nan) for _ in range(4))
    for row, kernel in enumerate(kernels):
        for column, pair in enumerate(pairs):
            values = np.array(kernel.cells.get(pair, []))
            if values.size:
                seconds[row, column], joules[row, column] = values.mean(axis=0)
            if len(values) > 1:
                seconds_sd[row, column], joules_sd[row, column] = values.std(axis=0, ddof=1) / len(values) ** 0.5
    are_repeated = not np.isnan(seconds_sd).all()
    passes = tuple(kernels[row].pass_name for row in sequence) if all(kernel.pass_name for kernel in kernels) else ()
    names = tuple(kernel.name if kernel.name != WHOLE else kernel.pass_name or "iteration" for kernel in kernels)
    return PlanTable(
        names,
        np.array(sequence, dtype=np.intp),
        pairs,
        seconds,
        joules,
        passes,
        seconds_sd if are_repeated else None,
        joules_sd if are_repeated else None,
        whole,
    )


def _check_passes(path: Path, table: PlanTable) -> None:
    """Passes that were measured as a whole must be those of the kernels."""
    if table.whole is None or len(table.whole.names) == 1:
        return
    unknown = set(table.passes) ^ set(table.whole.passes)
    if unknown or not table.whole.passes:
        raise PlanError(
            f"{path.name}: the rows of {WHOLE} and those of the kernels differ in the passes {', '.join(sorted(unknown)) or '(none)'}"
        )
