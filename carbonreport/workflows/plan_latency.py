"""How long a board takes from the request of clocks until work runs at them, measured by the speed of a small load.

After "Methodology for GPU Frequency Switching Latency Measurement" (Velička, Vysocký, Říha, arXiv 2502.20075): a load's speed tells the clock; it is known
first under each target, then the change is asked for and the first of several readings at the new speed ends the wait. The target counts more than the clock before.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from carbonreport.plan.table import UNLOCKED, ClockPair
from carbonreport.workflows.plan_latency_file import Seen
from carbonreport.workflows.plan_pairs import Turn

_READINGS = 30  # that tell the speed under a pair
_IN_A_ROW = 3  # readings at the new speed that end the wait
_TOLERANCE_SD, _GAP_SHARE = 4.0, 0.15  # how near a reading is to count: this many deviations, or this share of the step between both speeds
_LEAST_GAP = 0.02
_OF_SORTED = 0.9


@dataclass(frozen=True, slots=True)
class Probe:
    """Looks at a board's speed.

    Attributes:
        read: A figure that follows the core clock (False) or the memory clock (True): a load's speed, or the clock as the board tells it. Takes a moment.
        now_s: The clock of the waits. [s]
        turn: Asks for clocks.
    """

    read: Callable[[bool], float]
    now_s: Callable[[], float]
    turn: Turn


@dataclass(frozen=True, slots=True)
class LatencyAsk:
    """How latencies are measured.

    Attributes:
        repeats: How often each change.
        settle_s: Time in which clocks come to rest before a speed is taken. [s]
        longest_s: How long an effect is waited for. [s]
    """

    repeats: int = 20
    settle_s: float = 0.5
    longest_s: float = 2.0


def measure_latencies(targets: Sequence[ClockPair], probe: Probe, ask: LatencyAsk, say: Callable[[str], None]) -> list[Seen]:
    """Latency of changes to each target, in turns from unlocked clocks and from another target."""
    found = []
    for number, target in enumerate(targets):
        others = [UNLOCKED, *(other for other in targets if other != target)]
        is_memory = target.mem_mhz is not None and target.sm_mhz is None
        alike = [other for other in others if (other.mem_mhz == target.mem_mhz) != is_memory]
        starts = [other for other in alike or others if other != target][:2]
        found.append(_of_target(target, starts, probe, ask, is_memory=is_memory))
        say(f"{target}: {in_words(found[-1])}; {len(targets) - number - 1} more after it")
    probe.turn(UNLOCKED)
    return found


def _of_target(target: ClockPair, starts: Sequence[ClockPair], probe: Probe, ask: LatencyAsk, *, is_memory: bool) -> Seen:
    wanted, wanted_sd = _speed(target, probe, ask, is_memory=is_memory)
    waits: list[float] = []
    asked, why_not = 0, ""
    for start in starts:
        before, before_sd = _speed(start, probe, ask, is_memory=is_memory)
        gap = abs(wanted - before)
        near = max(_TOLERANCE_SD * max(wanted_sd, before_sd), _GAP_SHARE * gap)
        if gap < _LEAST_GAP * wanted or near > gap / 2:
            why_not = f"the speed from {start} to {target} changes by {100 * gap / wanted:.1f} %, too little to be seen"
            continue
        for _ in range(max(1, ask.repeats // len(starts))):
            asked += 1
            wait_s = _wait(start, target, wanted, near, probe, ask, is_memory=is_memory)
            if wait_s is not None:
                waits.append(wait_s)
    if not waits:
        reason = f"no effect within {ask.longest_s:g} s" if asked else why_not
        return Seen(target.sm_mhz, target.mem_mhz, asked, 0, why_not=reason)
    waits.sort()
    p90 = waits[min(len(waits) - 1, math.ceil(_OF_SORTED * len(waits)) - 1)]
    return Seen(target.sm_mhz, target.mem_mhz, asked, len(waits), statistics.median(waits), p90, waits[0], waits[-1])


def _speed(pair: ClockPair, probe: Probe, ask: LatencyAsk, *, is_memory: bool) -> tuple[float, float]:
    """Median speed under a pair at rest, and its deviation by the median of absolute ones."""
    probe.turn(pair)
    for _ in _readings_for(probe, ask.settle_s, is_memory=is_memory):
        pass
    readings = [probe.read(is_memory) for _ in range(_READINGS)]
    middle = statistics.median(readings)
    return middle, 1.4826 * statistics.median(abs(reading - middle) for reading in readings)


def _wait(
    start: ClockPair, target: ClockPair, wanted: float, near: float, probe: Probe, ask: LatencyAsk, *, is_memory: bool
) -> float | None:
    """From the request to the first of several readings at the new speed; None where it was not seen. [s]"""
    probe.turn(start)
    for _ in _readings_for(probe, ask.settle_s, is_memory=is_memory):
        pass
    asked_s = probe.now_s()
    probe.turn(target)
    row, first_s = 0, 0.0
    for reading in _readings_for(probe, ask.longest_s, is_memory=is_memory):
        if abs(reading - wanted) > near:
            row = 0
            continue
        first_s = first_s if row else probe.now_s()
        row += 1
        if row == _IN_A_ROW:
            return first_s - asked_s
    return None


def _readings_for(probe: Probe, seconds: float, *, is_memory: bool) -> Iterator[float]:
    until_s = probe.now_s() + seconds
    while probe.now_s() < until_s:
        yield probe.read(is_memory)


def in_words(seen: Seen) -> str:
    """Median, 90 % and range, or why there is none."""
    if seen.median_s is None or seen.p90_s is None or seen.low_s is None or seen.high_s is None:
        return seen.why_not
    return (
        f"{1000 * seen.median_s:.3g} ms in the median, 90 % within {1000 * seen.p90_s:.3g} ms, {1000 * seen.low_s:.3g} to {1000 * seen.high_s:.3g} ms, "
        f"{seen.seen} of {seen.asked} seen"
    )
