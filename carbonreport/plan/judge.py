"""How much of a plan is the luck of its table: a margin for time, a shrunk saving, and "do not switch" where that is best. Pure.

Plans of kernels are made for less time than is allowed, as their cells' noise says (luck.py). A cap and what was measured as a whole have errors of their
own, and are judged by the time that is allowed and by these. Published: −15.64 % at +0.00 % promised, −14.58 % at +0.58 % measured again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from carbonreport.combine.intervals import Z90
from carbonreport.plan.luck import NO_LUCK, Luck, curses, longer, luck_of
from carbonreport.plan.noise import noise_of
from carbonreport.plan.result import KINDS, Aggregation, Cap, Kind, Plan, Way
from carbonreport.plan.solver import solve, way_of_whole
from carbonreport.plan.switching import Switching, stalled_s
from carbonreport.plan.table import UNLOCKED, PlanError, PlanTable

Verdict = Literal["switch", "one-setting", "do-nothing"]
Ends = tuple[float, float, float]
"""Expected, low, high."""
_DRAWS = 12
_ROUNDING = 1e-6
_SWITCHING: tuple[Kind, ...] = ("pass", "kernel")


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan as it can be expected to turn out.

    Attributes:
        plan: For the time that was asked for; the ways of kernels in it were made for less, where their noise is known.
        time_ratio: Time over unlocked: expected, low, high (90 %).
        energy_ratio: Energy over unlocked: expected after shrinking, low, high (90 %).
        margin: Share of time that was kept back of the chosen way for noise and luck; of the kernels' ways, where none is chosen.
        verdict: Whether to switch clocks, hold one setting, or leave them alone.
        because: Why, in a sentence.
        is_noise_known: Whether the table says how exact its cells are; without that nothing is kept back of them and nothing shrunk.
    """

    plan: Plan
    time_ratio: Ends
    energy_ratio: Ends
    margin: float
    verdict: Verdict
    because: str
    is_noise_known: bool


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A way and how it can be expected to turn out."""

    way: Way
    time: Ends
    energy: Ends
    margin: float = 0.0


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
        slowdown: Share by which an iteration may be longer; below 0 where it must be shorter.
        switching: What changes of clocks cost.
        aggregation: As in `solve`.
        caps: As in `solve`.
        sigmas: How many standard deviations of the plan's time are kept back.
        draws: How many noisy tables are planned from.
        seed: Of the noise.

    Raises:
        PlanError: The slowdown is below 0, and no plan is so fast with what is kept back of it.
    """
    asked = solve(table, slowdown, switching, aggregation=aggregation, caps=caps)
    kernels, margin = _of_cells(replace(table, whole=None), slowdown, switching, aggregation, sigmas, draws, seed)
    candidates = [*kernels, *(_of_cap(cap) for cap in caps if cap.time_ratio <= 1 + slowdown + _ROUNDING)]
    if table.whole is not None:
        for one in _of_cells(table.whole, slowdown, switching, "global", sigmas, draws, seed)[0]:
            way = way_of_whole(table, table.whole, one.way)
            candidates += [] if way is None else [replace(one, way=way)]
    if slowdown >= 0:
        candidates.append(_Candidate(nothing_at_all(table), (1.0,) * 3, (1.0,) * 3, margin))
    elif not candidates:
        raise PlanError(
            f"no plan surely takes {100 * slowdown:+.2f} % of time: {100 * margin:.2f} % is kept back for the noise of the table"
        )
    return _chosen(asked, candidates, slowdown, is_known=noise_of(table) is not None)


def nothing_at_all(table: PlanTable) -> Way:
    """Unlocked clocks all along."""
    return Way("none", (UNLOCKED,) * table.sequence.size, 1.0, 1.0)


def _of_cells(
    table: PlanTable, slowdown: float, switching: Switching, aggregation: Aggregation, sigmas: float, draws: int, seed: int
) -> tuple[list[_Candidate], float]:
    """The best ways of each kind put together from cells, for the time that their noise leaves; and the share that it takes."""
    noise = noise_of(table)
    curse, margin = {}, 0.0
    try:
        plan = solve(table, slowdown, switching, aggregation=aggregation)
        if noise is not None:
            curse = curses(table, noise, slowdown, switching, aggregation=aggregation, draws=draws, seed=seed)
            first = luck_of(table, noise, plan.way, curse)
            margin = max(0.0, first.time) + sigmas / Z90 * first.half_time
            plan = solve(table, slowdown - margin, switching, aggregation=aggregation)
            tight = curses(table, noise, slowdown - margin, switching, aggregation=aggregation, draws=draws, seed=seed + 1)
            curse = longer(curse, tight)
    except PlanError:
        return [], margin
    ways = [way for way in plan.others if way.kind != "none"]
    return [
        _expected(table, switching, way, NO_LUCK if noise is None else luck_of(table, noise, way, curse), margin) for way in ways
    ], margin


