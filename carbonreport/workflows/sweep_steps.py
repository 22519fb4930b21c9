"""`carbonreport.sweep`: a sweep inside a training loop, as a `with` block."""

import math
import os
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TypeGuard

from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs
from carbonreport.plan.cap_choice import CapRule
from carbonreport.plan.sweep_order import sweep_order
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.sweep_boards import checked_boards, most_watts, try_to_set
from carbonreport.workflows.sweep_loop import StepSweep
from carbonreport.workflows.sweep_ranks import together_here
from carbonreport.workflows.trace import trace


def sweep(
    *,
    caps: Sequence[float],
    steps_per_cap: int,
    warmup_steps: int = 5,
    repeats: int = 3,
    slowdown: float | None = 0.05,
    eta: float | None = None,
    seed: int = 0,
    name: str = "sweep",
    out: str | Path = "runs",
    zone: str | None = None,
    pue: float | str | None = None,
    site: str | Path | None = None,
    interval_s: float = 1.0,
    meters: tuple[str, ...] | None = None,
) -> StepSweep:
    """A sweep of power caps inside a training loop: `with sweep(caps=[300, 400], steps_per_cap=200) as s: …: with s.step(items=64): …`.

    Args:
        caps: Caps of every NVIDIA board of the run; none at all is always tried. [W]
        steps_per_cap: Steps of each stage that count.
        warmup_steps: Steps after each change that do not.
        repeats: How often each cap.
        slowdown: Share of the time that it may take longer; None: any time.
        eta: Weight of energy in Zeus's cost, instead of energy alone.
        seed: Of the order; the same on all ranks.
        name: What the record is called.
        out: Folder of the record.
        zone: Grid zone such as "DE".
        pue: PUE, as for `trace`.
        site: Site file, as for `trace`.
        interval_s: How often the meters are polled. [s]
        meters: As for `trace`.

    Raises:
        CarbonreportError: An argument makes no sense, a cap is outside a board's range, or may not be set; nothing was set.
    """
    watts = _checked_caps(caps)
    _check_wishes(steps_per_cap, warmup_steps, repeats, slowdown, eta)
    order = sweep_order(watts, repeats, seed)
    boards = checked_boards(watts, os.environ)
    most = None if eta is None else most_watts(boards)
    if eta is not None and most is None:
        raise CarbonreportError("eta needs the power limit of each board, and one does not say its own; use slowdown")
    rule = CapRule(slowdown, eta, most)
    prepared = StepSweep(
        trace(name, out=out, zone=zone, pue=pue, site=site, interval_s=interval_s, meters=meters),
        order,
        steps=steps_per_cap,
        warmup=warmup_steps,
        rule=rule,
        boards=tuple((board.name, board.limit_watts) for board in boards),
        setting=lambda cap: RunKnobs(Knobs(power_cap_watts=cap), is_optional=False, environ=os.environ),
        together=together_here(),
    )
    try_to_set(max(watts), os.environ)
    return prepared


def _checked_caps(caps: object) -> tuple[float, ...]:
    """Caps as numbers. [W] Raises CarbonreportError where they are none."""
    given = tuple(caps) if isinstance(caps, Iterable) and not isinstance(caps, str) else ()
    if not given or not all(_is_number(cap) and cap > 0 for cap in given) or len(set(given)) < len(given):
        raise CarbonreportError(f"caps={caps!r}: give power caps in watts as numbers above 0, each once, such as [300, 400]")
    return tuple(float(cap) for cap in given)


def _check_wishes(steps: object, warmup: object, repeats: object, slowdown: object, eta: object) -> None:
    """Refuse what no sweep can be made of, while nothing is set. Raises CarbonreportError."""
    for name, value, least in (("steps_per_cap", steps, 1), ("warmup_steps", warmup, 0), ("repeats", repeats, 1)):
        if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
            raise CarbonreportError(f"{name}={value!r}: give a whole number of {least} or more")
    if slowdown is not None and not (_is_number(slowdown) and slowdown >= 0):
        raise CarbonreportError(f"slowdown={slowdown!r}: give a share of 0 or more, such as 0.05, or None for any time")
    if eta is not None and not (_is_number(eta) and 0 <= eta <= 1):
        raise CarbonreportError(f"eta={eta!r}: give a number from 0 to 1, or None")


def _is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; True is none."""
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
