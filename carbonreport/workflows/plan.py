"""Planning clocks from a table or a trace: `carbonreport plan`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from carbonreport.plan.frontier import SLOWDOWNS, FrontierPoint, frontier
from carbonreport.plan.judge import judged
from carbonreport.plan.launches import Iteration, iteration_of
from carbonreport.plan.noise import noise_of
from carbonreport.plan.result import Plan
from carbonreport.plan.solver import solve
from carbonreport.plan.table import PlanError
from carbonreport.plan_files.trace import read_trace
from carbonreport.workflows.plan_ask import PlanAnswer, PlanAsk, Prepared
from carbonreport.workflows.plan_keep import is_memory_guessed
from carbonreport.workflows.plan_prepare import prepare


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
        return PlanAnswer(plan, None, prepared, (*prepared.notes, *_unjudged(prepared), *_guessed_memory(plan, prepared)))
    found = judged(table, slowdown, switching, aggregation=ask.aggregation, caps=caps)
    notes = [*prepared.notes]
    if not found.is_noise_known and found.plan.kind != "none" and not found.plan.way.is_whole:
        notes.append(
            "each cell was measured once, so nobody knows its noise: nothing was kept back for it, and the saving promises too much; measure the plan again"
        )
    return PlanAnswer(found.plan, found, prepared, (*notes, *_guessed_memory(found.plan, prepared)))


def _unjudged(prepared: Prepared) -> tuple[str, ...]:
    if noise_of(prepared.table) is None:
        return ()
    return ("nothing is kept back for the noise of the table, and what is promised is too much; measure the plan again",)


def _guessed_memory(plan: Plan, prepared: Prepared) -> tuple[str, ...]:
    if not is_memory_guessed(plan, prepared.switching):
        return ()
    taken = "a change of the memory clock was taken to be as fast as one of the cores"
    if not prepared.is_measured:
        return (f"nobody gave --memory-latency: {taken}",)
    return (
        f"no change of the memory clock alone was measured: {taken}, and the plan is not followed on a board; give plan latency such a target",
    )


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
    notes += dict.fromkeys(note for point in points for note in _guessed_memory(point.plan, prepared))
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
