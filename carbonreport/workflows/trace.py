"""`trace` and `traced`. Only the tracer itself is imported with them; what else a start needs, `begin` imports at the start."""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from carbonreport.measure.tracer import Run

if TYPE_CHECKING:
    from carbonreport.model.run import RunKind
    from carbonreport.workflows.begin import EdgeKind
    from carbonreport.workflows.plan_apply import PlanKnobs

F = TypeVar("F", bound=Callable[..., Any])


def trace(
    name: str,
    *,
    kind: "RunKind" = "training",
    out: str | Path = "runs",
    zone: str | None = None,
    pue: float | str | None = None,
    site: str | Path | None = None,
    interval_s: float = 1.0,
    edges: "EdgeKind" = "host",
    meters: tuple[str, ...] | None = None,
    share_gpus: bool = False,
    power_cap_watts: "float | Mapping[str | int, float] | None" = None,
    cap_is_optional: bool = False,
    plan: str | Path | None = None,
) -> Run:
    """A run to be measured, as a `with` block: `with trace("train-resnet", zone="DE") as run: …`.

    Args:
        name: What it is called in the statement; runs of one name become one row.
        kind: training, inference, evaluation, search, preliminary, failed or other.
        out: Folder of the record.
        zone: Grid zone such as "DE"; may also be given when rendering.
        pue: PUE as a number, a range "1.1:1.5" or a class such as "desktop"; may also be given when rendering.
        site: Site file; the working folder's carbonreport.toml is found by itself.
        interval_s: How often the meters are polled, 0.1 to 2. [s]
        edges: "host" stamps spans where they are called; "gpu" puts CUDA events of PyTorch into the caller's stream, so that spans
            end where their GPU work ends.
        meters: Names of the meters to use instead of all that work here, such as ("nvml",).
        share_gpus: Count of NVIDIA boards that others use too only the run's share of the use of their cores: an estimate, with a
            wide interval; else whole boards count and a note says that they are shared.
        power_cap_watts: Power cap of every NVIDIA board of the run, or by board: {0: 300, "GPU-1234": 250}. It is put back when the run ends,
            however it ends. [W]
        cap_is_optional: Go on without a cap that is refused, with a note, instead of raising.
        plan: File of a clock plan (`carbonreport plan solve -o`). Its clocks are held while the run lasts; one that changes clocks inside a step is
            followed through the run's spans, or through `run.follow(model, optimiser)`, where PyTorch has a GPU. They are unlocked when the run ends,
            however it ends.

    Raises:
        UnknownZone: No such grid zone.
        BadPue: Below 1, or not a PUE.
        SiteError: A wrong field in the site file.
        CarbonreportError: No name, no such kind, GPU edges without a GPU, or an interval that the driver's buffer does not bridge.
        PlanError: The plan cannot be read.
        ControlError: The cap or the plan is refused; raised when the block is entered, with nothing set.
        OutputError: The folder cannot be written; raised when the block is entered.
    """
    from carbonreport.workflows.begin import plan_run
    from carbonreport.workflows.place import PlaceOptions

    options = PlaceOptions(zone=zone, pue=None if pue is None else str(pue), site=None if site is None else str(site))
    clock_plan = None if plan is None else _clock_plan(plan)
    run_plan = plan_run(
        name,
        kind=kind,
        folder=Path(out),
        options=options,
        interval_s=interval_s,
        meters=meters,
        edges=edges,
        share_gpus=share_gpus,
        power_cap_watts=power_cap_watts,
        is_cap_optional=cap_is_optional,
        environ=os.environ,
        clock_plan=clock_plan,
    )
    if clock_plan is None:
        return Run(run_plan)
    from carbonreport.workflows.plan_run import PlannedRun

    return PlannedRun(run_plan, clock_plan)


def _clock_plan(path: str | Path) -> "PlanKnobs":
    from carbonreport.plan_file import read_plan
    from carbonreport.workflows.plan_apply import PlanKnobs
    from carbonreport.workflows.plan_run import gpu_marks

    read = read_plan(Path(path))
    marks, why_not = gpu_marks() if read.switches else (None, "")
    return PlanKnobs(read, os.environ, why_not_followed=why_not, marks=marks)


def traced(name: str | None = None, **options: Any) -> Callable[[F], F]:
    """Decorator: every call of the function is a run of its own. Options as for `trace`; the name is the function's by default."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def run_it(*args: Any, **kwargs: Any) -> Any:
            with trace(name or function.__name__, **options):
                return function(*args, **kwargs)

        return run_it  # type: ignore[return-value]

    return decorate
