"""Where a span's edge lies in time: at the host's stamp, or where the GPU got to the mark that was put into its work."""

from typing import Protocol

from carbonreport.measure.spans import Edge, SpanQueue

# A mark that the GPU has not reached for this long is taken at the host's stamp: a hung or lost board must not hold the run back.
PATIENCE_NS = 60_000_000_000


class EdgeSource(Protocol):
    """Marks in a GPU's work. `mark` runs in the caller's thread, the rest in the sampler's."""

    def mark(self) -> object | None:
        """Put a mark behind the work that the caller has launched so far; None where there is no GPU work to mark."""

    def resolve(self, mark: object) -> int | None:
        """When the GPU reached a mark, on the boot clock; None while it has not. [ns]"""

    def align(self) -> None:
        """Pair the GPU's clock with the host's again."""


class EdgeResolver:
    """Takes edges from the queue and gives them back in order once their time is known."""

    def __init__(self, queue: SpanQueue, source: EdgeSource | None) -> None:
        self._queue, self._source = queue, source
        self._waiting: list[Edge] = []
        self.on_host = 0
        self.given_up = 0

    @property
    def waiting(self) -> int:
        """Edges that the GPU has not reached."""
        return len(self._waiting)

    def take(self, now_ns: int, *, is_last: bool = False) -> tuple[list[Edge], int]:
        """Edges whose time is known, rising, and the time up to which no other can come. [ns]

        The GPU reaches a mark after the host put it, so nothing that still waits lies before the oldest stamp of those.
        """
        edges = self._queue.take()
        if self._source is None:
            return edges, now_ns
        self._source.align()
        known: list[Edge] = []
        waiting: list[Edge] = []
        for edge in (*self._waiting, *edges):
            resolved = self._resolved(edge, now_ns, is_last=is_last)
            if resolved is None:
                waiting.append(edge)
            else:
                known.append(resolved)
        horizon_ns = min((edge[0] for edge in waiting), default=now_ns)
        self._waiting = waiting + [edge for edge in known if edge[0] > horizon_ns]
        return sorted((edge for edge in known if edge[0] <= horizon_ns), key=lambda edge: edge[0]), horizon_ns

    def _resolved(self, edge: Edge, now_ns: int, *, is_last: bool) -> Edge | None:
        stamp_ns, occurrence, is_start, mark = edge
        if mark is None:
            return edge
        assert self._source is not None
        reached_ns = self._source.resolve(mark)
        if reached_ns is not None:
            return (reached_ns, occurrence, is_start, None)
        if not is_last and now_ns - stamp_ns < PATIENCE_NS:
            return None
        self.given_up += 1
        return (stamp_ns, occurrence, is_start, None)
