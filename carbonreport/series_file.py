"""Series out of CSV files: lines in cells with their numbers, columns by keyword, times with a zone."""

import csv
import io
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from carbonreport.errors import BadSeries, BadTime


def read_lines(path: Path, way_out: str) -> tuple[str, list[tuple[int, list[str]]]]:
    """Delimiter of the file, and its non-empty lines in cells with their numbers; the first is the header.

    Raises:
        BadSeries: It cannot be read, is no text, or has no rows; `way_out` says what it should be.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadSeries(f"cannot read {path}: {error.strerror}; give the path of a CSV file") from error
    encoding = "utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise BadSeries(f"{path.name} is not {encoding.upper().removesuffix('-SIG')} text; save it as CSV in UTF-8") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = [(reader.line_num, [cell.strip() for cell in cells]) for cells in reader if any(cell.strip() for cell in cells)]
    if len(lines) < 2:
        raise BadSeries(f"{path.name} has no rows below its header; {way_out}")
    return delimiter, lines


def normalised(titles: Sequence[str]) -> list[str]:
    """Titles in lower case with single blanks: providers change their spelling."""
    return [re.sub(r"[\s_-]+", " ", title.lower().replace("₂", "2")).strip() for title in titles]


def first_column(words: Sequence[str], *patterns: str) -> int | None:
    """First column whose normalised title matches, by the first pattern that any title matches."""
    return next((i for pattern in patterns for i, word in enumerate(words) if re.search(pattern, word)), None)


def time_s(text: str, is_utc: bool, where: str) -> float:
    """POSIX seconds of an ISO time.

    Raises:
        BadTime: It cannot be read, or has no zone while its column does not say UTC.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadTime(f"{where}: cannot read the time {text!r}; write it as 2026-03-29T14:00Z or 2026-03-29T16:00+02:00") from error
    if time.tzinfo is None:
        if not is_utc:
            raise BadTime(f"{where}: the time {text!r} has no zone; append Z or an offset such as +02:00, or name the column 'time (UTC)'")
        time = time.replace(tzinfo=UTC)
    return time.timestamp()
