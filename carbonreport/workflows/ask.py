"""What somebody wants to run, out of a record, two numbers, or a table of busy hours."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from carbonreport.errors import CarbonreportError
from carbonreport.model.run import RunRecord
from carbonreport.recommend.caps import CapPoint
from carbonreport.recommend.rates import Job
from carbonreport.recommend.windows import Periods
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR
from carbonreport.workflows.imports import runs_of
from carbonreport.workflows.place import PlaceOptions

WATTS_PER_KILOWATT = 1000.0
MOST_AHEAD_H = 24.0 * 366


@dataclass(frozen=True, slots=True)
class Ask:
    """What somebody wants to run, and what is allowed.

    Attributes:
        job: Its power over its own time.
        earliest_s: First moment. [POSIX s]
        latest_end_s: By when it must have ended. [POSIX s]
        zones: Other zones, or cloud regions, where it could run.
        allowed_hours: (from, to) local hours of a day between which it may run; None for all.
        most_pauses: How often it may pause; 0 for never.
        pause_s: What a pause costs at full power. [s]
        idle_watts: What reserved equipment draws while it waits. [W]
        closed: Periods in which it must not run.
        caps: Power caps that could be set.
        gpu_share: Part of the job's power that its GPUs draw, 0 to 1.
        most_time_ratio: How much longer a cap may make it.
        with_season: Whether other months are priced even where the facility's PUE does not differ by month.
        marginal: Files of marginal intensities: of the home zone, then of the others in their order; or ().
    """

    job: Job
    earliest_s: float
    latest_end_s: float
    zones: tuple[str, ...] = ()
    allowed_hours: tuple[int, int] | None = None
    most_pauses: int = 0
    pause_s: float = 300.0
    idle_watts: float = 0.0
    closed: Periods = ()
    caps: tuple[CapPoint, ...] = ()
    gpu_share: float = 1.0
    most_time_ratio: float = float("inf")
    with_season: bool = False
    marginal: tuple[str, ...] = ()


def job_like(record: Path, options: PlaceOptions | None = None) -> tuple[Job, RunRecord]:
    """The job of a record, or of a log that an importer knows: its power by the quarter hour.

    Args:
        record: The file.
        options: The place, which dates local times of a log.

    Raises:
        RecordError: It cannot be read.
        CarbonreportError: It has no length or no energy, or holds several runs.
    """
    run, *others = runs_of(record, options)
    if others:
        raise CarbonreportError(
            f"{record} holds {len(others) + 1} runs; carbonreport import {record} --out runs makes a record of each: name one of them"
        )
    if run.duration_s <= 0 or not any(trace.offsets_s for trace in run.traces):
        raise CarbonreportError(f"{record} has no energy over time; give --hours and --kw instead")
    edges = np.append(np.arange(0.0, run.duration_s, QUARTER_HOUR_S), run.duration_s)
    joules = np.zeros(edges.size - 1)
    for trace in run.traces:
        joules += np.diff([trace.joules_at(float(edge)) for edge in edges])
    return Job(edges, joules / np.diff(edges)), run


def job_of(hours: float, kw: float) -> Job:
    """A job of constant power.

    Raises:
        CarbonreportError: A length or a power that is none.
    """
    if not 0 < hours < MOST_AHEAD_H or not 0 < kw < 1e6:
        raise CarbonreportError(f"a job of {hours:g} h at {kw:g} kW: both must be above 0, under a year and under a million kW")
    return Job.steady(kw * WATTS_PER_KILOWATT, hours * SECONDS_PER_HOUR)


def busy_periods(path: Path) -> Periods:
    """Periods of a CSV with the columns from and to, ISO times with a zone.

    Raises:
        CarbonreportError: It cannot be read; the message names the line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise CarbonreportError(f"cannot read {path}: {error}") from error
    return tuple(_period(path, number, row) for number, row in enumerate(rows, start=2))


def _period(path: Path, number: int, row: Mapping[str, str | None]) -> tuple[float, float]:
    try:
        moments = [datetime.fromisoformat(row[name] or "") for name in ("from", "to")]
    except (KeyError, ValueError) as error:
        raise CarbonreportError(
            f"{path}, line {number}: columns from and to with times such as 2026-12-20T18:00+01:00 are needed"
        ) from error
    if any(moment.tzinfo is None for moment in moments):
        raise CarbonreportError(f"{path}, line {number}: a time without its zone; write 2026-12-20T18:00+01:00 or …Z")
    return moments[0].timestamp(), moments[1].timestamp()
