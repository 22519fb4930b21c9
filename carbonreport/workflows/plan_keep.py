"""A plan as it is kept in a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.result import Plan
from carbonreport.plan.switching import Switching
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.plan_file import BoundTo, PlanFile, Ratio, UsedLatency, WithoutSwitches, segments_of, write_plan
from carbonreport.workflows.plan_ask import PlanAnswer, PlanAsk

_MOST_PHASES = 256  # of one iteration: more are kernels, which no program marks


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
            answer.prepared.is_measured and not is_memory_guessed(plan, switching),
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


def is_memory_guessed(plan: Plan, switching: Switching) -> bool:
    """Whether a plan changes the memory clock, and nobody said how long that takes."""
    return switching.memory is None and plan.switches > 0 and len({pair.mem_mhz for pair in plan.pairs}) > 1


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
