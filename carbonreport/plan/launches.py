"""Kernels of a profiler's trace: which are the same, and where one iteration ends and the next begins. Pure."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.plan.table import Array, IntArray, PlanError

_RAREST = 64  # keys whose distances are tried as periods
_LEAST_REPEATS = 2
_LEAST_COVER = 0.5  # of the launches: less is a loop inside something that does not repeat


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel as it ran.

    Attributes:
        name: As the profiler spells it.
        grid: Blocks. Shape (3,).
        block: Threads of a block. Shape (3,).
        shared_bytes: Shared memory of a block. [bytes]
        stream: Stream of the GPU.
        start_s: When it began, on the trace's clock. [s]
        seconds: How long it ran. [s]
        step: Number of the step that launched it, or None.
    """

    name: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared_bytes: int
    stream: int
    start_s: float
    seconds: float
    step: int | None = None

    @property
    def key(self) -> Hashable:
        """What makes it the same kernel: its name and its launch."""
        return self.name, self.grid, self.block, self.shared_bytes, self.stream


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel of the iteration: same name, same launch.

    Attributes:
        launch: The first one.
        count: How often it runs in one iteration.
        seconds: Of one run, mean over all. [s]
        seconds_sd: Standard deviation of single runs. [s]
    """

    launch: Launch
    count: int
    seconds: float
    seconds_sd: float


@dataclass(frozen=True, slots=True, eq=False)
class Iteration:
    """One iteration, as it repeats.

    Attributes:
        rows: Its kernels in the order in which they first run.
        sequence: Row of each invocation. Shape (n,).
        repeats: How many iterations were seen.
        seconds: From its begin to that of the next one; of the last, to its end, where there is only one. [s]
        kernel_seconds: Sum of its kernels. [s]
        uncovered_seconds: While none of its kernels ran. [s]
        left_out: Launches before, after and between the iterations.
        found_by: How it was found, in words.
    """

    rows: tuple[KernelRow, ...]
    sequence: IntArray
    repeats: int
    seconds: float
    kernel_seconds: float
    uncovered_seconds: float
    left_out: int
    found_by: str

    @property
    def uncovered_share(self) -> float:
        """Share of the time in which no kernel ran, 0 to 1."""
        return self.uncovered_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def overlap_seconds(self) -> float:
        """Time that kernels of several streams share: their sum is longer than what they cover. [s]"""
        return max(0.0, self.kernel_seconds - (self.seconds - self.uncovered_seconds))


def iteration_of(launches: Sequence[Launch]) -> Iteration:
    """The iteration that a trace repeats.

    Raises:
        PlanError: There are no kernels, or nothing repeats.
    """
    if not launches:
        raise PlanError("no kernels in the trace; record it with CUDA activities, over two iterations or more")
    ordered = sorted(launches, key=lambda launch: launch.start_s)
    if any(launch.step is not None for launch in ordered):
        found = _by_steps(ordered)
        if found is not None:
            return found
    start, period, repeats = period_of([launch.key for launch in ordered])
    pieces = [ordered[start + i * period : start + (i + 1) * period] for i in range(repeats)]
    return _iteration(pieces, len(ordered), f"its kernels repeat every {period} launches")


def _by_steps(launches: Sequence[Launch]) -> Iteration | None:
    """The sequence that most of the profiler's steps share."""
    steps: dict[int, list[Launch]] = {}
    for launch in launches:
        if launch.step is not None:
            steps.setdefault(launch.step, []).append(launch)
    shapes = Counter(tuple(launch.key for launch in piece) for piece in steps.values())
    shape, count = shapes.most_common(1)[0]
    if count < _LEAST_REPEATS and len(steps) > 1:
        return None
    pieces = [piece for piece in steps.values() if tuple(launch.key for launch in piece) == shape]
    return _iteration(pieces, len(launches), f"{len(pieces)} of {len(steps)} steps of the profiler launch the same kernels")


def period_of(keys: Sequence[Hashable]) -> tuple[int, int, int]:
    """Where the longest repetition begins, its period, and how often it repeats.

    Distances between runs of the rarest kernels are tried: one that runs once in an iteration lies one period apart. Of periods that cover as much,
    the shortest is taken; loops inside an iteration cover less than the iterations do.

    Raises:
        PlanError: Nothing repeats over half of the launches.
    """
    codes = _coded(keys)
    n = codes.size
    best = (0, 0, 0)  # covered, -period, start
    for period in _distances(codes):
        is_same = codes[:-period] == codes[period:]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], is_same, [False]])))
        if edges.size == 0:
            continue
        lengths = edges[1::2] - edges[::2]
        longest = int(lengths.argmax())
        if lengths[longest] < period:
            continue
        best = max(best, (int(lengths[longest]) + period, -period, int(edges[::2][longest])))
    covered, period, start = best[0], -best[1], best[2]
    if covered < _LEAST_COVER * n or covered == 0:
        raise PlanError(f"no iteration repeats among {n} kernels; record two iterations or more of the same work")
    return start, period, covered // period


def _coded(keys: Sequence[Hashable]) -> IntArray:
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)


def _distances(codes: IntArray) -> list[int]:
    """Periods to try, from kernels that run twice or more, the rarest first."""
    counts = np.bincount(codes)
    rare = [code for code in np.argsort(counts, kind="stable") if counts[code] >= _LEAST_REPEATS][:_RAREST]
    found: set[int] = set()
    for code in rare:
        at = np.flatnonzero(codes == code)
        found.update(int(d) for d in np.unique(np.diff(at)))
    return sorted(d for d in found if d <= codes.size // 2)


def _iteration(pieces: Sequence[Sequence[Launch]], launches: int, found_by: str) -> Iteration:
    codes = _coded([launch.key for launch in pieces[0]])
    every = np.array([[launch.seconds for launch in piece] for piece in pieces])
    rows = []
    for code in range(int(codes.max()) + 1):
        members = every[:, codes == code]
        first = pieces[0][int(np.flatnonzero(codes == code)[0])]
        rows.append(KernelRow(first, members.shape[1], float(members.mean()), float(members.std(ddof=1)) if members.size > 1 else 0.0))
    begins = np.array([piece[0].start_s for piece in pieces])
    covered = np.array([_covered_s(piece) for piece in pieces])
    seconds = _length_s(pieces, begins)
    used = covered[:-1] if len(pieces) > 1 else covered
    return Iteration(
        tuple(rows),
        codes,
        len(pieces),
        seconds,
        float(every.sum(axis=1).mean()),
        max(0.0, seconds - float(used.mean())),
        launches - sum(len(piece) for piece in pieces),
        found_by,
    )


def _length_s(pieces: Sequence[Sequence[Launch]], begins: Array) -> float:
    """From one begin to the next, the median; of a single one, to its end."""
    if len(pieces) > 1:
        return float(np.median(np.diff(begins)))
    return max(launch.start_s + launch.seconds for launch in pieces[0]) - float(begins[0])


def _covered_s(piece: Sequence[Launch]) -> float:
    """Time in which at least one kernel ran."""
    covered, until = 0.0, -np.inf
    for launch in piece:
        end = launch.start_s + launch.seconds
        covered += max(0.0, end - max(launch.start_s, until))
        until = max(until, end)
    return covered
