"""Jobs of sacct in the shapes that are read one by one: JSON, fixed width, tables, other delimiters; and what is wrong with a file."""

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import ZoneInfo

from carbonreport.audit.sacct import ASK_FOR, FAR, SLICES, TORN, Taken
from carbonreport.audit.sacct_cells import MOST_GPUS, unfinished_line
from carbonreport.audit.sacct_jobs import BACKWARDS, HUGE, LEAST_JOBS, NO_TIME, NOT_BEGUN, UNDATED, UNREAD
from carbonreport.audit.tables import JobRow, microseconds, millijoules, suspended
from carbonreport.audit.window import FIRST_YEAR, LAST_YEAR, year_begin_us
from carbonreport.errors import BadTime, RecordError
from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.imported import Rejected
from carbonreport.importers.json_lines import parsed
from carbonreport.importers.slurm_jobs import SlurmJob, jobs
from carbonreport.importers.slurm_json import is_accounting, jobs_of_json, no_accounting
from carbonreport.importers.slurm_rows import date_order, layout_of, rows_of
from carbonreport.importers.tables import Row
from carbonreport.model.audit import agreed
from carbonreport.model.slices import is_slice
from carbonreport.units import MINUTE_US

NOT_UTF8 = "[line is not UTF-8 and was|lines are not UTF-8 and were] read as Windows-1252"
_CHUNK = 1 << 24
_HEAD_LINES = 40
_DELIMITERS = ("^|^", "|", "\t", ";", ",", "^")
_IDS = {"jobid", "jobidraw"}
_UNREAD = re.compile(r"its time (.*) (?:cannot be read|is none)")
_NO_HOSTS = ("none assigned", "none", "(null)")
_Found = tuple[SlurmJob, str, str]  # a job, its hosts, and its id as people see it
_SECONDS = "pull it with SLURM_TIME_FORMAT=%s"
_NO_ZONE = "its times name no time zone; give --time-zone, such as --time-zone UTC where it was pulled with TZ=UTC"


