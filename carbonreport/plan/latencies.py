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

    def fit(self, name: str) -> tuple[bool, int]:
        """How well a board's name fits: whether it names the architecture, and how many of its words name a board; (False, 0) where it is not meant.

        "RTX 6000 Ada Generation" has the words of a Turing board, and says itself that it is none.
        """
        words = name.replace("-", " ").upper().split()
        entries = [entry.upper().split() for entry in self.boards]
        return self.architecture.upper() in words, max((len(entry) for entry in entries if all(word in words for word in entry)), default=0)


def latency_of(rows: Sequence[LatencyRow], name: str, clock: str = "core") -> Latency:
    """Latency of a board by its name, the best fit of it; that of any board where none fits.

    Raises:
        PlanError: The table has no row for any board.
    """
    of_clock = [row for row in rows if row.clock == clock]
    own = max((row for row in of_clock if row.architecture != "any"), key=lambda row: row.fit(name), default=None)
    if own is None or own.fit(name) == (False, 0):
        own = next((row for row in of_clock if row.architecture == "any"), None)
    if own is None:
        raise PlanError(f"no latency of {clock} clocks is known for any board")
    return own.latency
