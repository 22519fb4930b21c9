"""Power caps from trials: a curve against runs without a cap, with errors; what is dominated; and which cap is worth it, if any. Pure.

Logarithms of time and energy are fitted by one constant a cap, beside a drift that is straight between neighbouring runs without a cap: each
trial is compared with the baselines on both sides of it. All trials share one variance, so that a few repeats of each cap are enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from carbonreport.model.notes import Note
from carbonreport.plan.cap_curve import CapCurve, CapCurvePoint, Ratio, Scatter, Trial, ratio_of
from carbonreport.plan.isotonic import falling, rising
from carbonreport.plan.shrink import shrunk

Array = NDArray[np.float64]
_LEAST_VARIANCE = 1e-12  # of a logarithm: trials that agree in every digit are still no exact knowledge


def curve(trials: Sequence[Trial], uncapped_watts: float | None = None) -> CapCurve:
    """The curve of finished trials.

    Args:
        trials: In any order; at least one without a cap.
        uncapped_watts: Limit of a board without a cap, where it is known: caps above it are fitted like any other. [W]
    """
    trials = sorted(trials, key=lambda trial: trial.position)
    baselines = [trial for trial in trials if trial.cap_watts is None]
    if not baselines:
        raise ValueError("a curve needs a trial without a cap")
    is_per_item = all(trial.items is not None for trial in trials)
    works = [trial.items if is_per_item and trial.items is not None else 1.0 for trial in trials]
    caps = sorted({trial.cap_watts for trial in trials if trial.cap_watts is not None})
    times = _fitted(trials, caps, [trial.seconds / work for trial, work in zip(trials, works, strict=True)])
    energies = _fitted(trials, caps, [trial.joules / work for trial, work in zip(trials, works, strict=True)])
    counts = [sum(trial.cap_watts == cap for trial in trials) for cap in caps]
    pairs = [(t.value, e.value) for t, e in zip(times.ratios, energies.ratios, strict=True)]
    fits = _monotone(caps, counts, len(baselines), pairs, uncapped_watts)
    points = tuple(
        CapCurvePoint(cap, count, time, energy, expected, _is_dominated(pair, pairs), fit)
        for cap, count, time, energy, expected, pair, fit in zip(
            caps, counts, times.ratios, energies.ratios, energies.expected(), pairs, fits, strict=True
        )
    )
    return CapCurve(
        times.baseline,
        energies.baseline,
        len(baselines),
        is_per_item,
        points,
        times.scatter,
        energies.scatter,
        tuple(_notes(trials, is_per_item=is_per_item, has_errors=times.scatter.degrees > 0)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """Time or energy of every cap."""

    baseline: float
    logs: Array
    unit_covariance: Array
    scatter: Scatter

    @property
    def ratios(self) -> list[Ratio]:
        sd = self.scatter.sd
        if sd is None:
            return [Ratio(math.exp(log)) for log in self.logs.tolist()]
        return [
            ratio_of(log, sd * own, self.scatter.degrees) for log, own in zip(self.logs.tolist(), _roots(self.unit_covariance), strict=True)
        ]

    def expected(self) -> list[Ratio]:
        sd = self.scatter.sd
        if sd is None or not self.logs.size:
            return self.ratios
        means, sds = shrunk(self.logs, sd**2 * self.unit_covariance + _LEAST_VARIANCE * np.eye(self.logs.size))
        return [ratio_of(mean, own, self.scatter.degrees) for mean, own in zip(means.tolist(), sds.tolist(), strict=True)]


def _roots(covariance: Array) -> list[float]:
    return [math.sqrt(max(value, 0.0)) for value in np.diag(covariance).tolist()]


def _fitted(trials: Sequence[Trial], caps: Sequence[float], values: Sequence[float]) -> _Fitted:
    """Least squares of the logarithms: drift by its value at each baseline, and one constant a cap."""
    logs = np.log(values)
    positions = np.array([trial.position for trial in trials], dtype=float)
    knots = np.array([trial.position for trial in trials if trial.cap_watts is None], dtype=float)
    if not caps:  # nothing is compared: what baselines differ by is scatter
        knots = knots[:1]
    drift = np.array([np.interp(positions, knots, unit) for unit in np.eye(knots.size)]).T
    of_cap = np.array([[trial.cap_watts == cap for cap in caps] for trial in trials], dtype=float).reshape(len(trials), len(caps))
    design = np.hstack([drift, of_cap])
    inverse = np.linalg.pinv(design.T @ design)
    found = inverse @ design.T @ logs
    left = logs - design @ found
    degrees = len(trials) - design.shape[1]
    first = knots.size
    return _Fitted(
        math.exp(float(np.mean(logs[[trial.cap_watts is None for trial in trials]]))),
        found[first:],
        inverse[first:, first:],
        Scatter(float(left @ left) if degrees > 0 else 0.0, max(degrees, 0)),
    )


def _monotone(
    caps: Sequence[float], counts: Sequence[int], baselines: int, pairs: Sequence[tuple[float, float]], uncapped_watts: float | None
) -> list[tuple[float, float]]:
    """Time and energy ratio of each cap where time never rises and power never falls with the cap; no cap is the highest one."""
    if not caps:
        return []
    top = max(uncapped_watts or 0.0, caps[-1])
    rows = sorted([(cap, 0, count, *pair) for cap, count, pair in zip(caps, counts, pairs, strict=True)] + [(top, 1, baselines, 1.0, 1.0)])
    weights = np.array([row[2] for row in rows], dtype=float)
    times = falling(np.log([row[3] for row in rows]), weights)
    powers = rising(np.log([row[4] / row[3] for row in rows]), weights)
    own = next(i for i, row in enumerate(rows) if row[1] == 1)
    return [
        (math.exp(times[i] - times[own]), math.exp(times[i] + powers[i] - times[own] - powers[own]))
        for i, row in enumerate(rows)
        if row[1] == 0
    ]


def _is_dominated(own: tuple[float, float], pairs: Sequence[tuple[float, float]]) -> bool:
    return any(t <= own[0] and e <= own[1] and (t, e) != own for t, e in [(1.0, 1.0), *pairs])


def _notes(trials: Sequence[Trial], *, is_per_item: bool, has_errors: bool) -> list[Note]:
    notes = []
    if not is_per_item:
        notes.append(Note("work-assumed-equal", "the program did not count its items: every trial is taken to have done the same work"))
    if not has_errors:
        notes.append(Note("sweep-one-repeat", "each cap ran once: how far its figures can be trusted is not known; --repeats 3 would say"))
    return notes + digest_notes(trials)


def digest_notes(trials: Sequence[Trial]) -> list[Note]:
    """Whether what the trials said of their results differs; nothing where it is the same, or nobody looked."""
    baseline = {trial.digest for trial in trials if trial.cap_watts is None and trial.digest is not None}
    if len(baseline) > 1:
        return [
            Note(
                "sweep-results-differ",
                "results differ between runs without a cap: the program is not repeatable, so caps cannot be judged by them",
            )
        ]
    others = sorted({t.cap_watts for t in trials if t.cap_watts is not None and t.digest is not None and {t.digest} != baseline})
    if not others:
        return []
    named = ", ".join(f"{cap:g} W" for cap in others)
    return [Note("sweep-results-differ", f"results under {named} differ from those without a cap")]
