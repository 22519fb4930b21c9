"""The frontier: the best plan of each kind for each slowdown that is allowed, with the cost of switches and without. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from carbonreport.plan.result import Aggregation, Cap, Plan
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import FREE_SWITCHING, Switching
from carbonreport.plan.table import PlanError, PlanTable

SLOWDOWNS = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3)


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """Plans for one slowdown.

    Attributes:
        slowdown: Share by which an iteration may be longer.
        plan: The best plan with the cost of switches, and the best of each kind beside it.
        free: What it would be if switches cost nothing; the plan itself where they do.
    """

    slowdown: float
    plan: Plan
    free: Plan


def frontier(
    table: PlanTable,
    switching: Switching,
    slowdowns: Sequence[float] = SLOWDOWNS,
    *,
    aggregation: Aggregation = "global",
    caps: Sequence[Cap] = (),
) -> tuple[FrontierPoint, ...]:
    """Plans for rising slowdowns that a plan reaches; one for a shorter time is kept where the search found nothing better for a longer one.

    Raises:
        PlanError: No slowdown, or none that any plan reaches.
    """
    if not slowdowns:
        raise PlanError("a frontier needs one slowdown at least")
    is_free = switching.latency.value_s == 0 and switching.memory is None and not switching.targets
    points: list[FrontierPoint] = []
    refused: PlanError | None = None
    for slowdown in sorted(set(slowdowns)):
        try:
            plan = solve(table, slowdown, switching, aggregation=aggregation, caps=caps)
            free = plan if is_free else solve(table, slowdown, FREE_SWITCHING, aggregation=aggregation, caps=caps)
        except PlanError as error:
            refused = error
            continue
        if points:
            plan, free = kept(points[-1].plan, plan), kept(points[-1].free, free)
        points.append(FrontierPoint(slowdown, plan, free))
    if not points and refused is not None:
        raise refused
    return tuple(points)


def kept(shorter: Plan, own: Plan) -> Plan:
    """The plan of a shorter time where it needs less; what is proved is proved of the longer time."""
    if shorter.energy_ratio >= own.energy_ratio:
        return own
    return replace(shorter, slowdown=own.slowdown, bound=min(own.bound, shorter.energy_ratio), is_exact=own.is_exact)
