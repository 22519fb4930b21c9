"""A lab's year as it was audited: groups of jobs with their energy by how it is known, and what belongs to no job."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from carbonreport.model.audit_groups import NOBODY as NOBODY
from carbonreport.model.audit_groups import Energy as Energy
from carbonreport.model.audit_groups import Group as Group
from carbonreport.model.audit_groups import Missing as Missing
from carbonreport.model.quantity import Quantity

Dimension = Literal["month", "project", "person", "partition", "gpu_model", "outcome"]
DIMENSIONS: tuple[Dimension, ...] = ("month", "project", "person", "partition", "gpu_model", "outcome")
Known = Literal["measured", "reported", "estimated"]
KNOWN: tuple[Known, ...] = ("measured", "reported", "estimated")
_ROUNDED = 1e-6  # of a time: its parts are whole microseconds
_EITHER = re.compile(r"\[([^\[\]|]*)\|([^\[\]|]*)\]")


def agreed(text: str, count: int) -> str:
    """Words that agree with their number: "[job has|jobs have] ended" is "job has ended" for 1, "jobs have ended" for any other."""
    return _EITHER.sub(lambda either: either[1 if count == 1 else 2], text)


def row_reason(count: int, reason: str) -> str:
    """Some rows of a file and why they stand apart, as one phrase: 3 without a start; 1 whose id is cut; 2 that repeat a job."""
    if reason == "the same job again":
        return f"{count:,} that {agreed('[repeats|repeat]', count)} a job"
    for begin, phrase in (("no ", "without a "), ("its ", "whose ")):
        if reason.startswith(begin):
            return f"{count:,} {phrase}{reason.removeprefix(begin)}"
    return f"{count:,} {reason}"


def outcome_words(state: str) -> str:
    """How a job ended: "node failure" for NODE_FAIL."""
    words = state.lower().replace("_", " ")
    return f"{words}ure" if words.endswith(" fail") else words


@dataclass(frozen=True, slots=True)
class TopJob:
    """One of the jobs with the most energy.

    Attributes:
        job_id: Cluster and id.
        project: Whom it is charged to.
        person: Who ran it, as the report may say it.
        gpu_model: Board, "" where unknown.
        gpus: How many.
        state: How it ended.
        start_us: When it began, POSIX microseconds.
        hours: How long it ran within the year, without its suspensions. [h]
        energy: Of it.
    """

    job_id: str
    project: str
    person: str
    gpu_model: str
    gpus: int
    state: str
    start_us: int
    hours: float
    energy: Energy


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that would have been counted twice or wrongly, or was left out.

    Attributes:
        slug: For programs.
        text: In words.
        count: How often.
        energy_mj: Energy that it concerns, or None. [mJ]
    """

    slug: str
    text: str
    count: int
    energy_mj: int | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do first, with its size and why.

    Attributes:
        slug: idle, failed, cap, shift.
        title: What to do.
        because: Why, with the figures it rests on.
        joules: Facility energy a year that it concerns, or None. [J]
        low: The least that is plausible. [J]
        high: The most. [J]
        grams: Location-based emissions that go with it, or None. [g]
        is_upper_bound: Whether the figure is what there is, not what can be had.
    """

    slug: str
    title: str
    because: str
    joules: float | None
    low: float | None = None
    high: float | None = None
    grams: float | None = None
    is_upper_bound: bool = False


@dataclass(frozen=True, slots=True)
class Year:
    """A year's groups, before prices and words.

    Attributes:
        groups: By dimension; within each the parts add up to `jobs`, to the millijoule.
        months: All energy by month: that of jobs, idle and unattributed.
        jobs: All jobs.
        idle: Energy of metered boards that no job had.
        unattributed: Metered energy that no job in the ledger accounts for, by why.
        idle_gpu_us: Time of metered boards that no job had. [µs]
        metered_gpu_us: Time of metered boards on hosts whose jobs are known. [µs]
        busy_gpu_us: The part of it that jobs had. [µs]
        top: Jobs with the most energy.
        running: Jobs that had not ended.
        findings: What was found.
        missing: GPU time without any energy, the most first.
    """

    groups: Mapping[Dimension, tuple[Group, ...]]
    months: tuple[tuple[str, Energy], ...]
    jobs: Group
    idle: Energy
    unattributed: tuple[tuple[str, Energy], ...]
    idle_gpu_us: int
    metered_gpu_us: int
    busy_gpu_us: int
    top: tuple[TopJob, ...] = ()
    running: int = 0
    findings: tuple[Finding, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def whole(self) -> Energy:
        """All energy."""
        return sum((energy for _, energy in self.unattributed), self.jobs.energy + self.idle)

    @property
    def known_whole(self) -> Energy | None:
        """All energy that is known, or None where none is."""
        return self.whole if self.whole.it_mj else None

    @property
    def known_idle(self) -> Energy | None:
        """Idle energy, or None where no board was metered whose jobs are known, or boards waited and nobody knows what they draw then."""
        has_waited = self.idle_gpu_us > _ROUNDED * self.metered_gpu_us
        return self.idle if self.idle.it_mj or (self.metered_gpu_us and not has_waited) else None

    @property
    def known_months(self) -> tuple[tuple[str, Energy | None], ...]:
        """All energy by month, None where none is known: jobs alone without an energy, or neither a job nor a reading."""
        metered = {group.name for group in self.groups["month"] if group.known_gpu_us}
        return tuple((month, energy if energy.it_mj or month in metered else None) for month, energy in self.months)

    @property
    def unknown_months(self) -> tuple[str, ...]:
        """Months in which jobs ran and no energy is known."""
        ran = {group.name for group in self.groups["month"]}
        return tuple(month for month, energy in self.known_months if energy is None and month in ran)


@dataclass(frozen=True, slots=True)
class RatedPower:
    """The power that was taken for the hours of a board that nobody measured.

    Attributes:
        gpu_model: Board as the jobs have it.
        boards: Boards of the table that it was taken for, each with its rated power. [W]
        share: Part of the rated power that such a board draws typically.
        watts: What was taken. [W]
        energy_mj: Energy that rests on it. [mJ]
    """

    gpu_model: str
    boards: tuple[tuple[str, float], ...]
    share: float
    watts: float
    energy_mj: int = 0


@dataclass(frozen=True, slots=True)
class Priced:
    """A year's totals with intervals, and everything that a report says.

    Attributes:
        year: Its groups.
        it_joules: IT energy. [J]
        facility_joules: Facility energy. [J]
        location_grams: Scope 2 or life-cycle, location-based. [g]
        market_grams: Market-based beside it, or None without a contract. [g]
        embodied_grams: Scope 3, embodied, or None. [g]
        embodied_basis: What it rests on.
        embodied_for: GPU time of the boards that it is for, by board. [µs]
        embodied_missing: GPU time of the boards whose making nobody gave, by board. [µs]
        embodied_unused: Devices of the site file that no job had.
        rated: Rated powers that energy rests on, those with the most energy first.
        cost: Money, or None without a price, as (amount, currency).
    """

    year: Year
    it_joules: Quantity
    facility_joules: Quantity
    location_grams: Quantity
    pue: Quantity
    market_grams: Quantity | None = None
    embodied_grams: Quantity | None = None
    embodied_basis: tuple[str, ...] = field(default=())
    embodied_for: tuple[tuple[str, int], ...] = ()
    embodied_missing: tuple[tuple[str, int], ...] = ()
    embodied_unused: tuple[str, ...] = ()
    rated: tuple[RatedPower, ...] = ()
    cost: tuple[float, str] | None = None
