"""The stages of a sweep inside a loop, and what all of them together say."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from carbonreport.measure.spans import Occurrence
from carbonreport.model.notes import Note
from carbonreport.plan.cap_choice import CapRule, choose
from carbonreport.plan.cap_curve import Trial
from carbonreport.plan.caps import curve
from carbonreport.workflows.sweep_outcome import Outcome, once_each
from carbonreport.workflows.sweep_ranks import Together

# Shorter stages are blurred by the sensor (Yang et al., SC'24: 5 s or more), and a limiter takes about a second to act.
_LEAST_STAGE_S = 5.0
_LEAST_WARMUP_S = 1.0


@dataclass(slots=True)
class Stage:
    """Some steps under one cap.

    Attributes:
        path: Span of the steps that count.
        cap_watts: Power cap, or None. [W]
        changed_s: When the cap was there. [s]
        begin_s: When the steps that count began. [s]
        span: That span while it is open.
        items: What the steps counted.
        is_counted: Whether every step counted some.
        is_spoilt: Whether it says nothing of its cap.
    """

    path: str
    cap_watts: float | None
    changed_s: float = 0.0
    begin_s: float = 0.0
    span: Occurrence | None = None
    items: float = 0.0
    is_counted: bool = True
    is_spoilt: bool = False


Costs = Mapping[str, tuple[float, float]]
"""Seconds and joules by path. [s, J]"""


def outcome_of(
    stages: Sequence[Stage],
    costs: Costs | None,
    together: Together,
    *,
    rule: CapRule,
    boards: tuple[tuple[str, float | None], ...],
    notes: Sequence[Note],
) -> Outcome | None:
    """What the stages of all ranks say of the caps; None where no stage without a cap counts.

    Args:
        stages: Of this rank, all of them over.
        costs: What each took; None where another rank measures.
        together: All ranks of the job, each of which calls this.
        rule: What is wanted.
        boards: Name and limit of each board. [W]
        notes: What was said while the stages lasted.
    """
    trials = [trial for i, stage in enumerate(stages) if (trial := _trial(i, stage, costs, together)) is not None]
    if not any(trial.cap_watts is None for trial in trials):
        return None
    found = curve(trials, min((watts for _, watts in boards if watts is not None), default=None))
    verdict = choose(found, rule)
    told = [*found.notes, *notes, *_too_short(stages, costs)]
    if len(trials) < len(stages):
        told.append(Note("sweep-stages-lost", f"{len(stages) - len(trials)} of {len(stages)} stages were left out"))
    if verdict.choice is not None:
        cap = verdict.choice.cap_watts
        told.append(Note("sweep-unconfirmed", f"{cap:g} W was not measured anew: what it saves is a promise, not a result"))
    return Outcome(found, rule, verdict, None, boards, once_each(told))


def _too_short(stages: Sequence[Stage], costs: Costs | None) -> list[Note]:
    """Stages too short for the sensor, or begun too early; how long one lasted that nobody measured is not known, and not called short."""
    seconds = {path: cost[0] for path, cost in (costs or {}).items()}
    short = [s for s in stages if seconds.get(s.path, _LEAST_STAGE_S) < _LEAST_STAGE_S or s.begin_s - s.changed_s < _LEAST_WARMUP_S]
    if not short:
        return []
    text = f"{len(short)} of {len(stages)} stages lasted under 5 s, or began within 1 s of their cap: take more steps"
    return [Note("sweep-stages-short", text)]


def _trial(position: int, stage: Stage, costs: Costs | None, together: Together) -> Trial | None:
    """A stage of all ranks together; None where it was spoilt or nobody measured its energy."""
    own_seconds, own_joules = (0.0, 0.0) if costs is None else costs.get(stage.path, (0.0, math.nan))
    joules, seconds, items = together.reduce(
        math.nan if stage.is_spoilt else own_joules, own_seconds, stage.items if stage.is_counted else math.nan
    )
    if not joules > 0 or not seconds > 0:
        return None
    return Trial(position, stage.cap_watts, seconds, joules, items if items > 0 else None)
