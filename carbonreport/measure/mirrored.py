"""Counters that mirror each other: some processors show one socket's energy once for every die (seen on AMD Zen 1 and Zen 2)."""

import time
from collections.abc import Callable, Mapping
from itertools import combinations

from carbonreport.model.notes import Note

LOOKS = 12
PAUSE_S = 0.02  # the counters tick every millisecond
# Counters of their own agree to the last digit in under 1 % of looks; mirrors differ in about 10 %, where a tick falls between two reads.
# First to four agreements or five differences: both errors stay under one in a thousand.
AGREEMENTS = 4
DIFFERENCES = 5

Read = Callable[[], int | None]


def mirrors(counters: Mapping[str, Read], wait: Callable[[float], None] = time.sleep) -> dict[str, str]:
    """Counters that only repeat an earlier one, and which one that is.

    Steps are compared, not values: one may have been started later. Counters that stand still prove nothing.

    Args:
        counters: How to read each one, by name, the first ones first.
        wait: Lets so many seconds pass.
    """
    verdicts: dict[tuple[str, str], list[int]] = {pair: [0, 0] for pair in combinations(counters, 2)}
    before = {name: read() for name, read in counters.items()}
    for _ in range(LOOKS):
        if all(agreed >= AGREEMENTS or differed >= DIFFERENCES for agreed, differed in verdicts.values()):
            break
        wait(PAUSE_S)
        now = {name: read() for name, read in counters.items()}
        steps = {name: _step(before[name], now[name]) for name in counters}
        for (first, second), votes in verdicts.items():
            if steps[first] and steps[second]:
                votes[steps[first] != steps[second]] += 1
        before = now
    repeated: dict[str, str] = {}
    for (first, second), (agreed, differed) in verdicts.items():
        if agreed >= AGREEMENTS and differed < DIFFERENCES and first not in repeated:
            repeated.setdefault(second, first)
    return repeated


def mirrored_note(mirror: str, original: str) -> Note:
    """Says that one of two is left out."""
    return Note("mirrored-counter", f"{mirror} repeats the counter of {original}; it is counted once")


def _step(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else now - before
