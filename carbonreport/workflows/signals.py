"""The second signal: what marginal intensities, which never enter a footprint, say of a choice."""

from dataclasses import dataclass

import numpy as np

from carbonreport.errors import CarbonreportError
from carbonreport.grid.sources.csv import CsvGrid, create
from carbonreport.recommend.rates import Rates
from carbonreport.recommend.worth import Runs


@dataclass(frozen=True, slots=True)
class Second:
    """What the marginal signal says beside the average one, which is lower.

    Attributes:
        ratio: Marginal emissions of the choice over those of now.
    """

    ratio: float

    @property
    def agrees(self) -> bool:
        """Whether it is lower too."""
        return self.ratio < 1

    @property
    def words(self) -> str:
        """For the reason."""
        percent = f"{100 * (self.ratio - 1):+.0f} %".replace("-", "−")
        return f"both signals agree (marginal: {percent})" if self.agrees else f"the signals disagree (marginal: {percent})"


def second_signal(files: tuple[str, ...], now: tuple[int, Runs], other: tuple[int, Runs]) -> Second | None:
    """Compare two schedules by marginal intensities; None where there are none of both places.

    Args:
        files: Marginal intensities by place, home first.
        now: Number of the place, and when it runs there.
        other: The same of the choice.

    Raises:
        CarbonreportError: A file cannot be read, does not cover the time, or is not marginal.
    """
    if max(now[0], other[0]) >= len(files):
        return None
    before, after = (_mean(files[number], runs) for number, runs in (now, other))
    return Second(after / before) if before > 0 else None


def check_marginal(files: tuple[str, ...], *, places: int) -> None:
    """Refuse files that are none of the second signal.

    Raises:
        CarbonreportError: A file cannot be read or is not marginal, or there are more of them than places.
    """
    if len(files) > places:
        raise CarbonreportError(f"--marginal has {len(files)} files for {places} places; give one for each --zone, in their order")
    for file in files:
        _readings(file)


def _readings(file: str) -> CsvGrid:
    source = create({"path": file})
    if source.readings.family.signal != "marginal":
        raise CarbonreportError(f"--marginal {file}: its column says nothing of marginal; name it time,marginal_g_per_kwh, or leave it out")
    return source


def _mean(file: str, runs: Runs) -> float:
    series = _readings(file).series("", runs[0][0], runs[-1][1])
    rates = Rates(series.edges_s, series.grams_per_kwh)
    grams = sum(float(np.diff(rates.cumulative(np.array(piece)))[0]) for piece in runs)
    return grams / sum(to_s - from_s for from_s, to_s in runs)
