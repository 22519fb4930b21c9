"""Day curves of a zone as a picture. matplotlib is imported only when something is drawn."""

import io
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from carbonreport.errors import MissingExtra, OutputError
from carbonreport.grid.look import MONTHS, Look
from carbonreport.model.series import Array

SUFFIXES = (".svg", ".pdf", ".png")
# Lines that print in grey and are told apart without colour; a season has one pattern, its months get darker.
_PATTERNS = ("-", "--", ":", "-.")


def save_curves(looked: Look, path: Path, month: int | None = None) -> None:
    """Draw the day curve of one month, or of all twelve.

    Raises:
        OutputError: Another suffix, a zone without hours, or a file that cannot be written.
        MissingExtra: matplotlib is not installed.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise OutputError(f"cannot draw {path}: its suffix must be one of {', '.join(SUFFIXES)}")
    if looked.curves is None:
        raise OutputError(f"there is no day curve of {looked.profile.zone} to draw: it has no hourly data")
    try:
        figure = import_module("matplotlib.figure").Figure(figsize=(7.2, 4.0), layout="constrained")
    except ImportError as error:
        raise MissingExtra("drawing a day curve", "plots") from error
    _draw(figure.subplots(), looked, looked.curves, month)
    buffer = io.BytesIO()  # drawn whole before anything is written
    figure.savefig(buffer, format=path.suffix.lower()[1:])
    try:
        path.write_bytes(buffer.getvalue())
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error


def _draw(axes: Any, looked: Look, curves: Array, month: int | None) -> None:
    hours = np.arange(25)
    for number in range(12) if month is None else (month - 1,):
        grey = str(0.65 - 0.3 * (number % 3)) if month is None else "black"
        line = curves[number]
        axes.step(
            hours,
            np.append(line, line[-1]),
            where="post",
            color=grey,
            linestyle=_PATTERNS[number // 3],
            linewidth=1.2,
            label=MONTHS[number],
        )
    axes.set_xlim(0, 24)
    axes.set_xticks(range(0, 25, 3))
    axes.set_ylim(0, float(curves.max()) * 1.05)
    axes.set_xlabel(f"Hour, {looked.profile.time_zone}")
    axes.set_ylabel("gCO₂e/kWh")
    axes.set_title(f"{looked.profile.name}: typical day at the level of {looked.year}\n{looked.profile.source}", fontsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=2, loc="upper left", bbox_to_anchor=(1, 1))