@contextmanager
def as_utf8(path: Path) -> Iterator[tuple[Path, int]]:
    """The file itself, or a copy whose lines that are not UTF-8 are read as Windows-1252; and how many those were.

    Raises:
        RecordError: It is UTF-16, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
                raise RecordError(f"{path} is UTF-16, and sacct writes UTF-8: iconv -f UTF-16 -t UTF-8 {path.name} > utf8.txt")
        if _is_utf8(path):
            yield path, 0
            return
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    with TemporaryDirectory(prefix="carbonreport-sacct-") as folder:
        copy, count = Path(folder) / "sacct.txt", 0
        with path.open("rb") as lines, copy.open("wb") as into:
            for line in lines:
                try:
                    line.decode()
                except UnicodeDecodeError:
                    line, count = line.decode("cp1252", errors="replace").encode(), count + 1
                into.write(line)
        yield copy, count


def _is_utf8(path: Path) -> bool:
    decoder = getincrementaldecoder("utf-8")()
    is_between = False  # characters
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if is_between or not chunk.isascii():
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    return False
                is_between = bool(decoder.getstate()[0])
    return not is_between


def other_rows(
    path: Path, name: str, zone: ZoneInfo | None, people: Callable[[Iterable[str]], dict[str, str]], is_pseudonym: bool, source: str
) -> tuple[list[JobRow], Taken]:
    """Rows of the ledger out of a file that is no text with pipes and a header, and what was left out.

    Args:
        path: The file, UTF-8.
        name: What it is called in messages.
        zone: Time zone of its stamps, or None; those of JSON need none.
        people: How people are written.
        is_pseudonym: Whether that is no name.
        source: Hash of the file.

    Raises:
        RecordError: It is not of sacct; the message says what it is instead.
        BadTime: Its times are local and nobody named their zone.
    """
    rejected: list[Rejected] = []
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    found = list(_of_json(text, name, rejected) if text.lstrip()[:1] in ("{", "[") else _of_lines(path, text, name, zone, rejected))
    if not found and not rejected:
        raise RecordError(f"{name} holds no job of sacct; pull it with --parsable2")
    names = people({job.user for job, _, _ in found})
    rows, whys, sliced = [], _folded([why for _, why in rejected]), 0
    for job, hosts, shown in found:
        row = _row(job, hosts, shown, names, is_pseudonym, source)
        if not isinstance(row, str):
            rows.append(row)
            sliced += is_slice(row.gpu_model)
        elif not job.why_undated:  # that is among the rejected ones
            whys.append(row)
    rows = _of_whole_minutes(rows)
    return rows, Taken(len(rows), counted(whys), ((SLICES, sliced),) if sliced else ())


def _of_json(text: str, name: str, rejected: list[Rejected]) -> Iterator[_Found]:
    content = parsed(text)
    if not is_accounting(content):
        raise RecordError(f"{name} is no accounting of Slurm: {no_accounting(content)}")
    for number, job in jobs_of_json(content, rejected):
        yield job, str(content["jobs"][number - 1].get("nodes") or ""), ""


def _of_lines(path: Path, text: str, name: str, zone: ZoneInfo | None, rejected: list[Rejected]) -> Iterator[_Found]:
    lines = text.split("\n")
    if unfinished_line(path).strip():
        lines.pop()
        rejected.append((len(lines) + 1, TORN))
    layout = layout_of(lines[:_HEAD_LINES])
    if layout is None:
        raise RecordError(f"{name} {_no_header(lines)}")
    missing = [column for column in ("Start", "State", "AllocTRES") if column.casefold() not in layout.columns]
    if missing:
        raise RecordError(f"{name} has no {' and no '.join(missing)} of its jobs: {ASK_FOR} {', '.join(missing)} in --format")
    order = date_order(text)
    cells: dict[int, tuple[str, str]] = {}

    def seen(rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            cells[row.line] = (row.get("nodelist"), row.get("jobid"))
            yield row

    for line, job in jobs(seen(rows_of(lines, rejected)), rejected, zone=zone, date_order=order):
        if job.is_local:
            raise BadTime(f"{name}: {_NO_ZONE}")
        if "may be day-month" in job.why_undated:
            raise BadTime(f"{name}: {job.why_undated.partition(';')[0]}, and the dates of the file do not tell; {_SECONDS}")
        yield job, *cells[line]


def _no_header(lines: Sequence[str]) -> str:
    """What a file without a header of sacct is, as far as its first lines say."""
    first = next((line.strip() for line in lines if line.strip()), "")
    if not first:
        return "is empty"
    cut_by = next((d for d in _DELIMITERS if first.count(d) >= 3), None)
    names = {cell.strip().strip('"').casefold() for cell in first.split(cut_by)} if cut_by is not None else set()
    if {"start", "state"} <= names and not names & _IDS:
        return f"has no JobID of its jobs: {ASK_FOR} JobIDRaw and JobID in --format"
    if cut_by is not None:
        cut = "" if cut_by == "|" else f", and its cells are cut by {cut_by!r}"
        return f"has no header line, so nobody knows its columns{cut}: pull it without --noheader and with --parsable2"
    return "holds no job of sacct: none of its first lines is a header with JobID and State; pull it with --parsable2"


def _row(job: SlurmJob, hosts: str, shown: str, names: Mapping[str, str], is_pseudonym: bool, source: str) -> JobRow | str:
    """A row, or why there is none."""
    if job.state in fields.NOT_STARTED:
        return NOT_BEGUN
    if job.start_s is None or job.end_s is None:
        return UNDATED
    start_us, end_us = microseconds(job.start_s), microseconds(job.end_s)
    if start_us < year_begin_us(FIRST_YEAR) or max(start_us, end_us) >= year_begin_us(LAST_YEAR + 1):
        return FAR
    if end_us <= start_us:
        return NO_TIME if end_us == start_us else BACKWARDS
    if sum(job.gpus.values()) > MOST_GPUS:
        return HUGE
    energy_mj = millijoules(job.consumed_joules)
    is_task = ("_" in shown or "+" in shown) and not fields.is_unexpanded(shown)
    return JobRow(
        job.cluster, job.job_id, None if job.submit_s is None else microseconds(job.submit_s), start_us, end_us, job.account, names[job.user], is_pseudonym, job.partition,
        job.state, "+".join(sorted(name for name in job.gpus if name)), sum(job.gpus.values()), job.nodes, "" if hosts.casefold() in _NO_HOSTS else hosts, job.exclusive,
        energy_mj, "" if energy_mj is None else "reported", source, shown if is_task else "",
        suspended(start_us, end_us, None if job.elapsed_s is None else microseconds(job.elapsed_s)),
    )  # fmt: skip


def _folded(whys: Sequence[str]) -> list[str]:
    """Reasons, those that quote a time as one reason with the first of them."""
    quoted = next((found[1] for why in whys if (found := _UNREAD.fullmatch(why))), "")
    return [f"{UNREAD} {quoted}" if _UNREAD.fullmatch(why) else why for why in whys]


def _of_whole_minutes(rows: list[JobRow]) -> list[JobRow]:
    """Rows of a file whose times have lost their seconds: what Elapsed then lacks of two minutes is rounding and no suspension."""
    if len(rows) < LEAST_JOBS or any(
        row.start_us % MINUTE_US or row.end_us % MINUTE_US for row in rows if row.state not in fields.STILL_THERE
    ):
        return rows
    return [replace(row, suspended_us=0) if row.suspended_us and row.suspended_us <= 2 * MINUTE_US else row for row in rows]


def counted(whys: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How often each reason was given."""
    counts: dict[str, int] = {}
    for why in whys:
        counts[why] = counts.get(why, 0) + 1
    return tuple((agreed(why, count), count) for why, count in counts.items())
