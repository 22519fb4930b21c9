"""Plan <-> file: versioned JSON, bound to a board, a driver and the order of the kernels. Data alone: nothing in it is ever run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec

from carbonreport.errors import OutputError
from carbonreport.plan.result import Kind
from carbonreport.plan.table import ClockPair, PlanError

VERSION = 1
_MOST_INVOCATIONS = 1_000_000
_WAY_OUT = "make it with: carbonreport plan solve TABLE -o FILE"
MEASURED = "measured"  # begins the source of a latency that was


@dataclass(frozen=True, slots=True)
class BoardNow:
    """The board on which a plan shall be used.

    Attributes:
        uuid: Its UUID, or None where that cannot be read.
        model: Its name.
        driver: Version of the driver.
    """

    uuid: str | None
    model: str
    driver: str | None


class BoundTo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The board that was measured: its UUID, or its model alone; both None where the table did not say."""

    uuid: str | None = None
    model: str | None = None
    driver: str | None = None


class UsedLatency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The latency that was planned with, and whether somebody measured it. [s, W]"""

    low_s: float
    value_s: float
    high_s: float
    source: str
    stall_watts: float
    effect: Literal["stalls", "late"] = "stalls"
    is_measured: bool = False

    @property
    def was_measured(self) -> bool:
        """Whether it is of a file of `carbonreport plan latency`, and not typed by somebody."""
        return self.is_measured and self.source.startswith(MEASURED)


class Ratio(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Over unlocked clocks, with a 90 % interval."""

    value: float
    low: float
    high: float