def _expected(table: PlanTable, switching: Switching, way: Way, luck: Luck, margin: float) -> _Candidate:
    """Expected ratios with 90 % intervals: noise, and a latency at its low or high end."""
    time, energy = way.time_ratio + luck.time, way.energy_ratio + luck.energy
    usual_s = stalled_s(way.pairs, switching)
    more_s = [stalled_s(way.pairs, switching, which) - usual_s for which in ("low", "value", "high")]
    times = [s / table.baseline_seconds for s in more_s]
    energies = [s * switching.stall_watts / table.baseline_joules for s in more_s]
    return _Candidate(
        way,
        (time, time + min(times) - luck.half_time, time + max(times) + luck.half_time),
        (energy, energy + min(energies) - luck.half_energy, energy + max(energies) + luck.half_energy),
        margin,
    )


def _of_cap(cap: Cap) -> _Candidate:
    """A cap as its sweep saw it."""
    way = Way("cap", (), cap.time_ratio, cap.energy_ratio, cap_watts=cap.cap_watts, is_whole=True)
    time, energy = cap.time_ends or (cap.time_ratio,) * 2, cap.energy_ends or (cap.energy_ratio,) * 2
    return _Candidate(way, (cap.time_ratio, *time), (cap.energy_ratio, *energy))


def _chosen(asked: Plan, candidates: Sequence[_Candidate], slowdown: float, *, is_known: bool) -> Judged:
    """The way of least expected energy that is in time and surely saves; one that switches must surely beat the best that does not."""
    doubts: list[tuple[float, str]] = []
    best: _Candidate | None = None
    for one in sorted(candidates, key=_simplest_first):  # what does not switch comes first
        doubt = None if one.way.kind == "none" else _doubt(one, best, slowdown)
        if doubt is not None:
            doubts.append((one.energy[0], doubt))
        elif best is None or one.energy[0] < best.energy[0]:
            best = one
    if best is None:
        raise PlanError(f"no plan surely takes {100 * slowdown:+.2f} % of time: {'; '.join(doubt for _, doubt in doubts)}")
    plan = replace(asked, way=best.way, others=_of_each_kind(candidates))
    because = next((doubt for energy, doubt in sorted(doubts) if energy < best.energy[0]), None) or _too_near(asked, best) or _why(plan)
    verdict: Verdict = "switch" if best.way.kind in _SWITCHING else "do-nothing" if best.way.kind == "none" else "one-setting"
    return Judged(plan, best.time, best.energy, best.margin, verdict, because, is_known)


def _simplest_first(one: _Candidate) -> tuple[bool, float, int]:
    return one.way.kind in _SWITCHING, one.energy[0], KINDS.index(one.way.kind)


def _doubt(one: _Candidate, best: _Candidate | None, slowdown: float) -> str | None:
    """Why a way is not sure enough, or None where it is; one that switches must surely beat the best that does not."""
    if one.time[0] > 1 + slowdown + _ROUNDING:
        return f"the time of {_named(one.way)} is not sure enough beside the noise of the table"
    if one.way.kind in _SWITCHING and best is not None and best.way.kind not in _SWITCHING and one.energy[2] >= best.energy[0]:
        return (
            f"switching clocks would need {_percent(one.energy[0])} of energy, {_percent(one.energy[2])} at the bad end of its interval, "
            f"and {_named(best.way)} {_percent(best.energy[0])} without a switch"
        )
    if one.energy[2] >= 1:
        return f"the saving of {_named(one.way)} is not sure enough beside the noise of the table"
    return None


def _too_near(asked: Plan, best: _Candidate) -> str | None:
    """That the time is too near for the noise, where nothing is done for it alone."""
    if best.way.kind != "none" or asked.way.energy_ratio >= 1 or asked.way.kind == "none":
        return None
    return (
        f"{_named(asked.way)} would need {_energy(asked.way.energy_ratio)} at {_percent(asked.way.time_ratio)} of time, "
        f"too near the limit for the noise of the table, for which {100 * best.margin:.2f} % of time is kept back"
    )


def _of_each_kind(candidates: Sequence[_Candidate]) -> tuple[Way, ...]:
    """The best of each kind, the simplest first."""
    ranked = sorted(candidates, key=lambda one: one.energy[0])
    found = (next((one.way for one in ranked if one.way.kind == kind), None) for kind in KINDS)
    return tuple(way for way in found if way is not None)


def _why(plan: Plan) -> str:
    """Why the best way is the best, by what it was compared with."""
    way = plan.way
    if way.kind == "none":
        return "no clocks and no cap need less energy in that time than unlocked ones"
    others = [other for other in plan.others if other.kind not in (way.kind, "none")]
    beaten = ", ".join(f"{_KIND_WORDS[other.kind]} {_percent(other.energy_ratio)}" for other in others)
    needs = "need" if way.kind == "kernel" else "needs"
    return f"{_named(way)} {needs} {_energy(way.energy_ratio)}" + (f"; the best of the others: {beaten}" if beaten else "")


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


def _energy(ratio: float) -> str:
    """2.8 % less energy."""
    return f"{abs(100 * (ratio - 1)):.1f} % {'less' if ratio < 1 else 'more'} energy"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "−")
