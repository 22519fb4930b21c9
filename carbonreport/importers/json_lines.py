"""JSON and JSON lines, read without trust: each object, its number, and what could not be read."""

from collections.abc import Iterator
from typing import Any

import msgspec

from carbonreport.importers.imported import Rejected


def objects(text: str, rejected: list[Rejected]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of each line; a line that is no object is put aside."""
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        found = parsed(content)
        if isinstance(found, dict):
            yield line, found
        else:
            rejected.append((line, "it is no JSON object"))


def parsed(text: str) -> Any:
    """The value of a JSON text, or None where it is none. Too deep a nesting is none."""
    try:
        return msgspec.json.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def first_object(head: str) -> dict[str, Any]:
    """The object of the first line that is one; {} where none is."""
    return next((found for _, found in objects("\n".join(head.split("\n")[:5]), [])), {})


def real(value: Any) -> float | None:
    """A JSON number, or a text that is one; None for anything else, and for NaN."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else None
