"""Writing the picture of starts to a file of its own."""

from pathlib import Path

import numpy as np

from carbonreport.errors import CarbonreportError, OutputError
from carbonreport.render.pictures_when import StartNumbers
from carbonreport.render.plots_when import starts_picture
from carbonreport.workflows.when import Answer

_LEAST_STARTS = 2


def write_picture(answer: Answer, path: Path) -> None:
    """Draw what each start in the home zone would cost, and what a delay saves.

    Raises:
        CarbonreportError: There is one start alone.
        MissingExtra: matplotlib is not installed.
        OutputError: The file cannot be written.
    """
    if len(answer.start_grams) < _LEAST_STARTS:
        raise CarbonreportError("--plot: there is only one start that is allowed; give more --slack, or a later --deadline")
    at_s, grams = (np.array(values) for values in zip(*answer.start_grams, strict=True))
    svg = starts_picture(StartNumbers(at_s, grams, answer.source)).svg
    try:
        path.write_text(svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}") from error
