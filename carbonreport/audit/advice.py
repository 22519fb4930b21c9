"""What to do first: each with its size and why, or not said at all. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.audit.groups import LOST
from carbonreport.model.audit import Advice, Group, Year, agreed, outcome_words
from carbonreport.model.series import Array
from carbonreport.units import US_PER_S, hours_from_microseconds

# Judgements: what is smaller than these does not come first.
LEAST_IDLE, LEAST_FAILED, LEAST_SHIFT = 0.05, 0.05, 0.03
SHORT_JOB_H = 8.0
_HOURS_A_DAY = 24
_MOST_NAMED = 3  # outcomes of jobs; the rest is told together


@dataclass(frozen=True, slots=True)
class SweptCap:
    """What one of the lab's own sweeps justifies.

    Attributes:
        name: File of the sweep.
        boards: Names of the boards it ran on.
        cap_watts: The cap that it chose. [W]
        energy: Energy under the cap over that without: value, low, high.
        time: Time under the cap over that without.
        is_confirmed: Whether the sweep measured its choice anew.
    """

    name: str
    boards: tuple[str, ...]
    cap_watts: float
    energy: tuple[float, float, float]
    time: float
    is_confirmed: bool = True


def advise(year: Year, boards: Mapping[str, tuple[float, float]], caps: Sequence[SweptCap], shift: "Shift | None") -> tuple[Advice, ...]:
    """Largest first.

    Args:
        year: The year's groups.
        boards: Facility energy [J] and emissions [g] of jobs by board.
        caps: Own sweeps that chose a cap.
        shift: What other hours of the same day would have been.
    """
    found = [_idle(year), _failed(year), *(_cap(cap, boards) for cap in caps), None if shift is None else _shift(shift)]
    return tuple(sorted((one for one in found if one is not None), key=lambda advice: -(advice.joules or 0.0)))


def _idle(year: Year) -> Advice | None:
    idle, whole = year.idle, year.whole
    if not whole.it_mj or idle.it_mj < LEAST_IDLE * whole.it_mj or not year.idle_gpu_us:
        return None
    hours = hours_from_microseconds(year.idle_gpu_us)
    watts = idle.it_joules / (year.idle_gpu_us / US_PER_S)
    share = year.idle_gpu_us / max(year.metered_gpu_us, 1)
    return Advice(
        "idle",
        "Switch off, suspend or share boards that wait",
        f"boards that no job had drew {watts:.0f} W on average for {hours:,.0f} GPU-hours, {share * 100:.0f} % of the metered time and "
        f"{idle.it_mj / whole.it_mj * 100:.0f} % of the IT energy; what a board draws when it is switched off was not measured",
        idle.facility_joules,
        grams=idle.grams,
        is_upper_bound=True,
    )


def _failed(year: Year) -> Advice | None:
    lost = [group for group in year.groups["outcome"] if group.name in LOST]
    joules, grams = sum(g.energy.facility_joules for g in lost), sum(g.energy.grams for g in lost)
    whole, of_jobs = year.whole.facility_joules, year.jobs.energy.it_mj
    if not whole or not of_jobs or joules < LEAST_FAILED * whole:
        return None
    used = [group for group in lost if group.energy.it_mj]
    rest = [_lost_part("others", used[_MOST_NAMED:], of_jobs)] if len(used) > _MOST_NAMED else []
    parts = "; ".join([*(_lost_part(outcome_words(group.name), [group], of_jobs) for group in used[:_MOST_NAMED]), *rest])
    first = max(lost, key=lambda g: g.energy.it_mj)
    way = (
        "ask for checkpoints and shorter limits"
        if first.name in ("TIMEOUT", "PREEMPTED", "CANCELLED")
        else "try a short run first, and keep checkpoints"
    )
    return Advice(
        "failed",
        f"Lose less to jobs that do not finish: {way}",
        f"jobs that did not complete used {sum(g.energy.it_mj for g in lost) / of_jobs * 100:.0f} % of the energy of all jobs ({parts}); some of them may have done useful work before they ended",
        joules,
        grams=grams,
        is_upper_bound=True,
    )


def _lost_part(name: str, groups: Sequence[Group], of_jobs_mj: int) -> str:
    """The part of the jobs' energy that some of them had, and how many they were."""
    jobs = sum(group.jobs for group in groups)
    return f"{name} {sum(group.energy.it_mj for group in groups) / of_jobs_mj * 100:.0f} %, {jobs:,} {agreed('[job|jobs]', jobs)}"


