"""Temperatures outdoors, hour by hour. Stdlib only: the tracer checks a site's weather file at its start."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

Bulb = Literal["dry-bulb", "wet-bulb"]
BULBS: tuple[Bulb, ...] = get_args(Bulb)
# No place is colder or warmer; a number outside is of another unit.
COLDEST_CELSIUS, WARMEST_CELSIUS = -90.0, 60.0


@dataclass(frozen=True, slots=True)
class Weather:
    """Temperatures of one place; hours that nobody knows are absent.

    Attributes:
        bulb: Of the air, or the wet bulb's, which evaporation can reach.
        starts_s: Begin of each interval, POSIX seconds, rising.
        ends_s: End of each.
        celsius: Temperature in each. [°C]
        source: For the statement, with the licence.
        retrieved_on: Date on which they were fetched, ISO, or "".
    """

    bulb: Bulb
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]
    celsius: tuple[float, ...]
    source: str
    retrieved_on: str = ""

    def __post_init__(self) -> None:
        if not len(self.starts_s) == len(self.ends_s) == len(self.celsius):
            raise ValueError(f"{len(self.starts_s)} begins and {len(self.ends_s)} ends for {len(self.celsius)} temperatures")
        if any(end <= start for start, end in zip(self.starts_s, self.ends_s, strict=True)) or any(
            later < end for end, later in zip(self.ends_s, self.starts_s[1:], strict=False)
        ):
            raise ValueError("times of the weather do not rise")
        if not all(COLDEST_CELSIUS <= t <= WARMEST_CELSIUS for t in self.celsius):
            raise ValueError("temperatures of the weather are not degrees Celsius")

    def within(self, start_s: float, end_s: float) -> "Weather":
        """The part that touches a period, its intervals whole."""
        rows = [row for row in zip(self.starts_s, self.ends_s, self.celsius, strict=True) if row[1] > start_s and row[0] < end_s]
        starts, ends, celsius = zip(*rows, strict=True) if rows else ((), (), ())
        return Weather(self.bulb, starts, ends, celsius, self.source, self.retrieved_on)


def lasting(starts_s: list[float], longest_s: float) -> tuple[float, ...]:
    """Ends of intervals that each last until the next one begins, but no longer than that; the last as long."""
    return (*(min(b, a + longest_s) for a, b in pairwise(starts_s)), *([starts_s[-1] + longest_s] if starts_s else []))
