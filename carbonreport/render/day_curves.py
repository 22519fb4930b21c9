"""Day curves of a zone as a file of its own: one line a month."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from carbonreport.errors import MissingExtra, OutputError
from carbonreport.model.series import Array
from carbonreport.render.plots import figure, is_available

SUFFIXES = (".svg", ".pdf", ".png")
# Lines that print in grey and are told apart without colour; a season has one pattern, its months get darker.
_PATTERNS = ("-", "--", ":", "-.")
_HEIGHT_IN = 3.25


@dataclass(frozen=True, slots=True, eq=False)
class DayCurves:
    """Lines to draw.

    Attributes:
        title: What they show, in one line or two.
        time_zone: IANA name of the zone's clock.
        unit: Of the intensity, as it is printed.
        labels: Name of each month.
        months: Intensity by month and local hour. Shape (12, 24).
        only: Number of the one month to draw, 1 to 12, or None for all.
    """

    title: str
    time_zone: str
    unit: str
    labels: tuple[str, ...]
    months: Array
    only: int | None = None


def save_curves(curves: DayCurves, path: Path) -> None:
    """Draw them; the suffix says the format.

    Raises:
        OutputError: Another suffix, or a file that cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"cannot draw {path}: its suffix must be one of {', '.join(SUFFIXES)}")
    if not is_available():
        raise MissingExtra("drawing a day curve", "plots")
    buffer = io.BytesIO()  # drawn whole before anything is written
    with figure(_HEIGHT_IN) as drawing:
        _draw(drawing.subplots(), curves)
        drawing.savefig(buffer, format=path.suffix.lower()[1:], facecolor="white")
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _draw(axes: Any, curves: DayCurves) -> None:
    hours = np.arange(25)
    for number in range(12) if curves.only is None else (curves.only - 1,):
        line = curves.months[number]
        axes.step(
            hours,
            np.append(line, line[-1]),
            where="post",
            color=str(0.65 - 0.3 * (number % 3)) if curves.only is None else "black",
            linestyle=_PATTERNS[number // 3],
            linewidth=1.2,
            label=curves.labels[number],
        )
    axes.set_xlim(0, 24)
    axes.set_xticks(range(0, 25, 3))
    axes.set_ylim(0, float(curves.months.max()) * 1.05)  # the same whichever month is drawn
    axes.set_xlabel(f"Hour, {curves.time_zone}")
    axes.set_ylabel(curves.unit)
    axes.set_title(curves.title, fontsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(1, 1))
