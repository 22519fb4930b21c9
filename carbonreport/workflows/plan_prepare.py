"""What a plan is made from: the table, what switches cost, and caps of the same work; with what was guessed."""

import re
from dataclasses import replace

from carbonreport.plan.smooth import smoothed
from carbonreport.plan.switching import Latency, Switching
from carbonreport.plan.table import ClockPair, PlanError, PlanTable
from carbonreport.plan_files.table_csv import ReadTable, read_table
from carbonreport.switch_latency import assumed_latency
from carbonreport.workflows.caps import Swept
from carbonreport.workflows.plan_ask import PlanAsk, Prepared
from carbonreport.workflows.plan_latency_file import latencies_of, read_latencies
from carbonreport.workflows.plan_sweep import caps_to_compare

_STALL_SHARE = 0.5  # of the mean power, where nobody measured what a board draws while it waits for its clocks


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
