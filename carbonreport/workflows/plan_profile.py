"""Time and energy of a step and its phases at each pair of clocks: stages of some seconds in random order, coarse first, finer where it pays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from carbonreport.control.controller import BoardState
from carbonreport.errors import CarbonreportError
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.render.digits import duration
from carbonreport.workflows.plan_bench import Bench
from carbonreport.workflows.plan_groups import Group, groups_of
from carbonreport.workflows.plan_journal import StageJournal
from carbonreport.workflows.plan_pairs import EVERY, Turn, finer, written
from carbonreport.workflows.plan_profile_order import best_pairs, stage_keys, stage_order
from carbonreport.workflows.plan_stage import Stage


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
