"""What the pictures say in words: titles, captions, descriptions for those who cannot see them, and times on axes. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from carbonreport.render.digits import mass_name, plain, scaled
from carbonreport.render.pictures import HourNumbers, PowerNumbers
from carbonreport.render.words import listed
from carbonreport.units import SECONDS_PER_HOUR

_DAY_S = 24 * SECONDS_PER_HOUR


def power_title(numbers: PowerNumbers) -> str:
    """Of one run, or of which of several."""
    return "Power over time" if not numbers.others else f"Power over time of “{numbers.run_name}”, the run with the most energy"


def power_caption(numbers: PowerNumbers) -> str:
    """How to read power over time."""
    caption = f"Means over {_length(numbers.step_s)}; a line is broken where nothing was read."
    if numbers.marks:
        caption += " Below, when the top-level spans ran: a bar’s height is the share of the time that they took."
    if numbers.more_marks:
        caption += f" {numbers.more_marks} shorter spans are not shown."
    return caption


def _length(step_s: float) -> str:
    """2 min; the steps are round ones."""
    unit, size = unit_for(step_s, (("d", _DAY_S), ("h", SECONDS_PER_HOUR), ("min", 60.0), ("s", 1.0)))
    return f"{step_s / size:g}\u00a0{unit}"


def power_in_words(numbers: PowerNumbers) -> str:
    """What it shows, for those who cannot see it."""
    begin, end = (datetime.fromtimestamp(float(s), UTC) for s in (numbers.edges_s[0], numbers.edges_s[-1]))
    parts = [
        f"{c.label} mean {_watts(float(np.nanmean(c.watts)))}, highest {_watts(float(np.nanmax(c.watts)))}"
        for c in numbers.curves
        if not np.isnan(c.watts).all()
    ]
    spans = f" Spans marked: {listed([mark.label for mark in numbers.marks])}." if numbers.marks else ""
    return f"From {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC: {'; '.join(parts)}.{spans}"


def _watts(value: float) -> str:
    return f"{plain(value)} W"


def hours_title(numbers: HourNumbers) -> str:
    """By hour, or by longer bars."""
    return f"Energy, grid intensity and emissions {_bars(numbers.width_s)}"


def hours_caption(numbers: HourNumbers) -> str:
    """How to read energy, intensity and emissions."""
    if numbers.width_s == SECONDS_PER_HOUR:
        rule = "Emissions of each hour = IT energy × PUE × grid intensity"
    else:
        rule = f"Each bar is the sum of {_width(numbers.width_s)} that were charged hour by hour, the line their mean weighted by energy"
    gaps = "; dotted lines stand for time without energy that is left out" if numbers.breaks else ""
    return f"{rule}; central values, times in UTC{gaps}. The first and the last bar may hold a part of their time only."


def hours_in_words(numbers: HourNumbers) -> str:
    """What they show, for those who cannot see it."""
    begin, end = (datetime.fromtimestamp(float(s), UTC) for s in (numbers.start_s[0], numbers.start_s[-1] + numbers.width_s))
    low, high = float(numbers.grams_per_kwh.min()), float(numbers.grams_per_kwh.max())
    return (
        f"Between {begin:%Y-%m-%d %H:%M} and {end:%Y-%m-%d %H:%M} UTC: IT energy {scaled(float(numbers.it_joules.sum()), 'J')}, "
        f"facility overhead {scaled(float(numbers.overhead_joules.sum()), 'J')}, "
        f"intensity {plain(low)} to {plain(high)} {mass_name(numbers.mass_unit)}/kWh, emissions {scaled(float(numbers.grams.sum()), numbers.mass_unit)}."
    )


def _bars(width_s: float) -> str:
    """By hour, by day, by week, or in longer words."""
    by = {SECONDS_PER_HOUR: "by hour", _DAY_S: "by day", 7 * _DAY_S: "by week"}
    return by.get(width_s) or f"in bars of {_width(width_s)}"


def _width(width_s: float) -> str:
    """6 hours, 2 days."""
    return f"{width_s / SECONDS_PER_HOUR:.0f} hours" if width_s < 2 * _DAY_S else f"{width_s / _DAY_S:.0f} days"


def tick_texts(times_s: Sequence[float], step_s: float) -> list[str]:
    """Clock times with the date below where it changes; dates alone where the steps are days."""
    texts, before = [], None
    for time_s in times_s:
        when = datetime.fromtimestamp(time_s, UTC)
        date = f"{when.day} {when:%b %Y}" if before is None or when.year != before.year else f"{when.day} {when:%b}"
        clock = f"{when:%H:%M:%S}" if step_s < 60 else f"{when:%H:%M}"
        if step_s >= _DAY_S:
            texts.append(date)
        else:
            texts.append(clock if before is not None and when.date() == before.date() else f"{clock}\n{date}")
        before = when
    return texts


def unit_for(most: float, units: Sequence[tuple[str, float]]) -> tuple[str, float]:
    """Name and size of the largest unit in which a number is at least 1, else the smallest."""
    return next(((name, size) for name, size in units if most >= size), units[-1])
