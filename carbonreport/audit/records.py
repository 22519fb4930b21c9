"""Records of runs as rows of both tables. Pure."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from carbonreport.audit.tables import OWN_CLUSTER, JobRow, MeterRow, microseconds, millijoules
from carbonreport.audit.window import hours_between
from carbonreport.model.run import METHODS, Device, EnergyTrace, RunRecord
from carbonreport.units import seconds_from_microseconds


def rows_of_runs(
    runs: Sequence[RunRecord], source: Callable[[RunRecord], str], *, project: str = "", person: str = "", is_pseudonym: bool = True
) -> tuple[list[JobRow], list[MeterRow]]:
    """A job for each run, and a reading for each device and hour; of a run inside another one of them nothing.

    Args:
        runs: Records, or runs of a foreign log.
        source: What each came from.
        project: Whom they are charged to, since no record knows.
        person: Who ran them, as the ledger may say it.
        is_pseudonym: Whether that is no name.
    """
    ids = {run.id for run in runs}
    jobs, meters = [], []
    for run in runs:
        if run.duration_s <= 0 or run.parent in ids:
            continue
        readings = readings_of(run, source(run), run.id)
        meters += readings
        boards = [device for device in run.devices if device.kind == "gpu" and device.id not in run.unused]
        known = [reading.energy_mj for reading in readings if reading.energy_mj is not None]
        jobs.append(
            JobRow(
                cluster=OWN_CLUSTER,
                job_id=run.id,
                submit_us=None,
                start_us=microseconds(run.started_s),
                end_us=microseconds(run.ended_s),
                project=project,
                person=person,
                is_pseudonym=is_pseudonym,
                partition="",
                state="FAILED" if run.kind == "failed" else "COMPLETED" if run.is_complete else "",
                gpu_model="+".join(sorted({board.name for board in boards})),
                gpus=sum(board.count for board in boards),
                nodes=1,
                hosts="",
                exclusive=None,
                energy_mj=sum(known) if known else None,
                method=_weakest(readings) if known else "",
                source=source(run),
                suspended_us=0,
            )
        )
    return jobs, meters


def _weakest(readings: Sequence[MeterRow]) -> str:
    held = {reading.method for reading in readings}
    return next((method for method in reversed(METHODS) if method in held), "")


def readings_of(run: RunRecord, source: str, job_id: str | None, hosts: Mapping[str, str] = MappingProxyType({})) -> list[MeterRow]:
    """Energy of a run's devices by hour. A meter of the whole node stands alone, for it holds its parts; unused boards do not count.

    Args:
        run: A record, or a run of a foreign log.
        source: What it came from.
        job_id: The job that had its devices, or None.
        hosts: Names of hosts by device, where they are known.
    """
    nodes = [device for device in run.devices if device.kind == "node"]
    counted = nodes or [device for device in run.devices if device.id not in run.unused]
    traces = {trace.device: trace for trace in run.traces}
    rows = []
    for device in counted:
        trace = traces.get(device.id)
        if trace is not None and len(trace.offsets_s) > 1:
            rows += _by_hour(run, device, trace, source, job_id, hosts.get(device.id, ""))
    return rows


def _by_hour(run: RunRecord, device: Device, trace: EnergyTrace, source: str, job_id: str | None, host: str) -> list[MeterRow]:
    rows = []
    start_us, end_us = microseconds(run.started_s), microseconds(run.ended_s)
    for begin_us, until_us in hours_between(start_us, end_us):
        a_s, b_s = seconds_from_microseconds(begin_us - start_us), seconds_from_microseconds(until_us - start_us)
        upto = [
            millijoules(trace.joules_at(run.duration_s + 1e9 if edge == end_us else s)) for edge, s in ((begin_us, a_s), (until_us, b_s))
        ]
        energy_mj = None if upto[0] is None or upto[1] is None else upto[1] - upto[0]
        gaps_s = sum(max(min(to_s, b_s) - max(from_s, a_s), 0.0) for from_s, to_s in trace.gaps)
        name = device.id if device.kind == "gpu" else f"{run.host} {device.id}"
        read_us = max(until_us - begin_us - microseconds(gaps_s), 0)
        rows.append(
            MeterRow(
                name,
                device.kind,
                host,
                begin_us,
                until_us,
                read_us,
                energy_mj,
                device.method,
                device.name if device.kind == "gpu" else "",
                job_id,
                source,
            )
        )
    return rows
