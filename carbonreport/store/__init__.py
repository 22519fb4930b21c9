"""RunRecord <-> file. Writing is stdlib only (the tracer does it); reading checks every field."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from carbonreport.store.reader import load

__all__ = ["load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from carbonreport.store.reader import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
