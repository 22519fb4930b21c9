"""Sets nothing: says what would be set and what would be put back, with what is refused still refused."""

from collections.abc import Callable

from carbonreport.control.controller import BoardState, Controller
from carbonreport.model.knobs import Knobs


def create(reader: Controller, say: Callable[[str], None]) -> Controller:
    """The controller that reads by another one and says what that one would set."""
    return DryRunController(reader, say)


class DryRunController:
    """Reads boards, and keeps to itself what would be set, so that reading it back agrees.

    Args:
        reader: Reads the boards.
        say: Takes one line.
    """

    def __init__(self, reader: Controller, say: Callable[[str], None]) -> None:
        self._reader, self._say = reader, say

    def read(self, device: str) -> BoardState:
        """See Controller: the board as it is."""
        return self._reader.read(device)

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller."""
        state = self._reader.read(device)
        now = "" if state.limit_watts is None else f"; its limit is {state.limit_watts:g} W"
        self._say(f"would set {knobs.in_words()} on {state.label}, {device}{now}")

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller."""
        parts = [
            f"put its limit back to {before_watts:g} W" if knobs.power_cap_watts is not None and before_watts is not None else "",
            "unlock its clocks" if knobs.has_clocks else "",
        ]
        self._say(f"would {' and '.join(part for part in parts if part) or 'put nothing back'} on {device}")
