"""A plan held on the boards of a run: which way of it can be followed here, refused before the first step where it belongs elsewhere."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from carbonreport.control.controller import ControlError
from carbonreport.control.hooks.switcher import Follow, Marks, Switcher
from carbonreport.measure.guard import guarded
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.plan.table import ClockPair
from carbonreport.plan_file import BoardNow, PlanFile, read_plan
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.knobs_dry import dry_run
from carbonreport.workflows.plan_owners import boards_now, refuse
from carbonreport.workflows.plan_pairs import envelope, knobs_of

MakeKnobs = Callable[[Knobs], RunKnobs]
FindBoards = Callable[[Mapping[str, str]], Sequence[BoardNow]]
_MOST_LATE = 0.1  # of the phases: more that were over before the helper looked, and the plan was hardly followed
_ABOVE_MHZ = 30  # two steps of a menu: a median this far above its lock was not locked


@dataclass(frozen=True, slots=True)
class Chosen:
    """The way of a plan that is taken.

    Attributes:
        knobs: What is set at the start, and what is in the journal.
        in_words: For record and statement.
        follow: Phases to follow, or None where one setting is held all along.
        notes: Why it is not the plan itself.
    """

    knobs: Knobs
    in_words: str
    follow: Follow | None = None
    notes: tuple[Note, ...] = ()


def chosen(plan: PlanFile, why_not_followed: str = "") -> Chosen:
    """The plan itself where it can be followed and its latency was measured, else the best way of its table that never switches.

    Args:
        plan: What was planned.
        why_not_followed: Why phases cannot be followed here; "" where they can.
    """
    if plan.kind == "cap":
        return Chosen(Knobs(power_cap_watts=plan.cap_watts), "a power cap")
    if plan.kind == "none":
        return Chosen(Knobs(), "", notes=(_nothing("the plan says to leave the clocks alone"),))
    pairs = [ClockPair(*pair) for pair in plan.pairs]
    if not plan.switches:
        return Chosen(knobs_of(pairs[0]), "one pair of clocks")
    why = why_not_followed or _why_not(plan)
    if why:
        return _without_switches(plan, why)
    follow = Follow({name: pairs[index] for name, index in plan.phases.items()}, tuple(plan.sequence))
    return Chosen(envelope(pairs), f"a clock plan of {plan.switches} changes a step", follow)


def _why_not(plan: PlanFile) -> str:
    if not plan.latency.is_measured:
        return f"its latency of {1000 * plan.latency.value_s:g} ms was not measured ({plan.latency.source})"
    if not plan.phases:
        return "no name of it always has the same clocks, so that no phase of a program can be followed"
    return ""


def _without_switches(plan: PlanFile, why: str) -> Chosen:
    other = plan.without_switches
    begin = f"the plan of {plan.switches} changes a step was not followed: {why}"
    if other is None or other.kind == "none":
        return Chosen(Knobs(), "", notes=(Note("plan-not-followed", f"{begin}; no clocks were set"),))
    knobs = replace(knobs_of(ClockPair(other.sm_mhz, other.mem_mhz)), power_cap_watts=other.cap_watts)
    return Chosen(
        knobs, "one setting", notes=(Note("plan-not-followed", f"{begin}; the best way without changes was held: {knobs.in_words()}"),)
    )


def _nothing(why: str) -> Note:
    return Note("plan-sets-nothing", f"nothing was set: {why}")


def request(turn: Callable[[Knobs], None], pair: ClockPair) -> None:
    """Ask for clocks from the helper thread, whose program must not see what a driver throws.

    Raises:
        ControlError: It did not work.
    """
    failed: list[Note] = []
    guarded("asking for clocks", lambda: turn(knobs_of(pair)), failed.append)
    if failed:
        raise ControlError(failed[0].text)


class PlanKnobs:
    """A plan as the knobs of a run (`carbonreport.measure.knobs.Setting`).

    Args:
        plan: What was planned.
        environ: Environment of the run.
        why_not_followed: Why phases cannot be followed here; "" where they can.
        marks: Marks in the GPU's work; None where work is done when its call returns.
        make_knobs: Makes the knobs that hold and take back.
        find_boards: The boards of the run.
        is_threaded: Whether a helper thread follows the phases; else the caller polls the switcher.
    """

    def __init__(
        self,
        plan: PlanFile,
        environ: Mapping[str, str],
        *,
        why_not_followed: str = "",
        marks: Marks | None = None,
        make_knobs: MakeKnobs | None = None,
        find_boards: FindBoards | None = None,
        is_threaded: bool = True,
    ) -> None:
        self._plan, self._environ, self._marks, self._is_threaded = plan, environ, marks, is_threaded
        self._chosen = chosen(plan, why_not_followed)
        self._make = make_knobs or (lambda knobs: RunKnobs(knobs, is_optional=False, environ=environ))
        self._find = find_boards or boards_now
        self._knobs: RunKnobs | None = None
        self.switcher: Switcher | None = None

    @property
    def follow(self) -> Follow | None:
        """Phases that are followed, or None."""
        return self._chosen.follow

    def start(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """See Setting."""
        boards = self._find(self._environ)
        refuse(self._plan, boards, self._environ)
        if self._chosen.knobs.is_nothing:
            return (), self._chosen.notes
        knobs = self._make(self._chosen.knobs)
        held, notes = knobs.start()
        self._knobs = knobs
        if self._chosen.follow is not None:
            self._unlock(knobs)
            self.switcher = Switcher(self._chosen.follow, self._marks, partial(request, knobs.turn))
            if self._is_threaded:
                self.switcher.start()
        return self._told(held), (*self._chosen.notes, *notes)

    def _unlock(self, knobs: RunKnobs) -> None:
        """Nothing is locked before a whole iteration was seen; what will be is in the journal, and this user may lock it."""
        try:
            knobs.turn(Knobs())
        except ControlError:
            self.stop()
            raise

    def stop(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """See Setting."""
        knobs, self._knobs = self._knobs, None
        if knobs is None:
            return (), ()
        if self.switcher is not None:
            self.switcher.stop()
        held, notes = knobs.stop()
        return self._told(held), (*notes, *self._notes(held))

    def abandon(self) -> None:
        """See Setting."""
        if self._knobs is not None:
            self._knobs.abandon()
            self._knobs = self.switcher = None

    def _told(self, held: Sequence[KnobsHeld]) -> tuple[KnobsHeld, ...]:
        count = None if self.switcher is None else self.switcher.requests
        return tuple(replace(one, plan=self._chosen.in_words, switches=count) for one in held)

    def _notes(self, held: Sequence[KnobsHeld]) -> list[Note]:
        notes = []
        if self.switcher is not None and self.switcher.why_stopped:
            notes.append(Note("plan-stopped", f"the clock plan was not followed to the end: {self.switcher.why_stopped}"))
        elif self.switcher is not None and not self.switcher.requests:
            names = ", ".join(list(self._plan.phases)[:4])
            notes.append(
                Note("plan-stopped", f"no whole iteration of the planned phases ({names}) was seen: their clocks were never asked for")
            )
        elif self.switcher is not None and self.switcher.passed_over > _MOST_LATE * self.switcher.entered:
            late = f"{self.switcher.passed_over:,} of {self.switcher.entered:,} phases"
            notes.append(
                Note("plan-late", f"{late} were over before their clocks could be asked for: one request takes longer than they do")
            )
        for one in held:
            for name, locked, seen in (
                ("core", one.requested.sm_clock_mhz, one.sm_clock_mhz),
                ("memory", one.requested.mem_clock_mhz, one.mem_clock_mhz),
            ):
                if locked is not None and seen is not None and seen > locked + _ABOVE_MHZ:
                    notes.append(
                        Note("clocks-not-held", f"{one.device} ran with a {name} clock of {seen:g} MHz, asked was at most {locked} MHz")
                    )
        return notes


def dry_run_plan(path: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Say what a plan would set on the boards of a command, and what is refused. Nothing is set.

    Raises:
        CarbonreportError: The plan cannot be read, or is refused.
    """
    plan = read_plan(path)
    refuse(plan, boards_now(environ), environ)
    taken = chosen(plan, "phases of another program cannot be seen from outside; use trace(plan=…) inside it")
    for note in taken.notes:
        say(f"{note.slug}: {note.text.replace('was held', 'would be held').replace('was set', 'would be set')}")
    if not taken.knobs.is_nothing:
        dry_run(taken.knobs, environ, say)
