"""Begin a run: everything that can be wrong is found here, before the first step."""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from carbonreport import __version__
from carbonreport.errors import CarbonreportError
from carbonreport.measure.claim import runtime_folder
from carbonreport.measure.host import environment, host_id, host_time_zone
from carbonreport.measure.meter import Meter
from carbonreport.measure.ranks import rank_of
from carbonreport.measure.sampler import Ladder
from carbonreport.measure.tracer import RunPlan
from carbonreport.model.run import RUN_KINDS, RunKind, RunRecord
from carbonreport.plugins import load as load_plugin
from carbonreport.plugins import module as plugin_module
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of

if TYPE_CHECKING:
    from carbonreport.measure.edges import EdgeSource
    from carbonreport.measure.knobs import Setting
    from carbonreport.site import Site

EdgeKind = Literal["host", "gpu"]
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)

SHORTEST_INTERVAL_S = 0.1
LONGEST_INTERVAL_S = 2.0  # the driver's buffer holds 2.4 s, and a killed run may lose at most two


def plan_run(
    name: str,
    *,
    kind: RunKind,
    folder: Path,
    options: PlaceOptions,
    interval_s: float,
    meters: tuple[str, ...] | None,
    environ: Mapping[str, str],
    edges: EdgeKind = "host",
    share_gpus: bool = False,
    power_cap_watts: "float | Mapping[str | int, float] | str | None" = None,
    is_cap_optional: bool = False,
    clock_plan: "Setting | None" = None,
) -> RunPlan:
    """Check what the caller said and decide what to measure. Raises as `trace` does."""
    if name is None or not str(name).strip():  # out of a variable that nobody set
        raise CarbonreportError(f"a run needs a name, such as 'train-resnet'; got {name!r}")
    if kind not in RUN_KINDS:
        raise CarbonreportError(f"unknown kind {kind!r}: a run is one of {', '.join(RUN_KINDS)}")
    if not SHORTEST_INTERVAL_S <= interval_s <= LONGEST_INTERVAL_S:
        raise CarbonreportError(
            f"interval {interval_s:g} s is outside {SHORTEST_INTERVAL_S:g} to {LONGEST_INTERVAL_S:g} s: the driver keeps power samples for about 2.4 s, later ones would be lost"
        )
    if clock_plan is not None and power_cap_watts is not None:
        raise CarbonreportError("a power cap and a plan are two answers to one question: give one")
    site = site_of(options, environ, Path.cwd())
    return RunPlan(
        name=str(name),
        kind=kind,
        folder=folder,
        place=recording_place(options, site, environ, host_time_zone(environ)),
        host=host_id(),
        ladders=_ladders(meters, site, share_gpus=share_gpus),
        interval_s=interval_s,
        environment=environment(__version__),
        load=_load,
        rank=rank_of(environ, os.getppid()),
        locks=runtime_folder(environ),
        edges=_edges(edges),
        knobs=clock_plan or _knobs(power_cap_watts, environ, is_optional=is_cap_optional),
    )


def _ladders(meters: tuple[str, ...] | None, site: "Site | None", *, share_gpus: bool) -> list[Ladder]:
    """Processors by RAPL in powercap, else in perf events, else by a model; GPUs by NVML and by amdsmi. Named meters stand alone, each a ladder of one rung.

    The modules are imported here: an import in the sampler's thread beside a busy program takes seconds.
    """
    ladders = [[name] for name in meters] if meters is not None else [["rapl", "perf", "hostmodel"], ["nvml"], ["amd"]]
    for name in {name.partition("=")[0] for ladder in ladders for name in ladder}:
        plugin_module("meter", name)
    return [[(name.partition("=")[0], _creator(name, site, share_gpus=share_gpus)) for name in ladder] for ladder in ladders]


def _creator(name: str, site: "Site | None", *, share_gpus: bool) -> Callable[[], Meter]:
    """Creates a meter in the sampler's thread; "replay=FILE" gives it a path."""
    plug_in, _, path = name.partition("=")
    options = {"path": path} if path else {}
    if plug_in == "hostmodel" and site is not None and site.host_watts is not None:
        idle_watts, busy_watts = site.host_watts
        options |= {"idle_watts": str(idle_watts), "busy_watts": str(busy_watts)}
    if plug_in == "nvml" and share_gpus:
        options |= {"share": "by SM utilisation"}
    return lambda: load_plugin("meter", plug_in, options)


def _knobs(caps: "float | Mapping[str | int, float] | str | None", environ: Mapping[str, str], *, is_optional: bool) -> "Setting | None":
    """What is set on boards; imported only where something is."""
    if caps is None:
        return None
    if sys.platform != "linux":
        raise CarbonreportError("caps and clocks can be set on Linux alone; leave them out")
    from carbonreport.workflows.knobs import RunKnobs
    from carbonreport.workflows.knobs_asked import asked_caps

    return RunKnobs(asked_caps(caps), is_optional=is_optional, environ=environ)


def _edges(kind: EdgeKind) -> "EdgeSource | None":
    if kind not in EDGE_KINDS:
        raise CarbonreportError(f"unknown edges {kind!r}: a span's edges are one of {', '.join(EDGE_KINDS)}")
    if kind == "host":
        return None
    from carbonreport.measure.torch_edges import create

    return create()


def _load(path: Path) -> RunRecord:
    from carbonreport.store import load

    return load(path)
