"""Try a command under several power caps, choose one, and measure the choice anew before it is called a result."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import Note
from carbonreport.plan.cap_choice import CapRule, Confirmed, Verdict, choose, confirmed
from carbonreport.plan.cap_curve import CapCurve, Trial
from carbonreport.plan.caps import curve, digest_notes
from carbonreport.plan.sweep_order import sweep_order
from carbonreport.render.digits import duration
from carbonreport.workflows.sweep_journal import Journal, Tried
from carbonreport.workflows.sweep_outcome import Outcome, once_each
from carbonreport.workflows.sweep_trial import Ended

INTERRUPTED = 130  # 128 + SIGINT


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """What is tried.

    Attributes:
        caps: Caps. [W]
        repeats: How often each.
        rule: What is wanted.
        seed: Of the order.
        pairs: How often the choice is measured anew, beside a run without a cap.
        settle_s: Pause before each trial but the first. [s]
        is_dry: Whether nothing is set: the runs without a cap alone.
        boards: Name and limit of each board. [W]
    """

    caps: tuple[float, ...]
    repeats: int
    rule: CapRule
    seed: int = 0
    pairs: int = 2
    settle_s: float = 2.0
    is_dry: bool = False
    boards: tuple[tuple[str, float | None], ...] = ()


class Trials(Protocol):
    """Runs a program once."""

    def run(self, key: str, cap_watts: float | None) -> Ended:
        """One trial under a cap, or without one. Raises CarbonreportError where its figures say nothing."""


class Stopped(Exception):
    """A trial failed: the sweep ends with its exit code, and may go on later where a trial is finished."""

    def __init__(self, code: int, message: str, *, may_go_on: bool) -> None:
        super().__init__(message)
        self.code, self.message, self.may_go_on = code, message, may_go_on


@dataclass(slots=True)
class Sweep:
    """A sweep as it goes on.

    Attributes:
        plan: What is tried.
        trials: Runs the program.
        journal: Finished trials.
        say: Takes a line of progress.
        sleep: Waits. [s]
    """

    plan: SweepPlan
    trials: Trials
    journal: Journal
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    _left: int = 0
    _has_run: bool = False
    _seconds: list[float] = field(default_factory=list)

    def run(self) -> Outcome:
        """Try, choose, measure anew.

        Raises:
            Stopped: The program failed, or was interrupted.
            CarbonreportError: A cap is refused, or a trial says nothing.
        """
        plan = self.plan
        order = sweep_order(plan.caps, plan.repeats, plan.seed)
        if plan.is_dry:
            order = tuple(None for cap in order if cap is None)
        self._left = len(order) + (0 if plan.is_dry else 2 * plan.pairs)
        tried = [self._one(f"sweep:{i}", cap) for i, cap in enumerate(order)]
        found = curve(as_trials(tried), _limit(plan.boards))
        if plan.is_dry:
            dry = Note("sweep-dry-run", "nothing was set: the program ran without a cap alone, and no cap can be judged")
            verdict = Verdict(None, "nothing was set")
            return Outcome(found, plan.rule, verdict, None, plan.boards, _all_notes(tried, found, [dry]), _same_lines(tried))
        verdict = choose(found, plan.rule)
        notes, again = [], None
        if verdict.choice is not None:
            cap = verdict.choice.cap_watts
            if plan.pairs:
                again, more = self._again(cap, found)
                tried += more
            if again is None:
                notes.append(Note("sweep-unconfirmed", f"{cap:g} W was not measured anew: what it saves is a promise, not a result"))
            elif not again.holds:
                notes.append(Note("sweep-unconfirmed", f"{cap:g} W did not keep, measured anew, what the sweep had shown"))
        return Outcome(found, plan.rule, verdict, again, plan.boards, _all_notes(tried, found, notes), _same_lines(tried))

    def _again(self, cap: float, found: CapCurve) -> tuple[Confirmed, list[Tried]]:
        """New pairs of a cap and no cap; which of them comes first alternates."""
        self._say_unused(cap)
        tried: list[Tried] = []
        pairs = []
        for number in range(self.plan.pairs):
            both = {}
            for role in ("cap", "none") if number % 2 == 0 else ("none", "cap"):
                both[role] = self._one(f"confirm:{cap:g}:{number}:{role}", cap if role == "cap" else None)
            tried += both.values()
            pairs.append((_work(both["cap"], found), _work(both["none"], found)))
        return confirmed(pairs, (found.time_scatter, found.energy_scatter), self.plan.rule), tried

    def _say_unused(self, cap: float) -> None:
        """Another slowdown or eta may choose another cap than before; what was measured anew of that one says nothing of this."""
        caps = {key.split(":")[1] for key in self.journal.keys if key.startswith("confirm:")} - {f"{cap:g}"}
        if caps:
            named = " and ".join(f"{other} W" for other in sorted(caps, key=float))
            self.say(f"the choice is {cap:g} W now: what was measured anew of {named} is kept and not used")

    def _one(self, key: str, cap: float | None) -> Tried:
        """A trial: from the journal, or run now."""
        held = self.journal.get(key)
        self._left -= 1
        if held is not None and held.cap_watts == cap:
            self._seconds.append(held.seconds)
            return held
        try:
            if self._has_run:
                self.sleep(self.plan.settle_s)
            self._has_run = True
            self.say(self._progress(cap))
            ended = self.trials.run(key, cap)
        except KeyboardInterrupt as error:
            raise Stopped(INTERRUPTED, "interrupted", may_go_on=bool(self.journal.keys)) from error
        except CarbonreportError as error:
            if not self.journal.keys:
                raise
            raise CarbonreportError(f"{error}; finished trials are kept: the same command line goes on with them") from error
        if ended.tried is None:
            message = ended.message or f"the command ended with exit code {ended.code}"
            raise Stopped(ended.code, message, may_go_on=bool(self.journal.keys))
        self.journal.add(ended.tried)
        self._seconds.append(ended.tried.seconds)
        return ended.tried

    def _progress(self, cap: float | None) -> str:
        what = "no cap" if cap is None else f"cap {cap:g} W"
        if not self._seconds:
            return f"{what}; {self._left} more after it"
        left_s = (self._left + 1) * (statistics.fmean(self._seconds) + self.plan.settle_s)
        return f"{what}; {self._left} more after it, about {duration(left_s)} left"


def as_trials(tried: Sequence[Tried]) -> list[Trial]:
    """Trials in the order of the sweep; items count only where one span counted them in all of them."""
    is_counted = len({one.items_path for one in tried}) == 1
    return [Trial(i, one.cap_watts, one.seconds, one.joules, one.items if is_counted else None, one.digest) for i, one in enumerate(tried)]


def _work(one: Tried, found: CapCurve) -> tuple[float, float]:
    """Seconds and joules of the same work as in the curve."""
    if not found.is_per_item:
        return one.seconds, one.joules
    if one.items is None:
        raise CarbonreportError(
            "the program counted its items in every trial of the sweep, and does not now: the choice cannot be measured anew"
        )
    return one.seconds / one.items, one.joules / one.items


def _all_notes(tried: Sequence[Tried], found: CapCurve, notes: Sequence[Note]) -> tuple[Note, ...]:
    of_trials = once_each([note for one in tried for note in one.notes])
    return once_each([*found.notes, *digest_notes(as_trials(tried)), *notes, *of_trials])


def _same_lines(tried: Sequence[Tried]) -> int | None:
    """How many lines were the same in all trials; None where nobody looked, or they differ."""
    digests = {one.digest for one in tried}
    return tried[0].lines if len(digests) == 1 and None not in digests else None


def _limit(boards: Sequence[tuple[str, float | None]]) -> float | None:
    limits = [watts for _, watts in boards if watts is not None]
    return min(limits, default=None)
