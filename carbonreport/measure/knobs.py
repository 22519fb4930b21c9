"""What a run sets on boards, as far as the tracer knows it: it begins before the first step, and ends with the run."""

from typing import Protocol

from carbonreport.model.knobs import KnobsHeld
from carbonreport.model.notes import Note


class Setting(Protocol):
    """Knobs that are held for the length of a run."""

    def start(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """Set the boards. Raises CarbonreportError where that is refused: nothing is set then, and the run must not begin."""

    def stop(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """Read back, and put every board back. Never raises: what failed is a note."""

    def abandon(self) -> None:
        """This process is a fork: the parent puts back."""
