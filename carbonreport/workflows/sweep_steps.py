"""`carbonreport.sweep`: a sweep inside a training loop, as a `with` block."""

import os
from collections.abc import Sequence
from pathlib import Path

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
        CarbonreportError: A cap is outside a board's range, or may not be set; nothing was set.
    """
    if steps_per_cap < 1 or warmup_steps < 0:
        raise ValueError(f"{steps_per_cap} steps with {warmup_steps} before them are no stage")
    order = sweep_order(caps, repeats, seed)
    boards = checked_boards(caps, os.environ)
    rule = CapRule(slowdown, eta, None if eta is None else most_watts(boards))
    try_to_set(max(caps), os.environ)
    return StepSweep(
        trace(name, out=out, zone=zone, pue=pue, site=site, interval_s=interval_s, meters=meters),
        order,
        steps=steps_per_cap,
        warmup=warmup_steps,
        rule=rule,
        boards=tuple((board.name, board.limit_watts) for board in boards),
        setting=lambda cap: RunKnobs(Knobs(power_cap_watts=cap), is_optional=False, environ=os.environ),
        together=together_here(),
    )
