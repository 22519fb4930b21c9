"""The order in which kernels run, where only their counts are known. Pure."""

from collections.abc import Sequence
from itertools import groupby


def in_loops(counts: Sequence[int], passes: Sequence[str]) -> tuple[int, ...]:
    """Row of each invocation when neighbours of one pass and one count are a loop (a layer's kernels, layer by layer). Shape (sum of counts,)."""
    sequence: list[int] = []
    keys = list(zip(counts, passes, strict=True))
    for (count, _), group in groupby(range(len(keys)), key=lambda row: keys[row]):
        sequence += list(group) * count
    return tuple(sequence)
