"""Draws the pictures as SVG. The one file that imports matplotlib, and only when something is drawn."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import StringIO
from typing import Any

import numpy as np

from carbonreport.model.series import Array
from carbonreport.render.digits import mass_name
from carbonreport.render.pictures import HourNumbers, Numbers, Picture, PowerNumbers
from carbonreport.render.pictures_svg import INK, cleaned
from carbonreport.render.pictures_words import (
    hours_caption,
    hours_in_words,
    hours_title,
    power_caption,
    power_in_words,
    power_title,
    tick_texts,
    unit_for,
)
from carbonreport.units import JOULES_PER_KWH

_WIDTH_IN = 7.2
_LINES = ("-", "--", ":", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (10, 3)))
_GREY = "#8a8a8a"  # seen on white and on black
_MOST_TICKS = 8
_TICKS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_419_200)
_SETTINGS = {
    "svg.hashsalt": "carbonreport",
    "svg.fonttype": "none",  # text stays text: it is read aloud, found and copied
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 3.2,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "path.simplify": True,
}
_POWER_UNITS = (("MW", 1e6), ("kW", 1e3), ("W", 1.0))
_ENERGY_UNITS = (("MWh", 1e3 * JOULES_PER_KWH), ("kWh", JOULES_PER_KWH), ("Wh", 1e-3 * JOULES_PER_KWH))


def draw(numbers: Numbers) -> list[Picture] | None:
    """The pictures of what there is to draw; None where matplotlib is missing."""
    if not is_available():
        return None
    power, hours = numbers
    pictures = [power_picture(power)] if power else []
    return [*pictures, hours_picture(hours)] if hours else pictures


def is_available() -> bool:
    """Whether matplotlib is installed and can be imported."""
    try:
        import_module("matplotlib.figure")
    except ImportError:
        return False
    return True


def power_picture(numbers: PowerNumbers) -> Picture:
    """Power over time by device, and below it when the top-level spans ran."""
    title = power_title(numbers)
    with figure(2.2 + 0.24 * len(numbers.marks)) as drawn:
        ratios = [1.0] if not numbers.marks else [2.2 / 0.24, len(numbers.marks)]
        rows = np.atleast_1d(drawn.subplots(len(ratios), 1, sharex=True, height_ratios=ratios)).tolist()
        _draw_power(rows[0], numbers)
        if numbers.marks:
            _draw_marks(rows[1], numbers)
        time_axis(rows[-1], numbers.edges_s)
        svg = cleaned(saved(drawn), "power", title, power_in_words(numbers))
    return Picture(svg, title, power_caption(numbers))


def _draw_power(axes: Any, numbers: PowerNumbers) -> None:
    most = max(_most(curve.watts) for curve in numbers.curves)
    unit, size = unit_for(most, _POWER_UNITS)
    handles = []
    for curve, line in zip(numbers.curves, _LINES, strict=False):
        handles.append(axes.plot(*_steps(numbers.edges_s, curve.watts / size), color=INK, linestyle=line, linewidth=1.1)[0])
    axes.set_ylabel(f"Power, {unit}")
    axes.set_ylim(0, most / size * 1.08 or 1)
    axes.set_xlim(numbers.edges_s[0], numbers.edges_s[-1])
    labels = [_legend_text(curve.label) for curve in numbers.curves]
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=min(len(labels), 2), borderaxespad=0.2)


def _draw_marks(axes: Any, numbers: PowerNumbers) -> None:
    """A row for each span, top first; a bar is as high as its share of the time."""
    names = []
    for row, mark in enumerate(reversed(numbers.marks)):
        axes.stairs(row + 0.8 * mark.shares, numbers.mark_edges_s, baseline=row, fill=True, facecolor=_GREY, linewidth=0)
        axes.axhline(row, color=INK, linewidth=0.5)
        names.append(mark.label)
    axes.set_ylim(0, len(names))
    axes.set_yticks(np.arange(len(names)) + 0.4, names)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _steps(edges_s: Array, values: Array) -> tuple[Array, Array]:
    """A line that is level within each step."""
    return np.repeat(edges_s, 2)[1:-1], np.repeat(values, 2)


def hours_picture(numbers: HourNumbers) -> Picture:
    """Three panels that share their time: energy with the facility's part, intensity, emissions."""
    title = hours_title(numbers)
    x = _positions(numbers)
    with figure(3.5) as drawn:
        energy, intensity, emissions = drawn.subplots(3, 1, sharex=True, height_ratios=[1.5, 1, 1])
        _draw_energy(energy, numbers, x)
        _draw_intensity(intensity, numbers, x)
        unit, size = unit_for(_most(numbers.grams), mass_units(numbers.mass_unit))
        emissions.bar(x, numbers.grams / size, width=1.0, align="edge", facecolor="none", edgecolor=INK, linewidth=_edge(x), hatch=r"\\\\")
        emissions.set_ylabel(f"Emissions,\n{unit}")
        _bar_axis(emissions, numbers, x)
        for axes in (energy, intensity, emissions):
            for i in numbers.breaks:
                axes.axvline((x[i - 1] + 1 + x[i]) / 2, color=INK, linestyle=(0, (1, 2)), linewidth=0.8)
        drawn.align_ylabels()
        svg = cleaned(saved(drawn), "hours", title, hours_in_words(numbers))
    return Picture(svg, title, hours_caption(numbers))


