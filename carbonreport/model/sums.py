"""The sums of a run from which the energy of its spans is found: normal equations of power on occupancy. Stdlib only."""

from dataclasses import dataclass, field

from carbonreport.model.sensor import Sensor

REST = ""
"""Path of the time outside all spans."""

BODY, START, END = range(3)
PIECES = 3

FEWEST_INTERVALS, LOCKED_JITTER_S, LOCKED_SHARE = 10, 0.0003, 0.005

Pair = tuple[int, int]


@dataclass(slots=True)
class NormalEquations:
    """Sums over samples: occupancies times occupancies, and occupancies times watts.

    Attributes:
        normal: Sum of products by pair of columns (i <= j).
        right: Sum of occupancy times power by column. [W]
    """

    normal: dict[Pair, float] = field(default_factory=dict)
    right: dict[int, float] = field(default_factory=dict)

    def add(self, other: "NormalEquations") -> None:
        """Add another one's sums."""
        for pair, value in other.normal.items():
            self.normal[pair] = self.normal.get(pair, 0.0) + value
        for column, value in other.right.items():
            self.right[column] = self.right.get(column, 0.0) + value


@dataclass(slots=True)
class Block:
    """A stretch of samples that is longer than what couples neighbouring ones.

    Attributes:
        sums: Normal equations, a column a path.
        squares: Sum of squared power. [W²]
        count: Number of samples.
    """

    sums: NormalEquations = field(default_factory=NormalEquations)
    squares: float = 0.0
    count: int = 0

    def add(self, other: "Block") -> None:
        """Add another one's samples."""
        self.sums.add(other.sums)
        self.squares += other.squares
        self.count += other.count


@dataclass(slots=True)
class Rhythm:
    """How regularly spans of a path begin.

    Attributes:
        count: Number of intervals between two beginnings.
        period_s: Their mean. [s]
        squares: Sum of their squared deviations. [s²]
    """

    count: int = 0
    period_s: float = 0.0
    squares: float = 0.0

    def add(self, interval_s: float) -> None:
        """Take one interval (Welford's running mean and variance)."""
        self.count += 1
        deviation_s = interval_s - self.period_s
        self.period_s += deviation_s / self.count
        self.squares += deviation_s * (interval_s - self.period_s)

    @property
    def jitter_s(self) -> float:
        """Standard deviation of the interval. [s]"""
        return (self.squares / (self.count - 1)) ** 0.5 if self.count > 1 else float("inf")

    def multiple_of(self, sensor_period_s: float) -> int | None:
        """How many periods of a sensor one interval takes, where it is so regular that samples always meet the same part; else None."""
        multiple = round(self.period_s / sensor_period_s)
        is_regular = self.count >= FEWEST_INTERVALS and self.jitter_s < LOCKED_JITTER_S
        is_multiple = multiple >= 1 and abs(self.period_s - multiple * sensor_period_s) < LOCKED_SHARE * multiple * sensor_period_s
        return multiple if is_regular and is_multiple else None


@dataclass(slots=True)
class PathTimes:
    """When a path was open, as far as the sums reach.

    Attributes:
        seconds: Time in it, without nested spans, shared where several were open. [s]
        stretches: Times it became the deepest open span.
        rhythm: How regularly its spans begin.
    """

    seconds: float = 0.0
    stretches: int = 0
    rhythm: Rhythm = field(default_factory=Rhythm)

    @property
    def stretch_s(self) -> float:
        """Mean length of a stretch. [s]"""
        return self.seconds / self.stretches if self.stretches else 0.0


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Samples around a stretch of a path that did not repeat often, and what was open meanwhile.

    Attributes:
        samples: (offset_s, watts), rising, as they were taken.
        stretches: (path's column, from_s, to_s, share), rising.
    """

    samples: tuple[tuple[float, float], ...]
    stretches: tuple[tuple[int, float, float, float], ...]


@dataclass(frozen=True, slots=True)
class SpanSums:
    """What one device's samples say of the run's spans.

    Attributes:
        device: Id of the device.
        sensor: How its samples respond to power.
        paths: Path of each column; REST is the time outside all spans.
        times: One a column.
        blocks: At most 64.
        pieces: Normal equations, three columns a path (PIECES * column + BODY, START, END): stretches over 24 ms are cut
            10 ms from their ends, to see whether power is constant inside.
        by_width: How the sums of all blocks change with the sensor's width. [1/s]
        by_delay: The same with its delay. [1/s]
        joules: Energy of the device's curve over the same time. [J]
        seconds: Length of that time. [s]
        limited_seconds: Time of it that the board spent at its power limit; None where the board does not say. [s]
        excerpts: For paths with few repeats.
        gain: What the device's curve was multiplied by after these sums, to agree with its counter.
    """

    device: str
    sensor: Sensor
    paths: tuple[str, ...]
    times: tuple[PathTimes, ...]
    blocks: tuple[Block, ...]
    pieces: NormalEquations
    by_width: NormalEquations
    by_delay: NormalEquations
    joules: float
    seconds: float
    limited_seconds: float | None = None
    excerpts: tuple[Excerpt, ...] = ()
    gain: float = 1.0


def aliasing_words(path: str, rhythm: Rhythm, sensor_period_s: float) -> str:
    """Why samples always meet the same part of what a path's spans lie in, or ""."""
    if rhythm.multiple_of(sensor_period_s) is None:
        return ""
    return f"{path} comes every {rhythm.period_s * 1000:.1f} ms, a multiple of the sensor's {sensor_period_s * 1000:.3g} ms"
