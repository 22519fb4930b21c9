"""Filling the lab's ledger: with runs, with sacct, with bulk samples; each file as often as anybody likes."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from carbonreport.audit import sacct
from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.power import meters_query
from carbonreport.audit.records import readings_of, rows_of_runs
from carbonreport.audit.sacct import Taken
from carbonreport.audit.sacct_cells import SlurmRules, header_of
from carbonreport.boards import find_board
from carbonreport.errors import BadTime, CarbonreportError, RecordError
from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.imported import Imported
from carbonreport.importers.limits import LEAST_NODE_WATTS, MOST_NODE_WATTS
from carbonreport.model.audit import agreed
from carbonreport.model.run import RunRecord
from carbonreport.workflows.imports import Asked, import_file
from carbonreport.workflows.ledger_keeping import Keeping as Keeping
from carbonreport.workflows.ledger_sacct import NOT_UTF8, as_utf8, counted, other_rows


def keep(runs: Sequence[RunRecord], keeping: Keeping, *, person: str = "", con: Any = None) -> Taken:
    """Keep runs, of records or of any imported log, in the ledger's jobs and meters.

    Args:
        runs: Dated runs.
        keeping: Where, and how.
        person: Who ran them, as a name; it is written as `keeping.people` says.
        con: A DuckDB, or None for one of its own.

    Raises:
        OutputError: The ledger cannot be written.
        MissingExtra: The packages of the audit are not installed.
    """
    written = keeping.names()([person])[person] if person else ""
    found = rows_of_runs(runs, source_of, project=keeping.project, person=written, is_pseudonym=keeping.people != "names")
    db, ledger = con or connect(), Ledger(keeping.url)
    ledger.claim(keeping.people if written else None)
    ledger.add(found[0], "jobs", db)
    ledger.add(found[1], "meters", db)
    return Taken(len(found[0]))


def keep_imported(found: Imported, path: Path, keeping: Keeping, *, person: str = "", con: Any = None) -> Taken:
    """Keep what `carbonreport import` read of a file: the jobs of sacct as jobs, everything else as runs.

    Raises:
        CarbonreportError: As `keep` and `keep_sacct` do.
    """
    return keep_sacct(path, keeping, con=con) if found.format == "slurm" else keep(found.runs, keeping, person=person, con=con)


def source_of(run: RunRecord) -> str:
    """Hash of what a run came from: of its file, else of what it says."""
    return run.sha256 or hashlib.blake2b(f"{run.id} {run.started_s!r} {run.duration_s!r}".encode(), digest_size=16).hexdigest()


def keep_sacct(path: Path, keeping: Keeping, *, con: Any = None) -> Taken:
    """Keep the jobs of a file of sacct: parsable text in bulk, every other shape line by line.

    Raises:
        RecordError: It is not of sacct.
        BadTime: Its times are local and nobody named their zone.
        OutputError: The ledger cannot be written.
    """
    db, ledger, source = con or connect(), Ledger(keeping.url), hash_of(path)
    names = keeping.names()
    ledger.claim(keeping.people)
    with as_utf8(path) as (copy, foreign):
        if header_of(copy) is not None:
            query, taken = sacct.jobs_query(db, copy, rules(), keeping.zone, names, source, str(path))
            ledger.add_query(query, "jobs", db, is_distinct=True)
            sacct.forget_jobs(db)
        else:
            rows, taken = other_rows(copy, str(path), keeping.zone, names, keeping.people != "names", source)
            ledger.add(rows, "jobs", db)
    return replace(taken, noted=(*taken.noted, (agreed(NOT_UTF8, foreign), foreign))) if foreign else taken


def keep_meters(path: Path, keeping: Keeping, *, con: Any = None) -> Taken:
    """Keep bulk samples by device and hour: a table with a device, a time and watts or a counter; else any log that an importer knows.

    Raises:
        RecordError: No energy can be derived from it.
        OutputError: The ledger cannot be written.
    """
    db, ledger = con or connect(), Ledger(keeping.url)
    if not path.is_file():
        raise RecordError(f"cannot read {path}: no such file")
    source = hash_of(path)
    try:
        query, taken = meters_query(db, path, source, lambda name: find_board(name).rated_watts)
    except (RecordError, BadTime) as bulk:
        if path.suffix.lower() in (".parquet", ".pq"):
            raise
        return _imported(path, keeping, ledger, db, source, bulk)
    ledger.add_query(query, "meters", db)
    return taken


def _imported(path: Path, keeping: Keeping, ledger: Ledger, db: Any, source: str, bulk: CarbonreportError) -> Taken:
    found = import_file(path, Asked(options={"time_zone": keeping.time_zone} if keeping.time_zone else {}))
    if not found.runs:
        raise RecordError(_why_no_reading(path, found, bulk)) from bulk
    rows = [row for run in found.runs for row in readings_of(run, source, None, found.hosts)]
    ledger.add(rows, "meters", db)
    return Taken(len(rows), counted(why for _, why in found.rejected))


def _why_no_reading(path: Path, found: Imported, bulk: CarbonreportError) -> str:
    """Why a log that an importer knows has no reading with a date, and the way out."""
    if found.why_not:
        return f"{path}: {found.why_not}"
    if found.is_local:
        return f"{path}: its times are local and name no zone; give --time-zone, such as --time-zone Europe/Berlin"
    if any(note.slug == "import-lifetime" for note in found.notes):
        return f"{path}: it is one scrape, what the counters have shown since the driver was loaded, and nobody knows when; save a range query (query_range)"
    return str(bulk)


def hash_of(path: Path) -> str:
    """Hash of a file's content."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error


def rules() -> SlurmRules:
    """What sacct's fields mean, as the importer of single files has it."""
    return SlurmRules(
        state=fields.state,
        gpus=lambda text: fields.gpus(fields.tres(text)),
        period=fields.period,
        no_values=fields.NO_VALUES,
        nothing=fields.NOTHING,
        suffixes=fields.SUFFIXES,
        most_joules=fields.MOST_JOULES,
        node_watts=(LEAST_NODE_WATTS, MOST_NODE_WATTS),
        not_started=fields.NOT_STARTED,
    )
