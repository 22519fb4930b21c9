"""A record for authors who ran no tracer: power times hours, labelled as that."""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from carbonreport import __version__
from carbonreport.boards import Board, find_board
from carbonreport.errors import BadTime, CarbonreportError
from carbonreport.model.notes import Note
from carbonreport.model.run import Device, EnergyTrace, Place, RunKind, RunRecord
from carbonreport.store.writer import new_record_path, save
from carbonreport.units import SECONDS_PER_HOUR
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions

# Measured over rated power: median of 218 trainings at the highest limit in Zeus's open traces (V100, A40, P100, RTX 6000), 0.65;
# 90 % range 0.45 to 1.0 of the rated power (method, uncertainty budget "gpu_tdp_hours").
TYPICAL_SHARE = 0.65
SHARE_LOW, SHARE_HIGH = 0.45, 1.0
# A mean power of unknown method: naive readings are off by 39 % on average (Yang, Adamek and Armour 2024).
TYPED_IN_FACTOR = 1.39
_WHAT_POWER = {
    "rated-power": "the rated power",
    "rated-power-scaled": f"{TYPICAL_SHARE * 100:.0f} % of the rated power",
    "mean-watts-given": "a mean power given by the author",
}
EARLIEST_YEAR, LATEST_YEAR = 2000, 2100
_MOST_HOURS, _MOST_BOARDS = 1e6, 1_000_000
_MOST_OF_RATED = 1.5  # a board may be let draw more than its data sheet says, but not this much more
_SAME = 0.01  # mean watts this close to the rated power are the rated power


@dataclass(frozen=True, slots=True)
class Job:
    """What an author remembers of a run.

    Attributes:
        gpu: Board name, as bought or as the driver says it.
        count: How many of them.
        hours: How long it ran. [h]
        mean_watts: Mean power of one board, or None. [W]
        start: When it began: ISO 8601 with a zone or offset, or a local time together with a time zone.
    """

    gpu: str
    count: int
    hours: float
    mean_watts: float | None
    start: str


def estimate(
    job: Job,
    *,
    name: str,
    kind: RunKind,
    place: Place,
    folder: Path,
    options: PlaceOptions,
    now_s: Callable[[], float] = time.time,
) -> Path:
    """Write the record of an estimated run; its path. It is charged once before, so that nothing is written of what cannot be rendered.

    Raises:
        CarbonreportError: An unknown board, a count, hours or watts that nothing can have; or the place cannot be used.
        BadTime: The start cannot be read, or does not exist, or exists twice, or has not come yet.
        OutputError: The folder cannot be written.
    """
    if not name.strip():
        raise CarbonreportError("--name is empty; give a name, or leave it out")
    run = estimated_run(job, name=name, kind=kind, place=place, run_id=os.urandom(8).hex())
    if run.started_s > now_s():
        raise BadTime(f"--start {job.start!r} has not come yet; an estimate is of a run that was")
    charge_records([run], options)
    return save(run, new_record_path(folder, name, run.started_s, run.id))


def estimated_run(job: Job, *, name: str, kind: RunKind, place: Place, run_id: str) -> RunRecord:
    """The record of an estimated run. Raises as `estimate` does."""
    _check(job)
    board = find_board(job.gpu)
    watts, low, high, note = _power(job, board)
    seconds = job.hours * SECONDS_PER_HOUR
    started_s = start_of(job.start, place.time_zone)
    source = f"{job.count} × {watts:.4g} W × {job.hours:.6g} h, {_WHAT_POWER[note.slug]}"
    device = Device(f"estimated-{board.name}", board.name, "gpu", "model", low, high, source, origin="assumed", count=job.count)
    return RunRecord(
        id=run_id,
        name=name,
        kind=kind,
        host=f"estimated-{run_id}",
        started_s=started_s,
        duration_s=seconds,
        devices=(device,),
        traces=(EnergyTrace(device.id, (0.0, seconds), (0.0, watts * job.count * seconds)),),
        place=place,
        environment={"carbonreport": __version__},
        notes=(Note("estimated-run", f"“{name}” was not measured: {source}"), note),
    )


