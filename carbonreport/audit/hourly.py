"""Energy of a year by hour: of each hour in turn, and of the hours of a week."""

import numpy as np

from carbonreport.audit.queries import Queries
from carbonreport.audit.window import Window
from carbonreport.combine.seasonal import calendar, local_hours
from carbonreport.model.series import Array
from carbonreport.units import HOUR_US, MJ_PER_J, SECONDS_PER_DAY, SECONDS_PER_HOUR


def count_hours(window: Window) -> int:
    """How many UTC hours a window touches."""
    return (window.until_us - 1) // HOUR_US - window.from_us // HOUR_US + 1


def hourly(db: Queries, window: Window) -> dict[tuple[str, str], Array]:
    """Energy of each UTC hour of the window, by how it is known and with what method. [J] Shape (n,) each."""
    t = db.table("audit_pieces")
    first = window.from_us // HOUR_US
    count = count_hours(window)
    t = t.mutate(
        h0=t.start_us // HOUR_US - first,
        h1=(t.end_us - 1) // HOUR_US - first,
        per_us=t.energy_mj.cast("float64") / (t.end_us - t.start_us),
    )
    inside = t.filter(t.h0 == t.h1)
    across = t.filter(t.h0 < t.h1)
    parts = {
        "inside": inside.group_by("known", "method", h=inside.h0).agg(x=inside.energy_mj.cast("float64").sum()),
        "begins": across.group_by("known", "method", h=across.h0).agg(
            x=(((across.h0 + 1 + first) * HOUR_US - across.start_us) * across.per_us).sum()
        ),
        "ends": across.group_by("known", "method", h=across.h1).agg(
            x=((across.end_us - (across.h1 + first) * HOUR_US) * across.per_us).sum()
        ),
        "up": across.group_by("known", "method", h=across.h0 + 1).agg(x=(across.per_us * HOUR_US).sum()),
        "down": across.group_by("known", "method", h=across.h1).agg(x=(across.per_us * -HOUR_US).sum()),
    }
    found: dict[tuple[str, str], Array] = {}
    steps: dict[tuple[str, str], Array] = {}
    for name, part in parts.items():
        into = steps if name in ("up", "down") else found
        for known, method, hour, millijoules in db.rows(part):
            into.setdefault((known, method), np.zeros(count))[int(hour)] += millijoules / MJ_PER_J
    for key, step in steps.items():
        found[key] = np.maximum(found.get(key, np.zeros(count)) + np.cumsum(step), 0.0)
    return found


def weekday_hours(joules: Array, window: Window) -> Array:
    """Energy of each UTC hour by local weekday, Monday first, and hour. [J] Shape (n,) to (7, 24)."""
    first = window.from_us // HOUR_US
    starts_s = (first + np.arange(joules.size)) * SECONDS_PER_HOUR
    known_s, local_s = local_hours(window.time_zone, float(starts_s[0]), float(starts_s[-1] + SECONDS_PER_HOUR))
    local = local_s[np.searchsorted(known_s[:-1], starts_s, side="right") - 1] + (
        starts_s - known_s[:-1][np.searchsorted(known_s[:-1], starts_s, side="right") - 1]
    )
    _, _, hours = calendar(local)
    weekdays = (np.floor_divide(local, SECONDS_PER_DAY).astype(np.int64) + 3) % 7  # 1970 began on a Thursday
    grid: Array = np.zeros((7, 24))
    np.add.at(grid, (weekdays, hours), joules)
    return grid
