"""What an audit reads beside the ledger: the lab's own sweeps of power caps."""

import json
import math
from pathlib import Path
from typing import Any

from carbonreport.audit.advice import SweptCap
from carbonreport.errors import CarbonreportError


def swept_cap(path: Path) -> tuple[SweptCap, ...]:
    """The cap that a sweep chose and confirmed; nothing where it chose none.

    Raises:
        CarbonreportError: It is no sweep.
    """
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise CarbonreportError(f"cannot read the sweep {path}: {error}") from error
    if not isinstance(held, dict) or "choice" not in held or not isinstance(held.get("baseline"), dict):
        raise CarbonreportError(f"{path} is no sweep: it has no baseline and choice; carbonreport sweep --json writes one")
    choice = held["choice"]
    if not isinstance(choice, dict):
        return ()
    boards = tuple(str(board.get("name", "")) for board in held["baseline"].get("boards", []) if isinstance(board, dict))
    measured: Any = choice.get("confirmed") or choice.get("promised")
    try:
        energy = tuple(_positive(measured, name) for name in ("energy_ratio", "energy_low", "energy_high"))
        return (
            SweptCap(
                path.name,
                boards,
                _positive(choice, "cap_watts"),
                (energy[0], energy[1], energy[2]),
                _positive(measured, "time_ratio"),
                choice.get("confirmed") is not None,
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CarbonreportError(f"{path}: choice: {error} is missing or no number above 0") from error


def _positive(held: Any, name: str) -> float:
    """A finite number above 0."""
    value = held[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(repr(name))
    return float(value)
