"""What is followed of a plan: clocks by phase, their order, and where a span of the program belongs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from carbonreport.plan.table import UNLOCKED, ClockPair

TOGETHER = " + "  # between phases that are one row of a table, whose first one begins it


class Place(Enum):
    """Where a span is that begins no planned phase."""

    AROUND = "around"  # phases begin inside it, or it is between them
    INSIDE = "inside"  # a part of a phase
    ON = "on"  # a later phase of the row that runs
    OUTSIDE = "outside"  # work that was not planned for


@dataclass(frozen=True, slots=True)
class Follow:
    """What is followed.

    Attributes:
        pairs: Clocks by name of the phase; "backward" is also the end of "train/step/backward".
        sequence: Phases of one iteration in order, or nothing where the plan does not say; clocks are not turned until one iteration ran in that order.
        rest: What is held until then.
        members: Later phases of rows that hold several, in whose clocks they run.
    """

    pairs: Mapping[str, ClockPair]
    sequence: tuple[str, ...] = ()
    rest: ClockPair = UNLOCKED
    members: frozenset[str] = frozenset()

    def name_of(self, path: str) -> str | None:
        """The phase of a span's path: the longest end of it that is planned."""
        return next((name for name in _ends(path) if name in self.pairs), None)

    def place_of(self, path: str) -> Place:
        """Where a span is that begins no phase, as far as its path says."""
        if not path:
            return Place.AROUND
        if any(name in self.members for name in _ends(path)):
            return Place.ON
        is_inside = any(name in self.pairs or name in self.members for around in parents(path) for name in _ends(around))
        return Place.INSIDE if is_inside else Place.OUTSIDE


def rows(names: Sequence[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """First phases of the rows of a table, and the later ones of rows that hold several."""
    parts = [tuple(name.split(TOGETHER)) for name in names]
    return tuple(some[0] for some in parts), frozenset(name for some in parts for name in some[1:])


def parents(path: str) -> list[str]:
    """Paths around one, outermost first: "" is around all."""
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(len(parts))]


def _ends(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[i:]) for i in range(len(parts))]
