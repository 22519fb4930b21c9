"""Energy and emissions by span path: nested spans inside their parents, and the rest."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.combine.intervals import Factors
from carbonreport.combine.span_power import SpanPower, roots, span_power
from carbonreport.model.attribution import Told
from carbonreport.model.footprint import ChargedRun, SpanEnergy
from carbonreport.model.notes import Note
from carbonreport.model.sums import REST
from carbonreport.units import JOULES_PER_KWH, QUARTER_HOUR_S

_SD_OF_90_PERCENT = 1.645


@dataclass(slots=True)
class _Sums:
    count: int = 0
    seconds: float = 0.0
    items: float | None = None
    joules: float = 0.0
    grams: float = 0.0


@dataclass(frozen=True, slots=True)
class SpanTable:
    """Spans by path, and what lies outside all of them.

    Attributes:
        spans: One a path.
        rest_joules: Energy outside spans. [J]
        rest_grams: Its emissions. [gCO2e]
        notes: What a reader must know.
    """

    spans: tuple[SpanEnergy, ...]
    rest_joules: float
    rest_grams: float
    notes: tuple[Note, ...]


def span_table(
    counted: Sequence[ChargedRun], inner: Sequence[ChargedRun], it_joules: float, grams: float, it_factors: Factors
) -> SpanTable:
    """Spans and the rest: at the top level they make the total.

    A run inside another one lends its spans only where the outer one has none.

    Args:
        counted: Runs that count.
        inner: Runs inside one of those.
        it_joules: Energy of all runs that count. [J]
        grams: Their emissions. [gCO2e]
        it_factors: Interval of that energy.
    """
    own: dict[str, _Sums] = defaultdict(_Sums)
    with_spans = {c.run.id for c in counted if c.run.spans}
    powers: list[SpanPower] = []
    for c in (*counted, *(c for c in inner if c.run.parent not in with_spans)):
        if c.run.spans:
            power = span_power(c.run, c.devices)
            powers.append(power)
            _add(own, c, power)
    told: dict[str, Told] = {path: t for power in powers for path, t in power.told.items() if path in own}
    ends = {path: end for path, end in roots(told).items() if end in own or end == REST}
    spans = _Rows(own, powers, told, ends, it_factors).rows()
    inside = [s for path, s in own.items() if ends.get(path) != REST]
    notes = tuple(dict.fromkeys(note for power in powers for note in power.notes))
    return SpanTable(tuple(spans), it_joules - sum(s.joules for s in inside), grams - sum(s.grams for s in inside), notes)


def _add(sums: dict[str, _Sums], c: ChargedRun, power: SpanPower) -> None:
    """Each span's energy at the mean PUE and intensity of its own quarter hour, weighted by the run's energy."""
    per_joule = _grams_per_joule_by_quarter(c)
    counted = {device.id for device in c.devices}
    for span in c.run.spans:
        joules = sum(j * power.factors.get((device, span.path), 1.0) for device, j in span.joules.items() if device in counted)
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


@dataclass(frozen=True, slots=True)
class _Rows:
    own: Mapping[str, _Sums]
    powers: Sequence[SpanPower]
    told: Mapping[str, Told]
    ends: Mapping[str, str]
    it_factors: Factors

    def rows(self) -> list[SpanEnergy]:
        """Every path with what lies below it; a parent without spans of its own has no count."""
        return [self._row(path) for path in sorted({ancestor for p in self.own for ancestor in _ancestors(p)})]

    def _row(self, path: str) -> SpanEnergy:
        """A path with all whose energy is told by it or below it, so that no energy is told twice."""
        counted = {p for p in self.own if _is_below(self.ends.get(p, p), path)}
        own = {p for p in counted if self.ends.get(p, p) == path}
        mine = self.own.get(path, _Sums())
        if path in self.ends and not counted:
            return SpanEnergy(
                path,
                mine.count,
                mine.seconds,
                mine.items,
                None,
                None,
                None,
                None,
                mine.seconds,
                None,
                self.ends[path],
                self.told[path].because,
            )
        joules, grams, seconds = (sum(getattr(self.own[p], name) for p in counted) for name in ("joules", "grams", "seconds"))
        low, high = self._interval(joules, counted)
        return SpanEnergy(
            path=path,
            count=mine.count,
            seconds=seconds,
            items=mine.items,
            it_joules=joules,
            it_joules_low=low,
            it_joules_high=high,
            grams=grams,
            own_seconds=sum(self.own[p].seconds for p in own),
            own_it_joules=None if path in self.ends else sum(self.own[p].joules for p in own),
            includes=tuple(sorted(p for p in counted if not _is_below(p, path))),
        )

    def _interval(self, joules: float, paths: set[str]) -> tuple[float, float]:
        """The runs' own interval and what the spans' attribution adds. [J]"""
        if joules <= 0:
            return joules, joules
        sd = sum(power.variance(paths) for power in self.powers) ** 0.5 / joules
        spread = _SD_OF_90_PERCENT * sd
        low, high = math.hypot(math.log(self.it_factors.low), spread), math.hypot(math.log(self.it_factors.high), spread)
        return joules * math.exp(-low), joules * math.exp(high)


def _is_below(path: str, ancestor: str) -> bool:
    return path == ancestor or path.startswith(ancestor + "/")


def _ancestors(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[: i + 1]) for i in range(len(parts))]
