"""Latency of a board nobody measured: by its architecture, with a wide range. Pure; `switch_latency.py` reads the table."""

from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.plan.switching import Latency
from carbonreport.plan.table import PlanError


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One row of the table.

    Attributes:
        architecture: Of the GPU, such as Hopper.
        boards: Words of names that are of it; all words of one entry must be in a board's name.
        clock: "core" or "memory".
        latency: From the request to the effect.
    """

    architecture: str
    boards: tuple[str, ...]
    clock: str
    latency: Latency

    def fits(self, name: str) -> bool:
        """Whether a board of that name, or of that architecture, is meant."""
        words = name.replace("-", " ").upper().split()
        own = (self.architecture, *self.boards)
        return any(all(word in words for word in entry.upper().split()) for entry in own)


def latency_of(rows: Sequence[LatencyRow], name: str, clock: str = "core") -> Latency:
    """Latency of a board by its name; that of any board where none fits.

    Raises:
        PlanError: The table has no row for any board.
    """
    own = next((row for row in rows if row.clock == clock and row.architecture != "any" and row.fits(name)), None)
    found = own or next((row for row in rows if row.clock == clock and row.architecture == "any"), None)
    if found is None:
        raise PlanError(f"no latency of {clock} clocks is known for any board")
    return found.latency
