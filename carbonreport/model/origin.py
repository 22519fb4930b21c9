"""How well a number is known."""

from typing import Literal

Origin = Literal["measured", "reported", "estimated", "assumed"]

# From the strongest to the weakest.
ORIGINS: tuple[Origin, ...] = ("measured", "reported", "estimated", "assumed")


def weakest(*origins: Origin) -> Origin:
    """The least well known of several origins."""
    return max(origins, key=ORIGINS.index)
