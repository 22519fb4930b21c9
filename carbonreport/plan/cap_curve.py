"""A program under several power caps: trials, ratios to runs without a cap, and the curve that they make. Pure."""

import math
from dataclasses import dataclass, field

from carbonreport.model.notes import Note
from carbonreport.plan.student import t_quantile

_TWO_SIDED, _ONE_SIDED = 0.95, 0.90  # probabilities below the ends of a 90 % interval, and below a 90 % bound
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of the same program.

    Attributes:
        position: Its place in the order of runs.
        cap_watts: Power cap of each board; None: no cap, a baseline. [W]
        seconds: How long it took. [s]
        joules: Energy of the boards. [J]
        items: What it handled, as counted by itself; None where nobody counted.
        digest: Hash of what it said of its results; None where nobody looked.
    """

    position: int
    cap_watts: float | None
    seconds: float
    joules: float
    items: float | None = None
    digest: str | None = None

    def __post_init__(self) -> None:
        for name in ("cap_watts", "seconds", "joules", "items"):
            value = getattr(self, name)
            if value is not None and not (0 < value < math.inf):
                raise ValueError(f"{name} of trial {self.position} is {value!r}; it must be above 0")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure under a cap over that without one; errors are None where there was one repeat alone.

    Attributes:
        value: The ratio.
        low: Lower end of its 90 % interval.
        high: Upper end.
        bound: What it stays below with 90 % confidence.
    """

    value: float
    low: float | None = None
    high: float | None = None
    bound: float | None = None


@dataclass(frozen=True, slots=True)
class CapCurvePoint:
    """The program under one cap.

    Attributes:
        cap_watts: Power cap of each board. [W]
        trials: How often it ran.
        time: Time for the same work.
        energy: Energy of the boards for the same work.
        expected: The same energy, drawn to the level of all caps: what may be promised of the best one.
        is_dominated: Whether another cap, or none, needs no more energy and no more time.
        fitted: Time and energy ratio on the curve along which time never rises and power never falls with the cap.
    """

    cap_watts: float
    trials: int
    time: Ratio
    energy: Ratio
    expected: Ratio
    is_dominated: bool
    fitted: tuple[float, float]

    @property
    def edp_ratio(self) -> float:
        """Energy times delay, over that without a cap."""
        return self.time.value * self.energy.value


@dataclass(frozen=True, slots=True)
class Scatter:
    """How much logarithms of equal runs differ.

    Attributes:
        squares: Sum of squares of what the fit left.
        degrees: Degrees of freedom; 0 where nothing was left to see it.
    """

    squares: float
    degrees: int

    @property
    def sd(self) -> float | None:
        """Standard deviation of one run's logarithm; None where it is not known."""
        return math.sqrt(self.squares / self.degrees) if self.degrees > 0 else None


@dataclass(frozen=True, slots=True)
class CapCurve:
    """The program under several caps.

    Attributes:
        seconds: Time without a cap, of an item or of the run: geometric mean. [s]
        joules: Energy of the boards without a cap, of the same. [J]
        baselines: How often it ran without a cap.
        is_per_item: Whether time and energy are of an item.
        points: By cap.
        time_scatter: Of time.
        energy_scatter: Of energy.
        notes: What a reader must know.
    """

    seconds: float
    joules: float
    baselines: int
    is_per_item: bool
    points: tuple[CapCurvePoint, ...]
    time_scatter: Scatter
    energy_scatter: Scatter
    notes: tuple[Note, ...] = field(default=())

    @property
    def has_errors(self) -> bool:
        """Whether errors are known: two repeats of a cap, or more."""
        return self.time_scatter.sd is not None

    def at(self, cap_watts: float) -> CapCurvePoint:
        """The point of a cap."""
        return next(point for point in self.points if point.cap_watts == cap_watts)


def ratio_of(log: float, sd: float, degrees: int) -> Ratio:
    """A ratio from its logarithm and that one's standard error."""
    two, one = t_quantile(_TWO_SIDED, degrees) * sd, t_quantile(_ONE_SIDED, degrees) * sd
    return Ratio(math.exp(log), math.exp(log - two), math.exp(log + two), math.exp(log + one))


def is_within(value: float, limit: float) -> bool:
    """Whether a ratio keeps a limit, up to rounding."""
    return value <= limit + _ROUNDING
