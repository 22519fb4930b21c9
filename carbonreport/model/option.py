"""What could be done instead of running now, and what it would cost."""

from dataclasses import dataclass
from typing import Literal

OptionAction = Literal["shift", "pause", "move", "season", "cap", "cap+shift", "cap+season", "none"]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to run a job.

    Attributes:
        action: shift (another start), pause (in pieces), move (another zone), season (another month), cap (a power cap), two of them together, or
            none (now).
        zone: Grid zone.
        time_zone: IANA name of the zone's clock.
        runs: (from_s, to_s) in POSIX seconds; the first begin is its start.
        grams: Location-based emissions, pauses and waiting included. [gCO2e]
        it_joules: Energy at the IT equipment, the same included. [J]
        facility_joules: Energy at the facility. [J]
        saving: Expected lowering of the figure against now, as a share; 0 for now itself.
        low: Lower end of its 90 % interval.
        high: Upper end.
        chance: Chance that this run gains, 0 to 1.
        waits_h: How much later it ends than now. [h]
        is_advised: Whether it is worth it.
        because: Why, or why not, in words.
        cap_watts: Power cap of each board, or None. [W]
        is_in_time: Whether it ends by the deadline; a season does not.
    """

    action: OptionAction
    zone: str
    time_zone: str
    runs: tuple[tuple[float, float], ...]
    grams: float
    it_joules: float
    facility_joules: float
    saving: float
    low: float
    high: float
    chance: float
    waits_h: float
    is_advised: bool
    because: str
    cap_watts: float | None = None
    is_in_time: bool = True

    @property
    def start_s(self) -> float:
        """When it begins. [POSIX s]"""
        return self.runs[0][0]

    @property
    def end_s(self) -> float:
        """When it has ended. [POSIX s]"""
        return self.runs[-1][1]

    @property
    def pue(self) -> float:
        """Facility energy over IT energy."""
        return self.facility_joules / self.it_joules if self.it_joules else 1.0
