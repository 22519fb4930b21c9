"""What a sweep found, as an object for JSON; `when --sweep` reads its points and its choice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from carbonreport.model.notes import Note
from carbonreport.plan.cap_choice import CapChoice, CapRule, Confirmed, Verdict
from carbonreport.plan.cap_curve import CapCurve, CapCurvePoint, Ratio


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a sweep found.

    Attributes:
        curve: Every cap against none.
        rule: What was wanted.
        verdict: The choice of the sweep, or none.
        confirmed: The choice measured anew; None where it was not.
        boards: Name and limit of each board. [W]
        notes: What a reader must know.
        same_lines: How many lines of output were the same in every trial; None where nobody looked, or they differ.
    """

    curve: CapCurve
    rule: CapRule
    verdict: Verdict
    confirmed: Confirmed | None = None
    boards: tuple[tuple[str, float | None], ...] = ()
    notes: tuple[Note, ...] = ()
    same_lines: int | None = None

    @property
    def choice(self) -> CapChoice | None:
        """The cap to use: the sweep's choice, unless its new measurement did not show the saving."""
        return None if self.confirmed is not None and not self.confirmed.holds else self.verdict.choice

    @property
    def because(self) -> str:
        """Why this one, or none."""
        tried = self.verdict.choice
        if tried is not None and self.choice is None:
            return f"no cap is worth it: {tried.cap_watts:g} W was chosen, and measured anew it did not keep what the sweep had shown"
        return self.verdict.because


def outcome_object(outcome: Outcome) -> dict[str, Any]:
    """The outcome with plain names."""
    curve, rule = outcome.curve, outcome.rule
    return {
        "baseline": {
            "seconds": curve.seconds,
            "joules": curve.joules,
            "per": "item" if curve.is_per_item else "run",
            "trials": curve.baselines,
            "time_sd": curve.time_scatter.sd,
            "energy_sd": curve.energy_scatter.sd,
            "boards": [{"name": name, "limit_watts": watts} for name, watts in outcome.boards],
        },
        "rule": {"slowdown": rule.slowdown, "eta": rule.eta},
        "points": [_point(point) for point in curve.points],
        "choice": _choice(outcome, outcome.choice),
        "not_confirmed": None if outcome.choice is outcome.verdict.choice else _choice(outcome, outcome.verdict.choice),
        "because": outcome.because,
        "same_lines": outcome.same_lines,
        "notes": [{"slug": note.slug, "text": note.text} for note in outcome.notes],
    }


def _point(point: CapCurvePoint) -> dict[str, Any]:
    return {
        "cap_watts": point.cap_watts,
        "trials": point.trials,
        **_ratio("time", point.time),
        **_ratio("energy", point.energy),
        "edp_ratio": point.edp_ratio,
        "expected_energy_ratio": point.expected.value,
        "fitted_time_ratio": point.fitted[0],
        "fitted_energy_ratio": point.fitted[1],
        "dominated": point.is_dominated,
    }


def _choice(outcome: Outcome, choice: CapChoice | None) -> dict[str, Any] | None:
    if choice is None:
        return None
    again = outcome.confirmed
    return {
        "cap_watts": choice.cap_watts,
        "promised": {**_ratio("time", choice.time), **_ratio("energy", choice.energy)},
        "confirmed": None if again is None else {"pairs": again.pairs, **_ratio("time", again.time), **_ratio("energy", again.energy)},
        "because": choice.because,
    }


def _ratio(name: str, ratio: Ratio) -> dict[str, float | None]:
    return {f"{name}_ratio": ratio.value, f"{name}_low": ratio.low, f"{name}_high": ratio.high, f"{name}_bound": ratio.bound}


def once_each(notes: Sequence[Note], most_of_a_kind: int = 2) -> tuple[Note, ...]:
    """Notes of many trials without repeats, some of each kind."""
    kept: list[Note] = []
    for note in notes:
        if note not in kept and sum(other.slug == note.slug for other in kept) < most_of_a_kind:
            kept.append(note)
    return tuple(kept)
