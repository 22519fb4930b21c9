"""A plan measured in turns with unlocked clocks: only what this shows is called a saving."""

import math
import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

import msgspec

from carbonreport.control.hooks.follow import Follow, rows
from carbonreport.control.hooks.switcher import Switcher
from carbonreport.errors import CarbonreportError
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.student import t_quantile
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError
from carbonreport.plan_file import BoardNow, BoundTo, PlanFile, Ratio, Validated, mismatch
from carbonreport.render.digits import duration
from carbonreport.workflows.plan_apply import notes_of
from carbonreport.workflows.plan_bench import Bench
from carbonreport.workflows.plan_chosen import chosen
from carbonreport.workflows.plan_pairs import Turn
from carbonreport.workflows.plan_spans import Enter
from carbonreport.workflows.plan_stage import Stage

_ENDS = 0.95  # probability below the upper end of a 90 % interval
_LEAST_PAIRS = 2
_NOT_COMPARED = "the order of its phases could not be compared with the plan's: nobody knows whether this is the work that was planned for"
_TROUBLE = ("plan-stopped", "plan-paused")
_WHOLE_STEP = ["iteration"]  # the sequence of a table that has the whole step alone
FollowWith = Callable[[Follow], AbstractContextManager[tuple[Enter, Switcher]]]


@dataclass(slots=True)
class Validation:
    """A validation as it goes on.

    Attributes:
        plan: What was planned.
        board: Where it is measured.
        bench: Runs steps.
        turn: Turns clocks.
        follow_with: Follows phases while a stage lasts.
        say: Takes a line of progress.
        why_not_followed: Why phases cannot be followed here; "" where they can.
    """

    plan: PlanFile
    board: BoardNow
    bench: Bench
    turn: Turn
    follow_with: FollowWith
    say: Callable[[str], None]
    why_not_followed: str = ""
    _pairs: list[tuple[Stage, Stage]] = field(default_factory=list)

    def run(self, pairs: int = 6, seconds: float = 3.0, settle_s: float = 2.0) -> Validated:
        """Measure plan and unlocked clocks in turns; which of them comes first alternates.

        Raises:
            PlanError: The plan is of other work, cannot be followed here, or sets no clocks.
            CarbonreportError: A stage says nothing, or clocks are refused.
        """
        if pairs < _LEAST_PAIRS:
            raise PlanError(f"{pairs} pairs have no interval; measure at least {_LEAST_PAIRS}")
        follow = checked(self.plan, self.board, self.bench.sequence(), self.why_not_followed)
        is_known = is_order_known(self.plan, self.bench.sequence())
        if not is_known:
            self.say(_NOT_COMPARED)
        for number in range(pairs):
            both: dict[bool, Stage] = {}
            for is_plan in (True, False) if number % 2 == 0 else (False, True):
                left = 2 * (pairs - number) - len(both) - 1
                self.say(
                    f"{'plan' if is_plan else 'unlocked'}; {left} more after it, about {duration((left + 1) * (seconds + settle_s))} left"
                )
                both[is_plan] = self._stage(follow if is_plan else None, seconds, settle_s, is_plan=is_plan)
            self._pairs.append((both[True], both[False]))
        self.turn(UNLOCKED)
        return validated(self._pairs, self.board, is_order_known=is_known)

    def _stage(self, follow: Follow | None, seconds: float, settle_s: float, *, is_plan: bool) -> Stage:
        if not is_plan:
            self.turn(UNLOCKED)
            return self.bench.stage(seconds, settle_s)
        if follow is None:
            self.turn(ClockPair(*self.plan.pairs[0]))
            return self.bench.stage(seconds, settle_s)
        with self.follow_with(follow) as (enter, switcher):
            stage = self.bench.stage(seconds, settle_s, enter)
        trouble = [note.text for note in notes_of(switcher, self.plan) if note.slug in _TROUBLE]
        if trouble:
            raise CarbonreportError(f"the plan was not followed: {trouble[0]}")
        steps = switcher.entered / sum(1 for name in self.bench.sequence() if follow.name_of(name) is not None)
        return replace(stage, requests=switcher.requests / max(steps - bool(follow.sequence), 1.0))  # the first one only shows its order


