"""Caps of a sweep as a plan compares them, with the errors that the sweep itself saw."""

import json
from pathlib import Path
from typing import Any

from carbonreport.plan.result import Cap
from carbonreport.workflows.caps import Swept, swept_caps


def caps_to_compare(path: Path) -> tuple[tuple[Cap, ...], Swept]:
    """Caps that the sweep did not reject, and the sweep.

    Raises:
        CarbonreportError: It is no sweep; the message names the field.
    """
    swept = swept_caps(path)
    held = {point.get("cap_watts"): point for point in json.loads(path.read_bytes())["points"]}
    caps = []
    for point in swept.points:
        if not point.is_rejected:
            own = held.get(point.cap_watts, {})
            caps.append(Cap(point.cap_watts, point.time_ratio, point.energy_ratio, _ends(own, "time"), _ends(own, "energy")))
    return tuple(caps), swept


def _ends(point: dict[str, Any], name: str) -> tuple[float, float] | None:
    """The 90 % interval that a sweep gave of its time or energy, or None."""
    low, high = (point.get(f"{name}_{end}") for end in ("low", "high"))
    are_numbers = all(isinstance(end, (int, float)) and not isinstance(end, bool) for end in (low, high))
    return (float(low), float(high)) if are_numbers and low is not None and high is not None else None