class WithoutSwitches(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The best way of the same table that never switches: what is used where the plan cannot be followed."""

    kind: Kind
    sm_mhz: int | None
    mem_mhz: int | None
    cap_watts: float | None
    time_ratio: float
    energy_ratio: float


class Validated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The plan measured in turns with unlocked clocks, on one board; only this may be called a saving.

    Attributes:
        pairs: How often each was measured.
        time_ratio: Time of a step over that with unlocked clocks.
        energy_ratio: The same of the energy.
        board: Where.
        requests: Changes of clocks that were asked for in a step.
        is_order_known: Whether the step was seen to be the work that was planned for; None in files of before.
    """

    pairs: int
    time_ratio: Ratio
    energy_ratio: Ratio
    board: BoundTo
    requests: float
    is_order_known: bool | None = None


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as it is kept.

    Attributes:
        board: Where it may be used.
        sequence_hash: Of the names of the kernels in launch order.
        invocations: How many there are in one iteration.
        slowdown: Share by which an iteration may be longer; None without a limit.
        latency: What it was planned with.
        kind: none, static, cap, pass or kernel.
        pairs: Clocks as [sm_mhz, mem_mhz], null for a clock that is not locked.
        segments: [first invocation, index of the pair], rising.
        cap_watts: The power cap, where it is one. [W]
        time_ratio: Predicted.
        energy_ratio: Predicted.
        switches: Changes of clocks in one iteration.
        phases: Index of the pair by name of a kernel, phase or pass, where it always has the same one.
        sequence: Names of the invocations in order; empty where they are too many to be phases of a program.
        without_switches: The best way that never switches.
        validated: What the plan was measured to save, or None.
    """

    board: BoundTo
    sequence_hash: str
    invocations: int
    slowdown: float | None
    latency: UsedLatency
    kind: Kind
    pairs: list[tuple[int | None, int | None]]
    segments: list[tuple[int, int]]
    cap_watts: float | None
    time_ratio: Ratio
    energy_ratio: Ratio
    switches: int
    phases: dict[str, int] = {}
    sequence: list[str] = []
    without_switches: WithoutSwitches | None = None
    validated: Validated | None = None
    format: Literal["carbonreport-plan"] = "carbonreport-plan"
    version: int = VERSION

    def clocks(self) -> tuple[ClockPair, ...]:
        """Clocks of each invocation; nothing for a cap. Shape (invocations,)."""
        held = [ClockPair(*pair) for pair in self.pairs]
        ends = [*(start for start, _ in self.segments[1:]), self.invocations]
        return tuple(
            held[index] for (start, index), end in zip(self.segments, ends, strict=bool(self.segments)) for _ in range(end - start)
        )


def segments_of(clocks: Sequence[ClockPair]) -> tuple[list[tuple[int | None, int | None]], list[tuple[int, int]]]:
    """Distinct pairs, and where each stretch of one pair begins."""
    distinct = list(dict.fromkeys(clocks))
    segments, at = [], 0
    for pair, group in groupby(clocks):
        segments.append((at, distinct.index(pair)))
        at += len(list(group))
    return [(pair.sm_mhz, pair.mem_mhz) for pair in distinct], segments


def mismatch(plan: PlanFile, board: BoardNow, sequence_hash: str | None = None) -> str | None:
    """Why a plan must not be used on a board, or None where it may.

    Boards of one model differ by 8 % on average (arXiv 2208.11035), so that a UUID, where the plan names one, must be that of the board.
    """
    bound = plan.board
    if bound.uuid is None and bound.model is None:
        return "the plan names no board; make it again with --gpu UUID or --gpu MODEL"
    if bound.uuid is not None and bound.uuid != board.uuid:
        return f"the plan was made for the board {bound.uuid}, and this one is {board.uuid or 'one whose UUID cannot be read'}; measure this board"
    if bound.uuid is None and bound.model != board.model:
        return f"the plan was made for {bound.model}, and this board is {board.model}; measure this board"
    if bound.driver is not None and bound.driver != board.driver:
        return f"the plan was made with driver {bound.driver}, and this one is {board.driver or 'not known'}; measure again"
    if sequence_hash is not None and sequence_hash != plan.sequence_hash:
        return "the kernels of this work run in another order than those that were planned for; measure again"
    return None


def write_plan(plan: PlanFile, path: Path) -> None:
    """Write a plan, in place of an older one.

    Raises:
        OutputError: The file cannot be written.
    """
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def read_plan(path: Path) -> PlanFile:
    """The plan of a file.

    Raises:
        PlanError: It cannot be read, is none, or is of a newer version; the message names file and field.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise PlanError(f"cannot read {path}: {error.strerror or error}; {_WAY_OUT}") from error
    try:
        head = msgspec.json.decode(raw)
        if isinstance(head, dict) and head.get("format") == "carbonreport-plan" and head.get("version") != VERSION:
            version = f"of version {head['version']!r}" if "version" in head else "without a version"
            raise PlanError(f"{path.name} is a plan {version}; this carbonreport reads version {VERSION}")
        plan = msgspec.convert(head, PlanFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise PlanError(f"{path.name} is no plan ({error}); {_WAY_OUT}") from error
    reason = _nonsense(plan)
    if reason is not None:
        raise PlanError(f"{path.name} is no plan: {reason}; {_WAY_OUT}")
    return plan


def _nonsense(plan: PlanFile) -> str | None:
    """What cannot be in a plan."""
    starts = [start for start, _ in plan.segments]
    if not 0 < plan.invocations <= _MOST_INVOCATIONS:
        return f"invocations is {plan.invocations}"
    if plan.switches < 0:
        return f"switches is {plan.switches}"
    other = plan.without_switches
    if other is not None:
        for name, value in (("sm_mhz", other.sm_mhz), ("mem_mhz", other.mem_mhz), ("cap_watts", other.cap_watts)):
            if value is not None and not 0 < value < math.inf:
                return f"without_switches.{name} is {value}; it must be above 0"
        if other.kind == "cap" and other.cap_watts is None:
            return "without_switches.cap_watts is missing"
    if plan.cap_watts is not None and not 0 < plan.cap_watts < math.inf:
        return f"cap_watts is {plan.cap_watts}; it must be above 0"
    if plan.kind == "cap":
        return "cap_watts is missing" if plan.cap_watts is None else None
    if not starts or starts[0] != 0 or starts != sorted(set(starts)) or starts[-1] >= plan.invocations:
        return "segments must begin with 0 and rise within the invocations"
    if any(not 0 <= index < len(plan.pairs) for _, index in plan.segments):
        return "segments name a pair that is not there"
    if any(not 0 <= index < len(plan.pairs) for index in plan.phases.values()):
        return "phases name a pair that is not there"
    try:
        for pair in plan.pairs:
            ClockPair(*pair)
    except ValueError as error:
        return str(error)
    return None
