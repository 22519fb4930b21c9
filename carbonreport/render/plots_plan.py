"""Draws the picture of a frontier as SVG, with the means of `plots.py`."""

import numpy as np

from carbonreport.errors import MissingExtra
from carbonreport.render.pictures import Picture
from carbonreport.render.pictures_plan import TITLE, FrontierNumbers, frontier_caption, frontier_in_words
from carbonreport.render.pictures_svg import INK, cleaned
from carbonreport.render.plots import figure, is_available, saved

_LINES = ("-", "--", ":", "-.")
_ROOM = 1.2  # of the last slowdown, so that its step is seen


def frontier_picture(numbers: FrontierNumbers) -> Picture:
    """One panel: energy against allowed slowdown, a line a kind of plan.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if not is_available():
        raise MissingExtra("a picture", "plots")
    with figure(3.0) as drawn:
        axes = drawn.subplots()
        allowed, end = numbers.allowed_percent, float(numbers.allowed_percent[-1]) * _ROOM
        for (name, values), line in zip(numbers.lines, _LINES, strict=False):
            axes.step(
                np.append(allowed, end), np.append(values, values[-1]), where="post", color=INK, linestyle=line, linewidth=1.2, label=name
            )
        axes.axhline(0, color=INK, linewidth=0.5)
        axes.set_xscale("symlog", linthresh=0.5)
        axes.set_xlim(float(allowed[0]), end)
        axes.set_xticks(allowed, [f"{percent:g}" for percent in allowed])
        axes.set_xlabel("Allowed slowdown, %")
        axes.set_ylabel("Energy, %")
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
        svg = cleaned(saved(drawn), "frontier", TITLE, frontier_in_words(numbers))
    return Picture(svg, TITLE, frontier_caption(numbers), section="rerun")
