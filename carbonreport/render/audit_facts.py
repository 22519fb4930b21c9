"""What a report of a lab's year is made of, and what a template fills in."""

from dataclasses import dataclass

from carbonreport.model.audit import Advice, Priced
from carbonreport.model.embodied import Contract
from carbonreport.model.series import Array


@dataclass(frozen=True, slots=True, eq=False)
class AuditFacts:
    """Everything that a report is made of.

    Attributes:
        year: Calendar year.
        time_zone: In whose days it begins and ends.
        until_s: POSIX second of the end.
        in_progress: Whether it has not ended.
        place: Grid zone in words, "" where nobody gave one.
        site: Name of the site, or None.
        family: Kind of the intensities, in words.
        gas: What is counted: "gCO2e".
        is_direct: Whether the intensities are direct ones, so that "scope 2" is right.
        priced: Figures.
        before: Those of the year before, or None.
        months_before: In how many months of the year before the ledger has jobs that ended or readings; None where it has nothing of it.
        contract: Electricity contract, or None.
        per_kwh: Money for a kWh with its currency, or None.
        advice: What to do first.
        weekday_hours: IT energy by local weekday and hour. [J] Shape (7, 24).
        files: Name of each file, rows used, what was not by reason, and what must be known of those that were.
        repeated: Rows that another file reports too.
        people: names, pseudonyms or none.
        notes: Slug and text of what the charging says.
        made_by: Name and version of the tool.
    """

    year: int
    time_zone: str
    until_s: float
    in_progress: bool
    place: str
    site: str | None
    family: str
    gas: str
    is_direct: bool
    priced: Priced
    before: Priced | None
    months_before: int | None
    contract: Contract | None
    per_kwh: tuple[float, str] | None
    advice: tuple[Advice, ...]
    weekday_hours: Array
    files: tuple[tuple[str, int, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]], ...]
    repeated: int
    people: str
    notes: tuple[tuple[str, str], ...]
    made_by: str


@dataclass(frozen=True, slots=True)
class Line:
    """A figure: label, value, 90 % interval, last year's value, how it is known, source; whether it is a main one, or a part of the one above."""

    label: str
    value: str
    interval: str = ""
    before: str = ""
    known: str = ""
    source: str = ""
    is_main: bool = False
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of groups: its title, how to read it, headings and rows; the first cell of a row names it."""

    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do: what, how much, why."""

    title: str
    size: str
    because: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a template fills in."""

    title: str
    period: str
    made_by: str
    lead: tuple[str, ...]
    lines: tuple[Line, ...]
    under_lines: tuple[str, ...]
    tasks: tuple[Task, ...]
    no_tasks: str
    tables: tuple[Table, ...]
    findings: tuple[str, ...]
    method: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]
