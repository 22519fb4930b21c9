"""Energy and emissions by span path: nested spans inside their parents, and the rest."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.model.footprint import ChargedRun, SpanEnergy
from carbonreport.units import JOULES_PER_KWH, QUARTER_HOUR_S


@dataclass(slots=True)
class _Sums:
    count: int = 0
    seconds: float = 0.0
    items: float | None = None
    joules: float = 0.0
    grams: float = 0.0


def span_energies(
    counted: Sequence[ChargedRun], inner: Sequence[ChargedRun], it_joules: float, grams: float
) -> tuple[tuple[SpanEnergy, ...], float, float]:
    """Spans by path, then the joules and the grams outside all of them: spans at the top level and the rest make the total.

    A run inside another one lends its spans only where the outer one has none.
    """
    own: dict[str, _Sums] = defaultdict(_Sums)
    with_spans = {c.run.id for c in counted if c.run.spans}
    for c in (*counted, *(c for c in inner if c.run.parent not in with_spans)):
        _add(own, c)
    whole = _with_parents(own)
    top_joules = sum(s.joules for s in own.values())
    top_grams = sum(s.grams for s in own.values())
    return tuple(whole), it_joules - top_joules, grams - top_grams


def _add(sums: dict[str, _Sums], c: ChargedRun) -> None:
    """Each span's energy at the mean PUE and intensity of its own quarter hour, weighted by the run's energy."""
    per_joule = _grams_per_joule_by_quarter(c)
    counted = {device.id for device in c.devices}
    for span in c.run.spans:
        joules = sum(joules for device, joules in span.joules.items() if device in counted)
        entry = sums[span.path]
        entry.count += span.count
        entry.seconds += span.seconds
        entry.joules += joules
        entry.grams += joules * per_joule.get(span.quarter_s, 0.0)
        if span.items is not None:
            entry.items = span.items if entry.items is None else entry.items + span.items


def _grams_per_joule_by_quarter(c: ChargedRun) -> dict[float, float]:
    """Emissions of a joule of IT energy in each quarter hour of a run. [gCO2e/J]"""
    quarters, index = np.unique(np.floor(c.edges_s[:-1] / QUARTER_HOUR_S) * QUARTER_HOUR_S, return_inverse=True)
    weights = c.it_joules.sum(axis=0)
    weights = np.where(weights.sum() > 0, weights, 1.0)
    tiny = np.finfo(float).tiny
    energy = np.bincount(index, weights=weights + tiny, minlength=quarters.size)
    grams = np.bincount(index, weights=(weights + tiny) * c.pue * c.grams_per_kwh / JOULES_PER_KWH, minlength=quarters.size)
    return dict(zip(quarters.tolist(), (grams / energy).tolist(), strict=True))


def _with_parents(own: dict[str, _Sums]) -> list[SpanEnergy]:
    """Every path with what lies below it; a parent without spans of its own has no count."""
    rows = []
    for path in sorted({ancestor for p in own for ancestor in _ancestors(p)}):
        below = [s for p, s in own.items() if p == path or p.startswith(path + "/")]
        mine = own.get(path, _Sums())
        rows.append(
            SpanEnergy(
                path, mine.count, sum(s.seconds for s in below), mine.items, sum(s.joules for s in below), sum(s.grams for s in below)
            )
        )
    return rows


def _ancestors(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]
