"""Traces played back as time passes: for tests, for examples, and for machines without sensors."""

from collections.abc import Mapping, Sequence

from carbonreport.errors import MeterError
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meter import Gap, Meter, Poll, Reading
from carbonreport.model.run import Device, EnergyTrace

NO_GAPS: Mapping[str, Sequence[tuple[float, float]]] = {}


def create(options: Mapping[str, str]) -> Meter:
    """Plays back the devices of a record.

    Args:
        options: "path" of the record.

    Raises:
        MeterError: No path was given.
    """
    if "path" not in options:
        raise MeterError("replay needs the path of a record: replay:path=runs/x.jsonl")
    from carbonreport.store import load

    record = load(options["path"])
    devices = {device.id: device for device in record.devices}
    traces = [(devices[trace.device], trace.offsets_s, trace.joules) for trace in record.traces]
    return ReplayMeter(traces, {trace.device: trace.gaps for trace in record.traces})


def available() -> str | None:
    """Always usable."""
    return None


class ReplayMeter:
    """Hands out the points of each trace once the run clock has passed them.

    Args:
        traces: Device, offsets [s] and cumulative energies [J] of each.
        gaps: Periods without a reading, by device id.
    """

    period_s: float | None = None

    def __init__(
        self,
        traces: Sequence[tuple[Device, Sequence[float], Sequence[float]]],
        gaps: Mapping[str, Sequence[tuple[float, float]]] = NO_GAPS,
    ) -> None:
        self._devices = tuple(device for device, _, _ in traces)
        self._traces = [EnergyTrace(device.id, tuple(offsets_s), tuple(joules)) for device, offsets_s, joules in traces]
        self._gaps = [Gap(device, from_s, to_s) for device, periods in gaps.items() for from_s, to_s in periods]
        self._played_s = float("-inf")
        self._clock: RunClock | None = None

    def environment(self) -> Mapping[str, str]:
        """Nothing is known of this machine's hardware."""
        return {}

    def open(self, clock: RunClock) -> tuple[Device, ...]:
        """See Meter."""
        self._clock = clock
        return self._devices

    def poll(self, *, is_last: bool) -> Poll:
        """See Meter. The last poll ends each trace at this moment."""
        if self._clock is None:
            raise MeterError("the meter was polled before it was opened")
        from_s, self._played_s = self._played_s, self._clock.offset_s()
        readings = [reading for trace in self._traces for reading in _played(trace, from_s, self._played_s, is_last=is_last)]
        gaps = [gap for gap in self._gaps if from_s < gap.to_s <= self._played_s]
        return Poll(tuple(readings), gaps=tuple(gaps))

    def close(self) -> None:
        """See Meter: nothing is held."""


def _played(trace: EnergyTrace, from_s: float, to_s: float, *, is_last: bool) -> list[Reading]:
    points = [(at_s, joules) for at_s, joules in zip(trace.offsets_s, trace.joules, strict=True) if from_s < at_s <= to_s]
    if is_last and trace.offsets_s and trace.offsets_s[0] < to_s < trace.offsets_s[-1] and (not points or points[-1][0] < to_s):
        points.append((to_s, trace.joules_at(to_s)))
    return [Reading(trace.device, at_s, joules) for at_s, joules in points]
