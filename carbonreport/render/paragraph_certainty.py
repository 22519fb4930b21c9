"""How sure the figures are, what makes them unsure, and by what they were made."""

import math

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import shown
from carbonreport.render.setting import Setting, gpu_count, is_estimate
from carbonreport.render.words import listed

_NOBREAK = "\u00a0"


def how_sure(footprint: Footprint, setting: Setting) -> Sentence:
    """What the intervals are, and what makes them wide."""
    if not shown(footprint.grams).interval:
        return made_by(setting)
    widest = _widest(footprint)
    chiefly = f", that of the emissions chiefly from {listed(widest)}" if widest else ""
    return Sentence(f"Intervals are 90{_NOBREAK}%{chiefly}; energy was charged hour by hour with {setting.made_by}.", ("carbonreport",))


def _widest(footprint: Footprint) -> list[str]:
    """The inputs that make up most of the variance, the widest first."""
    is_model = is_estimate(footprint)
    one = gpu_count(footprint) == 1
    gpus = (
        ("the power of the GPU" if one else "the power of the GPUs") if is_model else ("the GPU’s sensor" if one else "the GPUs’ sensors")
    )
    names = {"gpu": gpus, "host": "the processors’ energy", "pue": "the PUE", "grid": "the grid’s intensity"}
    widths = sorted(((width, name) for name, width in footprint.log_widths), reverse=True)
    total = math.fsum(width**2 for width, _ in widths)
    if total < 0.01**2:
        return []
    taken: list[str] = []
    variance = 0.0
    for width, name in widths:
        if variance <= 0.6 * total:
            taken.append(names[name])
            variance += width**2
    return taken


def made_by(setting: Setting) -> Sentence:
    """By what the statement was written, where there is no interval to speak of."""
    return Sentence(f"This statement was written by {setting.made_by}.", ("carbonreport",))
