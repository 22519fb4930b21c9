"""Writing the picture of a frontier to a file of its own."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from carbonreport.errors import OutputError
from carbonreport.plan.frontier import FrontierPoint
from carbonreport.plan.result import Plan
from carbonreport.plan.switching import Switching
from carbonreport.plan.table import Array, PlanError
from carbonreport.render.pictures_plan import FrontierNumbers
from carbonreport.render.plots_plan import frontier_picture

_LEAST_POINTS = 2


def write_frontier(points: Sequence[FrontierPoint], switching: Switching, path: Path) -> None:
    """Draw a frontier.

    Raises:
        PlanError: There is one slowdown alone.
        MissingExtra: matplotlib is not installed.
        OutputError: The file cannot be written.
    """
    if len(points) < _LEAST_POINTS:
        raise PlanError("--plot: one slowdown makes no picture; give two or more")
    svg = frontier_picture(numbers_of(points, switching)).svg
    try:
        path.write_text(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def numbers_of(points: Sequence[FrontierPoint], switching: Switching) -> FrontierNumbers:
    """What is drawn: the best plan, what it would be without the cost of switches, and one pair or a pair a pass."""
    allowed = np.array([100 * point.slowdown for point in points])
    lines: list[tuple[str, Array]] = [
        ("best plan, switches paid for", np.array([point.plan.way.energy_percent for point in points])),
        ("if switches cost nothing", np.array([point.free.way.energy_percent for point in points])),
    ]
    lines += [
        (name, values)
        for name, kind in (("one pair", "static"), ("a pair a pass", "pass"))
        for values in [_of(points, kind)]
        if not np.isnan(values).all()
    ]
    latency = switching.latency
    return FrontierNumbers(allowed, tuple(lines), f"{1000 * latency.value_s:g} ms each, {latency.source}")


def _of(points: Sequence[FrontierPoint], kind: str) -> Array:
    """Energy of the best plan of a kind; unlocked where there is none in time."""
    return np.array([_energy(point.plan, kind) for point in points])


def _energy(plan: Plan, kind: str) -> float:
    ways = [way.energy_percent for way in plan.others if way.kind in ("none", kind)]
    return min(ways) if any(way.kind == kind for way in plan.others) or kind == "static" else float("nan")
