"""What was never allowed to be set needs no taking back."""

from carbonreport.control.controller import BoardState, ControlDenied, Controller
from carbonreport.model.knobs import Knobs


class KnowsDenied:
    """A controller that does not fail to take back what this user was never allowed to set: a lock has no getter that would show it.

    Args:
        controller: Sets boards.
    """

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._denied: set[str] = set()
        self._was_set: set[str] = set()

    def read(self, device: str) -> BoardState:
        """See Controller."""
        return self._controller.read(device)

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller."""
        try:
            self._controller.set(device, knobs)
        except ControlDenied:
            if device not in self._was_set:
                self._denied.add(device)
            raise
        self._was_set.add(device)
        self._denied.discard(device)

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller."""
        try:
            self._controller.restore(device, before_watts, knobs)
        except ControlDenied:
            if device not in self._denied:
                raise
