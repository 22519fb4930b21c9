"""Spans: two clock reads in the caller's thread; everything else later, in the sampler's."""

import functools
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

MAX_QUEUED_EDGES = 100_000
_MAX_PATH_LENGTH = 200
MAX_CACHED_PATHS = 10_000  # a path with a step number in it must not fill the memory

F = TypeVar("F", bound=Callable[..., Any])


class Occurrence:
    """One entry into a span: `with run.span("train/step", items=64): …`, or a decorator."""

    __slots__ = ("_name", "_recorder", "_token", "is_dropped", "is_entered", "items", "parent", "path")

    def __init__(self, recorder: "SpanQueue", name: str, items: float | None) -> None:
        self._recorder, self._name, self.path, self.items = recorder, name, name, items
        self.parent: Occurrence | None = None
        self.is_dropped = False
        self.is_entered = False  # whether its block is under way
        self._token: Token[Occurrence | None] | None = None

    def __enter__(self) -> "Occurrence":
        recorder = self._recorder
        parent = self.parent = recorder.current.get()
        self.path = recorder.full_path(self._name, None if parent is None else parent.path)
        self._token = recorder.current.set(self)
        self.is_entered = True
        recorder.put(self, True)
        return self

    def __exit__(self, *_: object) -> None:
        recorder = self._recorder
        if recorder.on_exit is not None:
            recorder.on_exit(self)
        recorder.put(self, False)
        self.is_entered = False
        if self._token is not None:
            recorder.leave(self._token)

    def open_in(self, parent: "Occurrence | None") -> None:
        """Begin inside another one, whatever the caller's context and the names say; what is opened so is no block around others."""
        self.parent = parent
        self.path = self._recorder.full_path(self._name, None)
        self._recorder.put(self, True)

    def close(self) -> None:
        """End what was opened."""
        self._recorder.put(self, False)

    def __call__(self, function: F) -> F:
        """Use as a decorator: every call is a span of its own."""
        recorder, name, items = self._recorder, self._name, self.items

        @functools.wraps(function)
        def spanned(*args: Any, **kwargs: Any) -> Any:
            with Occurrence(recorder, name, items):
                return function(*args, **kwargs)

        return spanned  # type: ignore[return-value]


Edge = tuple[int, Occurrence, bool, object | None]
"""Stamp [ns], which span, whether it begins, and the mark in the GPU's work where there is one."""


class SpanQueue:
    """A bounded queue of edges, filled by any thread without a lock, emptied by the sampler.

    Args:
        now_ns: The clock of the stamps.
        mark: Marks the caller's place in the GPU's work (edges.py); None where the host's stamps are the edges.
    """

    def __init__(self, now_ns: Callable[[], int], mark: Callable[[], object | None] | None = None) -> None:
        self.current: ContextVar[Occurrence | None] = ContextVar("carbonreport_span", default=None)
        self.is_open = True
        self.on_exit: Callable[[Occurrence], None] | None = None  # told a block that ends, before it does
        self.dropped = 0
        self.backlog = 0  # edges that the sampler has taken and cannot account for yet
        self._now_ns, self._mark = now_ns, mark
        self._edges: deque[Edge] = deque()
        self._paths: dict[tuple[str, str | None], str] = {}

    def full_path(self, name: str, parent: str | None) -> str:
        """Path of a span under its enclosing one, cleaned once for each pair."""
        path = self._paths.get((name, parent))
        if path is None:
            path = clean_path(name, parent)
            if len(self._paths) < MAX_CACHED_PATHS:
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
        mark = self._mark
        self._edges.append((self._now_ns(), occurrence, is_start, None if mark is None else mark()))

    def leave(self, token: Token[Occurrence | None]) -> None:
        """Restore the enclosing span; one that ends in another context than it began, or twice, has nothing to restore."""
        try:
            self.current.reset(token)
        except (ValueError, RuntimeError):
            self.current.set(None)

    def take(self) -> list[Edge]:
        """All edges so far, in the order of their stamps."""
        edges = [self._edges.popleft() for _ in range(len(self._edges))]  # not those that come meanwhile
        edges.sort(key=lambda edge: edge[0])
        return edges

    def close(self) -> None:
        """Take no more edges and forget the queued ones."""
        self.is_open = False
        self._edges.clear()


def clean_path(path: str, parent: str | None) -> str:
    """A span's full path: below the enclosing one, unless it already begins with it; control characters gone."""
    text = "".join(c if c.isprintable() else " " for c in str(path)).strip().strip("/")[:_MAX_PATH_LENGTH] or "unnamed"
    if parent is None or text == parent or text.startswith(parent + "/"):
        return text
    return f"{parent}/{text}"[:_MAX_PATH_LENGTH]
