"""Records of runs that never happened, for tests."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from carbonreport.model.run import ORIGIN_OF_METHOD, Device, DeviceKind, EnergyTrace, Method, Place, RunKind, RunRecord, Span
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR


def make_record(
    watts: Mapping[str, float],
    hours: float,
    *,
    start: str = "2026-01-15T12:00Z",
    name: str = "run",
    kind: RunKind = "training",
    method: Method = "counter",
    kinds: Mapping[str, DeviceKind] | None = None,
    gain: tuple[float, float] = (0.99, 1.08),
    zone: str | None = None,
    time_zone: str | None = "UTC",
    spans: Mapping[str, float] | None = None,
    items: Mapping[str, float] | None = None,
    host: str = "host-a",
    run_id: str | None = None,
    parent: str | None = None,
) -> RunRecord:
    """A run at constant power.

    Args:
        watts: Power by device name; the name is its id too. [W]
        hours: How long it lasts. [h]
        start: Its begin, ISO 8601 with zone.
        name: What it is called.
        kind: training, inference, …
        method: How the devices' energy is known.
        kinds: Kind by device name; gpu by default.
        gain: 90 % interval of true / reading of every device.
        zone: Grid zone that the record knows, or None.
        time_zone: Time zone of its host.
        spans: Share of every moment's energy and time by span path, below 1 in sum.
        items: Items by span path.
        host: Salted id of its host.
        run_id: Its id; from name and start by default.
        parent: Id of the run around it.
    """
    started_s = datetime.fromisoformat(start).timestamp()
    seconds = hours * SECONDS_PER_HOUR
    kinds = kinds or {}
    devices = tuple(Device(n, n, kinds.get(n, "gpu"), method, *gain, "made up", origin=ORIGIN_OF_METHOD[method]) for n in watts)
    traces = tuple(EnergyTrace(n, (0.0, seconds), (0.0, w * seconds)) for n, w in watts.items())
    return RunRecord(
        id=run_id or f"{name}-{start}",
        name=name,
        kind=kind,
        host=host,
        started_s=started_s,
        duration_s=seconds,
        devices=devices,
        traces=traces,
        spans=tuple(_spans(spans or {}, items or {}, watts, started_s, seconds)),
        place=Place(zone, "option" if zone else "", time_zone),
        parent=parent,
    )


def _spans(
    shares: Mapping[str, float], items: Mapping[str, float], watts: Mapping[str, float], started_s: float, seconds: float
) -> Sequence[Span]:
    """Each span in each quarter hour of the run."""
    rows = []
    begin = started_s
    while begin < started_s + seconds:
        quarter_s = begin // QUARTER_HOUR_S * QUARTER_HOUR_S
        end = min(quarter_s + QUARTER_HOUR_S, started_s + seconds)
        for path, share in shares.items():
            lasts = (end - begin) * share
            part = items[path] * (end - begin) / seconds if path in items else None
            rows.append(Span(path, quarter_s, 1, lasts, part, {n: w * lasts for n, w in watts.items()}))
        begin = end
    return rows
