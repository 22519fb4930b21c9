"""`carbonreport plan profile|validate` and their functions: boards, bench, journal and files put together."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from carbonreport.control.controller import BoardState, ControlDenied
from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.plan_file import BoardNow, PlanFile, Validated, read_plan, write_plan
from carbonreport.workflows.plan_bench import TracedBench
from carbonreport.workflows.plan_hold import followed, held, refuse_pairs, states_here
from carbonreport.workflows.plan_journal import Identity, opened_stages
from carbonreport.workflows.plan_owners import boards_now, refuse, refuse_other_owners
from carbonreport.workflows.plan_pairs import Turn, coarse_grid, envelope
from carbonreport.workflows.plan_profile import Profile, Profiled, ProfilePlan
from carbonreport.workflows.plan_profile_table import write_table
from carbonreport.workflows.plan_run import gpu_marks
from carbonreport.workflows.plan_step import Step, arguments_of, refuse_no_span, source_of, step_of
from carbonreport.workflows.plan_validate import Validation, checked, with_validation

Say = Callable[[str], None]
PHASES_S, WHOLE_S = 18.0, 3.0  # of a stage: 16 s of samples tell short phases apart (combine/telling.py); a whole step needs none
JOURNAL, DRY_JOURNAL = "stages.jsonl", "stages-dry-run.jsonl"
NOTHING_SET = "no clock was set: the board's own clocks alone were measured"


@dataclass(frozen=True, slots=True)
class ProfileAsk:
    """What is asked of a profile.

    Attributes:
        pairs: Pairs of clocks; None for a coarse grid of the board's own, made finer around the best.
        every: Every so many core clocks in that grid.
        repeats: How often each.
        seconds: Of a stage; None: as long as the energies of phases take to be told, where there are any. [s]
        settle_s: After a change of clocks, left out. [s]
        seed: Of the order.
        slowdown: Share of time that may be lost at the pairs around which finer ones are measured.
        is_dry: Whether no clock is set.
    """

    pairs: tuple[ClockPair, ...] | None = None
    every: int = 4
    repeats: int = 2
    seconds: float | None = None
    settle_s: float = 2.0
    seed: int = 0
    slowdown: float = 0.05
    is_dry: bool = False


@dataclass(frozen=True, slots=True)
class ProfileAnswer:
    """A profile and where it was made.

    Attributes:
        profiled: All stages.
        board: The first board.
        is_set: Whether clocks were set.
        why_not: Why they were not, or "".
    """

    profiled: Profiled
    board: BoardNow
    is_set: bool
    why_not: str = ""


def plan_profile(
    step: Step | str,
    out: str | Path = "table.csv",
    ask: ProfileAsk | None = None,
    *,
    name: str | None = None,
    folder: str | Path = "plan",
    say: Say = lambda line: None,
    environ: Mapping[str, str] = os.environ,
) -> ProfileAnswer:
    """Time and energy of a step and its phases at pairs of clocks, written as the table that `carbonreport plan solve` reads.

    What was stopped goes on with the same call. Boards are unlocked at the end, however it ends.

    Args:
        step: Runs one step and marks its phases: `def step(span): with span("forward"): …`; or "module:function".
        out: The table.
        ask: What is measured.
        name: What the step is called in the journal; its own name by default.
        folder: Journal and records.
        say: Takes a line of progress.
        environ: Environment of the run.

    Raises:
        CarbonreportError: There is no board, a pair is none of its menu, another owner turns its clocks, or a stage says nothing.
    """
    wanted = ask or ProfileAsk()
    run_step, called = _named(step, name)
    states, board = states_here(environ), boards_now(environ)[0]
    devices = tuple(state.uuid for state in states)
    pairs = coarse_grid(states[0], wanted.every) if wanted.pairs is None else wanted.pairs
    refuse_pairs(pairs, states)
    with closing(TracedBench(run_step, Path(folder), environ, devices)) as bench:
        seconds = wanted.seconds or (PHASES_S if bench.sequence() else WHOLE_S)

        def profiled(turn: Turn, *, is_dry: bool) -> Profiled:
            plan = ProfilePlan(
                () if is_dry else pairs,
                wanted.repeats,
                seconds,
                wanted.settle_s,
                wanted.seed,
                wanted.slowdown,
                None if is_dry or wanted.pairs is not None else states[0],
                wanted.every,
            )
            code = (source_of(run_step), arguments_of(run_step))
            same = Identity(called, sequence_hash(bench.sequence()), devices, board.driver, is_dry, seconds, wanted.settle_s, *code)
            with opened_stages(Path(folder) / (DRY_JOURNAL if is_dry else JOURNAL), same) as journal:
                return Profile(plan, bench, turn, journal, say).run()

        why_not = "a dry run was asked for"
        found: Profiled | None = None
        if not wanted.is_dry:
            try:
                with held(_everything(pairs, states), devices, environ, say) as turn:
                    found = profiled(turn, is_dry=False)
            except ControlDenied as error:
                why_not = str(error)
        is_set = found is not None
        if found is None:
            say(f"{NOTHING_SET} ({why_not})")
            found = profiled(_turn_nothing, is_dry=True)
        facts = {"board": board.model, "uuid": board.uuid or "", "driver": board.driver or ""} | ({} if is_set else {"note": NOTHING_SET})
        write_table(found, Path(out), facts)
        return ProfileAnswer(found, board, is_set, "" if is_set else why_not)


def _everything(pairs: Sequence[ClockPair], states: Sequence[BoardState]) -> Knobs:
    """Finer pairs may lie above the coarse ones: the journal holds the top core clock."""
    top = [ClockPair(state.sm_clocks_mhz[0]) for state in states if state.sm_clocks_mhz and any(pair.sm_mhz for pair in pairs)]
    return envelope([*pairs, *top])


def _turn_nothing(pair: ClockPair) -> None:
    if pair != UNLOCKED:
        raise CarbonreportError(f"{pair} was asked for where no clock may be set")


def _named(step: Step | str, name: str | None) -> tuple[Step, str]:
    if isinstance(step, str):
        return step_of(step), name or step
    called = name or f"{getattr(step, '__module__', '')}:{getattr(step, '__qualname__', 'step')}"
    refuse_no_span(step, called)
    return step, called


def plan_validate(
    plan: str | Path,
    step: Step | str,
    *,
    pairs: int = 6,
    seconds: float = 3.0,
    settle_s: float = 2.0,
    folder: str | Path = "plan",
    say: Say = lambda line: None,
    environ: Mapping[str, str] = os.environ,
) -> tuple[PlanFile, Validated]:
    """Measure a plan in turns with unlocked clocks, and keep what was seen in its file.

    Raises:
        PlanError: The plan is of another board or other work, cannot be followed here, or sets no clocks.
        CarbonreportError: Clocks are refused, or a stage says nothing; the file stays as it was.
    """
    read = read_plan(Path(plan))
    run_step, _ = _named(step, None)
    boards = boards_now(environ)
    refuse(read, boards, environ)
    devices = tuple(board.uuid for board in boards if board.uuid is not None)
    refuse_other_owners(devices, environ)
    marks, why_not = gpu_marks() if read.switches else (None, "")
    with ExitStack() as here:
        bench = here.enter_context(closing(TracedBench(run_step, Path(folder), environ, devices)))
        follow = checked(read, boards[0], bench.sequence(), why_not)
        clocks = [ClockPair(*pair) for pair in read.pairs] + ([] if follow is None else [follow.rest])
        turn = here.enter_context(held(envelope(clocks), devices, environ, say))
        validation = Validation(read, boards[0], bench, turn, lambda follow: followed(follow, turn, marks), say, why_not)
        found = validation.run(pairs, seconds, settle_s)
    kept = with_validation(read, found)
    write_plan(kept, Path(plan))
    return kept, found
