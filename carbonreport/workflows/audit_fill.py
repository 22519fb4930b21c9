"""What is to be audited, and the files of it that fill the ledger first."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from carbonreport.audit.people import People
from carbonreport.audit.sacct import Taken
from carbonreport.audit.window import Window
from carbonreport.model.audit import agreed
from carbonreport.units import SECONDS_PER_DAY, US_PER_S
from carbonreport.workflows.charge import load_records
from carbonreport.workflows.ledger import keep, keep_meters, keep_sacct
from carbonreport.workflows.ledger_keeping import Keeping
from carbonreport.workflows.ledger_pull import LIVE, pulled
from carbonreport.workflows.place import PlaceOptions


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be audited.

    Attributes:
        year: Which.
        ledger: Folder or URL, or None for one that is thrown away.
        sacct: Files of sacct, or "live".
        meters: Files of samples.
        records: Records and logs of runs.
        people: How people are written.
        salt: File of the salt, or None.
        time_zone: Zone of local times in files, or None.
        sweeps: Files of the lab's own sweeps.
        gpu: Board of jobs whose type nobody says, or "".
    """

    year: int
    ledger: str | None = None
    sacct: tuple[str, ...] = ()
    meters: tuple[Path, ...] = ()
    records: tuple[str, ...] = ()
    people: People = "pseudonyms"
    salt: Path | None = None
    time_zone: str | None = None
    sweeps: tuple[Path, ...] = ()
    gpu: str = ""


def keeping_of(asked: Asked, scratch: Path) -> Keeping:
    """Where the year's rows go: into the ledger that was asked for, or one in a scratch folder."""
    return Keeping(asked.ledger or str(scratch / "ledger"), asked.people, asked.salt, asked.time_zone)


def fill(
    asked: Asked, options: PlaceOptions, keeping: Keeping, window: Window, con: Any, environ: Mapping[str, str]
) -> tuple[tuple[str, Taken], ...]:
    """Put the files that were asked for into the ledger; what each gave.

    Raises:
        CarbonreportError: A file, or the ledger, cannot be used.
    """
    taken = []
    for number, text in enumerate(asked.sacct, start=1):
        found = (
            pulled(
                window.from_us / US_PER_S - SECONDS_PER_DAY, window.until_us / US_PER_S + SECONDS_PER_DAY, keeping, con=con, environ=environ
            )
            if text == LIVE
            else keep_sacct(Path(text), keeping, con=con)
        )
        taken.append(("sacct" if text == LIVE else _shown_name("sacct", number, Path(text), asked.people), found))
    for number, path in enumerate(asked.meters, start=1):
        taken.append((_shown_name("meter", number, path, asked.people), keep_meters(path, keeping, con=con)))
    if asked.records:
        taken.append(
            (
                f"{len(asked.records)} {agreed('[record|records]', len(asked.records))}",
                keep(load_records(asked.records, options), keeping, con=con),
            )
        )
    return tuple(taken)


def _shown_name(kind: str, number: int, path: Path, people: People) -> str:
    """What a file is called in the report: a file's name may be a person's."""
    return path.name if people == "names" else f"{kind} file {number}"


def what_was_read(taken: tuple[tuple[str, Taken], ...]) -> str:
    """What the files gave, before a message that says what is missing."""
    return "".join(f"{name}: {found.in_words()}; " for name, found in taken)
