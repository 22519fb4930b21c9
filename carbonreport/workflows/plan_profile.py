"""Time and energy of a step and its phases at each pair of clocks: stages of some seconds in random order, coarse first, finer where it pays."""

import csv
import io
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from carbonreport.control.controller import BoardState
from carbonreport.control.hooks.follow import TOGETHER
from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.plan_files.table_csv import WHOLE
from carbonreport.render.digits import duration
from carbonreport.workflows.plan_bench import Bench
from carbonreport.workflows.plan_groups import Group, groups_of
from carbonreport.workflows.plan_journal import StageJournal
from carbonreport.workflows.plan_pairs import EVERY, finer, written
from carbonreport.workflows.plan_stage import Stage

_BETWEEN = 4  # stages between two with unlocked clocks
_TITLES = ("kernel", "pass", "position", "count", "sm_mhz", "mem_mhz", "seconds", "joules", "joules_sd")

Turn = Callable[[ClockPair], None]


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """What is measured.

    Attributes:
        pairs: Pairs of clocks beside UNLOCKED, which is always measured.
        repeats: How often each.
        seconds: Of a stage. [s]
        settle_s: After a change of clocks, left out. [s]
        seed: Of the order.
        slowdown: Share of time that may be lost at the pairs around which finer ones are measured.
        state: The board, for finer pairs; None for the given pairs alone.
        every: Every so many core clocks of the menu are among the pairs.
    """

    pairs: tuple[ClockPair, ...]
    repeats: int = 2
    seconds: float = 3.0
    settle_s: float = 2.0
    seed: int = 0
    slowdown: float = 0.05
    state: BoardState | None = None
    every: int = EVERY

    def __post_init__(self) -> None:
        if self.repeats < 1 or not self.seconds > 0 or not self.settle_s >= 0:
            raise CarbonreportError(f"{self.repeats} repeats of {self.seconds:g} s after {self.settle_s:g} s are nothing to measure")


@dataclass(frozen=True, slots=True)
class Profiled:
    """All stages.

    Attributes:
        sequence: Phases of one step in their order.
        stages: Pair and stage, in the order of measuring.
    """

    sequence: tuple[str, ...]
    stages: tuple[tuple[ClockPair, Stage], ...]

    def of(self, pair: ClockPair) -> list[Stage]:
        """Stages of one pair."""
        return [stage for one, stage in self.stages if one == pair]

    @property
    def pairs(self) -> tuple[ClockPair, ...]:
        """Pairs that were measured, UNLOCKED first."""
        return tuple(dict.fromkeys([UNLOCKED, *(pair for pair, _ in self.stages)]))

    @property
    def groups(self) -> tuple[Group, ...]:
        """Phases that can be told apart; nothing where they cannot."""
        return groups_of(self.sequence, [stage for _, stage in self.stages])

    def told(self) -> str:
        """Which phases were put together, or why there are none, in a sentence; "" where each is told."""
        merged = [group for group in self.groups if len(group.members) > 1]
        if merged:
            return "; ".join(
                f"the energies of {' and '.join(group.members)} cannot be told apart: they are one row, {group.name}" for group in merged
            )
        if self.sequence and not self.groups:
            return "the energies of the phases cannot be told apart: the table has the whole step alone, and a plan will be one pair; longer stages may tell them"
        return ""

    def notes(self) -> tuple[str, ...]:
        """What the records said, each once."""
        return tuple(dict.fromkeys(f"{slug}: {text}" for _, stage in self.stages for slug, text in stage.notes))


@dataclass(slots=True)
class Profile:
    """A profile as it goes on.

    Attributes:
        plan: What is measured.
        bench: Runs steps.
        turn: Turns clocks.
        journal: Finished stages.
        say: Takes a line of progress.
    """

    plan: ProfilePlan
    bench: Bench
    turn: Turn
    journal: StageJournal
    say: Callable[[str], None]
    _stages: list[tuple[ClockPair, Stage]] = field(default_factory=list)
    _fresh: int = 0

    def run(self) -> Profiled:
        """Measure the coarse pairs, then finer ones around the best.

        Raises:
            CarbonreportError: A stage says nothing, or clocks are refused; finished stages are kept.
        """
        sequence = self.bench.sequence()
        self._round("coarse", self.plan.pairs, seed=self.plan.seed)
        if self.plan.state is not None:
            best = best_pairs(self._stages, self.plan.slowdown)
            more = finer(best, [pair for pair, _ in self._stages], self.plan.state, self.plan.every)
            if more:
                self.say(f"finer: {', '.join(written(pair) for pair in more)}")
                self._round("finer", more, seed=self.plan.seed + 1)
        self.turn(UNLOCKED)
        return Profiled(sequence, tuple(self._stages))

    def _round(self, name: str, pairs: Sequence[ClockPair], seed: int) -> None:
        order = stage_order(pairs, self.plan.repeats, seed)
        keys = stage_keys(name, order)
        self._stages += self._reused(name, keys)
        for left, (key, pair) in zip(range(len(order) - 1, -1, -1), zip(keys, order, strict=True), strict=True):
            self._stages.append((pair, self._one(key, pair, left)))

    def _reused(self, name: str, keys: Sequence[str]) -> list[tuple[ClockPair, Stage]]:
        """Say what is taken from the journal; with unlocked clocks as they were beside stages of before."""
        known = [key for key in keys if self.journal.get(key) is not None]
        before = [stage for key, stage in self.journal.under(f"{name}:{written(UNLOCKED)}:").items() if key not in keys]
        if known:
            self.say(
                f"{len(known)} of {len(keys)} stages from the journal, the last of {self.journal.last}; --out or its removal measures anew"
            )
        return [(UNLOCKED, stage) for stage in before]

    def _one(self, key: str, pair: ClockPair, left: int) -> Stage:
        held = self.journal.get(key)
        if held is not None:
            return held
        left_s = (left + 1) * (self.plan.seconds + self.plan.settle_s)
        self.say(f"{pair}; {left} more after it, about {duration(left_s)} left")
        try:
            self.turn(pair)
            stage = self.bench.stage(self.plan.seconds, self.plan.settle_s)
        except CarbonreportError as error:
            raise CarbonreportError(f"{error}; finished stages are kept: the same command goes on with them") from error
        self.journal.add(key, stage)
        return stage


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


def table_text(profiled: Profiled, facts: Mapping[str, str]) -> str:
    """The table that `plan solve` reads: one row a phase and stage, and one of the whole step."""
    out = io.StringIO()
    for name, value in facts.items():
        out.write(f"# {name}: {' '.join(value.split())}\n")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_TITLES)
    groups = profiled.groups
    for pair, stage in profiled.stages:
        clocks = ["auto" if mhz is None else mhz for mhz in (pair.sm_mhz, pair.mem_mhz)]
        for group in groups:
            seconds, joules, joules_sd = group.cost(stage)
            at = " ".join(str(position) for position in group.positions)
            cells = [f"{seconds:.9g}", f"{joules:.9g}", f"{joules_sd:.3g}"]
            first = group.name.partition(TOGETHER)[0]
            writer.writerow([group.name, first.partition("/")[0], at, len(group.positions), *clocks, *cells])
        writer.writerow([WHOLE, "", 0, 1, *clocks, f"{stage.seconds:.9g}", f"{stage.joules:.9g}", ""])
    return out.getvalue()


def write_table(profiled: Profiled, path: Path, facts: Mapping[str, str]) -> None:
    """Write the table. Raises OutputError."""
    try:
        path.write_text(table_text(profiled, facts), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
