"""The outside world's grids: sources of intensity, behind one protocol.

Everything here may read files or talk to a provider; what it hands on is an `IntensitySeries`, and from there on all is arithmetic.
`zones.py` is stdlib only, because the tracer asks it at its start.

A provider is one file in `sources/` with two pure functions, `requests(ask, …)` (what to ask, as `Request`s) and `parse(ask, body)` (one
answer as checked `Readings`), and `create(options, *, fill, fetch, cache, environ)`, which puts them behind the fetcher and the cache (`online.py`).
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from carbonreport.model.series import IntensitySeries  # numpy; `grid.zones` must import without it


class GridSource(Protocol):
    """Whoever knows the intensity of a zone over time."""

    def series(self, zone: str, start_s: float, end_s: float) -> "IntensitySeries":
        """Intensity that covers the period from start to end, POSIX seconds.

        Raises:
            GridGap: A part of the period is not known.
            UnknownZone: The zone is not known.
        """
        ...
