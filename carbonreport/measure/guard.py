"""The one place that catches everything: the tracer must never end the program that it measures."""

from collections.abc import Callable
from typing import TypeVar

from carbonreport.model.notes import Note

T = TypeVar("T")


def guarded(what: str, call: Callable[[], T], note: Callable[[Note], None]) -> T | None:
    """Result of `call`, or None and a `tracer-degraded` note that says what failed and with which error."""
    try:
        return call()
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0][:200]
        note(Note("tracer-degraded", f"{what} failed ({type(error).__name__}: {first_line})"))
        return None
