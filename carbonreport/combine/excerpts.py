"""Which samples are kept: those around stretches of paths that have hardly repeated. Pure, stdlib only."""

from collections import deque

from carbonreport.model.sums import Excerpt

FEW = 30  # a path with this many stretches is solved by its repeats
SHORTEST_S, LONGEST_S = 0.024, 1.0  # shorter ones no sensor resolves; longer ones are a difference of the curve
MARGIN_S = 0.1
MOST_KEPT_S = 120.0

Stretch = tuple[int, float, float, float]


class Excerpts:
    """Collects windows around the first stretches of each path."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._stretches: deque[Stretch] = deque()
        self._samples: deque[tuple[float, float]] = deque()
        self._finished: list[tuple[set[int], Excerpt]] = []
        self._window: tuple[float, float] | None = None
        self._wanted: set[int] = set()
        self._kept_s = 0.0

    def stretch(self, column: int, from_s: float, to_s: float, share: float) -> None:
        """A stretch of a path has ended."""
        self._append((column, from_s, to_s, share))
        if not SHORTEST_S <= to_s - from_s < LONGEST_S or self._kept_s > MOST_KEPT_S:
            return
        count = self._counts[column] = self._counts.get(column, 0) + 1
        if count <= FEW:
            self._want(column, from_s - MARGIN_S, to_s + MARGIN_S)

    def between(self, from_s: float, to_s: float) -> None:
        """No span was open."""
        self._append((0, from_s, to_s, 1.0))

    def sample(self, stamp_s: float, watts: float) -> None:
        """A sample was taken."""
        self._samples.append((stamp_s, watts))
        self._close_before(stamp_s)
        keep_s = stamp_s - LONGEST_S - 2 * MARGIN_S
        while self._window is None and self._samples[0][0] < keep_s:
            self._samples.popleft()

    def forget(self) -> None:
        """What was open is not known: drop what is not finished."""
        self._stretches.clear()
        self._samples.clear()
        self._window = None

    def finished(self) -> tuple[Excerpt, ...]:
        """Windows so far around paths that are still few, an unfinished one as far as it goes."""
        open_ones = [(self._wanted, self._excerpt(self._window))] if self._window else []
        return tuple(excerpt for wanted, excerpt in (*self._finished, *open_ones) if any(self._counts[column] < FEW for column in wanted))

    def _append(self, stretch: Stretch) -> None:
        self._stretches.append(stretch)
        keep_s = stretch[2] - LONGEST_S - 4 * MARGIN_S
        while self._window is None and self._stretches[0][2] < keep_s:
            self._stretches.popleft()

    def _want(self, column: int, from_s: float, to_s: float) -> None:
        if self._window is not None and from_s > self._window[1]:
            self._finish(self._window)
            self._window = None
        self._window = (from_s, to_s) if self._window is None else (self._window[0], max(self._window[1], to_s))
        self._wanted.add(column)

    def _close_before(self, stamp_s: float) -> None:
        window = self._window
        if window is not None and stamp_s > window[1] + MARGIN_S and self._stretches and self._stretches[-1][2] >= window[1]:
            self._finish(window)
            self._window = None

    def _finish(self, window: tuple[float, float]) -> None:
        self._kept_s += window[1] - window[0]
        self._finished.append((self._wanted, self._excerpt(window)))
        self._wanted = set()

    def _excerpt(self, window: tuple[float, float]) -> Excerpt:
        from_s, to_s = window
        samples = tuple((round(t, 5), round(w, 1)) for t, w in self._samples if from_s <= t <= to_s)
        stretches = tuple(
            (column, round(a, 6), round(b, 6), share) for column, a, b, share in self._stretches if b > from_s - MARGIN_S and a < to_s
        )
        return Excerpt(samples, stretches)