def _draw_energy(axes: Any, numbers: HourNumbers, x: Array) -> None:
    unit, size = unit_for(_most(numbers.it_joules + numbers.overhead_joules), _ENERGY_UNITS)
    it, overhead = numbers.it_joules / size, numbers.overhead_joules / size
    bars = {"width": 1.0, "align": "edge", "edgecolor": INK, "linewidth": _edge(x)}
    handles = [
        axes.bar(x, it, facecolor=_GREY, **bars),
        axes.bar(x, overhead, bottom=it, facecolor="none", hatch="/////", **bars),
    ]
    axes.set_ylabel(f"Energy,\n{unit}")
    labels = ["IT energy", f"facility overhead (PUE {numbers.pue:.2f})"]
    axes.legend(handles, labels, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)


def _draw_intensity(axes: Any, numbers: HourNumbers, x: Array) -> None:
    for block in np.split(np.arange(x.size), numbers.breaks):
        axes.plot(*_steps(np.append(x[block], x[block[-1]] + 1), numbers.grams_per_kwh[block]), color=INK, linewidth=1.3)
    axes.set_ylim(0, _most(numbers.grams_per_kwh) * 1.12 or 1)
    axes.set_ylabel(f"Intensity,\n{mass_name(numbers.mass_unit)}/kWh")


def mass_units(unit: str) -> tuple[tuple[str, float], ...]:
    """Tonnes to milligrams of what is counted."""
    gram = mass_name(unit)
    return (("t" + gram[1:], 1e6), ("k" + gram, 1e3), (gram, 1.0), ("m" + gram, 1e-3))


def _edge(x: Array) -> float:
    """Thin outlines where the bars are thin."""
    return 0.6 if x.size <= 60 else 0.3


def _positions(numbers: HourNumbers) -> Array:
    """Left ends of the bars: one after the other, with room where time is left out."""
    x = np.arange(numbers.start_s.size, dtype=float)
    for i in numbers.breaks:
        x[i:] += max(0.02 * x.size, 0.6)
    return x


# Axes of time


def time_axis(axes: Any, edges_s: Array) -> None:
    """Round UTC times of a period."""
    begin_s, end_s = float(edges_s[0]), float(edges_s[-1])
    step_s = next((s for s in _TICKS_S if end_s - begin_s <= _MOST_TICKS * s), (end_s - begin_s) / _MOST_TICKS)
    ticks = np.arange(np.ceil(begin_s / step_s), np.floor(end_s / step_s) + 1) * step_s
    axes.set_xticks(ticks, tick_texts(ticks.tolist(), step_s))
    axes.set_xlabel("Time, UTC")


def _bar_axis(axes: Any, numbers: HourNumbers, x: Array) -> None:
    """Round UTC times, the begin of each block first; those that would touch are left out."""
    wide_s = next((k * numbers.width_s for k in (1, 2, 3, 6, 12, 24, 48, 96) if numbers.start_s.size / k <= _MOST_TICKS), 1e9)
    first = [0, *numbers.breaks]
    round_ones = np.flatnonzero(numbers.start_s % wide_s == 0).tolist()
    room = (x[-1] + 1) / (_MOST_TICKS + 2)
    kept: list[int] = []
    for i in [*first, *round_ones]:
        if all(abs(x[i] - x[other]) >= room for other in kept):
            kept.append(i)
    kept.sort()
    axes.set_xticks(x[kept], tick_texts(numbers.start_s[kept].tolist(), numbers.width_s))
    axes.set_xlim(x[0], x[-1] + 1)
    axes.set_xlabel("Time, UTC")


def _most(values: Array) -> float:
    return 0.0 if np.isnan(values).all() else float(np.nanmax(values))


def _legend_text(label: str) -> str:
    """Matplotlib leaves out what begins with an underscore."""
    return f" {label}" if label.startswith("_") else label


# The drawing itself


@contextmanager
def figure(height_in: float) -> Iterator[Any]:
    """A figure with our settings alone, whatever the user's are; glyphs that a font lacks are the reader's font's business."""
    style, drawing = import_module("matplotlib.style"), import_module("matplotlib.figure")
    with style.context(["default", _SETTINGS]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield drawing.Figure(figsize=(_WIDTH_IN, height_in + 0.75), layout="constrained")


def saved(figure: Any) -> str:
    """A figure as the text of an SVG file."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return buffer.getvalue()
