"""Slurm's accounting, sacct in all its shapes: jobs with the energy of their nodes, each once, unmeasured ones said so."""

from collections import Counter
from collections.abc import Iterable, Mapping

from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import parsed
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import Clock
from carbonreport.importers.slurm_jobs import SlurmJob, jobs
from carbonreport.importers.slurm_json import is_accounting, jobs_of_json, no_accounting
from carbonreport.importers.slurm_rows import date_order, layout_of, rows_of
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note
from carbonreport.model.run import RunKind

FORMAT = "slurm"
_ENERGIES = {"consumedenergyraw", "consumedenergy", "alloctres", "tresusageintot", "tresusageoutave"}
_JSON_KEYS = ('"jobs"', '"job_id"')


def create(options: Mapping[str, str]) -> "Slurm":
    """The importer of sacct's output."""
    return Slurm(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Slurm:
    """Reads parsable2, parsable, fixed width, tables and JSON."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By a header with JobID, or by the jobs of its JSON."""
        if file.head.lstrip().startswith("{"):
            return all(key in file.text for key in _JSON_KEYS)
        return layout_of(file.head.split("\n")[:40], self._wishes.columns) is not None

    def read(self, file: LogFile) -> Imported:
        """One run a job that has energy."""
        rejected: list[Rejected] = []
        if file.head.lstrip().startswith("{"):
            return self._of_json(file, rejected)
        layout = layout_of(file.text.split("\n")[:40], self._wishes.columns)
        if layout is None:
            why = "none of its first lines is a header of sacct, with JobID and State, Elapsed or the like"
            return imported(FORMAT, file, (), rows=0, wishes=self._wishes, why_not=why)
        columns = set(layout.columns)
        order = self._wishes.date_order or date_order(file.text, self._wishes.columns)
        rows = rows_of(file.text.split("\n"), rejected, self._wishes.columns)
        found = list(jobs(rows, rejected, zone=self._wishes.zone, date_order=order))
        if not columns & _ENERGIES:
            why = "energy is not derivable: sacct was not asked for it; add ConsumedEnergyRaw and AllocTRES to --format"
            return self._imported(file, found, (), rejected, why, "utc")
        clock: Clock = "local" if any(job.is_local for _, job in found) else "utc"
        return self._imported(file, found, _drafts(found), rejected, None, clock)

    def _of_json(self, file: LogFile, rejected: list[Rejected]) -> Imported:
        content = parsed(file.text)
        if not is_accounting(content):
            return imported(FORMAT, file, (), rows=0, wishes=self._wishes, why_not=no_accounting(content))
        found = list(jobs_of_json(content, rejected))
        return self._imported(file, found, _drafts(found), rejected, None, "utc")

    def _imported(
        self,
        file: LogFile,
        found: list[tuple[int, SlurmJob]],
        drafts: Iterable[Draft],
        rejected: list[Rejected],
        why: str | None,
        clock: Clock,
    ) -> Imported:
        made = list(drafts)
        if not made and why is None:
            why = "no job has energy: Slurm had no energy plugin that measured (0, blank and NO_VAL64 all say that), or its values are not possible"
            why = f"{why}; {rejected[0][1]}" if rejected else why
        notes = _told_of(file, [job for _, job in found]) if made else ()
        return imported(FORMAT, file, made, rows=len(found), rejected=rejected, notes=notes, wishes=self._wishes, why_not=why)


def _drafts(found: Iterable[tuple[int, SlurmJob]]) -> list[Draft]:
    drafts = []
    for _, job in found:
        if job.consumed_joules is None or fields.is_unexpanded(job.job_id) or job.state in fields.NOT_STARTED:
            continue
        is_dated = job.start_s is not None and job.end_s is not None
        start_s = job.start_s if is_dated and job.start_s is not None else 0.0
        length_s = job.end_s - start_s if is_dated and job.end_s is not None else job.elapsed_s or 0.0
        source = "mean power of sacct's TRESUsageOutAve" if job.is_power else "sacct, energy of the job's nodes"
        nodes = f"{job.nodes} nodes" if job.nodes and job.nodes > 1 else "node"
        load = Load(
            f"{job.nodes or 1} nodes",
            f"{nodes} of {job.cluster or 'a Slurm cluster'}",
            "node",
            "reported",
            source,
            steady(length_s, job.consumed_joules, start_s=start_s),
            job.nodes or 1,
        )
        kind: RunKind = "failed" if job.state in fields.LOST else "other"
        drafts.append(
            Draft(
                f"{job.cluster} {job.job_id} {start_s!r}",
                f"job {job.job_id}",
                (load,),
                ("local" if job.is_local else "utc") if is_dated else "none",
                start_s,
                start_s + length_s,
                kind,
                is_complete=job.state not in fields.STILL_THERE,
            )
        )
    return drafts


def _told_of(file: LogFile, found: list[SlurmJob]) -> list[Note]:
    """What the jobs of a file have in common that a reader must know."""
    ran = [job for job in found if job.state not in fields.NOT_STARTED and not fields.is_unexpanded(job.job_id)]
    blank = sum(job.consumed_joules is None for job in ran)
    notes = []
    if not all(job.exclusive for job in ran):
        notes.append(
            Note(
                "import-node-shared",
                f"{file.name}: Slurm's energy is that of whole nodes; jobs that shared one hold each other's, and NVIDIA boards are only in it where the node's own meter saw them",
            )
        )
    if blank:
        notes.append(
            Note(
                "import-partial",
                f"{file.name}: {blank} of {len(ran)} jobs have no energy that was measured; they are not 0 and not counted",
            )
        )
    running = sum(job.state in fields.STILL_THERE for job in found)
    if running:
        notes.append(Note("import-partial", f"{file.name}: {running} jobs were still running; they count up to what had elapsed"))
    if any(fields.is_unexpanded(job.job_id) for job in found):
        notes.append(
            Note("import-partial", f"{file.name}: array tasks in brackets have not begun, or are several in one row; they carry no energy")
        )
    odd = Counter(job.state for job in found if job.state not in fields.KNOWN_STATES and job.state)
    if odd:
        notes.append(Note("import-warning", f"{file.name}: states that Slurm does not know: {', '.join(sorted(odd))}; their jobs count"))
    if any(job.is_power for job in found):
        notes.append(
            Note("import-power-times-time", f"{file.name}: TRESUsageOutAve holds mean watts, not joules; they were multiplied by the time")
        )
    return notes
