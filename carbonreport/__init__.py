"""Energy and carbon of machine learning: trace a run, charge it hour by hour, print an honest statement.

`import carbonreport` loads nothing heavy: names are resolved at their first use (PEP 562).
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # type checkers know the name; importing typing itself would take longer than all the rest
if TYPE_CHECKING:
    from carbonreport.api import (
        Footprint,
        PueProfile,
        Quantity,
        Run,
        RunRecord,
        footprint,
        load,
        plan_profile,
        statement,
        sweep,
        trace,
        traced,
    )

__all__ = [
    "Footprint",
    "PueProfile",
    "Quantity",
    "Run",
    "RunRecord",
    "__version__",
    "footprint",
    "load",
    "plan_profile",
    "statement",
    "sweep",
    "trace",
    "traced",
]


def __getattr__(name: str) -> object:
    if name in __all__:
        from carbonreport import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