def checked(plan: PlanFile, board: BoardNow, sequence: Sequence[str], why_not_followed: str = "") -> Follow | None:
    """The phases to follow, or None for one pair all along.

    Raises:
        PlanError: The plan is of another board or other work, cannot be followed here, or sets no clocks.
    """
    if plan.kind in ("none", "cap"):
        raise PlanError(
            "the plan leaves the clocks alone: there is nothing to validate"
            if plan.kind == "none"
            else "the plan is a power cap: `carbonreport sweep` measures it anew"
        )
    why = mismatch(plan, board, sequence_hash(_in_rows(plan, sequence)) if is_order_known(plan, sequence) else None)
    taken = chosen(plan, why_not_followed)
    why = why or taken.why_not
    if taken.follow is not None and not any(taken.follow.name_of(name) for name in sequence):
        why = why or f"the step marks none of the phases of the plan ({', '.join(list(taken.follow.pairs)[:4])})"
    if why:
        raise PlanError(f"{why}; nothing was measured")
    return taken.follow


def is_order_known(plan: PlanFile, sequence: Sequence[str]) -> bool:
    """Whether the phases of a step can be compared with those of a plan."""
    return bool(plan.sequence and sequence) and plan.sequence != _WHOLE_STEP


def _in_rows(plan: PlanFile, sequence: Sequence[str]) -> list[str]:
    """The phases of a step by the rows of the plan: the later phases of a row belong to its first."""
    first, members = rows(plan.sequence)
    named = dict(zip(first, plan.sequence, strict=True))
    return [named.get(name, name) for name in sequence if name not in members]


def validated(pairs: Sequence[tuple[Stage, Stage]], board: BoardNow, *, is_order_known: bool) -> Validated:
    """What stages under the plan and their neighbours with unlocked clocks say."""
    time = paired_ratio([math.log(plan.seconds / free.seconds) for plan, free in pairs])
    energy = paired_ratio([math.log(plan.joules / free.joules) for plan, free in pairs])
    requests = statistics.fmean(plan.requests for plan, _ in pairs)
    return Validated(len(pairs), time, energy, BoundTo(board.uuid, board.model, board.driver), requests, is_order_known)


def paired_ratio(logs: Sequence[float]) -> Ratio:
    """Mean ratio of pairs with a 90 % interval (Student's t)."""
    mean = statistics.fmean(logs)
    half = t_quantile(_ENDS, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def verdict(found: Validated, plan: PlanFile) -> str:
    """What was seen, in a sentence; a saving only where the whole interval is one."""
    time, energy = (_percent(ratio) for ratio in (found.time_ratio, found.energy_ratio))
    begin = f"measured {found.pairs} times in turns with unlocked clocks: {energy} of energy, {time} of time (90 %), {found.requests:.1f} changes a step"
    promised = f"planned was {100 * (plan.energy_ratio.value - 1):+.2f} % of energy, {100 * (plan.time_ratio.value - 1):+.2f} % of time"
    end = f"; but {_NOT_COMPARED}." if found.is_order_known is False else "."
    if found.energy_ratio.high >= 1:
        return f"No saving was seen: {begin}; {promised}{end}"
    late = plan.slowdown is not None and found.time_ratio.low > 1 + plan.slowdown
    work = "" if found.is_order_known is not False else " of what ran"
    return f"A saving{work}{', but too slow' if late else ''}: {begin}; {promised}{end}"


def _percent(ratio: Ratio) -> str:
    value, low, high = (100 * (r - 1) for r in (ratio.value, ratio.low, ratio.high))
    return f"{value:+.2f} % [{low:+.2f}, {high:+.2f}]"


def with_validation(plan: PlanFile, found: Validated) -> PlanFile:
    """The plan with what was measured of it."""
    return msgspec.structs.replace(plan, validated=found)
