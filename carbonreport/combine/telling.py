"""Which paths' energies can be told apart, and with whose the others are told, by name. Pure."""

import math
from dataclasses import dataclass, field

import numpy as np

from carbonreport.combine.excerpts import FEW, SHORTEST_S
from carbonreport.combine.powers import Powers
from carbonreport.combine.tally import BLOCK_S, CUT_FROM_S
from carbonreport.model.sums import SpanSums, aliasing_words

FEWEST_BLOCKS = 8
WORST_SD_SHARE = 0.5
WORST_CONDITION = 30.0
SHORTEST_UNCALIBRATED_S = 0.016
SHORTEST_LIMITED_S = 0.004
MOST_LIMITED_SHARE = 0.5
LACK_OF_FIT_SDS = 3.0
WORST_MOVE_SHARE = 0.15  # of its power; a smaller move widens the interval instead
LONGEST_UNCUT_S = 0.8 * CUT_FROM_S  # with some jitter none of the stretches is cut


@dataclass(slots=True)
class Group:
    """Paths whose energy is told as one.

    Attributes:
        columns: Their columns; the first one gives its name to all.
        because: Why each of the others cannot be told apart, by column.
    """

    columns: list[int]
    because: dict[int, str] = field(default_factory=dict)


def tell(sums: SpanSums, powers: Powers, judged: frozenset[int]) -> list[Group]:
    """The groups of all used columns.

    Args:
        sums: What the samples say.
        powers: What follows from it.
        judged: Columns whose power rests on their repeats.
    """
    telling = _Telling(sums, powers, judged)
    refused = telling.worst()
    while refused and len(telling.groups) > 1:
        telling.join(*refused)
        refused = telling.worst_group() or telling.worst()
    return telling.groups


def tell_as_one(sums: SpanSums, judged: frozenset[int], because: str) -> list[Group]:
    """The judged columns as one group under the longest of them, every other column alone."""
    columns = sorted(judged, key=lambda c: -sums.times[c].seconds)
    others = [Group([c]) for c, times in enumerate(sums.times) if times.seconds > 0 and c not in judged]
    return [*others, Group(columns, dict.fromkeys(columns[1:], because))] if columns else others


def too_short(sums: SpanSums) -> str:
    """Why a run is too short for repeats, or ""."""
    if sum(block.count > 0 for block in sums.blocks) >= FEWEST_BLOCKS:
        return ""
    return f"{sums.seconds:.0f} s with spans are too few for repeats; {FEWEST_BLOCKS * BLOCK_S:.0f} s are needed"


def lacks_fit(sums: SpanSums, powers: Powers, column: int) -> bool:
    """Whether a short path's power moves by more than its error when long stretches are cut."""
    sd_watts = math.sqrt(max(0.0, float(powers.covariance[column, column])))
    return sums.times[column].stretch_s < LONGEST_UNCUT_S and abs(float(powers.moved[column])) > LACK_OF_FIT_SDS * sd_watts


def limited_share(sums: SpanSums) -> float | None:
    """Share of the time at the power limit; None where the board does not say."""
    if sums.limited_seconds is None or sums.seconds <= 0:
        return None
    return min(1.0, sums.limited_seconds / sums.seconds)


def aliasing(sums: SpanSums) -> str:
    """Why samples always meet the same part of a step, or ""."""
    words = (aliasing_words(path, times.rhythm, sums.sensor.period_s) for path, times in zip(sums.paths, sums.times, strict=True))
    return next((w for w in words if w), "")


class _Telling:
    def __init__(self, sums: SpanSums, powers: Powers, judged: frozenset[int]) -> None:
        self.sums, self.powers, self.judged = sums, powers, judged
        self.groups = [Group([c]) for c, times in enumerate(sums.times) if times.seconds > 0]
        self.seconds = np.array([times.seconds for times in sums.times])
        self.aliased, self.limited = aliasing(sums), limited_share(sums)

    def worst(self) -> tuple[Group, str] | None:
        """The path that is told apart worst, and why; None where all are told apart."""
        candidates = []
        for group in self.groups:
            if len(group.columns) == 1 and group.columns[0] in self.judged:
                because = self._refusal(group)
                if because:
                    candidates.append((self._sd_share(group), group, because))
        return max(candidates, key=lambda c: c[0])[1:] if candidates else None

    def worst_group(self) -> tuple[Group, str] | None:
        """A group that is too uncertain even as one."""
        for group in self.groups:
            if len(group.columns) > 1 and group.columns[0] in self.judged and self._sd_share(group) > WORST_SD_SHARE:
                return group, self._too_uncertain(group)
        return None

    def join(self, group: Group, because: str) -> None:
        """Add a group to the one whose power is most easily mistaken for its own."""
        others = [g for g in self.groups if g is not group]
        covariance = self.powers.covariance
        deviations = np.sqrt(np.diag(covariance)).clip(1e-9)
        correlation = covariance / np.outer(deviations, deviations)
        neighbour = min(others, key=lambda g: float(correlation[np.ix_(group.columns, g.columns)].min()))
        neighbour.columns += group.columns
        neighbour.because |= group.because | {group.columns[0]: because}
        self.groups = others

    def _refusal(self, group: Group) -> str:
        """Why a path cannot be told apart, or ""."""
        sums, column = self.sums, group.columns[0]
        times, moved_watts = sums.times[column], abs(float(self.powers.moved[column]))
        stretch_s, length = times.stretch_s, f"{times.stretch_s * 1000:.3g} ms"
        if times.stretches < FEW and stretch_s < SHORTEST_S:
            return f"{times.stretches} repeats of {length} are too few"
        if not sums.sensor.is_calibrated and stretch_s < SHORTEST_UNCALIBRATED_S:
            return f"{length} is short for a sensor that was not calibrated on this kind of board"
        if self.aliased and stretch_s < SHORTEST_S:
            return self.aliased
        if self.limited is not None and self.limited > MOST_LIMITED_SHARE and stretch_s < SHORTEST_LIMITED_S:
            return f"{length} is short for a board that was at its power limit for {self.limited * 100:.0f} % of the time"
        if self._sd_share(group) > WORST_SD_SHARE:
            return self._too_uncertain(group)
        if lacks_fit(sums, self.powers, column) and moved_watts > WORST_MOVE_SHARE * float(self.powers.watts[column]):
            return f"its power moves by {moved_watts:.0f} W when long spans are cut into pieces: power is not constant inside them"
        if self.powers.condition > WORST_CONDITION and column in self.powers.least_apart:
            return "it comes together with others too often"
        return ""

    def _too_uncertain(self, group: Group) -> str:
        return f"its power would be {self._watts(group):.0f} W with a standard deviation of {self._sd_watts(group):.0f} W"

    def _sd_share(self, group: Group) -> float:
        return self._sd_watts(group) / max(self._watts(group), 1e-9)

    def _watts(self, group: Group) -> float:
        seconds = self.seconds[group.columns]
        return float(self.powers.watts[group.columns] @ seconds / seconds.sum())

    def _sd_watts(self, group: Group) -> float:
        columns, seconds = group.columns, self.seconds[group.columns]
        variance = float(seconds @ self.powers.covariance[np.ix_(columns, columns)] @ seconds)
        return math.sqrt(max(0.0, variance)) / float(seconds.sum())
