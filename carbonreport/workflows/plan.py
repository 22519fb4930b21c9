"""Planning clocks from a table or a trace: `carbonreport plan`."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from carbonreport.plan.frontier import SLOWDOWNS, FrontierPoint, frontier
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.judge import Judged, judged
from carbonreport.plan.launches import Iteration, iteration_of
from carbonreport.plan.noise import noise_of
from carbonreport.plan.result import Aggregation, Cap, Objective, Plan
from carbonreport.plan.smooth import Smoothed, smoothed
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Effect, Latency, Switching
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError, PlanTable
from carbonreport.plan_file import BoundTo, PlanFile, Ratio, UsedLatency, WithoutSwitches, segments_of, write_plan
from carbonreport.plan_files.table_csv import ReadTable, read_table
from carbonreport.plan_files.trace import read_trace
from carbonreport.switch_latency import assumed_latency
from carbonreport.workflows.caps import Swept
from carbonreport.workflows.plan_latency import latencies_of, read_latencies
from carbonreport.workflows.plan_sweep import caps_to_compare

_MOST_PHASES = 256  # of one iteration: more are kernels, which no program marks
_STALL_SHARE = 0.5  # of the mean power, where nobody measured what a board draws while it waits for its clocks


@dataclass(frozen=True, slots=True)
class PlanAsk:
    """What is asked of a table.

    Attributes:
        table: The CSV file.
        latency_s: Of a change of clocks; None for what is assumed of the board. [s]
        memory_latency_s: Of a change of the memory clock; None where it takes no longer, or for what is assumed of the board. [s]
        stall_watts: Power while the board waits; None for half of the mean power. [W]
        effect: Whether kernels wait for the clocks, or go on at the ones before.
        passes: Rows of each pass, as in "forward=0-13,backward=14-45"; None for the table's own column.
        objective: Least energy in time, or least energy times time.
        aggregation: Whether the sum of times counts, or each kernel's.
        gpu: UUID or model of the board that was measured.
        driver: Its driver.
        sweep: A sweep of power caps of the same work.
        is_smooth: Whether a smooth model takes noise out of the cells and fills the missing ones.
        latencies: Latencies of the board as `carbonreport plan latency` measured them.
    """

    table: Path
    latency_s: float | None = None
    memory_latency_s: float | None = None
    stall_watts: float | None = None
    effect: Effect = "stalls"
    passes: str | None = None
    objective: Objective = "waste"
    aggregation: Aggregation = "global"
    gpu: str | None = None
    driver: str | None = None
    sweep: Path | None = None
    is_smooth: bool = False
    latencies: Path | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A table and what else a plan needs.

    Attributes:
        table: What kernels cost.
        switching: What changes cost.
        caps: Power caps of the same work.
        smooth: The model, where one was asked for.
        notes: What was guessed.
        is_measured: Whether the latency was measured on a board, as `plan latency` does; one that is typed in is not.
    """

    table: PlanTable
    switching: Switching
    caps: tuple[Cap, ...]
    smooth: Smoothed | None
    notes: tuple[str, ...]
    is_measured: bool = False


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """A plan and what was asked.

    Attributes:
        plan: The best way, and what it was compared with.
        judged: How it can be expected to turn out; None for least energy times time, and without a limit.
        prepared: Table and switches.
        notes: What was guessed, and what is not known.
    """

    plan: Plan
    judged: Judged | None
    prepared: Prepared
    notes: tuple[str, ...] = field(default=())


def make_plan(ask: PlanAsk, slowdown: float | None) -> PlanAnswer:
    """The plan of a table.

    Args:
        ask: What is asked.
        slowdown: Share by which an iteration may be longer; None for no limit.

    Raises:
        PlanError: The table cannot be read, or no plan is so fast.
    """
    prepared = prepare(ask)
    table, switching, caps = prepared.table, prepared.switching, prepared.caps
    if ask.objective == "edp" or slowdown is None:
        plan = solve(table, slowdown, switching, objective=ask.objective, aggregation=ask.aggregation, caps=caps)
        return PlanAnswer(plan, None, prepared, prepared.notes)
    found = judged(table, slowdown, switching, aggregation=ask.aggregation, caps=caps)
    notes = [*prepared.notes]
    if not found.is_noise_known and found.plan.kind != "none" and not found.plan.way.is_whole:
        notes.append(
            "each cell was measured once, so nobody knows its noise: nothing was kept back for it, and the saving promises too much; measure the plan again"
        )
    return PlanAnswer(found.plan, found, prepared, tuple(notes))


