"""Draws the picture of starts as SVG, with the means of `plots.py`."""

import numpy as np

from carbonreport.errors import MissingExtra
from carbonreport.render.pictures import Picture
from carbonreport.render.pictures_svg import INK, cleaned
from carbonreport.render.pictures_when import TITLE, StartNumbers, starts_caption, starts_in_words
from carbonreport.render.pictures_words import unit_for
from carbonreport.render.plots import figure, is_available, mass_units, saved, time_axis
from carbonreport.units import hours

_LEAST_ROOM = 0.02  # of the whole time


def starts_picture(numbers: StartNumbers) -> Picture:
    """Two panels: cost of each start, and delay against saving.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if not is_available():
        raise MissingExtra("a picture", "plots")
    unit, size = _scale(numbers)
    with figure(3.0) as drawn:
        cost, saving = drawn.subplots(2, 1)
        cost.plot(numbers.at_s, numbers.grams / size, color=INK, linewidth=1.2)
        cost.axhline(float(numbers.grams[0]) / size, color=INK, linestyle="--", linewidth=0.8)
        best = numbers.at_s[numbers.best], numbers.grams[numbers.best] / size
        cost.plot(*best, color=INK, linestyle="none", marker="o", markersize=4, clip_on=False)  # whole at an edge too
        cost.set_ylim(0, float(numbers.grams.max()) / size * 1.08)
        beyond_s = _beyond_s(numbers)
        cost.set_xlim(numbers.at_s[0], numbers.at_s[-1] + beyond_s)
        cost.set_ylabel(f"Emissions,\n{unit}")
        time_axis(cost, numbers.at_s)
        cost.set_xlabel("Start, UTC")
        last_h = float(numbers.delays_h[-1]) + hours(beyond_s)
        delays_h, savings = np.append(numbers.delays_h, last_h), np.append(numbers.savings_percent, numbers.savings_percent[-1])
        saving.step(delays_h, savings, where="post", color=INK, linewidth=1.2)
        saving.set_xlim(0, last_h)
        saving.set_ylim(0, max(float(np.max(numbers.savings_percent)) * 1.12, 1.0))
        saving.set_ylabel("Saving,\n% of now")
        saving.set_xlabel("Longest delay that is allowed, hours")
        drawn.align_ylabels()
        svg = cleaned(saved(drawn), "starts", TITLE, starts_in_words(numbers))
    return Picture(svg, TITLE, starts_caption(numbers), section="rerun")


def _beyond_s(numbers: StartNumbers) -> float:
    """Room behind the last start, so that its step is seen. [s]"""
    return max(float(np.diff(numbers.at_s).min()), _LEAST_ROOM * float(numbers.at_s[-1] - numbers.at_s[0]))


def _scale(numbers: StartNumbers) -> tuple[str, float]:
    """Unit of the upper panel, and its size in grams."""
    if numbers.mass_unit is None:
        return "% of now", float(numbers.grams[0]) / 100
    return unit_for(float(numbers.grams.max()), mass_units(numbers.mass_unit))