def _cap(cap: SweptCap, boards: Mapping[str, tuple[float, float]]) -> Advice | None:
    meant = [board for board in boards if board and any(_same(board, swept) for swept in cap.boards)]
    joules, grams = sum(boards[b][0] for b in meant), sum(boards[b][1] for b in meant)
    value, low, high = cap.energy
    again = "and confirmed it" if cap.is_confirmed else "and did not measure it again"
    if joules <= 0 or high >= 1:
        return None
    return Advice(
        "cap",
        f"Cap {', '.join(meant)} at {cap.cap_watts:g} W",
        f"the lab's own sweep {cap.name} measured {_change(value)} energy and {_change(cap.time)} time for its workload {again}; "
        "the figure holds where the other work on these boards is like it",
        joules * (1 - value),
        joules * (1 - high),
        joules * (1 - low),
        grams * (1 - value),
    )


@dataclass(frozen=True, slots=True)
class Shift:
    """What the best hours of the same days would have been for the jobs that are short enough.

    Attributes:
        share: Part of the jobs' energy that is of such jobs.
        grams: Location-based emissions of all energy. [g]
        ratio: Facility intensity in each day's best hours over that in the hours used.
        hour: Local hour at which the best hours most often begin.
        is_typical: Whether the intensities are a typical year's, not those that were.
        in_season: Month whose facility intensity is lowest, and its ratio to the year's mean.
    """

    share: float
    grams: float
    ratio: float
    hour: int
    is_typical: bool


def shift_of(joules: Array, grams_per_joule: Array, share: float, first_hour: int, *, is_typical: bool) -> Shift | None:
    """How much better the best hours of each day were.

    Args:
        joules: IT energy of each hour. Shape (n,).
        grams_per_joule: PUE times intensity of each hour. Shape (n,).
        share: Part of the energy that jobs have which fit into such a stretch.
        first_hour: Local hour of the first one.
        is_typical: Whether the intensities are typical ones.
    """
    days = joules.size // _HOURS_A_DAY
    if not days or joules.sum() <= 0:
        return None
    energy = joules[: days * _HOURS_A_DAY].reshape(days, _HOURS_A_DAY)
    rate = grams_per_joule[: days * _HOURS_A_DAY].reshape(days, _HOURS_A_DAY)
    length = int(SHORT_JOB_H)
    means = np.stack([rate[:, i : i + length].mean(axis=1) for i in range(_HOURS_A_DAY - length + 1)], axis=1)
    used, best = float((energy * rate).sum()), float((energy.sum(axis=1) * means.min(axis=1)).sum())
    if used <= 0:
        return None
    begins = np.bincount(means.argmin(axis=1), minlength=_HOURS_A_DAY)
    return Shift(
        share, float((joules * grams_per_joule).sum()), best / used, (int(begins.argmax()) + first_hour) % _HOURS_A_DAY, is_typical
    )


def _shift(shift: Shift) -> Advice | None:
    lower = shift.share * (1 - shift.ratio)
    if lower < LEAST_SHIFT:
        return None
    basis = "by the typical year of the zone" if shift.is_typical else "by the hours as they were"
    end = (shift.hour + int(SHORT_JOB_H)) % _HOURS_A_DAY
    return Advice(
        "shift",
        f"Let short jobs begin in the best hours of the day, most often {shift.hour:02d}:00 to {end:02d}:00",
        f"jobs of under {SHORT_JOB_H:g} h have {shift.share * 100:.0f} % of the energy; in each day's best {SHORT_JOB_H:g} h the location-based figure of theirs is "
        f"{(1 - shift.ratio) * 100:.0f} % lower, {basis}, if the boards have room then; the energy stays the same",
        None,
        grams=shift.grams * lower,
        is_upper_bound=True,
    )


def _same(board: str, swept: str) -> bool:
    one, other = (frozenset("".join(c if c.isalnum() else " " for c in name.casefold()).split()) - {"nvidia"} for name in (board, swept))
    return bool(one) and (one <= other or other <= one)


def _change(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.0f} %".replace("-", "\u2212")
