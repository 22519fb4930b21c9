"""Draws energy against time of power caps as SVG, with the means of `plots.py`."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carbonreport.errors import MissingExtra
from carbonreport.model.series import Array
from carbonreport.plan.isotonic import smooth_line
from carbonreport.render.pictures import Picture
from carbonreport.render.pictures_svg import INK, cleaned
from carbonreport.render.plots import figure, is_available, saved

_GREY = "#8a8a8a"  # seen on white and on black
_STEPS = 60
_TITLE = "Energy against time under power caps"
_CAPTION = (
    "Time and energy of the boards for the same work, relative to runs without a cap, with 90 % intervals where they are known. "
    "Grey: another cap, or none, needs no more of either. Ring: the choice. Line: a curve along which time never rises and power never falls with the cap."
)


@dataclass(frozen=True, slots=True, eq=False)
class SweepNumbers:
    """What is drawn of a sweep.

    Attributes:
        caps_watts: Shape (n,), rising. [W]
        times: Ratio, low and high of time; NaN where ends are not known. Shape (n, 3).
        energies: The same of energy. Shape (n, 3).
        is_dominated: Shape (n,).
        fitted: Time and energy ratio of the monotone curve. Shape (n, 2).
        chosen_watts: The choice, or None. [W]
        limit_watts: Limit without a cap; None where it is not known. [W]
        most_time: Time ratio that was allowed, or None.
    """

    caps_watts: Array
    times: Array
    energies: Array
    is_dominated: NDArray[np.bool_]
    fitted: Array
    chosen_watts: float | None
    limit_watts: float | None
    most_time: float | None


def sweep_picture(numbers: SweepNumbers) -> Picture:
    """Energy against time, one point a cap.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    if not is_available():
        raise MissingExtra("a picture", "plots")
    with figure(2.8) as drawn:
        axes = drawn.subplots(1, 1)
        _draw_fit(axes, numbers)
        for i in range(numbers.caps_watts.size):
            _draw_point(axes, numbers, i)
        axes.plot([100], [100], color=INK, marker="s", markersize=4, linestyle="none")
        axes.annotate("no cap", (100, 100), xytext=(5, 5), textcoords="offset points", fontsize=8, color=INK)
        if numbers.most_time is not None:
            axes.axvline(100 * numbers.most_time, color=INK, linestyle=":", linewidth=0.8)
        axes.set_xlabel("Time, % of that without a cap")
        axes.set_ylabel("Energy of the boards,\n% of that without a cap")
        svg = cleaned(saved(drawn), "sweep", _TITLE, sweep_in_words(numbers))
    return Picture(svg, _TITLE, _CAPTION, section="rerun")


def _draw_point(axes: Any, numbers: SweepNumbers, i: int) -> None:
    color = _GREY if numbers.is_dominated[i] else INK
    x, y = 100 * numbers.times[i], 100 * numbers.energies[i]
    if not np.isnan([*x, *y]).any():
        ends = {"xerr": [[x[0] - x[1]], [x[2] - x[0]]], "yerr": [[y[0] - y[1]], [y[2] - y[0]]]}
        axes.errorbar([x[0]], [y[0]], **ends, color=color, linewidth=0.8, capsize=2, fmt="none")
    axes.plot([x[0]], [y[0]], color=color, marker="o", markersize=4, linestyle="none")
    if numbers.chosen_watts == numbers.caps_watts[i]:
        axes.plot([x[0]], [y[0]], marker="o", markersize=11, markerfacecolor="none", markeredgecolor=INK, linestyle="none")
    axes.annotate(f"{numbers.caps_watts[i]:g} W", (x[0], y[0]), xytext=(5, 5), textcoords="offset points", fontsize=8, color=color)


def _draw_fit(axes: Any, numbers: SweepNumbers) -> None:
    """The monotone curve over the caps, up to the board's own limit where that is known."""
    caps, fits = numbers.caps_watts, numbers.fitted
    if numbers.limit_watts is not None and numbers.limit_watts > caps[-1]:
        caps, fits = np.append(caps, numbers.limit_watts), np.vstack([fits, [1.0, 1.0]])
    if caps.size < 2:
        return
    at = np.linspace(caps[0], caps[-1], _STEPS)
    time, power = smooth_line(caps, fits[:, 0], at), smooth_line(caps, fits[:, 1] / fits[:, 0], at)
    axes.plot(100 * time, 100 * time * power, color=_GREY, linestyle="--", linewidth=0.8)


def sweep_in_words(numbers: SweepNumbers) -> str:
    """The picture in words, for who cannot see it."""
    parts = [
        f"{cap:g} W: time {100 * time:.0f} %, energy {100 * energy:.0f} %{', dominated' if dominated else ''}"
        for cap, time, energy, dominated in zip(
            numbers.caps_watts, numbers.times[:, 0], numbers.energies[:, 0], numbers.is_dominated, strict=True
        )
    ]
    choice = "no cap is chosen" if numbers.chosen_watts is None else f"{numbers.chosen_watts:g} W is chosen"
    return f"Relative to no cap. {'; '.join(parts)}; {choice}."
