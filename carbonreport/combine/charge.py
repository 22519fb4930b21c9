"""Charges every slice of a run at the PUE and the grid intensity of its own time."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.pue import pue_at, pue_edges
from carbonreport.errors import GridGap
from carbonreport.model.footprint import ChargedRun
from carbonreport.model.notes import Note
from carbonreport.model.pue import PueProfile
from carbonreport.model.run import Device, EnergyTrace, RunRecord
from carbonreport.model.series import Array, IntensitySeries
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR, kwh

_MONTH_S = 30 * 24 * SECONDS_PER_HOUR
# An annual PUE used for less than a season: month means differ by 4 % (method, uncertainty budget "pue_site_annual_for_short_run").
_ANNUAL_PUE_FACTORS = (0.96, 1.04)


def charge(run: RunRecord, *, grid: IntensitySeries, pue: PueProfile, time_zone: str | None = None) -> ChargedRun:
    """The run's energy by device and slice, with the intensity and PUE of each slice.

    Slice edges are the union of UTC quarter hours, grid and PUE edges, and the run's ends. Boards that the run did not use are left out.

    Args:
        run: What was recorded.
        grid: Intensities that cover it.
        pue: PUE of its facility.
        time_zone: The facility's, for a PUE by month or hour; the record's by default, else UTC.

    Raises:
        GridGap: The series does not cover the run.
        BadPue: The series of PUE does not cover the run.
    """
    time_zone = time_zone or run.place.time_zone or "UTC"
    recorded, run = run, _without_unused(run)
    edges_s = slice_edges(run.started_s, run.ended_s, grid.edges_s, pue_edges(pue, time_zone, run.started_s, run.ended_s))
    devices = _counted_devices(run)
    it_joules = np.zeros((len(devices), edges_s.size - 1))
    for row, device in enumerate(devices):
        it_joules[row] = _slice_joules(_trace_of(run, device.id), edges_s - run.started_s)
    index = _covering(grid, edges_s)
    factors, notes = _pue_factors(run, pue)
    return ChargedRun(
        run=run,
        grid=grid,
        edges_s=edges_s,
        devices=devices,
        it_joules=it_joules,
        pue=pue_at(pue, time_zone, edges_s),
        pue_factors=factors,
        pue_source=pue.source,
        pue_origin=pue.origin,
        grams_per_kwh=grid.grams_per_kwh[index],
        quality=grid.quality[index],
        notes=(
            *run.notes,
            *(Note(slug, text) for slug, text in grid.notes),
            *notes,
            *_node_notes(run, devices),
            *_unused_notes(recorded, run),
        ),
    )


def _counted_devices(run: RunRecord) -> tuple[Device, ...]:
    """All devices; of a run with a meter of the whole node that one alone, for it holds its parts (method, rule 3)."""
    nodes = tuple(device for device in run.devices if device.kind == "node")
    return nodes or run.devices


def _without_unused(run: RunRecord) -> RunRecord:
    """The run with the boards that count; all of them where a meter of the whole node holds their energy anyway."""
    if not run.unused or any(device.kind == "node" for device in run.devices):
        return replace(run, unused=())
    return replace(
        run,
        devices=tuple(device for device in run.devices if device.id not in run.unused),
        traces=tuple(trace for trace in run.traces if trace.device not in run.unused),
        spans=tuple(replace(span, joules={d: j for d, j in span.joules.items() if d not in run.unused}) for span in run.spans),
        sums=tuple(sums for sums in run.sums if sums.device not in run.unused),
        unused=(),
    )


def _unused_notes(recorded: RunRecord, counted: RunRecord) -> list[Note]:
    count = len(recorded.devices) - len(counted.devices)
    if not count:
        return []
    drew_kwh = kwh(sum(_trace_of(recorded, device_id).joules_at(recorded.duration_s) for device_id in recorded.unused))
    boards, them, are = ("board", "it", "it is") if count == 1 else ("boards", "them", "they are")
    text = (
        f"{count} more visible {boards} drew {drew_kwh:.3g} kWh meanwhile; no process of the run was seen on {them}, and {are} not counted"
    )
    return [Note("boards-unused", f"{text} (CUDA_VISIBLE_DEVICES would choose the boards that count)")]


def _node_notes(run: RunRecord, counted: tuple[Device, ...]) -> list[Note]:
    left_out = [device.name for device in run.devices if device not in counted]
    return [Note("node-meter", f"the node's meter holds {', '.join(left_out)}, which are not added to it")] if left_out else []


def slice_edges(start_s: float, end_s: float, *others: Array) -> Array:
    """Rising edges from start to end: both ends, UTC quarter hours and all other edges between. Shape (n + 1,)."""
    first = np.floor(start_s / QUARTER_HOUR_S) + 1
    last = np.ceil(end_s / QUARTER_HOUR_S)
    quarters = np.arange(first, last) * QUARTER_HOUR_S
    inner = np.concatenate([quarters, *others])
    inner = inner[(inner > start_s) & (inner < end_s)]
    ends = [start_s, end_s] if end_s > start_s else [start_s]
    return np.unique(np.concatenate([inner, ends]))


def _trace_of(run: RunRecord, device_id: str) -> EnergyTrace:
    return next((t for t in run.traces if t.device == device_id), EnergyTrace(device_id, (), ()))


def _slice_joules(trace: EnergyTrace, offsets_s: Array) -> Array:
    """Energy in each slice. [J] Shape (n,)."""
    if not trace.offsets_s:
        return np.zeros(offsets_s.size - 1)
    return np.diff(np.interp(offsets_s, trace.offsets_s, trace.joules))


def _covering(grid: IntensitySeries, edges_s: Array) -> NDArray[np.intp]:
    """Index of the grid interval that holds each slice."""
    starts = edges_s[:-1]
    if starts.size and (edges_s[0] < grid.edges_s[0] or edges_s[-1] > grid.edges_s[-1]):
        raise GridGap(grid.zone, float(edges_s[0]), float(edges_s[-1]), f"the series covers {grid.source}")
    return np.searchsorted(grid.edges_s, starts, side="right") - 1


def _pue_factors(run: RunRecord, pue: PueProfile) -> tuple[tuple[float, float], list[Note]]:
    """90 % factors on the PUE's value: its own range, or the seasonal error of an annual value."""
    if pue.has_range:
        return (pue.low / pue.value, pue.high / pue.value), []
    if run.duration_s >= _MONTH_S or pue.value == 1.0 or pue.varies:
        return (1.0, 1.0), []
    low, high = _ANNUAL_PUE_FACTORS
    return (max(low, 1.0 / pue.value), high), [
        Note("pue-annual", f"PUE {pue.value:g} is an annual value; the months of a year differ from it by about 4 %")
    ]
