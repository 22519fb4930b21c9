"""In which order pairs of clocks are measured, what their stages are called in the journal, and which pairs are the best so far. Pure."""

import random
import statistics
from collections.abc import Sequence

from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.plan_files.table_csv import WHOLE
from carbonreport.workflows.plan_pairs import written
from carbonreport.workflows.plan_stage import Stage

_BETWEEN = 4  # stages between two with unlocked clocks


def stage_keys(name: str, order: Sequence[ClockPair]) -> tuple[str, ...]:
    """What stages are called in the journal: unlocked clocks are those of one order alone, so that they are measured again beside pairs that are added."""
    of_order = sequence_hash(written(pair) for pair in order)[:12]
    counts: dict[ClockPair, int] = {}
    keys = []
    for pair in order:
        number = counts[pair] = counts.get(pair, -1) + 1
        keys.append(f"{name}:{written(pair)}:{number}" + (f":{of_order}" if pair == UNLOCKED else ""))
    return tuple(keys)


def stage_order(pairs: Sequence[ClockPair], repeats: int, seed: int) -> tuple[ClockPair, ...]:
    """A pair of each stage: each repeat tries every pair once in an order of its own; unlocked clocks first, last and between."""
    shuffle = random.Random(seed).shuffle
    order: list[ClockPair] = []
    for _ in range(repeats):
        block = [pair for pair in dict.fromkeys(pairs) if pair != UNLOCKED]
        shuffle(block)
        for i in range(0, max(len(block), 1), _BETWEEN):
            order += [UNLOCKED, *block[i : i + _BETWEEN]]
    return (*order, UNLOCKED)


def best_pairs(stages: Sequence[tuple[ClockPair, Stage]], slowdown: float) -> tuple[ClockPair, ...]:
    """Pairs of least energy within a slowdown: of the whole step, and of each phase."""
    costs: dict[str, dict[ClockPair, tuple[float, float]]] = {}
    grouped: dict[str, dict[ClockPair, list[tuple[float, float]]]] = {}
    for pair, stage in stages:
        rows = [(WHOLE, stage.seconds, stage.joules), *((p.name, p.seconds, p.joules) for p in stage.phases)]
        for name, seconds, joules in rows:
            grouped.setdefault(name, {}).setdefault(pair, []).append((seconds, joules))
    for name, by_pair in grouped.items():
        costs[name] = {pair: (statistics.fmean(s for s, _ in some), statistics.fmean(j for _, j in some)) for pair, some in by_pair.items()}
    best = []
    for by_cost in costs.values():
        if UNLOCKED in by_cost:
            most_s = by_cost[UNLOCKED][0] * (1 + slowdown)
            best.append(min((pair for pair, (s, _) in by_cost.items() if s <= most_s), key=lambda pair, c=by_cost: c[pair][1]))  # type: ignore[misc]
    return tuple(dict.fromkeys(best))