def _check(job: Job) -> None:
    if not 1 <= job.count <= _MOST_BOARDS:
        raise CarbonreportError(f"--count {job.count}: give the number of boards, from 1 to {_MOST_BOARDS:,}")
    if not 0 <= job.hours < _MOST_HOURS:
        raise CarbonreportError(f"--hours {job.hours:g}: give the wall-clock hours, from 0 to {_MOST_HOURS:,.0f}")
    if job.mean_watts is not None and not 0 < job.mean_watts < 1e6:
        raise CarbonreportError(f"--mean-watts {job.mean_watts:g}: give the mean power of one board in watts, above 0")


def _power(job: Job, board: Board) -> tuple[float, float, float, Note]:
    """Mean watts of a board, 90 % factors, and the note that says what they are."""
    if job.mean_watts is None:
        if board.rated_watts is None:
            nearest = f", or one of: {', '.join(board.nearest)}" if board.nearest else ""
            raise CarbonreportError(f"the rated power of {job.gpu!r} is not known here; give --mean-watts{nearest}")
        text = f"{board.name}: {TYPICAL_SHARE * 100:.0f} % of its rated {board.rated_watts:g} W ({board.source}), the median of measured trainings"
        return board.rated_watts * TYPICAL_SHARE, SHARE_LOW / TYPICAL_SHARE, SHARE_HIGH / TYPICAL_SHARE, Note("rated-power-scaled", text)
    if board.rated_watts is not None and job.mean_watts > _MOST_OF_RATED * board.rated_watts:
        raise CarbonreportError(
            f"--mean-watts {job.mean_watts:g} is far above the rated {board.rated_watts:g} W of {board.name} ({board.source}); give the mean power of one board"
        )
    if board.rated_watts is not None and abs(job.mean_watts - board.rated_watts) <= _SAME * board.rated_watts:
        return (
            job.mean_watts,
            SHARE_LOW,
            SHARE_HIGH,
            Note(
                "rated-power",
                f"{job.mean_watts:g} W is the rated power of {board.name} ({board.source}): an upper bound of its consumption",
            ),
        )
    return (
        job.mean_watts,
        1 / TYPED_IN_FACTOR,
        TYPED_IN_FACTOR,
        Note("mean-watts-given", f"{job.mean_watts:g} W a board was given by the author"),
    )


def start_of(text: str, time_zone: str | None) -> float:
    """POSIX seconds of a start. A local time is read in the time zone; one that exists twice or never is refused.

    Raises:
        BadTime: See above.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadTime(f"cannot read the time {text!r}; write it like 2026-01-14T18:20+01:00") from error
    if not EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
        raise BadTime(f"{text!r} is not in the years {EARLIEST_YEAR} to {LATEST_YEAR}; write it like 2026-01-14T18:20+01:00")
    if moment.tzinfo is not None:
        return moment.timestamp()
    if time_zone is None:
        raise BadTime(f"{text!r} has no time zone; write it like {text}+01:00 or {text}Z, or give the place's zone with --zone")
    zone = ZoneInfo(time_zone)
    earlier, later = moment.replace(tzinfo=zone, fold=0), moment.replace(tzinfo=zone, fold=1)
    if earlier.utcoffset() == later.utcoffset():
        return earlier.timestamp()
    exists = earlier.astimezone(UTC).astimezone(zone).replace(tzinfo=None) == moment
    reason = "exists twice" if exists else "does not exist"
    first, second = (f"{moment:%Y-%m-%dT%H:%M}{offset[:3]}:{offset[3:]}" for offset in (f"{m:%z}" for m in (earlier, later)))
    raise BadTime(f"{text!r} {reason} in {time_zone}, where the clocks are set then; write {first} or {second}")
