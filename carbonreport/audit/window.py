"""The year that is audited: its edges in the site's time zone, as microseconds; one that has not ended yet goes up to now. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise, product
from zoneinfo import ZoneInfo

from carbonreport.model.slices import is_slice
from carbonreport.units import HOUR_US, US_PER_S

_GROUP = re.compile(r"\[([^\]]*)\]")
_MOST_HOSTS = 100_000
FIRST_YEAR, LAST_YEAR = 1990, 2200  # that can be audited


@dataclass(frozen=True, slots=True)
class Window:
    """A calendar year at a place.

    Attributes:
        year: Which.
        time_zone: IANA name of the zone in which it begins and ends.
        edges_us: POSIX microseconds at which its months begin, and its end; of a year in progress fewer, the last being now.
        in_progress: Whether it has not ended.
    """

    year: int
    time_zone: str
    edges_us: tuple[int, ...]
    in_progress: bool = False

    @property
    def from_us(self) -> int:
        """Its begin."""
        return self.edges_us[0]

    @property
    def until_us(self) -> int:
        """Its end, or now."""
        return self.edges_us[-1]

    @property
    def months(self) -> tuple[str, ...]:
        """Those that have begun, such as "2026-01"."""
        return tuple(f"{self.year}-{month:02d}" for month in range(1, len(self.edges_us)))


def window_of(year: int, time_zone: str, now_s: float) -> Window:
    """A year in a time zone, until now at the latest.

    Raises:
        ValueError: It has not begun.
    """
    zone = ZoneInfo(time_zone)
    begins = [datetime(year, month, 1, tzinfo=zone) for month in range(1, 13)] + [datetime(year + 1, 1, 1, tzinfo=zone)]
    edges = [round(begin.timestamp()) * US_PER_S for begin in begins]
    now_us = int(now_s) * US_PER_S
    if now_us <= edges[0]:
        raise ValueError(f"{year} has not begun in {time_zone}")
    if now_us >= edges[-1]:
        return Window(year, time_zone, tuple(edges))
    return Window(year, time_zone, (*(edge for edge in edges if edge < now_us), now_us), in_progress=True)


def year_begin_us(year: int) -> int:
    """When a year begins in UTC, POSIX microseconds."""
    return round(datetime(year, 1, 1, tzinfo=UTC).timestamp()) * US_PER_S


def hours_between(start_us: int, end_us: int) -> Sequence[tuple[int, int]]:
    """A period cut at whole UTC hours."""
    edges = [start_us, *range((start_us // HOUR_US + 1) * HOUR_US, end_us, HOUR_US), end_us]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def expanded(hosts: str) -> tuple[str, ...]:
    """Names of a list as Slurm writes it: "n[01-03,7],login" is n01, n02, n03, n7, login."""
    names: list[str] = []
    for part in _parts(hosts):
        pieces: list[Sequence[str]] = []
        at = 0
        for group in _GROUP.finditer(part):
            pieces += [[part[at : group.start()]], list(_numbers(group.group(1)))]
            at = group.end()
        pieces.append([part[at:]])
        names += ["".join(combination) for combination in product(*pieces)]
        if len(names) > _MOST_HOSTS:
            return ()
    return tuple(names)


def _parts(hosts: str) -> Iterator[str]:
    """Split at commas outside brackets."""
    depth, begin = 0, 0
    for i, c in enumerate(hosts):
        depth += (c == "[") - (c == "]")
        if c == "," and depth == 0:
            yield hosts[begin:i].strip()
            begin = i + 1
    if hosts[begin:].strip():
        yield hosts[begin:].strip()


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        low, sign, high = part.partition("-")
        if not sign or not (low.isdecimal() and high.isdecimal()) or int(high) - int(low) > _MOST_HOSTS:
            yield part
        else:
            yield from (f"{number:0{len(low)}d}" for number in range(int(low), int(high) + 1))


def board_names(names: Iterable[str]) -> dict[str, str]:
    """One name for each board: Slurm's "h200" is the "NVIDIA H200" that a meter names, where it is the only one whose words hold it.

    A board is no slice of one, whose name holds the board's.
    """
    held = sorted({name for name in names if name})
    found = {}
    for name in held:
        longer = [other for other in held if other != name and _words(name) <= _words(other) and is_slice(other) == is_slice(name)]
        longest = [other for other in longer if not any(other != one and _words(other) < _words(one) for one in longer)]
        found[name] = longest[0] if len(longest) == 1 else name
    return found


def _words(name: str) -> frozenset[str]:
    return frozenset("".join(c if c.isalnum() else " " for c in name.casefold()).split())
