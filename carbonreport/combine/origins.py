"""How a sum is known: as its weakest part of any weight. Pure."""

from collections import defaultdict
from collections.abc import Sequence

from carbonreport.model.origin import ORIGINS, Origin

_SMALL_SHARE = 0.01  # a part below this share does not weaken the origin of the sum


def weakest(parts: Sequence[tuple[Origin, float]]) -> Origin:
    """Weakest origin among those with more than 1 % of the sum; the strongest of an empty sum is unknown, so assumed."""
    whole = sum(amount for _, amount in parts)
    by_origin: dict[Origin, float] = defaultdict(float)
    for origin, amount in parts:
        by_origin[origin] += amount
    counting = [o for o, amount in by_origin.items() if amount > _SMALL_SHARE * whole] or list(by_origin)
    return max(counting, key=ORIGINS.index, default="assumed")
