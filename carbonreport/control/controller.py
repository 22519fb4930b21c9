"""What can be set on boards: the protocol, a board's state, and what is refused before anything is set. Pure but for the protocol's effects."""

from dataclasses import dataclass
from typing import Protocol

from carbonreport.errors import CarbonreportError
from carbonreport.model.knobs import Knobs

ROUNDING_WATTS = 0.5  # drivers keep milliwatts, nvidia-smi hundredths; two limits closer than this are one


class ControlError(CarbonreportError):
    """A knob that could not be set or taken back; the message names the board and the way out."""


class ControlDenied(ControlError):
    """The knob exists, but this user may not turn it."""


class ControlRefused(ControlError):
    """The board has no such knob, or not in that range; nothing was set."""


@dataclass(frozen=True, slots=True)
class BoardState:
    """What a board says of its knobs. None is what it does not say.

    Attributes:
        uuid: "GPU-…".
        label: "GPU 0 (NVIDIA H200)".
        limit_watts: Power limit that was asked of the driver. [W]
        enforced_watts: Lowest limit of anybody, which is in force. [W]
        default_watts: Limit after a start of the driver. [W]
        least_watts: Lowest limit that the driver takes. [W]
        most_watts: Highest one. [W]
        capped_ns: Time so far in which clocks were lowered for the power limit. [ns]
        has_mig: Whether the board is cut into MIG instances.
        sm_clocks_mhz: Core clocks of the menu, highest first; empty where it has none. [MHz]
        mem_clocks_mhz: Memory clocks, highest first. [MHz]
    """

    uuid: str
    label: str
    limit_watts: float | None = None
    enforced_watts: float | None = None
    default_watts: float | None = None
    least_watts: float | None = None
    most_watts: float | None = None
    capped_ns: int | None = None
    has_mig: bool = False
    sm_clocks_mhz: tuple[int, ...] = ()
    mem_clocks_mhz: tuple[int, ...] = ()


class Controller(Protocol):
    """Turns the knobs of boards, by UUID."""

    def read(self, device: str) -> BoardState:
        """What the board says now. Raises ControlError where it does not answer."""

    def set(self, device: str, knobs: Knobs) -> None:
        """Turn those knobs that are given. Raises ControlError, ControlDenied, ControlRefused."""

    def restore(self, device: str, before_watts: float | None, knobs: Knobs) -> None:
        """Put back the limit that was there before, and unlock the clocks that `knobs` had locked: locks have no getter. Raises ControlError."""


def refusal(state: BoardState, knobs: Knobs) -> str | None:
    """Why a board cannot take these knobs, with the range it takes; None where it can."""
    if state.has_mig:
        return (
            f"{state.label} is cut into MIG instances: {knobs.in_words()} would act on the whole board and slow the other instances too; "
            "leave it, or turn MIG off"
        )
    cap = knobs.power_cap_watts
    if cap is not None:
        if state.limit_watts is None:
            return f"{state.label} has no power limit that can be set, as many laptops; a highest core clock may work there instead"
        least, most = state.least_watts, state.most_watts
        if least is not None and most is not None and not least <= cap <= most:
            return f"{state.label} takes power caps of {least:g} to {most:g} W, not {cap:g} W"
        if cap > state.limit_watts + ROUNDING_WATTS:
            return f"{state.label} is limited to {state.limit_watts:g} W already: {cap:g} W would raise that limit, and is no cap"
    for name, mhz, menu in (
        ("core", knobs.sm_clock_mhz, state.sm_clocks_mhz),
        ("memory", knobs.mem_clock_mhz, state.mem_clocks_mhz),
    ):
        if mhz is not None and not menu:
            return f"{state.label} has no {name} clocks that can be set"
        if mhz is not None and not menu[-1] <= mhz <= menu[0]:
            return f"{state.label} takes {name} clocks of {menu[-1]} to {menu[0]} MHz, not {mhz} MHz"
    return None


def is_same_limit(first_watts: float | None, second_watts: float | None) -> bool:
    """Whether two limits are one, up to the driver's rounding."""
    return first_watts is not None and second_watts is not None and abs(first_watts - second_watts) <= ROUNDING_WATTS
