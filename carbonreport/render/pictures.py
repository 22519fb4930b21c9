"""Numbers of the pictures, before anything is drawn: power over time, and energy, intensity and emissions by hour. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.charge import slice_edges
from carbonreport.model.footprint import ChargedRun, Footprint, Hours
from carbonreport.model.run import Device, EnergyTrace, RunRecord
from carbonreport.model.series import Array
from carbonreport.render.engine import Raw
from carbonreport.render.setting import is_estimate, is_unread
from carbonreport.render.words import shortened
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR, kwh

_MOST_STEPS = 300  # of a curve
_MOST_BARS = 100
_MOST_CURVES = 6
_MOST_MARKS = 4
_LEAST_COVER = 0.05  # of a step's time: with less the mean says nothing
_LONGEST_NAME = 40
_DAY_S = 24 * SECONDS_PER_HOUR
_STEPS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800)
_BARS_S = (SECONDS_PER_HOUR, 3 * SECONDS_PER_HOUR, 6 * SECONDS_PER_HOUR, 12 * SECONDS_PER_HOUR, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 28 * _DAY_S)


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that is ready for a page.

    Attributes:
        svg: An `<svg>` element with its own title and description.
        title: What it shows, without a full stop.
        caption: How to read it, in sentences.
        section: Where it stands: "rerun" beside the advice, or "pictures" at the end.
    """

    svg: Raw
    title: str
    caption: str
    section: str = "pictures"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Mean power in each step, of one device or of several together; NaN where nothing was read.

    Attributes:
        label: Device, or number and name of several.
        watts: Shape (n,). [W]
    """

    label: str
    watts: Array


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """When a top-level span ran.

    Attributes:
        label: Its name.
        shares: Part of the time in each of the marks' steps, 0 to 1. Shape (m,).
    """

    label: str
    shares: Array


@dataclass(frozen=True, slots=True, eq=False)
class PowerNumbers:
    """Power over time of one run.

    Attributes:
        run_name: Its name, shortened.
        others: How many other runs the statement has.
        step_s: Length of a step. [s]
        edges_s: POSIX seconds. Shape (n + 1,).
        curves: By device, or by name of device where there are many.
        mark_edges_s: POSIX seconds. Shape (m + 1,).
        marks: The top-level spans that lasted longest.
        more_marks: How many top-level spans are left out.
    """

    run_name: str
    others: int
    step_s: float
    edges_s: Array
    curves: tuple[Curve, ...]
    mark_edges_s: Array
    marks: tuple[Mark, ...]
    more_marks: int


@dataclass(frozen=True, slots=True, eq=False)
class HourNumbers:
    """Energy, intensity and emissions by hour, or by longer bars; those without energy are absent. All arrays have shape (n,).

    Attributes:
        width_s: Length of a bar. [s]
        start_s: POSIX second at which each begins.
        it_joules: IT energy. [J]
        overhead_joules: What the facility used on top. [J]
        grams_per_kwh: Mean intensity, weighted by energy. [g/kWh]
        grams: Location-based emissions. [g]
        pue: Of all of them.
        mass_unit: Of what: "gCO2e", or "gCO2" for CO2 alone.
    """

    width_s: float
    start_s: Array
    it_joules: Array
    overhead_joules: Array
    grams_per_kwh: Array
    grams: Array
    pue: float
    mass_unit: str = "gCO2e"

    @property
    def breaks(self) -> tuple[int, ...]:
        """Bars before which time is left out."""
        return tuple(int(i) + 1 for i in np.flatnonzero(np.diff(self.start_s) > 1.5 * self.width_s))


Numbers = tuple[PowerNumbers | None, HourNumbers | None]


def pictures_of(footprint: Footprint, runs: Sequence[ChargedRun]) -> Numbers:
    """What can be drawn: no power that was only typed in, no hours of a run inside one hour, nothing that was not read."""
    if is_unread(footprint) or footprint.run_seconds == 0 or footprint.it_joules.value == 0:
        return (None, None)
    hours = hour_numbers(footprint.hours, footprint.grams.unit)
    return (None if is_estimate(footprint) else power_numbers(runs), hours if hours.start_s.size > 1 else None)


def power_numbers(runs: Sequence[ChargedRun]) -> PowerNumbers:
    """Power of the run that used the most energy."""
    charged = max(runs, key=lambda c: float(c.it_joules.sum()))
    run = charged.run
    step_s = _fitting(run.duration_s, _MOST_STEPS, _STEPS_S)
    offsets_s = np.append(np.arange(0.0, run.duration_s, step_s), run.duration_s)
    if offsets_s.size > 2 and offsets_s[-1] - offsets_s[-2] < _LEAST_COVER * step_s:  # a sliver at the end joins its neighbour
        offsets_s = np.delete(offsets_s, -2)
    mark_edges_s, marks = _marks(run, step_s)
    return PowerNumbers(
        run_name=shortened(run.name, _LONGEST_NAME),
        others=len(runs) - 1,
        step_s=step_s,
        edges_s=run.started_s + offsets_s,
        curves=tuple(_curves(charged.devices, {t.device: t for t in run.traces}, offsets_s)),
        mark_edges_s=mark_edges_s,
        marks=marks[:_MOST_MARKS],
        more_marks=max(len(marks) - _MOST_MARKS, 0),
    )


def mean_watts(trace: EnergyTrace, offsets_s: Array) -> Array:
    """Mean power between offsets, over the time with a reading; NaN where there is hardly any. [W] Shape (n,)."""
    if not trace.offsets_s:
        return np.full(offsets_s.size - 1, np.nan)
    joules = np.diff(np.interp(offsets_s, trace.offsets_s, trace.joules))
    covered_s = _overlap(offsets_s, trace.offsets_s[0], trace.offsets_s[-1])
    for from_s, to_s in trace.gaps:
        covered_s -= _overlap(offsets_s, from_s, to_s)
    is_read = covered_s > _LEAST_COVER * np.diff(offsets_s)
    watts: Array = np.divide(joules, covered_s, out=np.full(joules.size, np.nan), where=is_read)
    return watts


def _overlap(edges_s: Array, from_s: float, to_s: float) -> Array:
    """How much of a period lies in each step. [s] Shape (n,)."""
    overlap: Array = np.clip(np.minimum(edges_s[1:], to_s) - np.maximum(edges_s[:-1], from_s), 0.0, None)
    return overlap


def _curves(devices: Sequence[Device], traces: dict[str, EnergyTrace], offsets_s: Array) -> list[Curve]:
    """One a device; where they are many, the sum of those of one name, then of one kind."""
    watts = [mean_watts(traces[d.id], offsets_s) if d.id in traces else np.full(offsets_s.size - 1, np.nan) for d in devices]
    labels: list[str] = [_label(d.count, d.name) for d in devices]
    if len(devices) > _MOST_CURVES:
        labels = [d.name for d in devices]
        if len(set(labels)) > _MOST_CURVES:
            labels = [d.kind for d in devices]
        counts = {label: sum(d.count for d, other in zip(devices, labels, strict=True) if other == label) for label in labels}
        return [
            Curve(_label(n, label, " together"), np.sum([w for w, other in zip(watts, labels, strict=True) if other == label], axis=0))
            for label, n in counts.items()
        ]
    return [Curve(label, w) for label, w in zip(_numbered(labels), watts, strict=True)]


def _label(count: int, name: str, together: str = "") -> str:
    short = shortened(name, _LONGEST_NAME)
    return f"{count} × {short}{together}" if count > 1 else short


def _numbered(labels: list[str]) -> list[str]:
    """Equal names get numbers in the order of the record."""
    return [f"{label} ({labels[:i].count(label) + 1})" if labels.count(label) > 1 else label for i, label in enumerate(labels)]


def _marks(run: RunRecord, step_s: float) -> tuple[Array, tuple[Mark, ...]]:
    """Share of each quarter hour, or of each step where those are longer, that top-level spans took; longest first."""
    quarters_s = slice_edges(run.started_s, run.ended_s)
    edges_s = quarters_s
    if step_s > QUARTER_HOUR_S:
        edges_s = np.append(np.arange(run.started_s, run.ended_s, step_s), run.ended_s)
    seconds: dict[str, Array] = {}
    for span in run.spans:
        if not run.started_s - QUARTER_HOUR_S < span.quarter_s < run.ended_s:
            continue  # stamped by a wall clock that was set meanwhile
        slices = seconds.setdefault(span.path.partition("/")[0], np.zeros(quarters_s.size - 1))
        slices[np.searchsorted(quarters_s, max(span.quarter_s, run.started_s), side="right") - 1] += span.seconds
    marks = [Mark(shortened(name, _LONGEST_NAME), _shares(quarters_s, slices, edges_s)) for name, slices in seconds.items()]
    return edges_s, tuple(sorted(marks, key=lambda m: -float(m.shares @ np.diff(edges_s))))


def _shares(quarters_s: Array, seconds: Array, edges_s: Array) -> Array:
    """Time over time in each step; spans of several threads count at most once. Shape (m,)."""
    until = np.concatenate([[0.0], np.cumsum(np.minimum(seconds, np.diff(quarters_s)))])
    shares: Array = np.diff(np.interp(edges_s, quarters_s, until)) / np.diff(edges_s)
    return shares


def hour_numbers(hours: Hours, mass_unit: str = "gCO2e") -> HourNumbers:
    """Hours, put together to as many bars as a page can bear."""
    width_s = next((w for w in _BARS_S if np.unique(hours.start_s // w).size <= _MOST_BARS), _BARS_S[-1])
    starts, index = np.unique(hours.start_s // width_s, return_inverse=True)
    it, facility, grams = (_summed(values, index, starts.size) for values in (hours.it_joules, hours.facility_joules, hours.grams))
    has_energy = facility > 0
    starts, it, facility, grams = starts[has_energy], it[has_energy], facility[has_energy], grams[has_energy]
    return HourNumbers(
        width_s=width_s,
        start_s=starts * width_s,
        it_joules=it,
        overhead_joules=np.maximum(facility - it, 0.0),
        grams_per_kwh=grams / kwh(facility),
        grams=grams,
        pue=float(facility.sum() / it.sum()) if it.sum() else 1.0,
        mass_unit=mass_unit,
    )


def _summed(values: Array, index: NDArray[np.intp], bars: int) -> Array:
    sums: Array = np.bincount(index, values, bars).astype(np.float64)
    return sums


def _fitting(length_s: float, most: int, widths_s: Sequence[float]) -> float:
    """The shortest of the round widths of which at most so many make up a length."""
    return next((w for w in widths_s if length_s <= most * w), length_s / most)
