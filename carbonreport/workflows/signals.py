"""The second signal: what marginal intensities, which never enter a footprint, say of a choice beside the average ones."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from carbonreport.errors import CarbonreportError, GridGap
from carbonreport.grid.online import OnlineGrid
from carbonreport.grid.readings import Readings, joined
from carbonreport.grid.sources.csv import create
from carbonreport.recommend.rates import Rates
from carbonreport.units import kwh
from carbonreport.workflows.grid import open_provider, providers
from carbonreport.workflows.ways import Way

Opened = Callable[[str], OnlineGrid]
"""Opens a provider by its name."""


@dataclass(frozen=True, slots=True)
class Second:
    """What the marginal signal says of a choice; no interval, for how far such a signal is off is not known.

    Attributes:
        grams: Marginal emissions of the energy of the choice. [g]
        now_grams: The same of starting now. [g]
        is_lower_by_average: Whether average intensity has the choice lower than now.
        source: Name and kind of the signal.
    """

    grams: float
    now_grams: float
    is_lower_by_average: bool
    source: str

    @property
    def ratio(self) -> float:
        """Marginal emissions of the choice over those of now."""
        return self.grams / self.now_grams

    @property
    def agrees(self) -> bool:
        """Whether both signals have the choice on the same side of now."""
        return (self.ratio < 1) == self.is_lower_by_average

    @property
    def words(self) -> str:
        """For the reason."""
        return f"both signals agree (marginal: {self._change})" if self.agrees else f"the signals disagree (marginal: {self._change})"

    @property
    def line(self) -> str:
        """A line of its own: the marginal signal alone, then whether it agrees."""
        average, marginal = ("lower" if is_lower else "not lower" for is_lower in (self.is_lower_by_average, self.ratio < 1))
        verdict = (
            f"both signals agree: {average} than now"
            if self.agrees
            else f"THE SIGNALS DISAGREE: {average} than now by average intensity, {marginal} by the marginal one"
        )
        return (
            f"marginal signal ({self.source}): {self._change} against now, without an interval, "
            f"no part of the figures above and of no footprint; {verdict}"
        )

    @property
    def _change(self) -> str:
        return f"{100 * (self.ratio - 1):+.0f} %".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Signals:
    """Marginal intensities of the places that were asked about, by their number, home first.

    Attributes:
        places: What is known of each; the last places may have nothing.
    """

    places: tuple[Readings, ...] = field(default=())

    def second(self, now: Way, other: Way, place: int, joules: tuple[float, float]) -> Second | None:
        """Compare a choice with now; None where there are no marginal intensities of its place, or not of the whole time.

        Args:
            now: Running at once, at home.
            other: The choice.
            place: Number of its place.
            joules: Energy at the facility of both, pauses and waiting included. [J]
        """
        if place >= len(self.places) or joules[0] <= 0:
            return None
        try:
            before, after = _mean(self.places[0], now), _mean(self.places[place], other)
        except GridGap:
            return None
        if before <= 0:
            return None
        home, there = self.places[0], self.places[place]
        source = _named(home) if home.source == there.source else f"{_named(home)}; {_named(there)}"
        return Second(after * kwh(joules[1]), before * kwh(joules[0]), other.grams < now.grams, source)


def check_marginal(names: Sequence[str], *, places: int) -> None:
    """Refuse what is none of the second signal, before anything is priced.

    Raises:
        CarbonreportError: A file cannot be read or is not marginal, or there are more of them than places.
    """
    if len(names) > places:
        raise CarbonreportError(f"--marginal has {len(names)} files for {places} places; give one for each --zone, in their order")
    for name in names:
        if name not in providers():
            _file(name)


def marginal_signals(
    names: Sequence[str],
    zones: Sequence[str],
    from_s: float,
    to_s: float,
    *,
    environ: Mapping[str, str] = os.environ,
    offline: bool = False,
    opened: Opened | None = None,
) -> Signals:
    """Marginal intensities between two moments.

    Args:
        names: A file or a provider of each place, home first; one provider alone stands for all of them.
        zones: Grid zones of the places, home first.
        from_s: First moment. [POSIX s]
        to_s: Last one. [POSIX s]
        environ: Keys and cache of a provider.
        offline: Whether the network must not be used.
        opened: Opens a provider; that of this environment by default.

    Raises:
        CarbonreportError: One cannot be read or asked, or is not marginal.
    """
    open_ = opened or (lambda name: open_provider(name, environ=environ, offline=offline))
    if len(names) == 1 and names[0] in providers():
        names = [names[0]] * len(zones)
    return Signals(
        tuple(
            _asked(open_(name), name, zone, from_s, to_s) if name in providers() else _file(name)
            for name, zone in zip(names, zones, strict=False)
        )
    )


def _file(name: str) -> Readings:
    readings = create({"path": name}).readings
    if readings.family.signal != "marginal":
        raise CarbonreportError(f"--marginal {name}: its column says nothing of marginal; name it time,marginal_g_per_kwh, or leave it out")
    return readings


def _asked(source: OnlineGrid, name: str, zone: str, from_s: float, to_s: float) -> Readings:
    """What a provider knows of the past part, and what it forecasts of the rest, as far as it reaches."""
    if source.provider.family.signal != "marginal":
        raise CarbonreportError(f"--marginal {name}: {source.provider.title} has average intensities ({source.provider.family})")
    now_s, parts = source.now_s(), []
    if from_s < now_s:
        parts.append(source.readings(zone, from_s, min(to_s, now_s)))
    if to_s > now_s:
        parts.append(source.forecast(zone, to_s - now_s))
    return joined(parts)


def _mean(readings: Readings, way: Way) -> float:
    """Marginal intensity of the energy of a way: by the job's power where it runs in one piece, else by time. [g/kWh] Raises GridGap."""
    begin_s, end_s = way.runs[0][0], way.runs[-1][1]
    series = readings.series("", begin_s, end_s)
    rates = Rates(series.edges_s, series.grams_per_kwh)
    if len(way.runs) == 1:
        return float(np.diff(rates.cumulative(begin_s + way.job.edges_s)) @ way.job.watts) / way.job.joules
    seconds = sum(to_s - from_s for from_s, to_s in way.runs)
    return sum(float(np.diff(rates.cumulative(np.array(run)))[0]) for run in way.runs) / seconds


def _named(readings: Readings) -> str:
    return f"{readings.source}, {readings.family}"
