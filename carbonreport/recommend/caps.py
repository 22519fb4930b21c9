"""Power caps: which points of a curve are worth anything, and what a job becomes under one. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from carbonreport.combine.intervals import Z90
from carbonreport.recommend.rates import Job
from carbonreport.recommend.worth import change

# Where one report alone is known, a judgement: two boards of a model differ by 8 % on average (SC22, arXiv 2208.11035). [sd of ln]
ONE_REPORT_SD = 0.08
# The energy ratio of the user's own sweep, whose runs were made on the same board; a judgement. [sd of ln]
OWN_SWEEP_SD = 0.02


@dataclass(frozen=True, slots=True)
class CapPoint:
    """GPUs under a power cap, against their default limit.

    Attributes:
        cap_watts: Power cap of each board. [W]
        energy_ratio: Energy of the GPUs for the same work, over that without the cap.
        time_ratio: Time for the same work, over that without the cap.
        low: Lowest energy ratio that was reported for this cap.
        high: Highest of the same.
        reports: How many reports there are; 1 for the user's own.
        source: Where the figures are from.
        is_own: Whether the user measured it.
        is_rejected: Whether the sweep that measured it found it not worth it: it is never chosen.
    """

    cap_watts: float
    energy_ratio: float
    time_ratio: float
    low: float
    high: float
    reports: int
    source: str
    is_own: bool = False
    is_rejected: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.cap_watts < math.inf and 0 < self.energy_ratio < 10 and 0 < self.time_ratio < 100):
            raise ValueError(f"cap {self.cap_watts:g} W with energy ratio {self.energy_ratio:g} and time ratio {self.time_ratio:g}")

    @property
    def energy_sd(self) -> float:
        """Standard deviation of ln(energy ratio)."""
        if self.is_own:
            return OWN_SWEEP_SD
        furthest = max(math.log(self.high / self.energy_ratio), math.log(self.energy_ratio / self.low))
        return max(furthest / Z90, ONE_REPORT_SD if self.reports == 1 else 0.0)


def is_dominated(point: CapPoint, points: Sequence[CapPoint]) -> bool:
    """Whether another point, or no cap at all, needs no more energy and no more time, and less of one."""
    uncapped = (1.0, 1.0)
    own = (point.energy_ratio, point.time_ratio)
    others = [uncapped, *((p.energy_ratio, p.time_ratio) for p in points)]
    return any(e <= own[0] and t <= own[1] and (e, t) != own for e, t in others)


def undominated(points: Sequence[CapPoint]) -> tuple[CapPoint, ...]:
    """Points that are worth choosing from, by cap."""
    return tuple(sorted((p for p in points if not p.is_rejected and not is_dominated(p, points)), key=lambda p: p.cap_watts))


def choose(points: Sequence[CapPoint], most_time_ratio: float = math.inf, *, gpu_share: float = 1.0) -> CapPoint | None:
    """The point of least energy of the whole job that is not slower than allowed; None where no cap saves anything."""
    allowed = [p for p in undominated(points) if p.time_ratio <= most_time_ratio + 1e-9 and energy_ratio(p, gpu_share) < 1]
    return min(allowed, key=lambda p: energy_ratio(p, gpu_share), default=None)


def energy_ratio(point: CapPoint, gpu_share: float) -> float:
    """Energy of the whole job under a cap: the rest of the node draws its power for the longer time."""
    return gpu_share * point.energy_ratio + (1 - gpu_share) * point.time_ratio


def capped(job: Job, point: CapPoint, gpu_share: float) -> Job:
    """The job under a cap: longer; its GPUs take the capped energy, the rest of the node its power for the longer time.

    Args:
        job: Without the cap.
        point: The cap.
        gpu_share: Part of the job's power that the GPUs draw, 0 to 1.
    """
    power_ratio = gpu_share * point.energy_ratio / point.time_ratio + (1 - gpu_share)
    return Job(job.edges_s * point.time_ratio, job.watts * power_ratio)


def in_words(point: CapPoint, gpu_share: float) -> str:
    """What a cap does, and who says so."""
    share = "" if gpu_share == 1 else f" of the GPUs, which draw {100 * gpu_share:.0f} % of the job"
    several = f", {point.reports} reports from {change(point.high)} to {change(point.low)}" if point.reports > 1 else ""
    kind = f"by your own {point.source}" if point.is_own else f"reported elsewhere ({point.source}), not measured on this board"
    return f"a cap of {point.cap_watts:g} W: energy {change(point.energy_ratio)}{share}{several}, time {change(point.time_ratio)}, {kind}"
