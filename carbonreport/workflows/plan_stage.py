"""What one stage of measuring says: time and energy of a step and of its phases. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from carbonreport.combine.span_power import span_power
from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import Note
from carbonreport.model.run import RunRecord

STEP = "step"
_TOLD = ("limiter-active", "shared-board", "sensor-aliasing", "spans-told-together", "spans-by-time", "host-edges", "tracer-degraded")


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of a step.

    Attributes:
        name: Its span's path below the step.
        count: How often it comes in a step, between others each time.
        seconds: Of one time. [s]
        joules: Of one time, as the samples tell. [J]
        joules_sd: Standard deviation of that; the board's gain is left out. [J]
        told_within: The phase in whose energy it is contained, or "".
    """

    name: str
    count: int
    seconds: float
    joules: float
    joules_sd: float = 0.0
    told_within: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: steps under one setting.

    Attributes:
        steps: How many were counted.
        seconds: Of one step. [s]
        joules: Of one step by the energy counter. [J]
        phases: Phases of a step in their order.
        sm_mhz: Median core clock that was seen; None where nobody looked. [MHz]
        mem_mhz: The same of the memory. [MHz]
        requests: Changes of clocks that were asked for in a step.
        notes: What the record says that matters here: slug and text.
    """

    steps: float
    seconds: float
    joules: float
    phases: tuple[Phase, ...] = ()
    sm_mhz: float | None = None
    mem_mhz: float | None = None
    requests: float = 0.0
    notes: tuple[tuple[str, str], ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("steps", "seconds", "joules"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise CarbonreportError(f"a stage says {name} {value!r}; it must be above 0")

    @property
    def residual_joules(self) -> float:
        """What the phases leave of the step's energy: time outside them, and what the two ways of measuring differ by. Nothing is rescaled. [J]"""
        return self.joules - sum(phase.count * phase.joules for phase in self.phases)

    @property
    def outside_seconds(self) -> float:
        """Time of a step outside its phases. [s]"""
        return self.seconds - sum(phase.count * phase.seconds for phase in self.phases)


def phases_of(run: RunRecord, sequence: Sequence[str]) -> tuple[tuple[Phase, ...], tuple[tuple[str, str], ...]]:
    """Phases of the steps of a record, from the attribution of its samples; and what a reader must know.

    Args:
        run: Steps as spans named "step", phases as spans inside them.
        sequence: Phases of one step in their order.
    """
    steps = sum(span.count for span in run.spans if span.path == STEP)
    if not steps or not sequence:
        return (), notes_of(run.notes)
    power = span_power(run, [device for device in run.devices if device.kind == "gpu" and device.id not in run.unused])
    found = []
    for name in dict.fromkeys(sequence):
        path, count = f"{STEP}/{name}", sequence.count(name)
        spans = [span for span in run.spans if span.path == path]
        seconds = sum(span.seconds for span in spans)
        joules = sum(j * power.factors.get((device, path), 1.0) for span in spans for device, j in span.joules.items())
        if seconds <= 0 or joules <= 0:
            continue
        told, times = power.told.get(path), steps * count
        within = "" if told is None else told.within.removeprefix(f"{STEP}/") or "the rest of the step"
        found.append(Phase(name, count, seconds / times, joules / times, math.sqrt(power.variance({path})) / times, within))
    return tuple(found), notes_of([*run.notes, *power.notes])


def notes_of(notes: Sequence[Note]) -> tuple[tuple[str, str], ...]:
    """Slug and text of what the reader of a stage must know."""
    return tuple((note.slug, note.text) for note in notes if note.slug in _TOLD)
