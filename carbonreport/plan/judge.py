"""How much of a plan is the luck of its table: a margin for time, a shrunk saving, and "do not switch" where that is best. Pure.

A plan that takes the least of many noisy cells promises too much (the optimiser's curse; published: -15.64 % at +0.00 % promised, -14.58 % at +0.58 %
measured again). The noise of the table is put on top of it once more, a plan is made from that, and judged on the table itself: what it promises
more than it holds is what the plan of the table promises too much, as near as anybody can know without measuring again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from carbonreport.combine.intervals import Z90
from carbonreport.plan.result import Aggregation, Cap, Kind, Plan, Way
from carbonreport.plan.solver import solve
from carbonreport.plan.switching import Switching, stalled_s
from carbonreport.plan.table import UNLOCKED, Array, PlanError, PlanTable

Verdict = Literal["switch", "one-setting", "do-nothing"]
Ends = tuple[float, float, float]
"""Expected, low, high."""
_DRAWS = 12
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan as it can be expected to turn out.

    Attributes:
        plan: Made for less time than is allowed, where the noise is known.
        time_ratio: Time over unlocked: expected, low, high (90 %).
        energy_ratio: Energy over unlocked: expected after shrinking, low, high (90 %).
        margin: Share of time that was kept back for noise and luck.
        verdict: Whether to switch clocks, hold one setting, or leave them alone.
        because: Why, in a sentence.
        is_noise_known: Whether the table says how exact its cells are; without that nothing is kept back and nothing shrunk.
    """

    plan: Plan
    time_ratio: Ends
    energy_ratio: Ends
    margin: float
    verdict: Verdict
    because: str
    is_noise_known: bool


@dataclass(frozen=True, slots=True)
class _Luck:
    """What plans promise too much on average, and how far single ones are from that."""

    time: float
    energy: float
    time_sd: float
    energy_sd: float


