"""The public names. Each is imported at its first use."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from carbonreport.combine.footprint import footprint
    from carbonreport.measure.tracer import Run
    from carbonreport.model.footprint import Footprint
    from carbonreport.model.pue import PueProfile
    from carbonreport.model.quantity import Quantity
    from carbonreport.model.run import RunRecord
    from carbonreport.store import load
    from carbonreport.workflows.plan_measure import plan_profile
    from carbonreport.workflows.statement import statement
    from carbonreport.workflows.sweep_steps import sweep
    from carbonreport.workflows.trace import trace, traced

__all__ = [
    "Footprint",
    "PueProfile",
    "Quantity",
    "Run",
    "RunRecord",
    "footprint",
    "load",
    "plan_profile",
    "statement",
    "sweep",
    "trace",
    "traced",
]

_HOMES = {
    "Footprint": "carbonreport.model.footprint",
    "PueProfile": "carbonreport.model.pue",
    "Quantity": "carbonreport.model.quantity",
    "Run": "carbonreport.measure.tracer",
    "RunRecord": "carbonreport.model.run",
    "footprint": "carbonreport.combine.footprint",
    "load": "carbonreport.store",
    "plan_profile": "carbonreport.workflows.plan_measure",
    "statement": "carbonreport.workflows.statement",
    "sweep": "carbonreport.workflows.sweep_steps",
    "trace": "carbonreport.workflows.trace",
    "traced": "carbonreport.workflows.trace",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