def make_frontier(ask: PlanAsk, slowdowns: Sequence[float] = SLOWDOWNS) -> tuple[tuple[FrontierPoint, ...], Prepared]:
    """Plans for those of several slowdowns that a plan reaches; the notes tell of the others, and of noise that is left out.

    Raises:
        PlanError: The table cannot be read, or no plan reaches any of them.
    """
    prepared = prepare(ask)
    points = frontier(prepared.table, prepared.switching, slowdowns, aggregation=ask.aggregation, caps=prepared.caps)
    notes = [*prepared.notes]
    missing = sorted(set(slowdowns) - {point.slowdown for point in points})
    if missing:
        notes.append(f"left out, as no plan reaches them: slowdowns of {', '.join(f'{100 * slowdown:+g} %' for slowdown in missing)}")
    if noise_of(prepared.table) is not None:
        notes.append(
            "nothing is kept back for the noise of the table on this frontier, and its savings promise too much; plan solve keeps a margin"
        )
    return points, replace(prepared, notes=tuple(notes))


def kernels_of_trace(path: Path) -> Iteration:
    """The iteration that a profiler's trace repeats.

    Raises:
        PlanError: It cannot be read, or nothing repeats.
    """
    try:
        return iteration_of(read_trace(path))
    except PlanError as error:
        raise PlanError(str(error) if path.name in str(error) else f"{path.name}: {error}") from error


def prepare(ask: PlanAsk) -> Prepared:
    """Read the table, and find what switches cost.

    Raises:
        PlanError: The table or the passes cannot be read.
    """
    read = read_table(ask.table)
    table = read.table if ask.passes is None else replace(read.table, passes=_passes(ask.passes, read))
    table, compared = _without_whole_step(table)
    smooth = smoothed(table) if ask.is_smooth else None
    switching, notes = _switching(ask, table)
    caps, swept = ((), Swept(())) if ask.sweep is None else caps_to_compare(ask.sweep)
    rejected = () if swept.in_words is None else (swept.in_words,)
    return Prepared(
        table if smooth is None else smooth.table,
        switching,
        caps,
        smooth,
        (*read.notes, *compared, *rejected, *notes),
        ask.latencies is not None,
    )


def _without_whole_step(table: PlanTable) -> tuple[PlanTable, tuple[str, ...]]:
    """A table whose whole step was measured, too: a plan is made of its phases, and what they leave of the step is told."""
    whole = table.whole
    if whole is None or whole.passes:
        return table, ()
    time, energy = table.baseline_seconds / whole.baseline_seconds, table.baseline_joules / whole.baseline_joules
    told = f"the phases are {100 * time:.1f} % of the time and {100 * energy:.1f} % of the energy of the whole step with unlocked clocks"
    return replace(table, whole=None), (f"{told}; ratios are over the phases",)


def _switching(ask: PlanAsk, table: PlanTable) -> tuple[Switching, tuple[str, ...]]:
    """Cost of switches as given, else as assumed of the board; with what was assumed."""
    notes = []
    board = ask.gpu or ""
    targets: tuple[tuple[ClockPair, Latency], ...] = ()
    if ask.latencies is not None:
        latency, memory, targets = _measured(ask)
    elif ask.latency_s is not None:
        latency = Latency.exactly(ask.latency_s)
        memory = None if ask.memory_latency_s is None else Latency.exactly(ask.memory_latency_s)
    else:
        latency = assumed_latency(board)
        memory = assumed_latency(board, "memory") if ask.memory_latency_s is None else Latency.exactly(ask.memory_latency_s)
        notes.append(
            f"nobody gave --latency: {1000 * latency.value_s:g} ms ({1000 * latency.low_s:g} to {1000 * latency.high_s:g}) was taken, {latency.source}"
        )
    watts = ask.stall_watts
    if watts is None:
        watts = _STALL_SHARE * table.baseline_watts
        if latency.value_s > 0:
            notes.append(f"nobody gave --stall-watts: half of the mean power was taken, {watts:.0f} W")
    return Switching(latency, watts, memory, targets, ask.effect), tuple(notes)


