"""pandas views of records and footprints; units in the column names. The extra `frames` brings pandas."""

from typing import TYPE_CHECKING, Any

from carbonreport.errors import MissingExtra
from carbonreport.model.footprint import Footprint
from carbonreport.model.run import RunRecord
from carbonreport.units import kwh

if TYPE_CHECKING:
    import pandas as pd


def samples(record: RunRecord) -> "pd.DataFrame":
    """Cumulative energy as recorded, one row a point.

    Columns: device, time (UTC), offset_s, joules (since the start), watts (mean since the point before, empty for the first).

    Raises:
        MissingExtra: pandas is not installed.
    """
    pandas = _pandas()
    rows = []
    for trace in record.traces:
        before: tuple[float, float] | None = None
        for offset_s, joules in zip(trace.offsets_s, trace.joules, strict=True):
            watts = None if before is None or offset_s == before[0] else (joules - before[1]) / (offset_s - before[0])
            rows.append((trace.device, record.started_s + offset_s, offset_s, joules, watts))
            before = (offset_s, joules)
    frame = pandas.DataFrame(rows, columns=["device", "time", "offset_s", "joules", "watts"])
    return _timed(pandas, frame, "time").astype({"offset_s": float, "joules": float, "watts": float})


def spans(record: RunRecord) -> "pd.DataFrame":
    """Spans as recorded, one row a path, UTC quarter hour and device; nested spans are excluded from their parents.

    Columns: path, quarter (UTC), device, joules, count, seconds, items.

    Raises:
        MissingExtra: pandas is not installed.
    """
    pandas = _pandas()
    rows = [(s.path, s.quarter_s, device, joules, s.count, s.seconds, s.items) for s in record.spans for device, joules in s.joules.items()]
    frame = pandas.DataFrame(rows, columns=["path", "quarter", "device", "joules", "count", "seconds", "items"])
    return _timed(pandas, frame, "quarter")


def hours(footprint: Footprint) -> "pd.DataFrame":
    """Energy and emissions by UTC hour, indexed by it.

    Columns: it_joules, facility_joules, grams, grams_per_kwh, pue, quality.

    Raises:
        MissingExtra: pandas is not installed.
    """
    pandas = _pandas()
    table = footprint.hours
    frame = pandas.DataFrame(
        {
            "start": table.start_s,
            "it_joules": table.it_joules,
            "facility_joules": table.facility_joules,
            "grams": table.grams,
            "quality": [table.quality_of(i) for i in range(table.start_s.size)],
        }
    )
    frame["grams_per_kwh"] = frame["grams"] / kwh(frame["facility_joules"]).where(frame["facility_joules"] > 0)
    frame["pue"] = frame["facility_joules"] / frame["it_joules"].where(frame["it_joules"] > 0)
    return _timed(pandas, frame, "start").set_index("start")


def _timed(pandas: Any, frame: "pd.DataFrame", column: str) -> "pd.DataFrame":
    """POSIX seconds as UTC times."""
    frame[column] = pandas.to_datetime(frame[column], unit="s", utc=True)
    return frame


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingExtra("a pandas view", "frames") from error
    return pandas
