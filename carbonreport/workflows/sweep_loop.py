"""A sweep inside a training loop: some steps under each cap, in an order of its own, runs of steps without a cap between them."""

from collections.abc import Callable, Sequence
from types import TracebackType

from carbonreport.errors import CarbonreportError
from carbonreport.measure.clock import boot_ns
from carbonreport.measure.knobs import Setting
from carbonreport.measure.tracer import Run
from carbonreport.model.notes import Note
from carbonreport.plan.cap_choice import CapRule
from carbonreport.units import seconds_from_nanoseconds
from carbonreport.workflows.sweep_counted import span_cost
from carbonreport.workflows.sweep_outcome import Outcome
from carbonreport.workflows.sweep_ranks import Together, wait_for_gpu
from carbonreport.workflows.sweep_stages import Stage, outcome_of
from carbonreport.workflows.sweep_trial import SPOILT

MOST_STAGES = 60  # a record keeps 64 paths of spans apart


class Step:
    """One step of the loop, as a `with` block; `items` may also be set inside it."""

    def __init__(self, sweep: "StepSweep", items: float | None) -> None:
        self._sweep, self.items = sweep, items

    def __enter__(self) -> "Step":
        self._sweep.begin_step()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None:
            self._sweep.end_step(self.items)


class StepSweep:
    """A sweep that goes on with the steps of a program; made by `sweep(…)`.

    Args:
        run: Measures; begins with the block.
        order: Cap of each stage, None for none. [W]
        steps: Steps of a stage that count.
        warmup: Steps before them that do not.
        rule: What is wanted.
        boards: Name and limit of each board. [W]
        setting: Makes what sets a cap.
        together: All ranks of the job.
        now_ns: Clock of the run. [ns]
        wait: Waits for launched work.
    """

    def __init__(
        self,
        run: Run,
        order: Sequence[float | None],
        *,
        steps: int,
        warmup: int,
        rule: CapRule,
        boards: tuple[tuple[str, float | None], ...],
        setting: Callable[[float], Setting],
        together: Together,
        now_ns: Callable[[], int] = boot_ns,
        wait: Callable[[], None] = wait_for_gpu,
    ) -> None:
        self._run, self._steps, self._warmup, self._rule = run, steps, warmup, rule
        self._boards, self._make_setting, self._together = boards, setting, together
        self._now_ns, self._wait = now_ns, wait
        if len(order) > MOST_STAGES:
            raise CarbonreportError(f"{len(order)} stages are more than a record tells apart ({MOST_STAGES}): fewer caps or repeats")
        self._stages = [Stage(f"stage {i}, {'no cap' if cap is None else f'{cap:g} W'}", cap) for i, cap in enumerate(order, 1)]
        self._at, self._step, self._began_ns = 0, 0, 0
        self._setting: Setting | None = None
        self._is_open = False
        self._notes: list[Note] = []
        self.result: Outcome | None = None

    @property
    def is_done(self) -> bool:
        """Whether every stage is over; further steps change nothing."""
        return self._at == len(self._stages)

    def step(self, *, items: float | None = None) -> Step:
        """One step.

        Args:
            items: Samples or tokens that it handles; given in every step, energy is compared by item.
        """
        if not self._is_open:
            raise RuntimeError("a step of a sweep belongs inside its block: with carbonreport.sweep(…) as sweep: …")
        return Step(self, items)

    def __enter__(self) -> "StepSweep":
        self._began_ns = self._now_ns()
        self._run.start()
        self._is_open = True
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._is_open = False
        if not self.is_done:
            self._end_span(self._stages[self._at])
        self._put_back()
        self._run.note(Note("sweep-inside", self._in_words()))
        self._run.stop()
        if kind is None and self.is_done:
            costs = None if self._run.path is None else span_cost(self._run.record)
            self.result = outcome_of(self._stages, costs, self._together, rule=self._rule, boards=self._boards, notes=self._notes)

    def _in_words(self) -> str:
        caps = sorted({stage.cap_watts for stage in self._stages if stage.cap_watts is not None})
        return f"boards were held at {', '.join(f'{watts:g}' for watts in caps)} W and at none, some steps each, and put back between"

    # Steps

    def begin_step(self) -> None:
        """The first step of a stage sets its cap, the first that counts begins its time."""
        if self.is_done:
            return
        stage = self._stages[self._at]
        if self._step == 0:
            self._change(stage.cap_watts)
            stage.changed_s = self._now_s()
        if self._step == self._warmup:
            self._wait()
            stage.begin_s = self._now_s()
            stage.span = self._run.span(stage.path)
            stage.span.__enter__()

    def end_step(self, items: float | None) -> None:
        """The last step of a stage ends its time; the last stage puts the boards back."""
        if self.is_done:
            return
        stage = self._stages[self._at]
        if self._step >= self._warmup:
            stage.is_counted &= items is not None
            stage.items += items if items is not None else 0.0
        self._step += 1
        if self._step == self._warmup + self._steps:
            self._wait()
            self._end_span(stage)
            self._step = 0
            self._at += 1
            if self.is_done:
                self._put_back()

    def _end_span(self, stage: Stage) -> None:
        if stage.span is not None:
            stage.span.__exit__(None, None, None)
            stage.span = None

    def _change(self, cap_watts: float | None) -> None:
        """Another cap on the boards of all ranks: none sets before all have put back, none goes on before all have set."""
        self._put_back()
        self._together.reduce(0.0, 0.0, 0.0)
        if cap_watts is not None:
            setting = self._make_setting(cap_watts)
            setting.start()
            self._setting = setting
        self._together.reduce(0.0, 0.0, 0.0)

    def _put_back(self) -> None:
        setting, self._setting = self._setting, None
        if setting is None:
            return
        _, notes = setting.stop()
        self._notes += notes
        if any(note.slug in SPOILT for note in notes):
            self._stages[self._at - (self._step == 0)].is_spoilt = True

    def _now_s(self) -> float:
        return seconds_from_nanoseconds(self._now_ns() - self._began_ns)
