"""Stamps of foreign logs as POSIX seconds: offsets honoured, local ones only with a zone, ambiguous dates refused."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from carbonreport.importers.cells import is_missing

Clock = Literal["utc", "local", "none"]
"""Whether seconds are POSIX, or a local time read as if it were UTC, or counted from anywhere."""

_EPOCHS = ((1e8, 1e10, 1.0), (1e11, 1e13, 1e-3), (1e14, 1e16, 1e-6), (1e17, 1e19, 1e-9))  # s, ms, µs, ns between 1973 and 2286
_YEAR_FIRST = re.compile(
    r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T \-](\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?)\s*(Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})[T ,]+(\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?)\s*(Z|UTC|[+-]\d{2}:?\d{2})?")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})[T ]+(\d{1,2}:\d{2}:\d{2})")
_CTIME = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d{2}:\d{2}:\d{2})(?: ([A-Z]{3,4}))? (\d{4})")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_MONTHS = {m: i for i, m in enumerate(["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], start=1)}
_HALF_HOUR_S = 1800.0
_NEAR_S = 7200.0


@dataclass(frozen=True, slots=True)
class Moments:
    """Times of rows, in their order.

    Attributes:
        seconds: Of each row, None where its stamp cannot be used. What they count from is `clock`.
        clock: See Clock.
        reasons: Why, for each row without.
    """

    seconds: tuple[float | None, ...]
    clock: Clock
    reasons: tuple[str, ...]


def moments(cells: Iterable[str], *, zone: ZoneInfo | None, date_order: str = "") -> Moments:
    """Times of a column.

    Args:
        cells: Stamps as written, in the file's order: the hour that comes twice in autumn is told by what came before.
        zone: Time zone of stamps without an offset, or None.
        date_order: "dmy" or "mdy" for dates such as 04-03-2021; "" to tell it from the dates, where one has a day above 12.
    """
    texts = list(cells)
    order = date_order or order_of(texts)
    read = [moment(text, order) for text in texts]
    kinds = {clock for _, clock, _ in read if clock}
    if "local" in kinds and zone is not None:
        seconds, why = _in_zone(read, zone)
        return Moments(tuple(seconds), "utc" if kinds <= {"utc", "local"} else "none", tuple(why))
    clock: Clock = "none" if "none" in kinds or not kinds else "local" if "local" in kinds else "utc"
    mixed = len(kinds) > 1
    kept = [None if s is None or (mixed and c != clock) else s for s, c, _ in read]
    return Moments(
        tuple(kept),
        clock,
        tuple(
            why or ("its stamp is of another kind than the others" if s is None else "") for (_, _, why), s in zip(read, kept, strict=True)
        ),
    )


@lru_cache(maxsize=65536)
def moment(text: str, order: str = "") -> tuple[float | None, Clock | None, str]:
    """Seconds of one stamp, what they count from, and why there are none.

    Args:
        text: As written.
        order: "dmy" or "mdy" for dates that end with the year; "" where nobody knows.
    """
    text = text.strip().strip('"')
    if is_missing(text):
        return None, None, "it has no time"
    if _NUMBER.fullmatch(text):
        value = float(text)
        for low, high, factor in _EPOCHS:
            if low <= value < high:
                return value * factor, "utc", ""
        return value, "none", ""
    parts = _parts(text, order)
    if isinstance(parts, str):
        return None, None, parts
    year, month, day, clock, offset = parts
    try:
        moment = datetime.fromisoformat(f"{year:04d}-{month:02d}-{day:02d}T{_padded(clock)}{_offset(offset)}")
    except ValueError:
        return None, None, f"its time {text[:40]!r} is none"
    if moment.tzinfo is not None:
        return moment.timestamp(), "utc", ""
    return moment.replace(tzinfo=UTC).timestamp(), "local", ""


def _parts(text: str, order: str) -> tuple[int, int, int, str, str] | str:
    """Year, month, day, clock and offset of a date; or why it is none."""
    if found := _YEAR_FIRST.fullmatch(text):
        return int(found[1]), int(found[2]), int(found[3]), found[4] or "00:00", found[5] or ""
    if found := _COMPACT.fullmatch(text):
        return int(found[1]), int(found[2]), int(found[3]), found[4], ""
    if found := _CTIME.fullmatch(text):
        return int(found[5]), _MONTHS.get(found[1], 0), int(found[2]), found[3], "Z" if found[4] in ("UTC", "GMT") else ""
    if found := _YEAR_LAST.fullmatch(text):
        first, second = int(found[1]), int(found[3])
        if found[2] == ".":
            order = "dmy"
        if not order:
            return f"its date {text[:10]!r} may be day-month or month-day; give --mapping date_order=dmy or mdy"
        day, month = (first, second) if order == "dmy" else (second, first)
        return int(found[4]), month, day, found[5], found[6] or ""
    return f"its time {text[:40]!r} cannot be read"


def order_of(texts: Iterable[str]) -> str:
    """Day or month first, told by a part above 12; "" where none is, or where some say the one and some the other."""
    dates = [found for text in texts if (found := _YEAR_LAST.fullmatch(text.strip())) and found[2] != "."]
    is_day_first, is_month_first = (any(int(found[part]) > 12 for found in dates) for part in (1, 3))
    return "" if is_day_first == is_month_first else "dmy" if is_day_first else "mdy"


def _padded(clock: str) -> str:
    hours, _, rest = clock.replace(",", ".").partition(":")
    return f"{int(hours):02d}:{rest}"


def _offset(text: str) -> str:
    if text in ("Z", "UTC"):
        return "+00:00"
    return f"{text[:3]}:{text[-2:]}" if text else ""


def _in_zone(read: Sequence[tuple[float | None, Clock | None, str]], zone: ZoneInfo) -> tuple[list[float | None], list[str]]:
    """POSIX seconds of local stamps: one that does not exist is refused; of an hour that comes twice, the second one after the first."""
    seconds: list[float | None] = []
    reasons = []
    before: float | None = None
    for value, clock, why in read:
        if value is None or clock != "local":
            seconds.append(value)
            reasons.append(why)
            continue
        at_s, why = local_to_utc(value, zone, before)
        if at_s is not None:
            before = at_s
        seconds.append(at_s)
        reasons.append(why)
    return seconds, reasons


def local_to_utc(local_s: float, zone: ZoneInfo, before_s: float | None = None) -> tuple[float | None, str]:
    """POSIX seconds of a local time written as if it were UTC, and why there are none.

    Args:
        local_s: Seconds of the local date and clock, read as UTC.
        zone: Where that clock hung.
        before_s: POSIX seconds of the row before, which tells apart the hour that comes twice.
    """
    whole, fraction = divmod(local_s, 1.0)
    earlier_offset, later_offset = _offsets(int(whole // 900), zone)
    earlier, later = whole - earlier_offset + fraction, whole - later_offset + fraction
    if earlier_offset == later_offset:
        return earlier, ""
    naive = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=whole)
    if earlier > later:  # fold 0 lies after fold 1 in a gap
        return None, f"{naive:%F %T} does not exist in {zone.key}, where the clocks are set forward then"
    if before_s is not None and -_NEAR_S < earlier - before_s < _NEAR_S:
        return (later if earlier < before_s - _HALF_HOUR_S else earlier), ""
    return None, f"{naive:%F %T} comes twice in {zone.key}, where the clocks are set back then"


@lru_cache(maxsize=65536)
def _offsets(quarter: int, zone: ZoneInfo) -> tuple[float, float]:
    """Offsets of a local quarter hour, of both folds. [s] Changes of clocks fall on quarter hours."""
    naive = datetime(1970, 1, 1) + timedelta(seconds=quarter * 900)  # noqa: DTZ001
    offsets = [naive.replace(tzinfo=zone, fold=fold).utcoffset() for fold in (0, 1)]
    earlier, later = (offset.total_seconds() if offset is not None else 0.0 for offset in offsets)
    return earlier, later
