"""A lab's year as it was audited: groups of jobs with their energy by how it is known, and what belongs to no job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from carbonreport.model.quantity import Quantity
from carbonreport.units import MJ_PER_J

Dimension = Literal["month", "project", "person", "partition", "gpu_model", "outcome"]
DIMENSIONS: tuple[Dimension, ...] = ("month", "project", "person", "partition", "gpu_model", "outcome")
Known = Literal["measured", "reported", "estimated"]
KNOWN: tuple[Known, ...] = ("measured", "reported", "estimated")


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy by how it is known, each in whole millijoules, and what it becomes at the facility's meter and in the air.

    Attributes:
        measured_mj: Metered. [mJ]
        reported_mj: As somebody reported it, such as a node's meter through Slurm. [mJ]
        estimated_mj: GPU time times a power. [mJ]
        split_mj: The part of the metered energy that several jobs had together, shared out by GPU time. [mJ]
        facility_joules: All of it with the facility's part, each moment at its own PUE. [J]
        grams: Location-based emissions, each moment at its own intensity. [g]
    """

    measured_mj: int = 0
    reported_mj: int = 0
    estimated_mj: int = 0
    split_mj: int = 0
    facility_joules: float = 0.0
    grams: float = 0.0

    @property
    def it_mj(self) -> int:
        """IT energy. [mJ]"""
        return self.measured_mj + self.reported_mj + self.estimated_mj

    @property
    def it_joules(self) -> float:
        """IT energy. [J]"""
        return self.it_mj / MJ_PER_J

    def __add__(self, other: "Energy") -> "Energy":
        return Energy(
            self.measured_mj + other.measured_mj,
            self.reported_mj + other.reported_mj,
            self.estimated_mj + other.estimated_mj,
            self.split_mj + other.split_mj,
            self.facility_joules + other.facility_joules,
            self.grams + other.grams,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Jobs that have something in common, in the year.

    Attributes:
        name: What: a month "2026-03", a project, a pseudonym, "COMPLETED".
        jobs: How many touch it.
        gpu_us: GPU time that they held, suspended jobs none; a slice (MIG) is its part of a board. [µs]
        known_gpu_us: The part of it with measured or reported energy. [µs]
        unknown_gpu_us: The part of it with no energy at all, not even estimated. [µs]
        energy: Of the jobs.
    """

    name: str
    jobs: int
    gpu_us: int
    known_gpu_us: int
    unknown_gpu_us: int
    energy: Energy


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

    @property
    def whole(self) -> Energy:
        """All energy."""
        return sum((energy for _, energy in self.unattributed), self.jobs.energy + self.idle)


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
    cost: tuple[float, str] | None = None
