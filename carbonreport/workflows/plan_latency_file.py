"""Latencies of one board as they are kept in a file, and what a plan is made with."""

import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from carbonreport.errors import OutputError
from carbonreport.plan.switching import Latency
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError
from carbonreport.plan_file import MEASURED, BoundTo

VERSION = 1
_LEAST_SEEN = 5  # of one target; fewer have no range


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Latency of changes to one pair. [s]

    Attributes:
        sm_mhz: Clock of the cores that was asked for; None: unlocked. [MHz]
        mem_mhz: Clock of the memory. [MHz]
        asked: How often.
        seen: How often the effect was seen in time.
        median_s: Of those seen; None where none was.
        p90_s: 90 % were not longer.
        low_s: Shortest.
        high_s: Longest.
        why_not: Why nothing can be said, or "".
    """

    sm_mhz: int | None
    mem_mhz: int | None
    asked: int
    seen: int
    median_s: float | None = None
    p90_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    why_not: str = ""

    @property
    def pair(self) -> ClockPair:
        """What was asked for."""
        return ClockPair(self.sm_mhz, self.mem_mhz)


class LatencyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Latencies of one board.

    Attributes:
        board: Which.
        method: How they were seen, in words.
        rows: By pair that was asked for; empty where nothing was measured.
        assumed: What is taken instead: low, value, high and source, by "core" and "memory".
    """

    board: BoundTo
    method: str
    rows: list[Seen]
    assumed: dict[str, tuple[float, float, float, str]] = {}
    format: Literal["carbonreport-latency"] = "carbonreport-latency"
    version: int = VERSION

    @property
    def is_measured(self) -> bool:
        """Whether any latency was measured."""
        return any(row.seen for row in self.rows)


def latencies_of(file: LatencyFile) -> tuple[Latency, Latency | None, tuple[tuple[ClockPair, Latency], ...]]:
    """What a plan is made with: of any core clocks, of the memory clock, and of each pair that was asked for.

    The likely value is the median; the range is that of all changes.

    Raises:
        PlanError: Nothing was measured.
    """
    few = next((row for row in file.rows if 0 < row.seen < _LEAST_SEEN), None)
    if few is not None:
        raise PlanError(
            f"to {few.pair}: {few.seen} of {few.asked} changes were seen, fewer than {_LEAST_SEEN}; measure again with more --repeats"
        )
    source = f"{MEASURED} on {file.board.uuid or file.board.model} ({file.method})"
    own = [
        (row.pair, Latency(row.median_s, row.low_s, row.high_s, source))
        for row in file.rows
        if row.median_s is not None and row.low_s is not None and row.high_s is not None
    ]
    if not own:
        raise PlanError("the file has no latency that was measured; give --latency, or leave both out for what is assumed of the board")
    core = [latency for pair, latency in own if pair.sm_mhz is not None or pair == UNLOCKED]
    memory = [
        latency for pair, latency in own if pair.mem_mhz is not None and pair.sm_mhz is None
    ]  # others are begun at the same memory clock
    return _pooled(core or memory, source), _pooled(memory, source) if memory else None, tuple(own)


def _pooled(some: Sequence[Latency], source: str) -> Latency:
    return Latency(statistics.median(one.value_s for one in some), min(one.low_s for one in some), max(one.high_s for one in some), source)


def write_latencies(file: LatencyFile, path: Path) -> None:
    """Write them. Raises OutputError."""
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def read_latencies(path: Path) -> LatencyFile:
    """The latencies of a file.

    Raises:
        PlanError: It cannot be read, or is none.
    """
    try:
        file = msgspec.json.decode(path.read_bytes(), type=LatencyFile)
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}; make it with: carbonreport plan latency -o FILE") from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PlanError(f"{path.name} holds no latencies ({error}); make it with: carbonreport plan latency -o FILE") from error
    reason = _nonsense(file)
    if reason:
        raise PlanError(f"{path.name} holds no latencies: {reason}; make it with: carbonreport plan latency -o FILE")
    return file


def _nonsense(file: LatencyFile) -> str:
    """What cannot be in a file of latencies; "" where all can."""
    if file.version != VERSION:
        return f"it is of version {file.version}, this carbonreport reads version {VERSION}"
    for row in file.rows:
        for name, mhz in (("sm_mhz", row.sm_mhz), ("mem_mhz", row.mem_mhz)):
            if mhz is not None and mhz <= 0:
                return f"{name} is {mhz}; it must be above 0"
        if not 0 <= row.seen <= row.asked:
            return f"{row.seen} of {row.asked} changes cannot have been seen"
        seconds = [row.low_s, row.median_s, row.p90_s, row.high_s]
        known = [value for value in seconds if value is not None]
        if (len(known) != len(seconds)) if row.seen else known:
            return f"to {row.pair}: {row.seen} changes were seen, and {len(known)} of 4 figures are there"
        if known != sorted(known) or any(not 0 < value < math.inf for value in known):
            return (
                f"to {row.pair}: low, median, 90 % and high must be above 0 and rise, they are {', '.join(f'{value:g}' for value in known)}"
            )
    return ""