def judged(
    table: PlanTable,
    slowdown: float,
    switching: Switching,
    *,
    aggregation: Aggregation = "global",
    caps: Sequence[Cap] = (),
    sigmas: float = Z90,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Judged:
    """The plan for a slowdown that keeps a margin for the noise of its table, and what is left of its saving.

    Args:
        table: With the standard deviations of its cells; without, the promise is all there is.
        slowdown: Share by which an iteration may be longer.
        switching: What changes of clocks cost.
        aggregation: As in `solve`.
        caps: As in `solve`.
        sigmas: How many standard deviations of the plan's time are kept back.
        draws: How many noisy tables are planned from.
        seed: Of the noise.
    """
    plan = _in_time(table, slowdown, switching, aggregation, caps) if slowdown >= 0 else solve(table, slowdown, switching, caps=caps)
    luck, margin = _Luck(0.0, 0.0, 0.0, 0.0), 0.0
    if _has_noise(table):
        first = _luck(table, slowdown, switching, aggregation, draws, seed)
        margin = max(0.0, first.time) + sigmas * first.time_sd
        plan = _in_time(table, slowdown - margin, switching, aggregation, caps)
        luck = _luck(table, max(slowdown - margin, 0.0), switching, aggregation, draws, seed + 1)
    return _with_verdict(table, switching, plan, luck, margin, slowdown)


def _in_time(table: PlanTable, slowdown: float, switching: Switching, aggregation: Aggregation, caps: Sequence[Cap]) -> Plan:
    """The plan for a slowdown that the margin may have brought below 0; to do nothing is always in the time that is really allowed."""
    try:
        plan = solve(table, slowdown, switching, aggregation=aggregation, caps=caps)
    except PlanError:
        return replace(
            solve(table, 0.0, switching, with_kernels=False), way=nothing_at_all(table), others=(nothing_at_all(table),), bound=0.0
        )
    return plan if plan.of("none") is not None else replace(plan, others=(nothing_at_all(table), *plan.others))


def nothing_at_all(table: PlanTable) -> Way:
    """Unlocked clocks all along."""
    return Way("none", (UNLOCKED,) * table.sequence.size, 1.0, 1.0)


def _has_noise(table: PlanTable) -> bool:
    return table.seconds_sd is not None and table.joules_sd is not None


def _luck(table: PlanTable, slowdown: float, switching: Switching, aggregation: Aggregation, draws: int, seed: int) -> _Luck:
    """Plans from tables with the noise once more, judged on the table."""
    random = np.random.default_rng(seed)
    seconds_sd, joules_sd = _filled(table.seconds, table.seconds_sd), _filled(table.joules, table.joules_sd)
    missed = []
    for _ in range(draws):
        noisy = replace(
            table,
            seconds=np.maximum(table.seconds + random.normal(0, 1, table.seconds.shape) * seconds_sd, 0.1 * table.seconds),
            joules=np.maximum(table.joules + random.normal(0, 1, table.joules.shape) * joules_sd, 0.1 * table.joules),
            whole=None,
        )
        way = solve(noisy, slowdown, switching, aggregation=aggregation).way
        if way.pairs:
            missed.append(tuple(np.subtract(_without_switches(table, way), _without_switches(noisy, way))))
    values = np.array(missed)
    (time, energy), (time_sd, energy_sd) = values.mean(axis=0), values.std(axis=0, ddof=1)
    return _Luck(float(time), float(energy), float(time_sd), float(energy_sd))


def _filled(cells: Array, sd: Array | None) -> Array:
    """Noise of each cell; where it was measured once, the mean relative noise of the others. Shape (rows, pairs)."""
    assert sd is not None
    usual = float(np.nanmean(sd / cells))
    return np.asarray(np.where(np.isnan(sd), usual * np.nan_to_num(cells), sd))


def _without_switches(table: PlanTable, way: Way) -> tuple[float, float]:
    """Time and energy ratios of a way's clocks by a table, switches left out."""
    choices = np.array([table.pairs.index(pair) for pair in way.pairs], dtype=np.intp)
    seconds, joules = (float(cells[table.sequence, choices].sum()) for cells in (table.seconds, table.joules))
    return seconds / table.baseline_seconds, joules / table.baseline_joules


def _spread(table: PlanTable, switching: Switching, way: Way, luck: _Luck) -> tuple[Ends, Ends]:
    """Expected ratios with 90 % intervals: noise, and a latency at its low or high end."""
    time, energy = way.time_ratio + luck.time, way.energy_ratio + luck.energy
    half_time, half_energy = Z90 * luck.time_sd, Z90 * luck.energy_sd
    usual_s = stalled_s(way.pairs, switching)
    more_s = [stalled_s(way.pairs, switching, which) - usual_s for which in ("low", "value", "high")]
    times = [s / table.baseline_seconds for s in more_s]
    energies = [s * switching.stall_watts / table.baseline_joules for s in more_s]
    return (
        (time, time + min(times) - half_time, time + max(times) + half_time),
        (energy, energy + min(energies) - half_energy, energy + max(energies) + half_energy),
    )


def _with_verdict(table: PlanTable, switching: Switching, plan: Plan, luck: _Luck, margin: float, slowdown: float) -> Judged:
    """The chosen plan, or a simpler one where its saving is not sure to beat that."""
    is_known = _has_noise(table)
    way, because = plan.way, ""
    nothing = _Luck(0.0, 0.0, 0.0, 0.0)
    if way.kind in ("pass", "kernel"):
        simpler = min((other for other in plan.others if other.kind not in ("pass", "kernel")), key=lambda other: other.energy_ratio)
        _, energy = _spread(table, switching, way, luck)
        if energy[2] >= simpler.energy_ratio:
            because = (
                f"switching clocks would need {_percent(energy[0])} of energy, {_percent(energy[2])} at the bad end of its interval, "
                f"and {_named(simpler)} {_percent(simpler.energy_ratio)} without a switch"
            )
            way, luck = simpler, nothing if simpler.kind == "none" else luck
    time, energy = _spread(table, switching, way, nothing if way.kind == "none" else luck)
    if way.kind != "none" and (energy[2] >= 1 or time[0] > 1 + max(slowdown, 0.0) + _ROUNDING):
        noise = "its saving is" if energy[2] >= 1 else "its time is"
        because = f"{_named(way)}: {noise} not sure enough beside the noise of the table"
        way = nothing_at_all(table)
        time = energy = (1.0, 1.0, 1.0)
    verdict: Verdict = "switch" if way.kind in ("pass", "kernel") else "do-nothing" if way.kind == "none" else "one-setting"
    chosen = replace(plan, way=way)
    return Judged(chosen, time, energy, margin, verdict, because or _why(chosen), is_known)


def _why(plan: Plan) -> str:
    """Why the best way is the best, by what it was compared with."""
    way = plan.way
    if way.kind == "none":
        return "no clocks and no cap need less energy in that time than unlocked ones"
    others: list[tuple[Kind, float]] = [(other.kind, other.energy_ratio) for other in plan.others if other.kind != way.kind]
    beaten = ", ".join(f"{_KIND_WORDS[kind]} {_percent(energy)}" for kind, energy in others if kind != "none")
    return f"{_named(way)} needs {_percent(way.energy_ratio)} of energy" + (f"; the best of the others: {beaten}" if beaten else "")


_KIND_WORDS: dict[Kind, str] = {
    "none": "unlocked clocks",
    "static": "one pair of clocks",
    "cap": "a power cap",
    "pass": "a pair of clocks a pass",
    "kernel": "clocks kernel by kernel",
}


def _named(way: Way) -> str:
    if way.kind == "static":
        return f"one pair of clocks ({way.pairs[0]})"
    return f"a cap of {way.cap_watts:g} W" if way.cap_watts is not None else _KIND_WORDS[way.kind]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")
