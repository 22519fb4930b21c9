"""The two tables of the ledger: what was run, and what was metered. Energies are whole millijoules; unknown is null, never 0."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args, get_type_hints

from carbonreport.units import HOUR_US as HOUR_US
from carbonreport.units import MJ_PER_J, US_PER_S

TableName = Literal["jobs", "meters"]
OWN_CLUSTER = "carbonreport"  # of jobs that are records
# Where each begins is what its month is taken from; the key tells rows of one thing apart, the best of several stays.
MOST_MILLIJOULES = 2**53  # 2.5 GWh: beyond, a double could not hold it whole


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job as somebody accounted it.

    Attributes:
        cluster: Name of the cluster; "" where nobody said.
        job_id: Its id there, one a task of an array.
        submit_us: When it was submitted, POSIX microseconds, or None.
        start_us: When it began.
        end_us: When it ended; of one that still runs, until when it is known.
        project: Whom it is charged to.
        person: Who ran it: a pseudonym, a name, or "".
        is_pseudonym: Whether `person` is no name.
        partition: Its partition.
        state: In full, such as COMPLETED.
        gpu_model: Type of its GPUs, "" where nobody said.
        gpus: How many GPUs it had.
        nodes: How many nodes, or None.
        hosts: Their names as Slurm lists them: "n[01-03]".
        exclusive: Whether it had its nodes alone; None where nobody said.
        energy_mj: What was accounted for it, or None. [mJ]
        method: How that energy is known: reported, or a method of a record; "" without energy.
        source: Hash of what the row came from.
        array_id: Its id as people see it, "123_4" or "10+1", where that is another one and known; "" otherwise.
        suspended_us: How much of its time it was suspended, 0 where it was not, None where nobody says how long it ran. [µs]
    """

    cluster: str
    job_id: str
    submit_us: int | None
    start_us: int
    end_us: int
    project: str
    person: str
    is_pseudonym: bool
    partition: str
    state: str
    gpu_model: str
    gpus: int
    nodes: int | None
    hosts: str
    exclusive: bool | None
    energy_mj: int | None
    method: str
    source: str
    array_id: str = ""
    suspended_us: int | None = None


@dataclass(frozen=True, slots=True)
class MeterRow:
    """What one device used within an hour, or a part of one.

    Attributes:
        device: UUID of the board, or another id that is the device's own.
        kind: gpu, cpu, dram, node or other.
        host: Name of its host, or a salted id; "" where nobody said.
        start_us: Begin, POSIX microseconds.
        end_us: End.
        read_us: Time with a reading, gaps left out.
        energy_mj: What it used, or None. [mJ]
        method: How it is known: counter, instant, averaged, anchored, model.
        gpu_model: Name of the board, "" where nobody said.
        job_id: The job that had it, or None.
        source: Hash of what the row came from.
    """

    device: str
    kind: str
    host: str
    start_us: int
    end_us: int
    read_us: int
    energy_mj: int | None
    method: str
    gpu_model: str
    job_id: str | None
    source: str


Row = JobRow | MeterRow
# What files from before a column was there lack: it is unknown there.
LATER_COLUMNS: dict[TableName, frozenset[str]] = {"jobs": frozenset({"suspended_us"}), "meters": frozenset()}
SUSPENSION_US = US_PER_S  # the least: start, end and length are rounded to seconds, each by itself
_TYPES = {str: "VARCHAR", int: "BIGINT", bool: "BOOLEAN"}
_ROWS: dict[TableName, type[Row]] = {"jobs": JobRow, "meters": MeterRow}


def columns(table: TableName) -> dict[str, str]:
    """Names and DuckDB types of a table's columns."""
    return {name: _TYPES[next(iter(get_args(kind)), kind)] for name, kind in get_type_hints(_ROWS[table]).items()}


def cells(rows: Sequence[Row], table: TableName) -> dict[str, list[Any]]:
    """The columns of rows."""
    return {name: [getattr(row, name) for row in rows] for name in columns(table)}


def key(table: TableName) -> Sequence[str]:
    """What tells rows apart: two rows of one key are two reports of the same thing."""
    return ("cluster_key", "job_key", "start_us") if table == "jobs" else ("device", "start_us", "job_key")


def microseconds(seconds: float) -> int:
    """Whole POSIX microseconds."""
    return round(seconds * US_PER_S)


def millijoules(joules: float | None) -> int | None:
    """Whole millijoules; None where the energy is unknown, not finite, below 0 or beyond what any job can have used."""
    if joules is None or not math.isfinite(joules) or joules < 0:
        return None
    value = round(joules * MJ_PER_J)
    return value if value <= MOST_MILLIJOULES else None


def suspended(start_us: int, end_us: int, elapsed_us: int | None) -> int | None:
    """How long a job was suspended: Slurm's Elapsed leaves that out of the time from start to end. [µs] None where Elapsed is not known."""
    if elapsed_us is None:
        return None
    rest_us = end_us - start_us - elapsed_us
    return rest_us if rest_us > SUSPENSION_US else 0


def month_of(start_us: int) -> str:
    """The UTC month of a moment: "2026-03"."""
    return datetime.fromtimestamp(start_us / US_PER_S, UTC).strftime("%Y-%m")
