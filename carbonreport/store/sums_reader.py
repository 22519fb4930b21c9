"""The line of a record that holds what a device's samples say of the spans, typed."""

import msgspec

from carbonreport.model.sensor import Kernel, Sensor
from carbonreport.model.sums import Block, Excerpt, NormalEquations, PathTimes, Rhythm, SpanSums

_Equations = tuple[list[tuple[int, int, float]], list[tuple[int, float]]]


class _Sensor(msgspec.Struct):
    kernel: Kernel
    width_s: float
    delay_s: float
    period_s: float
    width_sd_s: float
    delay_sd_s: float
    source: str


class SumsLine(msgspec.Struct, tag_field="type", tag="sums"):
    """See `sums_line` in writer.py."""

    device: str
    sensor: _Sensor
    paths: list[str]
    times: list[tuple[float, int, int, float, float]]
    blocks: list[tuple[list[tuple[int, int, float]], list[tuple[int, float]], float, int]]
    pieces: _Equations
    by_width: _Equations
    by_delay: _Equations
    joules: float
    seconds: float
    limited_seconds: float | None
    excerpts: list[tuple[list[tuple[float, float]], list[tuple[int, float, float, float]]]]
    gain: float = 1.0


def sums_of(line: SumsLine, gain: float) -> SpanSums:
    """The sums of one device, whose curve is multiplied by a gain.

    Raises:
        ValueError: A column that no path has.
    """
    if len(line.times) != len(line.paths):
        raise ValueError(f"{len(line.times)} times for {len(line.paths)} paths of {line.device}")
    blocks = tuple(Block(_equations((normal, right), len(line.paths)), squares, count) for normal, right, squares, count in line.blocks)
    s = line.sensor
    return SpanSums(
        device=line.device,
        sensor=Sensor(s.kernel, s.width_s, s.delay_s, s.period_s, s.width_sd_s, s.delay_sd_s, s.source),
        paths=tuple(line.paths),
        times=tuple(PathTimes(seconds, n, Rhythm(count, period_s, squares)) for seconds, n, count, period_s, squares in line.times),
        blocks=blocks,
        pieces=_equations(line.pieces, None),
        by_width=_equations(line.by_width, len(line.paths)),
        by_delay=_equations(line.by_delay, len(line.paths)),
        joules=line.joules,
        seconds=line.seconds,
        limited_seconds=line.limited_seconds,
        excerpts=tuple(Excerpt(tuple(samples), tuple(stretches)) for samples, stretches in line.excerpts),
        gain=line.gain * gain,
    )


def _equations(rows: _Equations, columns: int | None) -> NormalEquations:
    normal, right = rows
    for i, *_ in (*normal, *right):
        if columns is not None and not 0 <= i < columns:
            raise ValueError(f"column {i} of {columns}")
    return NormalEquations({(i, j): value for i, j, value in normal}, dict(right))
