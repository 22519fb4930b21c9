"""Filling the lab's ledger: with runs, with sacct, with bulk samples; each file as often as anybody likes."""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from carbonreport.audit import sacct
from carbonreport.audit.ledger import Ledger, connect
from carbonreport.audit.people import People, named, salt_of
from carbonreport.audit.power import meters_query
from carbonreport.audit.records import readings_of, rows_of_runs
from carbonreport.audit.sacct import Taken
from carbonreport.audit.sacct_cells import SlurmRules, header_of
from carbonreport.boards import find_board
from carbonreport.errors import BadTime, CarbonreportError, RecordError
from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.imported import Imported
from carbonreport.importers.limits import LEAST_NODE_WATTS, MOST_NODE_WATTS
from carbonreport.importers.wishes import zone_named
from carbonreport.model.run import RunRecord
from carbonreport.workflows.imports import Asked, import_file
from carbonreport.workflows.ledger_sacct import NOT_UTF8, as_utf8, counted, other_rows

LIVE = "live"
_WANTED = [
    "JobIDRaw",
    "JobID",
    "Cluster",
    "Partition",
    "Account",
    "User",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "State",
    "NNodes",
    "NodeList",
    "AllocTRES",
    "ConsumedEnergyRaw",
    "Suspended",
    "Restarts",
    "Exclusive",
    "JobName",
]
_SACCT_S = 1800.0
_STAMP = "%s"  # POSIX seconds: anything longer than a local stamp is cut by sacct (22.05), an offset too
_SALT_SUFFIX = ".salt"


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where rows go, and how people are written there.

    Attributes:
        url: Folder or URL of the ledger.
        people: names, pseudonyms or none.
        salt: File of the salt; beside a local ledger where nobody says.
        time_zone: Of local times in files, or None.
        project: Whom runs without a project are charged to.
    """

    url: str
    people: People = "pseudonyms"
    salt: Path | None = None
    time_zone: str | None = None
    project: str = ""

    def names(self) -> Callable[[Iterable[str]], dict[str, str]]:
        """How people are written.

        Raises:
            CarbonreportError: Pseudonyms of a ledger behind a URL, whose salt nobody named.
        """
        return named(self.people, salt_of(self.salt_file()) if self.people == "pseudonyms" else None)

    def salt_file(self) -> Path:
        """Where the salt lies.

        Raises:
            CarbonreportError: The ledger is behind a URL, and nobody named a file.
        """
        if self.salt is not None:
            return self.salt
        if "://" in self.url:
            raise CarbonreportError(
                f"pseudonyms in {self.url} need a salt that stays with you: --salt FILE (made there if it is new), or --people none"
            )
        path = Path(self.url).resolve()
        if not path.name:
            raise CarbonreportError(f"a ledger needs a folder of its own; {self.url} is the root of all files")
        return path.with_name(path.name + _SALT_SUFFIX)

    @property
    def zone(self) -> ZoneInfo | None:
        """Zone of local times."""
        return zone_named(self.time_zone) if self.time_zone else None


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
        else:
            rows, taken = other_rows(copy, str(path), keeping.zone, names, keeping.people != "names", source)
            ledger.add(rows, "jobs", db)
    return replace(taken, noted=(*taken.noted, (NOT_UTF8, foreign))) if foreign else taken


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
        raise RecordError(f"{path}: {found.why_not}" if found.why_not else str(bulk)) from bulk
    rows = [row for run in found.runs for row in readings_of(run, source, None)]
    ledger.add(rows, "meters", db)
    return Taken(len(rows), counted(why for _, why in found.rejected))


def pull_sacct(path: Path, from_s: float, until_s: float, environ: Mapping[str, str] = os.environ) -> None:
    """Ask Slurm for all jobs that touch a period, in UTC and said so, each run of a requeued job by itself.

    Raises:
        CarbonreportError: There is no sacct, or it refuses.
    """
    env = {**environ, "TZ": "UTC", "SLURM_TIME_FORMAT": _STAMP}
    try:
        known = (
            subprocess.run(["sacct", "--helpformat"], env=env, capture_output=True, text=True, timeout=60, check=True)
            .stdout.casefold()
            .split()
        )
        asked = ",".join(name for name in _WANTED if name.casefold() in known)
        period = ["-S", _moment(from_s), "-E", _moment(until_s)]
        with path.open("wb") as file:
            subprocess.run(
                ["sacct", "--allusers", "--allclusters", "-X", "-D", "--parsable2", "--noconvert", *period, f"--format={asked}"],
                env=env, stdout=file, stderr=subprocess.PIPE, timeout=_SACCT_S, check=True,
            )  # fmt: skip
    except FileNotFoundError as error:
        raise CarbonreportError("there is no sacct here; run it on a login node and give --sacct FILE") from error
    except (subprocess.SubprocessError, OSError) as error:
        said = getattr(error, "stderr", b"") or b""
        words = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        raise CarbonreportError(f"sacct did not answer: {words.strip() or error}") from error


def _moment(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def pulled(from_s: float, until_s: float, keeping: Keeping, *, con: Any = None, environ: Mapping[str, str] = os.environ) -> Taken:
    """Keep what Slurm here knows of a period.

    Raises:
        CarbonreportError: As `pull_sacct` and `keep_sacct` do.
    """
    with tempfile.TemporaryDirectory(prefix="carbonreport-sacct-") as folder:
        path = Path(folder) / "sacct.txt"
        pull_sacct(path, from_s, until_s, environ)
        return keep_sacct(path, keeping, con=con)


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
