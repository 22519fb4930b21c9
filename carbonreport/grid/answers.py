"""What is asked of a provider, and the checks that every answer goes through before anybody believes it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Literal, TypeVar

import msgspec
import numpy as np

from carbonreport.errors import BadAnswer
from carbonreport.grid.readings import Readings
from carbonreport.model.series import Family
from carbonreport.request import printable
from carbonreport.units import SECONDS_PER_HOUR

T = TypeVar("T")
Kind = Literal["history", "latest", "forecast"]
DAY_S = 24 * SECONDS_PER_HOUR
# No grid is dirtier than its dirtiest plant; a larger number is of another unit.
MOST_GRAMS = 3000.0
# No life-cycle intensity is lower than that of nuclear power: a lower one is a missing value written as 0 or 1.
LEAST_LIFECYCLE_GRAMS = 3.0
# A small negative intensity is a rounding of storage and exports; a larger one is a fault of the data.
LEAST_NEGATIVE_GRAMS = -1.0
GAP_STEPS = 1.5
_LONGEST_TEXT = 64


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a provider.

    Attributes:
        zone: Grid zone as Electricity Maps spells it.
        kind: What was, the newest value, or what is forecast.
        start_s: Begin of the period, POSIX seconds.
        end_s: Its end; of a forecast, how far it should reach.
        now_s: The moment of asking, POSIX seconds.
    """

    zone: str
    kind: Kind
    start_s: float
    end_s: float
    now_s: float


@dataclass(frozen=True, slots=True)
class Point:
    """One value of an answer: begin and length in seconds, gCO2e/kWh or None where the provider knows nothing, index into QUALITIES."""

    start_s: float
    length_s: float
    grams_per_kwh: float | None
    quality: int


def chunks(start_s: float, end_s: float, longest_s: float) -> list[tuple[float, float]]:
    """A period in pieces that a provider takes at once."""
    count = max(math.ceil((end_s - start_s) / longest_s), 1)
    return [(start_s + i * longest_s, min(start_s + (i + 1) * longest_s, end_s)) for i in range(count)]


def decoded(body: bytes, kind: type[T], name: str) -> T:
    """An answer as a typed object.

    Raises:
        BadAnswer: No JSON (a page of HTML, a body that was cut off), or a field of another type.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise BadAnswer(f"{name} answered in a form that is not known here: {printable(str(error))}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = "a page of HTML" if body.lstrip()[:1] == b"<" else "no complete JSON"
        raise BadAnswer(f"{name} sent {what} instead of data; try again later") from error


def utc_s(text: str, name: str) -> float:
    """POSIX seconds of a time that says its zone.

    Raises:
        BadAnswer: It cannot be read, or says none: such a time is local in some answers.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise BadAnswer(f"{name} gave the time {short(text)!r}, which does not say its zone")
    return time.timestamp()


def iso_minute(time_s: float) -> str:
    """A moment as 2026-03-29T14:05Z."""
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%MZ")


def short(text: str) -> str:
    """A provider's word, short and printable."""
    return printable(text)[:_LONGEST_TEXT]


def lengths(starts_s: Sequence[float]) -> list[float]:
    """How long each value lasts: until the next one, but no longer than usual, which is also true of the last. [s]"""
    if len(starts_s) < 2:
        return [SECONDS_PER_HOUR] * len(starts_s)
    steps = np.diff(np.asarray(starts_s, dtype=np.float64))
    usual_s = float(np.median(steps))
    return [*np.where(steps > GAP_STEPS * usual_s, usual_s, steps).tolist(), usual_s]


def checked(points: Sequence[Point], *, zone: str, name: str, family: Family, source: str) -> Readings:
    """Readings out of the points of one answer; those without a value are left out, impossible ones aloud.

    Raises:
        BadAnswer: Times do not rise, or a value is of another unit.
    """
    if any(later.start_s <= former.start_s for former, later in pairwise(points)):
        raise BadAnswer(f"{name} gave times that do not rise")
    kept, dropped = [], 0
    for point in points:
        grams = None if point.grams_per_kwh is None else _possible(point.grams_per_kwh, family, name)
        if grams is not None:
            kept.append((point.start_s, point.start_s + point.length_s, grams, point.quality))
        elif point.grams_per_kwh is not None:
            dropped += 1
    columns = np.array(kept, dtype=np.float64).reshape(-1, 4).T
    ends = columns[1].copy()
    ends[:-1] = np.minimum(ends[:-1], columns[0][1:])
    text = f"{dropped} values of {zone} that no grid can have (0, 1 or negative g/kWh) were left out"
    return Readings(
        zone=zone,
        name=name,
        family=family,
        source=source,
        starts_s=columns[0],
        ends_s=ends,
        grams_per_kwh=columns[2],
        quality=columns[3].astype(np.int8),
        notes=(("grid-dropped", text),) if dropped else (),
    )


def _possible(grams: float, family: Family, name: str) -> float | None:
    """The value, 0 for a tiny negative one, None where no grid can have it."""
    if not math.isfinite(grams) or grams > MOST_GRAMS:
        raise BadAnswer(f"{name} gave {grams:g} g/kWh, more than any plant emits; it may be another unit")
    least = LEAST_LIFECYCLE_GRAMS if family.factor == "lifecycle" else LEAST_NEGATIVE_GRAMS
    return max(grams, 0.0) if grams >= least else None
