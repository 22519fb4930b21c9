"""Tables of kernels by clocks out of CSV: one row a kernel and pair of clocks, several rows for repeats."""

import csv
import math
from array import array
from collections.abc import Iterator, Sequence
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
    """A kernel as it is read, and its number in the file."""

    name: str
    pass_name: str
    count: int
    positions: tuple[int, ...]
    code: int


@dataclass(slots=True)
class _Cells:
    """All cells of a file, repeats as they come: numbers of kernel and pair, and what was measured. Columns of machine numbers: there can be millions."""

    pairs: dict[ClockPair, int] = field(default_factory=dict)
    kernel: "array[int]" = field(default_factory=lambda: array("q"))
    pair: "array[int]" = field(default_factory=lambda: array("q"))
    seconds: "array[float]" = field(default_factory=lambda: array("d"))
    joules: "array[float]" = field(default_factory=lambda: array("d"))


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
    kernels, cells = _kernels(path)
    fine = [kernel for kernel in kernels.values() if kernel.name != WHOLE]
    coarse = [kernel for kernel in kernels.values() if kernel.name == WHOLE]
    if not fine:
        if not coarse:
            raise PlanError(f"{path.name} has no rows below its header; {_WAY_OUT}")
        fine, coarse = coarse, []
    try:
        whole = _table(coarse, cells, tuple(range(len(coarse))), None) if coarse else None
        sequence, notes = _sequence(path, fine)
        table = _table(fine, cells, sequence, whole)
    except PlanError as error:
        raise PlanError(f"{path.name}: {error}") from error
    _check_passes(path, table)
    return ReadTable(table, notes, tuple((kernel.name, kernel.pass_name) for kernel in fine))


def _kernels(path: Path) -> tuple[dict[tuple[str, str, tuple[int, ...]], _Kernel], _Cells]:
    """Kernels in the order of the file, and their cells; same name, pass and positions are one."""
    kernels: dict[tuple[str, str, tuple[int, ...]], _Kernel] = {}
    named: dict[tuple[str, str, str, str], _Kernel] = {}  # by their cells as they are spelt: nearly all rows repeat one
    clocks: dict[tuple[str, str], int] = {}
    cells = _Cells()
    for line, (name, pass_name, position, count, sm_mhz, mem_mhz, seconds, joules) in _rows(path):
        where = f"{path.name}:{line}"
        spelt, clock = (name, pass_name, position, count), (sm_mhz, mem_mhz)
        kernel = named.get(spelt)
        if kernel is None:
            kernel = named[spelt] = _kernel(where, spelt, kernels)
        if clock not in clocks:
            clocks[clock] = cells.pairs.setdefault(_pair(where, sm_mhz, mem_mhz), len(cells.pairs))
        cells.kernel.append(kernel.code)
        cells.pair.append(clocks[clock])
        cells.seconds.append(_number(where, "seconds", seconds))
        cells.joules.append(_number(where, "joules", joules))
    return kernels, cells


def _kernel(where: str, spelt: tuple[str, str, str, str], kernels: dict[tuple[str, str, tuple[int, ...]], _Kernel]) -> _Kernel:
    """The kernel that a row names, new or known."""
    name, pass_name, position, number = spelt
    if not name:
        raise PlanError(f"{where}: no kernel is named; {_WAY_OUT}")
    positions = tuple(_integer(where, "position", cell) for cell in position.replace(";", " ").split())
    count = _integer(where, "count", number)
    if not 1 <= count <= _MOST_INVOCATIONS:
        raise PlanError(f"{where}: count is {count}; it must be 1 to {_MOST_INVOCATIONS}")
    if positions and len(positions) != count:
        raise PlanError(f"{where}: {len(positions)} positions for a count of {count}")
    kernel = kernels.setdefault((name, pass_name, positions), _Kernel(name, pass_name, count, positions, len(kernels)))
    if kernel.count != count:
        raise PlanError(f"{where}: count of {name} is {count} here and {kernel.count} before")
    return kernel


_READ = ("kernel", "pass", "position", "count", "sm_mhz", "mem_mhz", "seconds", "joules")


def _rows(path: Path) -> Iterator[tuple[int, Sequence[str]]]:
    """Line and cells, in the order of _READ, of each row below the titles; one row at a time is held."""
    at = 0

    def lines(file: Iterator[str]) -> Iterator[str]:
        nonlocal at
        for number, line in enumerate(file, 1):
            if line.strip() and not line.startswith("#"):
                at = number
                yield line

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(lines(file))
            titles = [title.strip().lower() for title in next(reader, [])]
            if not titles:
                raise PlanError(f"{path.name} is empty; {_WAY_OUT}")
            missing = [column for column in COLUMNS if column not in titles]
            if missing:
                raise PlanError(f"{path.name}:{at}: no column {', '.join(missing)}; {_WAY_OUT}")
            order = [titles.index(name) if name in titles else None for name in _READ]
            for cells in reader:
                if len(cells) < len(titles):
                    raise PlanError(f"{path.name}:{at}: {len(cells)} cells under {len(titles)} titles")
                yield at, ["" if i is None else cells[i].strip() for i in order]
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror}; give the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise PlanError(f"{path.name} is no UTF-8 text; {_WAY_OUT}") from error
    except csv.Error as error:
        raise PlanError(f"{path.name} is no CSV file ({error}); {_WAY_OUT}") from error


def _pair(where: str, sm_mhz: str, mem_mhz: str) -> ClockPair:
    try:
        return ClockPair(_clock(where, "sm_mhz", sm_mhz), _clock(where, "mem_mhz", mem_mhz))
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


def _table(kernels: list[_Kernel], cells: _Cells, sequence: tuple[int, ...], whole: PlanTable | None) -> PlanTable:
    """Means, their standard deviations and repeats of some of a file's kernels."""
    rows = np.full(max(cells.kernel, default=-1) + 1, -1, dtype=np.intp)
    rows[[kernel.code for kernel in kernels]] = np.arange(len(kernels))
    row, pair = rows[np.frombuffer(cells.kernel, dtype=np.int64)], np.frombuffer(cells.pair, dtype=np.int64)
    is_own = row >= 0
    row, pair = row[is_own], pair[is_own]
    spelt = list(cells.pairs)
    codes = sorted(np.unique(pair).tolist(), key=lambda code: (spelt[code].mem_mhz or 0, spelt[code].sm_mhz or 0))
    pairs = tuple(spelt[code] for code in codes)
    columns = np.zeros(len(spelt), dtype=np.intp)
    columns[codes] = np.arange(len(codes))
    shape = (len(kernels), len(pairs))
    at = row * shape[1] + columns[pair]
    repeats = np.bincount(at, minlength=shape[0] * shape[1])
    means, sds = [], []
    for column in (cells.seconds, cells.joules):
        values = np.frombuffer(column, dtype=np.float64)[is_own]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.bincount(at, values, repeats.size) / repeats
            squares = np.bincount(at, (values - mean[at]) ** 2, repeats.size)
            sd = np.where(repeats > 1, np.sqrt(squares / (repeats - 1) / repeats), np.nan)
        means.append(mean.reshape(shape))
        sds.append(sd.reshape(shape))
    (seconds, joules), (seconds_sd, joules_sd) = means, sds
    are_repeated = bool((repeats > 1).any())
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
        repeats.reshape(shape),
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
