"""Readings of one device as cumulative energy: power integrated over real times, nonsense put aside."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from carbonreport.importers.imported import Rejected
from carbonreport.units import SECONDS_PER_HOUR

# A power beyond this share of the limit is no power: boards pass their limit for moments only.
MOST_OF_LIMIT = 1.5
_GAP_STEPS = 10.0  # a pause of so many usual steps is a gap
_LEAST_GAP_S = 60.0
_MOST_POINTS = 20_000
_SAME_WATTS = 1e-9
_NEAR_AN_HOUR_S = 300.0
_LEAST_FOR_BURSTS = 8
_LONG_STEP, _SHORT_STEP, _BURST_SHARE = 0.95, 0.1, 0.45
_TOO_MANY_TWINS = 0.05  # above this share of stamps with two powers, rows of several devices are under one name

Reading = tuple[int, float, float]  # line, seconds, value


@dataclass(frozen=True, slots=True)
class Curve:
    """Cumulative energy of one device over its own time.

    Attributes:
        seconds: When, rising.
        joules: Since the first of them. [J]
        gaps: Periods without a reading, as (from, to) in the same seconds; nothing is counted inside.
        step_s: Usual time between readings. [s]
        resets: How often the counter began again.
        twins: Rows that repeat another one.
        changes: Share of the readings that differ from the one before; a slow sensor that is asked often repeats itself.
    """

    seconds: tuple[float, ...]
    joules: tuple[float, ...]
    gaps: tuple[tuple[float, float], ...] = ()
    step_s: float = 0.0
    resets: int = 0
    twins: int = 0
    changes: float = 1.0

    @property
    def total_joules(self) -> float:
        """Its energy. [J]"""
        return self.joules[-1]


@dataclass(frozen=True, slots=True)
class Read:
    """A curve, or why there is none, with the readings that were put aside."""

    curve: Curve | None
    rejected: list[Rejected] = field(default_factory=list)
    why_not: str = ""


def curve_of_powers(readings: Sequence[Reading], limit_watts: float, *, named: str = "power") -> Read:
    """Energy of power readings by the trapezoidal rule over their own times.

    Args:
        readings: In the file's order. [W]
        limit_watts: What the device may draw. [W]
        named: What the column is called, for the reasons.
    """
    ordered, why, twins, rejected = in_order(readings)
    if why:
        return Read(None, rejected, why)
    most = limit_watts * MOST_OF_LIMIT
    kept, high = [], 0
    for line, at_s, watts in ordered:
        if watts < 0:
            rejected.append((line, f"{named} {watts:g} W is below 0"))
        elif watts == 0:
            rejected.append((line, f"{named} 0 W says that nothing was measured"))
        elif watts > most:
            high += 1
            rejected.append((line, f"{named} {watts:g} W is above {most:g} W, which is {MOST_OF_LIMIT:g} of what the device may draw"))
        else:
            kept.append((at_s, watts))
    if high > len(ordered) / 2:
        return Read(
            None,
            rejected,
            f"{high} of {len(ordered)} values of {named} are above {most:g} W; give the unit they are in, such as --mapping unit=mW",
        )
    if len(kept) < 2:
        return Read(
            None,
            rejected,
            f"{len(kept) or 'no'} usable value{'s' * (len(kept) != 1)} of {named}: energy needs at least two with their times",
        )
    times = [at_s for at_s, _ in kept]
    gaps = _gaps(times)
    inside = set(gaps)
    joules = [0.0]
    for (a_s, a), (b_s, b) in pairwise(kept):
        joules.append(joules[-1] + (0.0 if (a_s, b_s) in inside else (b_s - a_s) * (a + b) / 2))
    changes = sum(a != b for (_, a), (_, b) in pairwise(kept)) / (len(kept) - 1)
    return Read(Curve(*thinned(times, joules), tuple(gaps), usual_step(times), twins=twins, changes=changes), rejected)


def come_in_bursts(times: Sequence[float]) -> bool:
    """Whether rows come in bunches, as those of several devices do that are read one after another. [s]"""
    steps = sorted(b - a for a, b in pairwise(sorted(set(times))))
    if len(steps) < _LEAST_FOR_BURSTS:
        return False
    long = steps[int(len(steps) * _LONG_STEP)]
    return sum(step < long * _SHORT_STEP for step in steps) > len(steps) * _BURST_SHARE


def curve_of_steps(readings: Sequence[Reading], limit_watts: float, period_s: float, *, named: str = "power") -> Read:
    """Energy of power readings without times, each of which holds for one period.

    Args:
        readings: In the file's order; their seconds are not looked at. [W]
        limit_watts: What the device may draw. [W]
        period_s: Seconds between two of them. [s]
        named: What the column is called, for the reasons.
    """
    numbered = [(line, i * period_s, watts) for i, (line, _, watts) in enumerate(readings)]
    read = curve_of_powers(numbered, limit_watts, named=named)
    if read.curve is None:
        return read
    bad = {line for line, _ in read.rejected}
    joules, gaps = [0.0], []
    for line, at_s, watts in numbered:
        joules.append(joules[-1] + (0.0 if line in bad else watts * period_s))
        if line in bad:
            gaps.append((at_s, at_s + period_s))
    seconds = [i * period_s for i in range(len(joules))]
    return Read(Curve(*thinned(seconds, joules), tuple(gaps), period_s), read.rejected)


def in_order(readings: Sequence[Reading]) -> tuple[list[Reading], str, int, list[Rejected]]:
    """Readings by time, each moment once; why they cannot be told apart; repeated rows; rows put aside."""
    if fell := _clock_set_back(readings):
        return [], f"line {fell}: the clock goes back by about an hour, and the stamps have no offset; give --time-zone", 0, []
    ordered: list[Reading] = []
    twins, twice = 0, 0
    rejected: list[Rejected] = []
    for line, at_s, value in sorted(readings, key=lambda r: (r[1], r[0])):
        if ordered and ordered[-1][1] == at_s:
            if math.isclose(ordered[-1][2], value, rel_tol=_SAME_WATTS):
                twins += 1
            else:
                twice += 1
                rejected.append((line, f"a second value at the moment of line {ordered[-1][0]}: {value:g} beside {ordered[-1][2]:g}"))
            continue
        ordered.append((line, at_s, value))
    if twice > max(1, _TOO_MANY_TWINS * len(ordered)):
        return (
            [],
            f"{twice} moments have two values under one device; name the column that tells devices apart with --mapping device=COLUMN",
            0,
            [],
        )
    return ordered, "", twins, rejected


def _clock_set_back(readings: Sequence[Reading]) -> int:
    """Line at which otherwise rising stamps fall once by an hour less a step; 0 where none does."""
    falls = [(b[0], a[1] - b[1]) for a, b in pairwise(readings) if b[1] < a[1]]
    if len(falls) != 1:
        return 0
    step_s = median(abs(b[1] - a[1]) for a, b in pairwise(readings))
    return falls[0][0] if abs(falls[0][1] + step_s - SECONDS_PER_HOUR) < _NEAR_AN_HOUR_S else 0


def usual_step(times: Sequence[float]) -> float:
    """The middle one of the steps between times. [s]"""
    return median(b - a for a, b in pairwise(times))


def _gaps(times: Sequence[float]) -> list[tuple[float, float]]:
    longest = max(_LEAST_GAP_S, _GAP_STEPS * usual_step(times))
    return [(a, b) for a, b in pairwise(times) if b - a > longest]


def thinned(times: Sequence[float], joules: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most so many points; the last one stays, and with it the total."""
    every = -(-len(times) // _MOST_POINTS)
    if every <= 1:
        return tuple(times), tuple(joules)
    kept = [*range(0, len(times) - 1, every), len(times) - 1]
    return tuple(times[i] for i in kept), tuple(joules[i] for i in kept)
