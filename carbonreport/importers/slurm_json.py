"""sacct --json: jobs whose numbers are plain or wrapped, whose state is a word or a list, whose times are POSIX seconds."""

from collections.abc import Iterator, Sequence
from typing import Any

from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.imported import Rejected
from carbonreport.importers.slurm_jobs import SlurmJob, implausible


def is_accounting(found: Any) -> bool:
    """Whether a decoded file is of sacct: its jobs have a group of times; those of squeue do not."""
    jobs = found.get("jobs") if isinstance(found, dict) else None
    return isinstance(jobs, list) and bool(jobs) and all(isinstance(job, dict) and isinstance(job.get("time"), dict) for job in jobs[:5])


def no_accounting(found: Any) -> str:
    """Why a decoded file is not of sacct."""
    jobs = found.get("jobs") if isinstance(found, dict) else None
    if found is None:
        return "it cannot be read as JSON"
    if jobs == []:
        return "its list of jobs is empty"
    if not isinstance(jobs, list) or not all(isinstance(job, dict) and "job_id" in job for job in jobs[:5]):
        return "it has no list of jobs, as sacct --json writes one"
    return "it is of squeue, which shows what waits and runs; accounting is what sacct --json writes"


def jobs_of_json(found: Any, rejected: list[Rejected]) -> Iterator[tuple[int, SlurmJob]]:
    """Number and job of each job."""
    seen = set()
    for number, job in enumerate(found["jobs"], start=1):
        if not isinstance(job, dict):
            rejected.append((number, "it is no object"))
            continue
        made = _job(number, job, rejected)
        key = (made.cluster, made.job_id, made.start_s)
        if key in seen:
            rejected.append((number, "it repeats a job of the file"))
            continue
        seen.add(key)
        yield number, made


def _job(number: int, job: dict[str, Any], rejected: list[Rejected]) -> SlurmJob:
    times, association = _group(job, "time"), _group(job, "association")
    allocated = _resources(_group(job, "tres").get("allocated"))
    elapsed_s, suspended_s, start_s, end_s = (_whole(times.get(name)) for name in ("elapsed", "suspended", "start", "end"))
    nodes = _whole(job.get("allocation_nodes")) or fields.count(allocated.get("node", ""))
    joules = fields.joules(allocated.get("energy", ""))
    if joules is None:
        joules = max((j for step in _list(job.get("steps")) if (j := _step_joules(step)) is not None), default=None)
    if joules is not None and (why := implausible(joules, elapsed_s, int(nodes) if nodes else None)):
        rejected.append((number, why))
        joules = None
    return SlurmJob(
        cluster=str(job.get("cluster") or ""),
        job_id=str(_whole(job.get("job_id")) or job.get("job_id") or number).removesuffix(".0"),
        submit_s=_whole(times.get("submission")) or None,
        start_s=start_s or None,
        end_s=end_s or (start_s + elapsed_s + (suspended_s or 0.0) if start_s and elapsed_s is not None else None),
        elapsed_s=elapsed_s,
        state=fields.state(_state(job.get("state"))),
        partition=str(job.get("partition") or ""),
        account=str(job.get("account") or association.get("account") or ""),
        user=str(job.get("user") or association.get("user") or ""),
        nodes=int(nodes) if nodes else None,
        gpus=fields.gpus(allocated),
        consumed_joules=joules,
        exclusive=True if "exclusive" in str(job.get("shared", "")).casefold() else None,
        restarts=_count(job.get("restart_cnt")),
    )


def _whole(value: Any) -> float | None:
    """A number, plain or {"set": true, "infinite": false, "number": 3}; None where it is not set."""
    if isinstance(value, dict):
        if value.get("set") is False or value.get("infinite") is True:
            return None
        value = value.get("number")
    if isinstance(value, bool) or not isinstance(value, int | float) or value in fields.NO_VALUES or value < 0:
        return None
    return float(value)


def _count(value: Any) -> int | None:
    whole = _whole(value)
    return None if whole is None else int(whole)


def _state(value: Any) -> str:
    """COMPLETED of "COMPLETED", ["COMPLETED"] or {"current": …}; of several the first."""
    if isinstance(value, dict):
        value = value.get("current")
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = value[0] if value else ""
    return value if isinstance(value, str) else ""


def _resources(value: Any) -> dict[str, str]:
    """AllocTRES as text by name, from its list of type, name and count."""
    found = {}
    for entry in _list(value):
        if isinstance(entry, dict):
            name = "/".join(str(part) for part in (entry.get("type"), entry.get("name")) if part)
            whole = _whole(entry.get("count"))
            found[name] = "" if whole is None else str(int(whole))
    return found


def _step_joules(step: Any) -> float | None:
    """Joules of a step; unset ones are NO_VAL64."""
    statistics = step.get("statistics") if isinstance(step, dict) else None
    energy = statistics.get("energy") if isinstance(statistics, dict) else None
    whole = _whole(energy.get("consumed")) if isinstance(energy, dict) else None
    return None if whole is None else fields.joules(str(int(whole)))


def _group(job: dict[str, Any], name: str) -> dict[str, Any]:
    found = job.get(name)
    return found if isinstance(found, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
