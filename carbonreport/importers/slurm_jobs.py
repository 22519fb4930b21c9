"""Jobs out of rows of sacct: one a job and start, its steps inside it, its energy where somebody measured it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from zoneinfo import ZoneInfo

from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.imported import Rejected
from carbonreport.importers.limits import LEAST_NODE_WATTS, MOST_NODE_WATTS
from carbonreport.importers.tables import Row

_CUT = "its id is cut by the fixed width; ask sacct for --parsable2"

_LOST = "its start or end does not exist or comes twice in the time zone"
_LOST_START = "its start does not exist or comes twice in the time zone"
_ALONE = "a step whose job is not in the file; a step's energy is a part of its job's"


@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job as Slurm accounted it.

    Attributes:
        cluster: Name of the cluster, "" where the file does not say.
        job_id: JobIDRaw, or JobID where that is all.
        submit_s: When it was submitted, POSIX; a local clock read as UTC where no zone was given; None where unknown. [s]
        start_s: When it began, likewise. [s]
        end_s: When it ended, likewise; of one that has not ended until when it is known: its start, what has elapsed, and how long it was suspended. [s]
        elapsed_s: How long it ran, suspended time apart. [s]
        state: In full, such as COMPLETED.
        partition: Its partition.
        account: Whom it is charged to.
        user: Who submitted it.
        nodes: How many nodes it had, or None.
        gpus: GPUs by type, "" where the type is not said.
        consumed_joules: Energy of its nodes in its time, or None where nobody measured it. [J]
        exclusive: Whether it had its nodes alone, or None where the file does not say.
        restarts: How often it was started again, or None.
        is_power: Whether the energy is a mean power times the time, since the file has nothing better.
        is_local: Whether its times are of a local clock and nobody gave its zone.
        why_undated: Why its times are not known though they are there; "" otherwise.
    """

    cluster: str
    job_id: str
    submit_s: float | None
    start_s: float | None
    end_s: float | None
    elapsed_s: float | None
    state: str
    partition: str
    account: str
    user: str
    nodes: int | None
    gpus: Mapping[str, int] = field(default_factory=dict)
    consumed_joules: float | None = None
    exclusive: bool | None = None
    restarts: int | None = None
    is_power: bool = False
    is_local: bool = False
    why_undated: str = ""


def jobs(rows: Iterable[Row], rejected: list[Rejected], *, zone: ZoneInfo | None, date_order: str = "") -> Iterator[tuple[int, SlurmJob]]:
    """Line and job of each job row, in one pass: rows of a job stand together. Its steps and repeated rows only fill what it lacks.

    Args:
        rows: Of one file.
        rejected: Takes rows that are not used, and energies that cannot be.
        zone: Time zone of stamps that name none, or None.
        date_order: "dmy" or "mdy" for dates that a spreadsheet wrote.
    """
    seen: set[tuple[str, str, str]] = set()
    job: Row | None = None
    steps: list[Row] = []
    for row in rows:
        full = _id_of(row)
        if not full or fields.is_cut(full):
            rejected.append((row.line, _CUT if full else "it has no JobID"))
            continue
        key = (row.get("cluster"), full, row.get("start"))
        if fields.is_step(full) or key in seen:
            if job is not None and _belongs(row, full, job):
                steps.append(row)
            else:
                rejected.append((row.line, _ALONE if fields.is_step(full) else "it repeats a job of the file"))
            continue
        if job is not None:
            yield job.line, _job(job, steps, rejected, zone, date_order)
        seen.add(key)
        job, steps = row, []
    if job is not None:
        yield job.line, _job(job, steps, rejected, zone, date_order)


def _id_of(row: Row) -> str:
    """JobIDRaw, which is one a task of an array; JobID shows brackets and heterogeneous parts."""
    shown, raw = row.get("jobid"), row.get("jobidraw")
    return raw if raw and not fields.is_unexpanded(shown) else shown or raw


def _belongs(row: Row, full: str, job: Row) -> bool:
    """Whether a row is a step of a job; some sites print a step under the bare id, with other figures, but the same start."""
    if fields.is_step(full):
        return _base(full) == _base(_id_of(job))
    return full == _id_of(job) and row.get("start") == job.get("start") and list(row.cells) != list(job.cells)


def _base(job_id: str) -> str:
    return job_id.partition(".")[0]


