"""Advice with what it rests on; "none" is a first-class answer."""

from dataclasses import dataclass
from typing import Literal

Action = Literal["shift", "season", "none"]


@dataclass(frozen=True, slots=True)
class Recommendation:
    """When to run the same thing again.

    Attributes:
        action: shift (another hour of the day), season (another month) or none.
        unit: What `own` and `best` count: "hour" of the day or "month" of the year.
        zone: Grid zone that it speaks of.
        own: Local hour (0 to 23) or month (1 to 12) of the run.
        best: The hour or month that the profile names.
        saving: Expected lowering of the location-based figure, shrunk, as a share; negative where it would rise.
        low: Lower end of its 90 % interval.
        high: Upper end.
        chance: Chance that this run gains, 0 to 1.
        because: Why the advice is given or withheld, in words.
    """

    action: Action
    unit: Literal["hour", "month"]
    zone: str
    own: int
    best: int
    saving: float
    low: float
    high: float
    chance: float
    because: str
