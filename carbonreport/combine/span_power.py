"""Energy of a run's spans by device: from the power samples where they tell, shared by time where a meter is too slow. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.combine.attribute import attribute
from carbonreport.combine.telling import MOST_LIMITED_SHARE
from carbonreport.model.attribution import Array, Attribution, Told
from carbonreport.model.notes import Note
from carbonreport.model.run import Device, RunRecord
from carbonreport.model.sums import REST

# The shortest span whose energy a difference of the device's curve tells. [s]
_RESOLVED_S = {"anchored": 1.0, "instant": 1.0, "counter": 10.0, "averaged": 10.0}
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True, eq=False)
class SpanPower:
    """How the energy of a run's spans is known.

    Attributes:
        factors: By device and path, what the curve's energy of a path is multiplied by to give what the samples say.
        told: Paths whose energy is told with another's.
        spreads: By device: paths, and the covariance of their energies. [J²]
        notes: What a reader must know.
    """

    factors: Mapping[tuple[str, str], float]
    told: Mapping[str, Told]
    spreads: tuple[tuple[tuple[str, ...], Array], ...]
    notes: tuple[Note, ...]

    def variance(self, paths: set[str]) -> float:
        """Variance of the energy of some paths together, devices taken as independent. [J²]"""
        total = 0.0
        for names, covariance in self.spreads:
            chosen = np.array([name in paths for name in names], dtype=float)
            total += float(chosen @ covariance @ chosen)
        return max(0.0, total)


def span_power(run: RunRecord, devices: Sequence[Device]) -> SpanPower:
    """How the energy of a run's spans is known on the devices that count."""
    seconds: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    curve: dict[tuple[str, str], float] = defaultdict(float)
    for span in run.spans:
        seconds[span.path] += span.seconds
        counts[span.path] += span.count
        for device_id, joules in span.joules.items():
            curve[device_id, span.path] += joules
    short = {path: s / counts[path] for path, s in seconds.items() if counts[path] and s > 0}
    sums = {s.device: s for s in run.sums}
    factors: dict[tuple[str, str], float] = {}
    told: dict[str, Told] = {}
    spreads: list[tuple[tuple[str, ...], Array]] = []
    notes: list[Note] = []
    by_time: list[Device] = []
    for device in devices:
        if device.id in sums:
            curve_watts = {path: curve[device.id, path] / s for path, s in seconds.items() if s > 0}
            found = attribute(sums[device.id], curve_watts)
            factors |= _factors(found, seconds, curve)
            told |= found.told
            spreads.append(_spread(found, seconds))
            notes += _limiter_notes(device, found)
        elif device.kind == "gpu" and device.method in _RESOLVED_S:
            told |= _told_by_a_slow_meter(device, short, seconds)
        if device.id not in sums and any(length < _RESOLVED_S.get(device.method, 1.0) for length in short.values()):
            by_time.append(device)
    return SpanPower(factors, told, tuple(spreads), (*notes, *_told_notes(told), *_by_time_notes(by_time)))


def _factors(found: Attribution, seconds: Mapping[str, float], curve: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    factors = {}
    for path, watts in zip(found.paths, found.watts, strict=True):
        joules = curve.get((found.device, path), 0.0)
        if path in found.how and found.how[path] != "curve" and joules > 0:
            factors[found.device, path] = float(watts) * seconds[path] / joules
    return factors


def _spread(found: Attribution, seconds: Mapping[str, float]) -> tuple[tuple[str, ...], Array]:
    times = np.array([seconds.get(path, 0.0) for path in found.paths])
    return found.paths, found.covariance * np.outer(times, times)


def _limiter_notes(device: Device, found: Attribution) -> list[Note]:
    if found.limited_share is None or found.limited_share <= MOST_LIMITED_SHARE:
        return []
    return [
        Note(
            "limiter-active",
            f"{device.name} was at its power limit for {found.limited_share * 100:.0f} % of the time: what a span drew depends on those around it",
        )
    ]


def _told_by_a_slow_meter(device: Device, lengths: Mapping[str, float], seconds: Mapping[str, float]) -> dict[str, Told]:
    """A curve of one point a second gives every short span the same power: they are told as one."""
    resolved_s = _RESOLVED_S[device.method]
    short = sorted((path for path, length in lengths.items() if length < resolved_s), key=lambda path: -seconds[path])
    because = f"{device.name} has no power samples whose response is known, and its readings do not resolve spans under {resolved_s:.0f} s"
    return {path: Told(short[0], because) for path in short[1:]}


def _told_notes(told: Mapping[str, Told]) -> list[Note]:
    named = [f"{path} is told with {t.within or 'the time outside spans'} ({t.because})" for path, t in told.items()]
    if not named:
        return []
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    return [Note("spans-told-together", "; ".join(named[:_MOST_NAMED]) + more)]


def _by_time_notes(devices: Sequence[Device]) -> list[Note]:
    names = list(dict.fromkeys(device.name for device in devices))
    if not names:
        return []
    listed = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else "")
    return [Note("spans-by-time", f"the energy of {listed} is shared among short spans by time: it is read too seldom to tell them apart")]


def roots(told: Mapping[str, Told]) -> dict[str, str]:
    """The path that finally tells each path's energy."""
    ends = {}
    for path in told:
        end, seen = path, {path}
        while end in told and told[end].within not in seen:
            end = told[end].within
            seen.add(end)
        ends[path] = end
    return {path: end for path, end in ends.items() if end != path and (end not in told or end == REST)}
