"""Energy by how it is known, and the jobs, months and GPU time that have it or lack it."""

from dataclasses import dataclass

from carbonreport.units import MJ_PER_J

NOBODY = "not said"  # name of groups whose name nobody says


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

    @property
    def known_energy(self) -> Energy | None:
        """Its energy, or None where nobody knows any of it; boards that were metered at nothing are known."""
        return None if self.jobs and not self.energy.it_mj and not self.known_gpu_us else self.energy


@dataclass(frozen=True, slots=True)
class Missing:
    """GPU time that has no energy at all, not even an estimate.

    Attributes:
        gpu_model: Board or slice of one, "not said" where nobody named it.
        partition: Where.
        gpu_us: How much. [µs]
    """

    gpu_model: str
    partition: str
    gpu_us: int
