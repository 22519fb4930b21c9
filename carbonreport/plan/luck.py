"""What a plan from noisy cells promises too much, and how far it may be from what it promises. Pure.

A plan that takes the least of many noisy cells promises too much (the optimiser's curse). The noise of the table is put on top of it once more, a plan is
made from that, and judged on the table itself: what it promises more than it holds is what the plan of the table promises too much, as near as anybody can
know without measuring again. How far one plan is from that is the noise of the very cells that it takes, and of unlocked ones that it is compared with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import hypot

import numpy as np

from carbonreport.plan.noise import Noise
from carbonreport.plan.result import Aggregation, Kind, Way
from carbonreport.plan.solver import solve
from carbonreport.plan.student import t_quantile
from carbonreport.plan.switching import Switching
from carbonreport.plan.table import Array, IntArray, PlanError, PlanTable

_LEAST_SHARE = 0.1  # of a cell: noise takes no more
_ONE_SIDED = 0.95  # a 90 % interval leaves 5 % on each side


@dataclass(frozen=True, slots=True)
class Luck:
    """What a plan promises too much on average, and half its 90 % interval about that.

    Attributes:
        time: Added to the time ratio.
        energy: Added to the energy ratio.
        half_time: Half the width of the interval of time.
        half_energy: The same of energy.
    """

    time: float = 0.0
    energy: float = 0.0
    half_time: float = 0.0
    half_energy: float = 0.0


NO_LUCK = Luck()


@dataclass(frozen=True, slots=True)
class Curse:
    """Too much promised by one kind of plan: means over noisy tables, and their standard errors."""

    time: float
    energy: float
    time_error: float
    energy_error: float


def curses(
    table: PlanTable, noise: Noise, slowdown: float, switching: Switching, *, aggregation: Aggregation, draws: int, seed: int
) -> dict[Kind, Curse]:
    """What the best plan of each kind promises too much: plans from tables with the noise once more, judged on the table."""
    random = np.random.default_rng(seed)
    missed: dict[Kind, list[tuple[float, float]]] = {}
    for _ in range(draws):
        noisy = replace(
            table,
            seconds=np.maximum(table.seconds + random.normal(0, 1, table.seconds.shape) * noise.seconds_sd, _LEAST_SHARE * table.seconds),
            joules=np.maximum(table.joules + random.normal(0, 1, table.joules.shape) * noise.joules_sd, _LEAST_SHARE * table.joules),
            whole=None,
        )
        try:
            ways = solve(noisy, slowdown, switching, aggregation=aggregation).others
        except PlanError:  # below 0, and out of reach of this one
            continue
        for way in ways:
            (time, energy), (noisy_time, noisy_energy) = _without_switches(table, way), _without_switches(noisy, way)
            missed.setdefault(way.kind, []).append((time - noisy_time, energy - noisy_energy))
    return {kind: _mean(np.array(values)) for kind, values in missed.items()}


def longer(loose: Mapping[Kind, Curse], tight: Mapping[Kind, Curse]) -> dict[Kind, Curse]:
    """What plans for less time promise too much of energy, and of time the more of both: only lucky tables reach a time that is short for their noise."""
    found = dict(loose)
    for kind, own in tight.items():
        other = loose.get(kind, own)
        longest = max(own, other, key=lambda curse: curse.time)
        found[kind] = Curse(longest.time, own.energy, longest.time_error, own.energy_error)
    return found


def _mean(values: Array) -> Curse:
    time, energy = values.mean(axis=0).tolist()
    if len(values) < 2:
        return Curse(time, energy, abs(time), abs(energy))
    time_error, energy_error = (values.std(axis=0, ddof=1) / len(values) ** 0.5).tolist()
    return Curse(time, energy, time_error, energy_error)


def _without_switches(table: PlanTable, way: Way) -> tuple[float, float]:
    """Time and energy ratios of a way's clocks by a table, switches left out."""
    choices = _choices(table, way)
    seconds, joules = (float(cells[table.sequence, choices].sum()) for cells in (table.seconds, table.joules))
    return seconds / table.baseline_seconds, joules / table.baseline_joules


def _choices(table: PlanTable, way: Way) -> IntArray:
    index = {pair: i for i, pair in enumerate(table.pairs)}
    return np.array([index[pair] for pair in way.pairs], dtype=np.intp)


def luck_of(table: PlanTable, noise: Noise, way: Way, curse: Mapping[Kind, Curse]) -> Luck:
    """How a way can be expected to turn out beside what the table says of it; nothing for unlocked clocks all along."""
    if way.kind == "none":
        return NO_LUCK
    own = curse.get(way.kind, Curse(0.0, 0.0, 0.0, 0.0))
    choices = _choices(table, way)
    times = t_quantile(_ONE_SIDED, noise.degrees)
    halves = []
    for cells, sd, error in ((table.seconds, noise.seconds_sd, own.time_error), (table.joules, noise.joules_sd, own.energy_error)):
        base = float(table.counts @ cells[:, table.unlocked])
        weights = np.zeros_like(cells)
        np.add.at(weights, (table.sequence, choices), 1.0)
        ratio = float(cells[table.sequence, choices].sum()) / base
        weights[:, table.unlocked] -= ratio * table.counts
        halves.append(times * hypot(float(np.sqrt(np.sum((weights * sd) ** 2))) / base, error))
    return Luck(own.time, own.energy, halves[0], halves[1])