def _measured(ask: PlanAsk) -> tuple[Latency, Latency | None, tuple[tuple[ClockPair, Latency], ...]]:
    """Latencies of a file, of the board that was asked for."""
    if ask.latency_s is not None or ask.memory_latency_s is not None:
        raise PlanError("--latencies and --latency are two answers to one question: give one")
    assert ask.latencies is not None
    file = read_latencies(ask.latencies)
    if ask.gpu is not None and ask.gpu not in (file.board.uuid, file.board.model):
        raise PlanError(f"{ask.latencies.name} holds latencies of {file.board.model} ({file.board.uuid}), the plan is for {ask.gpu}")
    return latencies_of(file)


def _passes(text: str, read: ReadTable) -> tuple[str, ...]:
    """Pass of each invocation out of "forward=0-13,backward=14-45", rows of the table from 0."""
    by_row: dict[int, str] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([^=\s]+)\s*=\s*(\d+)(?:\s*-\s*(\d+))?\s*", part)
        if found is None:
            raise PlanError(f"--passes: cannot read {part!r}; write forward=0-13,backward=14-45, rows of the table from 0")
        first, last = int(found.group(2)), int(found.group(3) or found.group(2))
        if last < first or last >= len(read.kernels):
            raise PlanError(f"--passes: there are no rows {first} to {last}; the table has rows 0 to {len(read.kernels) - 1}")
        by_row.update(dict.fromkeys(range(first, last + 1), found.group(1)))
    missing = [row for row in range(len(read.kernels)) if row not in by_row]
    if missing:
        raise PlanError(f"--passes: row {missing[0]} ({read.kernels[missing[0]][0]}) is in no pass; every row must be")
    return tuple(by_row[int(row)] for row in read.table.sequence)


def keep_plan(answer: PlanAnswer, ask: PlanAsk, path: Path) -> None:
    """Write a plan to a file, bound to the board that was named.

    Raises:
        OutputError: The file cannot be written.
    """
    write_plan(file_of(answer, ask), path)


def file_of(answer: PlanAnswer, ask: PlanAsk) -> PlanFile:
    """A plan as it is kept."""
    plan, table, switching = answer.plan, answer.prepared.table, answer.prepared.switching
    is_uuid = ask.gpu is not None and ask.gpu.upper().startswith("GPU-")
    pairs, segments = segments_of(plan.pairs)
    names = [table.names[row] for row in table.sequence]
    time, energy = (
        ((plan.time_ratio,) * 3, (plan.energy_ratio,) * 3)
        if answer.judged is None
        else (answer.judged.time_ratio, answer.judged.energy_ratio)
    )
    latency = switching.latency
    return PlanFile(
        board=BoundTo(ask.gpu if is_uuid else None, None if is_uuid else ask.gpu, ask.driver),
        sequence_hash=sequence_hash(names),
        invocations=int(table.sequence.size),
        slowdown=plan.slowdown,
        latency=UsedLatency(
            latency.low_s,
            latency.value_s,
            latency.high_s,
            latency.source,
            switching.stall_watts,
            switching.effect,
            answer.prepared.is_measured,
        ),
        kind=plan.kind,
        pairs=pairs,
        segments=segments,
        cap_watts=plan.way.cap_watts,
        time_ratio=Ratio(*time),
        energy_ratio=Ratio(*energy),
        switches=plan.switches,
        phases=phases_of([names, table.passes], plan.pairs),
        sequence=names if len(names) <= _MOST_PHASES else [],
        without_switches=_without_switches(plan),
    )


def phases_of(namings: Iterable[Sequence[str]], clocks: Sequence[ClockPair]) -> dict[str, int]:
    """Index of the pair by name, for names that always have the same one."""
    distinct = list(dict.fromkeys(clocks))
    found: dict[str, set[int]] = {}
    for names in namings:
        for name, pair in zip(names, clocks, strict=False):
            found.setdefault(name, set()).add(distinct.index(pair))
    held = {name: indices.pop() for name, indices in found.items() if len(indices) == 1}
    return held if len(held) <= _MOST_PHASES else {}


def _without_switches(plan: Plan) -> WithoutSwitches | None:
    ways = [way for way in plan.others if way.switches == 0]
    if not ways:
        return None
    way = min(ways, key=lambda one: one.score(plan.objective))
    pair = way.pairs[0] if way.pairs else UNLOCKED
    return WithoutSwitches(way.kind, pair.sm_mhz, pair.mem_mhz, way.cap_watts, way.time_ratio, way.energy_ratio)
