"""Spans: two clock reads in the caller's thread; everything else later, in the sampler's."""

import functools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Any, TypeVar

from carbonreport.measure.clock import RunClock
from carbonreport.measure.curve import Curve
from carbonreport.model.run import Span
from carbonreport.units import QUARTER_HOUR_S

MAX_PATHS = 64
MAX_QUEUED_EDGES = 100_000
_MAX_PATH_LENGTH = 200
_MAX_CACHED_PATHS = 10_000  # a path with a step number in it must not fill the memory
_LATEST_LAG_S = 5.0  # a device whose readings are older than this no longer holds spans back

F = TypeVar("F", bound=Callable[..., Any])


class Occurrence:
    """One entry into a span: `with run.span("train/step", items=64): …`, or a decorator."""

    __slots__ = ("_name", "_recorder", "_token", "is_dropped", "items", "parent", "path")

    def __init__(self, recorder: "SpanQueue", name: str, items: float | None) -> None:
        self._recorder, self._name, self.path, self.items = recorder, name, name, items
        self.parent: Occurrence | None = None
        self.is_dropped = False
        self._token: Token[Occurrence | None] | None = None

    def __enter__(self) -> "Occurrence":
        recorder = self._recorder
        parent = self.parent = recorder.current.get()
        self.path = recorder.full_path(self._name, None if parent is None else parent.path)
        self._token = recorder.current.set(self)
        recorder.put(self, True)
        return self

    def __exit__(self, *_: object) -> None:
        self._recorder.put(self, False)
        if self._token is not None:
            self._recorder.leave(self._token)

    def __call__(self, function: F) -> F:
        """Use as a decorator: every call is a span of its own."""
        recorder, name, items = self._recorder, self._name, self.items

        @functools.wraps(function)
        def spanned(*args: Any, **kwargs: Any) -> Any:
            with Occurrence(recorder, name, items):
                return function(*args, **kwargs)

        return spanned  # type: ignore[return-value]


class SpanQueue:
    """A bounded queue of edges, filled by any thread without a lock, emptied by the sampler."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self.current: ContextVar[Occurrence | None] = ContextVar("carbonreport_span", default=None)
        self.is_open = True
        self.dropped = 0
        self.backlog = 0  # edges that the sampler has taken and cannot account for yet
        self._now_ns = now_ns
        self._edges: deque[tuple[int, Occurrence, bool]] = deque()
        self._paths: dict[tuple[str, str | None], str] = {}

    def full_path(self, name: str, parent: str | None) -> str:
        """Path of a span under its enclosing one, cleaned once for each pair."""
        path = self._paths.get((name, parent))
        if path is None:
            path = clean_path(name, parent)
            if len(self._paths) < _MAX_CACHED_PATHS:
                self._paths[name, parent] = path
        return path

    def put(self, occurrence: Occurrence, is_start: bool) -> None:
        """Stamp an edge; after the end of the run, or in a forked child, nothing happens.

        A full queue refuses a beginning and then its end: an end alone that is lost would leave its span open for ever.
        """
        if not self.is_open:
            return
        if is_start:
            occurrence.is_dropped = len(self._edges) + self.backlog >= MAX_QUEUED_EDGES
            self.dropped += occurrence.is_dropped
        if occurrence.is_dropped:
            return
        self._edges.append((self._now_ns(), occurrence, is_start))

    def leave(self, token: Token[Occurrence | None]) -> None:
        """Restore the enclosing span; one that ends in another context than it began, or twice, has nothing to restore."""
        try:
            self.current.reset(token)
        except (ValueError, RuntimeError):
            self.current.set(None)

    def take(self) -> list[tuple[int, Occurrence, bool]]:
        """All edges so far, in the order of their stamps."""
        edges = [self._edges.popleft() for _ in range(len(self._edges))]  # not those that come meanwhile
        edges.sort(key=lambda edge: edge[0])
        return edges

    def close(self) -> None:
        """Take no more edges and forget the queued ones."""
        self.is_open = False
        self._edges.clear()


@dataclass(slots=True)
class _Sums:
    count: int = 0
    seconds: float = 0.0
    items: float | None = None
    joules: dict[str, float] = field(default_factory=dict)

    def add_items(self, items: float | None) -> None:
        if items is not None:
            self.items = items if self.items is None else self.items + items


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
        self._pending: list[tuple[int, Occurrence, bool]] = []
        self._done_s = 0.0
        self.folded: set[str] = set()

    @property
    def has_spans(self) -> bool:
        """Whether any span was seen."""
        return bool(self._known)

    def advance(self, edges: Sequence[tuple[int, Occurrence, bool]], curves: Mapping[str, Curve], now_s: float, *, is_last: bool) -> None:
        """Account for the time up to which every device has readings."""
        self._pending += edges
        if is_last:
            until_s = now_s
        else:
            latest = [c.latest_s if c.latest_s is not None else 0.0 for c in curves.values()]
            until_s = max(min(latest, default=now_s), now_s - _LATEST_LAG_S)
        if until_s > self._done_s:
            self._advance(curves, until_s)
        for curve in curves.values():
            curve.forget_before(self._done_s)

    def _advance(self, curves: Mapping[str, Curve], until_s: float) -> None:
        energies = {device: curve.joules_at(self._done_s) for device, curve in curves.items()}
        taken = 0
        for at_ns, occurrence, is_start in self._pending:
            at_s = self._clock.offset_of_boot_s(at_ns)
            if at_s > until_s:
                break
            taken += 1
            energies = self._spend(curves, energies, at_s)
            self._turn(occurrence, is_start)
        del self._pending[:taken]
        self._spend(curves, energies, until_s)

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

    def _turn(self, occurrence: Occurrence, is_start: bool) -> None:
        parent = occurrence.parent
        if is_start:
            self._children[occurrence] = 0
            if parent in self._children:
                self._children[parent] += 1
        elif occurrence in self._children:
            del self._children[occurrence]
            if parent in self._children:
                self._children[parent] -= 1
            sums = self._sums_of(occurrence.path, self._quarter_s())
            sums.count += 1
            sums.add_items(occurrence.items)

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
        if len(self._paths) < _MAX_CACHED_PATHS:
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


def clean_path(path: str, parent: str | None) -> str:
    """A span's full path: below the enclosing one, unless it already begins with it; control characters gone."""
    text = "".join(c if c.isprintable() else " " for c in str(path)).strip().strip("/")[:_MAX_PATH_LENGTH] or "unnamed"
    if parent is None or text == parent or text.startswith(parent + "/"):
        return text
    return f"{parent}/{text}"[:_MAX_PATH_LENGTH]
