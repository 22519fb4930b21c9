"""Boards whose knobs are turned in memory."""

from dataclasses import dataclass, field, replace

from carbonreport.control.controller import BoardState, ControlDenied, ControlError
from carbonreport.model.knobs import Knobs


@dataclass(slots=True)
class FakeController:
    """A `Controller` over boards in memory, with faults on demand.

    Attributes:
        boards: State of each board by UUID.
        is_allowed: Whether anything may be set.
        failing: UUIDs whose setters fail.
        ignoring: UUIDs whose setters do nothing, in silence.
        calls: What was set and restored, in order: ("set", uuid, watts).
        locked: Clocks that are locked, by UUID.
    """

    boards: dict[str, BoardState]
    is_allowed: bool = True
    failing: set[str] = field(default_factory=set)
    ignoring: set[str] = field(default_factory=set)
    calls: list[tuple[str, str, float | None]] = field(default_factory=list)
    locked: dict[str, Knobs] = field(default_factory=dict)

    def read(self, device: str) -> BoardState:
        """See Controller."""
        if device not in self.boards:
            raise ControlError(f"{device} does not answer")
        return self.boards[device]

    def set(self, device: str, knobs: Knobs) -> None:
        """See Controller."""
        self._turn("set", device, knobs.power_cap_watts)
        if knobs.has_clocks:
            self.locked[device] = knobs

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """See Controller."""
        self._turn("restore", device, before_watts)
        self.locked.pop(device, None)

    def _turn(self, what: str, device: str, watts: float | None) -> None:
        self.calls.append((what, device, watts))
        if not self.is_allowed:
            raise ControlDenied(f"this user may not set the power limit of {device}")
        if device in self.failing:
            raise ControlError(f"{device} failed")
        if watts is not None and device not in self.ignoring:
            self.boards[device] = replace(self.boards[device], limit_watts=watts, enforced_watts=watts)


def fake_board(number: int = 0, *, limit_watts: float = 650.0) -> BoardState:
    """An H200 with a limit that is not its default."""
    return BoardState(
        uuid=f"GPU-0000{number}",
        label=f"GPU {number} (NVIDIA H200)",
        limit_watts=limit_watts,
        enforced_watts=limit_watts,
        default_watts=700.0,
        least_watts=200.0,
        most_watts=700.0,
        capped_ns=0,
        sm_clocks_mhz=(1980, 1410, 345),
        mem_clocks_mhz=(3201, 2201),
    )
