"""A run that follows a clock plan through its spans, or through the hooks of a PyTorch model."""

from typing import Any

from carbonreport.errors import CarbonreportError
from carbonreport.measure.spans import Occurrence, SpanQueue
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.workflows.plan_apply import PlanKnobs


class PlannedRun(Run):
    """A run whose phases turn clocks: the spans of its steps, by the last words of their paths.

    Args:
        plan: Everything a run needs.
        knobs: The clock plan; the run's own knobs.
    """

    def __init__(self, plan: RunPlan, knobs: PlanKnobs) -> None:
        super().__init__(plan)
        self._clock_plan = knobs

    def enter(self, path: str) -> None:
        """See Run; the phase begins in the GPU's work that is launched from now on."""
        super().enter(path)
        switcher = self._clock_plan.switcher
        if switcher is not None:
            switcher.enter(path)

    def span(self, path: str, *, items: float | None = None) -> Occurrence:
        """See Run; a span whose name is a phase of the plan begins that phase."""
        return _Phase(self._clock_plan, self._queue, path, items)


class _Phase(Occurrence):
    """A span that begins a phase, and gives back to the one around it."""

    __slots__ = ("_knobs",)

    def __init__(self, knobs: PlanKnobs, recorder: SpanQueue, name: str, items: float | None) -> None:
        super().__init__(recorder, name, items)
        self._knobs = knobs

    def __enter__(self) -> Occurrence:
        found = super().__enter__()
        if self._knobs.switcher is not None:
            self._knobs.switcher.begin(self.path)
        return found

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if self._knobs.switcher is not None:
            self._knobs.switcher.leave(self.path, "" if self.parent is None else self.parent.path)


def gpu_marks() -> tuple[Any, str]:
    """Marks of PyTorch's CUDA events, and "" or why there are none."""
    from carbonreport.measure.torch_edges import create

    try:
        return create("following phases puts CUDA events into the work of PyTorch", "a plan of one setting needs none"), ""
    except CarbonreportError as error:
        return None, str(error)
