"""A plan held on the boards of a run: refused before the first step where it belongs elsewhere, followed, taken back, and told."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from carbonreport.control.applied import TurnedByRank
from carbonreport.control.controller import ControlError
from carbonreport.control.hooks.follow import Follow
from carbonreport.control.hooks.switcher import Marks, Switcher, refusals
from carbonreport.measure.guard import guarded
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.plan.table import ClockPair
from carbonreport.plan_file import BoardNow, PlanFile, read_plan
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.knobs_dry import dry_run, said_as_would_be
from carbonreport.workflows.plan_chosen import chosen
from carbonreport.workflows.plan_owners import boards_now, refuse
from carbonreport.workflows.plan_pairs import knobs_of

MakeKnobs = Callable[[Knobs], RunKnobs]
FindBoards = Callable[[Mapping[str, str]], Sequence[BoardNow]]
_MOST_LATE = 0.1  # of the phases: more that were over before the helper looked, and the plan was hardly followed
_ABOVE_MHZ = 30  # two steps of a menu: a median this far above its lock was not locked


def kept(call: Callable[[], None]) -> str:
    """Call what follows a plan, whose errors the program must not see; why it failed, or ""."""
    refused: list[str] = []
    failed: list[Note] = []
    guarded("following the plan", lambda: refused.append(refusals(call)), failed.append)
    return failed[0].text if failed else refused[0]


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
        is_turned = self._chosen.follow is not None
        self._make = make_knobs or (lambda knobs: RunKnobs(knobs, is_optional=False, environ=environ, is_turned=is_turned))
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
        try:
            held, notes = knobs.start()
        except TurnedByRank as error:
            return (), (Note("plan-by-another-rank", f"{error} by this rank"),)
        self._knobs = knobs
        follow = self._chosen.follow
        if follow is not None:
            self._rest(knobs, follow.rest)
            self.switcher = Switcher(follow, self._marks, lambda pair: knobs.turn(knobs_of(pair)), guard=kept)
            if self._is_threaded:
                self.switcher.start()
        return self._told(held), (*self._chosen.notes, *notes)

    def _rest(self, knobs: RunKnobs, pair: ClockPair) -> None:
        """No phase has its clocks before a whole iteration was seen; what will be is in the journal, and this user may lock it."""
        try:
            knobs.turn(knobs_of(pair))
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
        told = [] if self.switcher is None else notes_of(self.switcher, self._plan)
        return self._told(held), (*notes, *told, *self._not_held(held))

    def abandon(self) -> None:
        """See Setting."""
        if self._knobs is not None:
            self._knobs.abandon()
            self._knobs = self.switcher = None

    def _told(self, held: Sequence[KnobsHeld]) -> tuple[KnobsHeld, ...]:
        count = None if self.switcher is None else self.switcher.requests
        return tuple(replace(one, plan=self._chosen.in_words, switches=count) for one in held)

    def _not_held(self, held: Sequence[KnobsHeld]) -> list[Note]:
        """Clocks above their lock, where one was locked all along."""
        if self._chosen.follow is not None:
            return []
        return [
            Note("clocks-not-held", f"{one.device} ran with a {name} clock of {seen:g} MHz, asked was at most {locked} MHz")
            for one in held
            for name, locked, seen in (
                ("core", one.requested.sm_clock_mhz, one.sm_clock_mhz),
                ("memory", one.requested.mem_clock_mhz, one.mem_clock_mhz),
            )
            if locked is not None and seen is not None and seen > locked + _ABOVE_MHZ
        ]


def notes_of(switcher: Switcher, plan: PlanFile) -> list[Note]:
    """What a reader must know of a plan that was followed."""
    order = switcher.order
    if switcher.why_stopped:
        return [Note("plan-stopped", f"the clock plan was not followed to the end, and clocks were unlocked then: {switcher.why_stopped}")]
    if not order.was_found or not switcher.requests:
        names = ", ".join((plan.sequence or list(plan.phases))[:4])
        begin = f"no whole iteration of the planned phases ({names}) was seen: their clocks were never asked for"
        return [Note("plan-stopped", f"{begin}; {order.first_other}" if order.first_other else begin)]
    notes = []
    if order.lost or switcher.given_up or order.outside >= max(len(plan.sequence), 1):
        left = f"the order was left {order.lost} times" if order.lost else "it began in another order"
        unreached = f", the GPU did not tell of a mark {switcher.given_up} times" if switcher.given_up else ""
        text = f"{order.outside:,} of {switcher.entered:,} phases ran outside the planned order, without its clocks: {left}{unreached}"
        notes.append(Note("plan-paused", text))
    if switcher.passed_over > _MOST_LATE * switcher.entered:
        late = f"{switcher.passed_over:,} of {switcher.entered:,} phases"
        notes.append(Note("plan-late", f"{late} were over before their clocks could be asked for: one request takes longer than they do"))
    return notes


def dry_run_plan(path: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Say what a plan would set on the boards of a command, and what is refused. Nothing is set.

    Raises:
        CarbonreportError: The plan cannot be read, or is refused.
    """
    plan = read_plan(path)
    with said_as_would_be():
        refuse(plan, boards_now(environ), environ)
    taken = chosen(plan, "phases of another program cannot be seen from outside; use trace(plan=…) inside it")
    for note in taken.notes:
        say(f"{note.slug}: {note.text.replace('was held', 'would be held').replace('was set', 'would be set')}")
    if not taken.knobs.is_nothing:
        dry_run(taken.knobs, environ, say)
