"""Who had the time and the energy: sums of the deepest open spans by path and quarter hour, and the sums for short ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from carbonreport.combine.tally import Tally
from carbonreport.measure.clock import RunClock
from carbonreport.measure.curve import Curve
from carbonreport.measure.meter import Samples
from carbonreport.measure.spans import MAX_CACHED_PATHS, Edge, Occurrence
from carbonreport.model.run import Span
from carbonreport.model.sums import Rhythm, SpanSums
from carbonreport.units import QUARTER_HOUR_S

MAX_PATHS = 64
MOST_EDGES_PER_SECOND = 2000.0  # spans of half a millisecond are beyond any sensor, and their sums would cost the program time
_LATEST_LAG_S = 5.0  # a device whose readings are older than this no longer holds spans back
_TALLY_MEMORY_S = 0.2  # the sums of short spans stay this far behind


@dataclass(slots=True)
class _Sums:
    count: int = 0
    seconds: float = 0.0
    items: float | None = None
    joules: dict[str, float] = field(default_factory=dict)

    def add_items(self, items: float | None) -> None:
        if items is not None:
            self.items = items if self.items is None else self.items + items


def usable_items(items: object) -> float | None:
    """What a caller counted, as a plain number; None for what is none: text, a list, not finite, negative."""
    if isinstance(items, str | bytes):
        return None
    try:
        number = float(items)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None


class SpanLedger:
    """Adds time and energy to the deepest open spans, by path and UTC quarter hour.

    At any moment energy goes to the open spans that have no open child; several of them (threads, tasks)
    share it equally, so spans and the rest always make up the total.
    """

    def __init__(self, clock: RunClock) -> None:
        self._clock = clock
        self._sums: dict[tuple[str, float], _Sums] = {}
        self._children: dict[Occurrence, int] = {}
        self._paths: dict[str, str] = {}
        self._known: set[str] = set()
        self._pending: list[Edge] = []
        self._done_s = 0.0
        self.folded: set[str] = set()
        self.unusable_items = 0
        self.rhythms: dict[str, Rhythm] = {}
        self._began_s: dict[str, float] = {}
        self._tallies: dict[str, Tally] = {}

    @property
    def has_spans(self) -> bool:
        """Whether any span was seen."""
        return bool(self._known)

    def add_samples(self, samples: Iterable[Samples], curves: Mapping[str, Curve]) -> None:
        """Take power samples of devices whose sensor's response is known."""
        for s in samples:
            tally = self._tallies.get(s.device)
            if tally is None and s.device in curves:
                tally = self._tallies[s.device] = Tally(s.device, s.sensor, curves[s.device].joules_at, self._done_s)
                tally.turn(self._done_s, self._open())
            if tally is not None:
                tally.add(s.points)
                tally.limited_seconds = s.limited_seconds

    def sums(self) -> list[SpanSums]:
        """What the samples say of the spans so far, one a device; nothing where there were no spans."""
        return [tally.sums(self.rhythms) for tally in self._tallies.values()] if self._known else []

    def advance(self, edges: Sequence[Edge], curves: Mapping[str, Curve], now_s: float, *, is_last: bool) -> None:
        """Account for the time up to which every device has readings and every edge is known.

        Args:
            edges: New edges in the order of their stamps.
            curves: Energy of each device.
            now_s: Offset up to which all edges are known. [s]
            is_last: Whether the run ends there.
        """
        self._pending += edges
        if is_last:
            until_s = now_s
        else:
            latest = [c.latest_s if c.latest_s is not None else 0.0 for c in curves.values()]
            until_s = min(max(min(latest, default=now_s), now_s - _LATEST_LAG_S), now_s)
        if until_s > self._done_s:
            self._advance(curves, until_s)
        for curve in curves.values():
            curve.forget_before(self._done_s - _TALLY_MEMORY_S)

    def _advance(self, curves: Mapping[str, Curve], until_s: float) -> None:
        energies = {device: curve.joules_at(self._done_s) for device, curve in curves.items()}
        begin_s, taken = self._done_s, 0
        is_tallied = self._is_worth_sums(until_s)
        for at_ns, occurrence, is_start, _ in self._pending:
            at_s = self._clock.offset_of_boot_s(at_ns)
            if at_s > until_s:
                break
            taken += 1
            energies = self._spend(curves, energies, at_s)
            self._turn(occurrence, is_start, max(at_s, begin_s))
            if is_tallied:
                self._turn_tallies(max(at_s, begin_s))
        del self._pending[:taken]
        self._spend(curves, energies, until_s)
        for tally in self._tallies.values():
            if is_tallied:
                tally.until(until_s)
            else:
                tally.pause(until_s, self._open())

    def _is_worth_sums(self, until_s: float) -> bool:
        """Whether edges come slowly enough for a sensor to tell spans apart."""
        if not self._tallies:
            return False
        coming = sum(self._clock.offset_of_boot_s(edge[0]) <= until_s for edge in self._pending)
        return coming <= MOST_EDGES_PER_SECOND * max(until_s - self._done_s, 0.1)

    def _turn_tallies(self, at_s: float) -> None:
        open_now = self._open()
        for tally in self._tallies.values():
            tally.turn(at_s, open_now)

    def _open(self) -> dict[str, float]:
        """Share of the time by path: the deepest open spans, equally."""
        leaves = [occurrence for occurrence, children in self._children.items() if not children]
        shares: dict[str, float] = {}
        for occurrence in leaves:
            path = self._paths.get(occurrence.path) or self._fold(occurrence.path)
            shares[path] = shares.get(path, 0.0) + 1.0 / len(leaves)
        return shares

    def _spend(self, curves: Mapping[str, Curve], energies: dict[str, float], to_s: float) -> dict[str, float]:
        """Give the time and energy up to an offset to the deepest open spans, quarter hour by quarter hour."""
        while to_s > self._done_s:
            quarter_s = self._quarter_s()
            end_s = min(to_s, quarter_s + QUARTER_HOUR_S - self._clock.started_s)
            if not self._children:
                self._done_s = to_s
                return {device: curve.joules_at(to_s) for device, curve in curves.items()}
            after = {device: curve.joules_at(end_s) for device, curve in curves.items()}
            self._share(quarter_s, end_s - self._done_s, energies, after)
            self._done_s, energies = end_s, after
        return energies

    def _share(self, quarter_s: float, seconds: float, before: Mapping[str, float], after: Mapping[str, float]) -> None:
        leaves = [occurrence for occurrence, children in self._children.items() if not children]
        for occurrence in leaves:
            sums = self._sums_of(occurrence.path, quarter_s)
            sums.seconds += seconds
            for device, joules in after.items():
                sums.joules[device] = sums.joules.get(device, 0.0) + (joules - before.get(device, joules)) / len(leaves)

    def _quarter_s(self) -> float:
        at_s = self._clock.started_s + self._done_s
        quarter_s = at_s // QUARTER_HOUR_S * QUARTER_HOUR_S
        nearly_over = quarter_s + QUARTER_HOUR_S - at_s < 1e-6  # a float that should have been the edge
        return quarter_s + QUARTER_HOUR_S if nearly_over else quarter_s

    def _turn(self, occurrence: Occurrence, is_start: bool, at_s: float) -> None:
        parent = occurrence.parent
        if is_start:
            self._children[occurrence] = 0
            if parent in self._children:
                self._children[parent] += 1
            self._note_rhythm(occurrence.path, at_s)
        elif occurrence in self._children:
            del self._children[occurrence]
            if parent in self._children:
                self._children[parent] -= 1
            sums = self._sums_of(occurrence.path, self._quarter_s())
            sums.count += 1
            if occurrence.items is not None:
                items = usable_items(occurrence.items)
                sums.add_items(items)
                self.unusable_items += items is None

    def _note_rhythm(self, path: str, at_s: float) -> None:
        path = self._paths.get(path) or self._fold(path)
        before_s = self._began_s.get(path)
        self._began_s[path] = at_s
        if before_s is not None:
            self.rhythms.setdefault(path, Rhythm()).add(at_s - before_s)

    def _sums_of(self, path: str, quarter_s: float) -> _Sums:
        path = self._paths.get(path) or self._fold(path)
        return self._sums.setdefault((path, quarter_s), _Sums())

    def _fold(self, path: str) -> str:
        """The path itself, or the parent that takes it in where there are too many."""
        kept = path
        while kept not in self._known and len(self._known) >= MAX_PATHS:
            parent, separator, _ = kept.rpartition("/")
            self.folded.add(path)
            if not separator:
                kept = "other"
                break
            kept = parent
        self._known.add(kept)
        if len(self._paths) < MAX_CACHED_PATHS:
            self._paths[path] = kept
        return kept

    def take_before(self, quarter_s: float) -> list[Span]:
        """Take the sums of quarter hours that are over, or all with infinity."""
        keys = [key for key in self._sums if key[1] < quarter_s]
        return [_span(key, self._sums.pop(key)) for key in keys]

    def open_sums(self) -> list[Span]:
        """Sums that the record does not hold yet."""
        return [_span(key, sums) for key, sums in self._sums.items()]

    @property
    def backlog(self) -> int:
        """Edges that wait for readings."""
        return len(self._pending)

    @property
    def done_s(self) -> float:
        """Offset up to which spans are accounted for."""
        return self._done_s


def _span(key: tuple[str, float], sums: _Sums) -> Span:
    return Span(key[0], key[1], sums.count, sums.seconds, sums.items, dict(sums.joules))
