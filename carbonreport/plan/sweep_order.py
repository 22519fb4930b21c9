"""In which order caps are tried: runs without a cap first, last and between, so that heat and neighbours do not count as the caps' doing. Pure."""

import random
from collections.abc import Sequence

_LONG_BLOCK = 4  # trials between two without a cap: the drift between them is taken as straight


def sweep_order(caps: Sequence[float], repeats: int, seed: int) -> tuple[float | None, ...]:
    """A cap of each trial, None for one without.

    Each repeat tries every cap once in an order of its own; a trial without a cap comes before each repeat, in its middle where it is long, and last.
    """
    if not caps or repeats < 1 or len(set(caps)) < len(caps):
        raise ValueError(f"caps {list(caps)} and {repeats} repeats cannot be tried: give caps, each once, and a repeat or more")
    shuffle = random.Random(seed).shuffle  # the same on every host and rank of a job
    order: list[float | None] = []
    for _ in range(repeats):
        block = sorted(caps)
        shuffle(block)
        half = len(block) // 2 if len(block) > _LONG_BLOCK else 0
        order += [None, *block[:half], *([None] if half else []), *block[half:]]
    return (*order, None)