def _job(row: Row, steps: list[Row], rejected: list[Rejected], zone: ZoneInfo | None, date_order: str) -> SlurmJob:
    allocated = fields.tres(row.get("alloctres"))
    elapsed_s = _length(row)
    nodes = next((n for text in (row.get("nnodes"), row.get("allocnodes"), allocated.get("node", "")) if (n := fields.count(text))), None)
    joules, is_power = _energy(row, steps, elapsed_s)
    if joules is not None and (why := implausible(joules, elapsed_s, None if is_power else nodes)):
        rejected.append((row.line, why))
        joules = None
    start, end = (fields.stamp(row.get(name), date_order) for name in ("start", "end"))
    start_s, end_s, why = _times(start, end, elapsed_s, fields.elapsed_seconds(row.get("suspended")), zone)
    if why:
        rejected.append((row.line, why))
    return SlurmJob(
        cluster=row.get("cluster"),
        job_id=_id_of(row),
        submit_s=fields.stamp(row.get("submit"), date_order).utc(zone),
        start_s=start_s,
        end_s=end_s,
        elapsed_s=elapsed_s,
        state=fields.state(row.get("state")),
        partition=row.get("partition"),
        account=row.get("account"),
        user=row.get("user"),
        nodes=nodes,
        gpus=fields.gpus(allocated),
        consumed_joules=joules,
        exclusive=_exclusive(row.get("exclusive")),
        restarts=fields.count(row.get("restarts")),
        is_power=is_power,
        is_local=zone is None and (start.is_local or end.is_local),
        why_undated=why,
    )


def _length(row: Row) -> float | None:
    """Seconds of ElapsedRaw, else of Elapsed."""
    raw = fields.elapsed_seconds(row.get("elapsedraw"))
    return raw if raw is not None else fields.elapsed_seconds(row.get("elapsed"))


def implausible(joules: float, elapsed_s: float | None, nodes: int | None) -> str:
    """Why an energy cannot be that of so many nodes in that time; "" where it can. One node is the least where the number is not known."""
    if not elapsed_s:
        return f"{joules:g} J of a job that ran for no time"
    watts = joules / elapsed_s / (nodes or 1)
    if watts < LEAST_NODE_WATTS and nodes is not None:
        return f"{joules:g} J in {elapsed_s:g} s on {nodes} nodes are {watts:.3g} W a node, below the {LEAST_NODE_WATTS:g} W of an idle one"
    if watts > MOST_NODE_WATTS and nodes is not None:
        return f"{joules:g} J in {elapsed_s:g} s on {nodes} nodes are {watts:.3g} W a node, more than any draws"
    return ""


def _energy(row: Row, steps: list[Row], elapsed_s: float | None) -> tuple[float | None, bool]:
    """Joules of the job row, else the most of a step, since steps repeat it; else mean watts times the time, and whether it is that."""
    for candidates in ([row], steps):
        known = [j for r in candidates if (j := _joules_of(r)) is not None]
        if known:
            return max(known), False
    by_power = [
        w * s
        for r in (row, *steps)
        if (w := fields.joules(fields.tres(r.get("tresusageoutave")).get("energy", ""))) and (s := _length(r) or elapsed_s)
    ]
    return (max(by_power), True) if by_power else (None, False)


def _joules_of(row: Row) -> float | None:
    """Joules of a row; TRESUsageOut* are watts and never read as energy."""
    texts = (
        row.get("consumedenergyraw"),
        fields.tres(row.get("alloctres")).get("energy", ""),
        row.get("consumedenergy"),
        fields.tres(row.get("tresusageintot")).get("energy", ""),
    )
    return next((j for text in texts if (j := fields.joules(text)) is not None), None)


def _times(
    start: fields.Stamp, end: fields.Stamp, elapsed_s: float | None, suspended_s: float | None, zone: ZoneInfo | None
) -> tuple[float | None, float | None, str]:
    """Start and end, and why they are not known. What has elapsed, and the suspension, count where the end is missing or not later than the start."""
    if start.why or end.why:
        return None, None, start.why or end.why
    if start.seconds is None:
        return None, None, ""
    start_s, end_s = start.utc(zone), end.utc(zone)
    if end.seconds is None or end.seconds <= start.seconds:
        if elapsed_s is not None:
            length_s = elapsed_s + (suspended_s or 0.0)  # a column that is not there tells of no suspension
        elif end.seconds is not None:
            length_s = end.seconds - start.seconds
        else:
            return None, None, ""
        return (start_s, start_s + length_s, "") if start_s is not None else (None, None, _LOST_START)
    if zone is None or not (start.is_local and end.is_local):
        return (start_s, end_s, "") if start_s is not None and end_s is not None else (None, None, _LOST)
    length_s = elapsed_s if elapsed_s is not None else end.seconds - start.seconds
    found = fields.period(start.seconds, end.seconds, length_s, zone)
    return (*found, "") if found is not None else (None, None, _LOST)


def _exclusive(text: str) -> bool | None:
    word = text.strip().casefold()
    return None if not word or word in ("unknown", "none") else word in ("yes", "true", "1", "exclusive", "node")
