"""Measures steps of the caller's own program on real boards: a record for the phases, the energy counter for the whole step."""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from carbonreport import nvml
from carbonreport.errors import CarbonreportError
from carbonreport.measure.clock import boot_ns
from carbonreport.measure.tracer import Run
from carbonreport.store import load
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.plan_clocks import watched_by_nvml
from carbonreport.workflows.plan_run import gpu_marks
from carbonreport.workflows.plan_spans import Enter, Recorded, StepSpans, nobody, silent
from carbonreport.workflows.plan_stage import STEP, Stage, phases_of
from carbonreport.workflows.plan_step import Step
from carbonreport.workflows.plan_ticks import TickWatch, beside_in_a_thread, nvml_joules, per_step

_WATCHED_EVERY_S = 0.2
_SYNC_EVERY_S = 0.25  # how far the program may run ahead of its GPU
_LEAST_STEPS = 3


class Bench(Protocol):
    """Runs steps and says what they took."""

    def sequence(self) -> tuple[str, ...]:
        """Names of the phases of one step in their order; a step is run for it."""

    def stage(self, seconds: float, settle_s: float, enter: Enter | None = None) -> Stage:
        """Steps for some seconds, after others that do not count.

        Args:
            seconds: How long, at least.
            settle_s: How long before that, at least.
            enter: Told each phase as it begins, where a plan follows phases.
        """


class TracedBench:
    """Steps under the tracer on the NVIDIA boards of this process.

    Args:
        step: One step.
        folder: Where the records go.
        environ: Environment of the run.
        devices: UUIDs of the boards.
    """

    def __init__(self, step: Step, folder: Path, environ: Mapping[str, str], devices: Sequence[str]) -> None:
        self._step, self._folder, self._environ, self._devices = step, folder, environ, devices
        self._marks, _ = gpu_marks()
        self._spans = StepSpans()
        self._sequence: tuple[str, ...] | None = None

    def sequence(self) -> tuple[str, ...]:
        """See Bench."""
        if self._sequence is None:
            recorded = Recorded()
            with self._spans.heard(recorded.span, recorded.enter):
                self._run_step()
            self._sync()
            self._sequence = tuple(recorded.names)
        return self._sequence

    def stage(self, seconds: float, settle_s: float, enter: Enter | None = None) -> Stage:
        """See Bench."""
        sequence = self.sequence()
        begin_s = time.monotonic()
        with self._spans.heard(silent, nobody, enter):
            while time.monotonic() - begin_s < settle_s:
                self._run_step()
                self._sync()
        binding = nvml.binding()
        nvml.start(binding)
        try:
            watch = TickWatch(self._devices, nvml_joules(binding), boot_ns)
            run = self._run()
            with ExitStack() as here:
                here.enter_context(run)
                achieved = here.enter_context(watched_by_nvml(self._devices, _WATCHED_EVERY_S))
                here.enter_context(beside_in_a_thread(watch.look))
                with self._spans.heard(run.span, run.enter, enter):
                    edges_ns = self._steps(run, seconds)
        finally:
            nvml.stop(binding)
        if run.path is None:
            raise CarbonreportError("another rank of this job measures the boards of this host: measure in one process alone")
        record, whole = load(run.path), per_step(watch.ticks, edges_ns)
        sm_mhz, mem_mhz = achieved.median_mhz(self._devices[0])
        phases, notes = phases_of(record, sequence)
        return Stage(whole.steps, whole.seconds, whole.joules, phases, sm_mhz, mem_mhz, notes=notes)

    def close(self) -> None:
        """Take away the hooks that a step has put."""
        self._spans.close()

    def _run(self) -> Run:
        return Run(
            plan_run(
                "plan stage",
                kind="search",
                folder=self._folder,
                options=PlaceOptions(zone=None, pue=None, site=None),
                interval_s=1.0,
                meters=("nvml",),
                environ=self._environ,
                edges="host" if self._marks is None else "gpu",
            )
        )

    def _run_step(self) -> None:
        self._step(self._spans)
        self._spans.end_step()

    def _steps(self, run: Run, seconds: float) -> list[int]:
        """Begins of the steps and the end of the last one, where the GPU was. [ns]"""
        marks: list[Any] = []
        begin_s = synced_s = time.monotonic()
        while len(marks) < _LEAST_STEPS or time.monotonic() - begin_s < seconds:
            marks.append(self._mark())
            with run.span(STEP):
                self._run_step()
            if time.monotonic() - synced_s > _SYNC_EVERY_S:
                self._sync()
                synced_s = time.monotonic()
        marks.append(self._mark())
        self._sync()
        if self._marks is not None:
            self._marks.align()
        return [self._reached(mark) for mark in marks]

    def _mark(self) -> Any:
        mark = None if self._marks is None else self._marks.mark()
        return boot_ns() if mark is None else mark

    def _reached(self, mark: Any) -> int:
        if isinstance(mark, int):
            return mark
        at_ns = self._marks.resolve(mark)
        if at_ns is None:
            raise CarbonreportError("the GPU did not reach a mark of a step that has ended; run the stage again")
        return int(at_ns)

    def _sync(self) -> None:
        """Wait for the GPU, where the program uses PyTorch."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
