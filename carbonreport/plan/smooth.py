"""A smooth model of each kernel's time and energy over the clocks: it fills cells that nobody measured and takes noise out of the others. Pure.

Time is a sum of terms with factors above 0: constant, 1 / f_core, 1 / f_memory, and the larger of the two for kernels that wait for one of them.
Energy is a sum of power terms over that time, and of work: time, f V^2 time, V^2 work, f_memory time; V is level below a knee and rises above it.
Factors are found by non-negative least squares on relative errors. Unlocked clocks are the governor's business and are never interpolated.

A model is trusted as far as it foretells cells that were held back from it: by no more than 2 % of time and 4 % of energy beyond
their noise, or than that noise, else the kernel is
left as it was measured. It fills between measured cells alone, and what it makes has an error: that of the cells held back, more the further the next
measured cell is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from carbonreport.combine.solve import nnls
from carbonreport.plan.table import Array, PlanTable

_KNEES = (0.45, 0.55, 0.65, 0.75, 0.85)  # of the highest clock
_RISES = (0.2, 0.35, 0.5, 0.7)  # of the voltage from the knee to the top
_BALANCES = (0.5, 0.7, 1.0, 1.4, 2.0)  # how much slower by its memory than by its cores a kernel is at the top clocks
_FEW, _LEAST = 10, 4  # cells
_SCANNED = 12  # rows that the voltage is looked for with
_LEAST_HELD_BACK = 3  # cells
_FOLDS = 6  # parts of the cells that are held back in turn
_LEAST_ERROR = 1e-4  # of a model that foretells all cells
_MOST_TIME, _MOST_ENERGY = 0.02, 0.04  # error of cells held back, beyond their noise, with which a model is used


@dataclass(frozen=True, slots=True)
class Fit:
    """How well the model fits one kernel.

    Attributes:
        name: The kernel.
        cells: How many cells it was fitted to.
        time_r2: Share of the variance of time that it explains.
        energy_r2: The same of energy.
        time_rms_percent: Relative error of time that is left. [%]
        energy_rms_percent: The same of energy. [%]
        time_held_back_percent: Relative error of time of cells that were held back from the model. [%]
        energy_held_back_percent: The same of energy. [%]
        is_used: Whether the model stands in the table.
    """

    name: str
    cells: int
    time_r2: float
    energy_r2: float
    time_rms_percent: float
    energy_rms_percent: float
    time_held_back_percent: float
    energy_held_back_percent: float
    is_used: bool


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """A table filled and smoothed.

    Attributes:
        table: With the model's cells; columns that the model cannot know are as they were.
        fits: One a kernel, of the cells with both clocks locked (or of the cores alone where the memory is never locked).
        filled: How many cells were filled.
        knee: Share of the highest clock up to which the voltage is level.
        rise: Share by which the voltage rises from there to the top.
    """

    table: PlanTable
    fits: tuple[Fit, ...]
    filled: int
    knee: float
    rise: float


def smoothed(table: PlanTable) -> Smoothed:
    """The table with each kernel's model in the cells of locked cores, where it foretells what was held back from it.

    A measured cell is weighed with its model by their errors; without known errors of the cells the model stands alone.
    A kernel with under four cells of a kind is left as it is.
    """
    families = _families(table)
    knee, rise = _voltage(table, families)
    seconds, joules = table.seconds.copy(), table.joules.copy()
    sds = [np.full(table.seconds.shape, np.nan) if sd is None else sd.copy() for sd in (table.seconds_sd, table.joules_sd)]
    repeats = None if table.repeats is None else table.repeats.copy()
    fits: list[Fit] = []
    best_family = max(families, key=len, default=np.empty(0, dtype=np.intp))
    for row, name in enumerate(table.names):
        for columns in families:
            fit = _fitted(table, row, columns, knee, rise)
            if fit is None:
                continue
            steps, is_between = _steps_away(table, row, columns)
            errors = _held_back(table, row, columns, np.flatnonzero((steps == 0) & is_between), knee, rise)
            noise = [_usual(sd, cells, row, columns) for cells, sd in ((table.seconds, table.seconds_sd), (table.joules, table.joules_sd))]
            own = [max(error**2 - sd**2, 0.0) ** 0.5 for error, sd in zip(errors, noise, strict=True)]
            is_used = own[0] <= max(_MOST_TIME, noise[0]) and own[1] <= max(_MOST_ENERGY, noise[1])
            if columns is best_family:
                fits.append(fit.quality(name, errors, is_used=is_used))
            if not is_used:
                continue
            for cells, model, sd, error in ((seconds, fit.seconds, sds[0], own[0]), (joules, fit.joules, sds[1], own[1])):
                cells[row, columns], sd[row, columns] = _weighed(cells[row, columns], sd[row, columns], model, error, steps)
            if repeats is not None:
                repeats[row, columns] = np.where(np.isfinite(steps), np.maximum(repeats[row, columns], 1), repeats[row, columns])
    filled = int(np.count_nonzero(np.isnan(table.seconds) & ~np.isnan(seconds)))
    known = [None if np.isnan(sd).all() else sd for sd in sds]
    smooth = replace(table, seconds=seconds, joules=joules, seconds_sd=known[0], joules_sd=known[1], repeats=repeats)
    return Smoothed(smooth, tuple(fits), filled, knee, rise)


def _usual(sd: Array | None, cells: Array, row: int, columns: NDArray[np.intp]) -> float:
    """Relative noise of a kernel's cells, 0 where nobody knows it: then all that a model misses counts as its own error."""
    if sd is None or np.isnan(sd[row, columns]).all():
        return 0.0
    return float(np.sqrt(np.nanmean((sd[row, columns] / cells[row, columns]) ** 2)))


def _held_back(
    table: PlanTable, row: int, columns: NDArray[np.intp], known: NDArray[np.intp], knee: float, rise: float
) -> tuple[float, float]:
    """Root mean square of the relative errors of cells between others that were held back from the model in turn: of time and of energy."""
    missed = []
    for fold in range(min(_FOLDS, known.size)):
        hidden = columns[known[fold::_FOLDS]]
        seconds, joules = (cells[[row]].copy() for cells in (table.seconds, table.joules))
        seconds[0, hidden] = joules[0, hidden] = np.nan
        held = replace(
            table, names=(table.names[row],), sequence=np.zeros(1, np.intp), passes=(), seconds=seconds, joules=joules,
            seconds_sd=None, joules_sd=None, whole=None, repeats=None,
        )  # fmt: skip
        fit = _fitted(held, 0, columns, knee, rise)
        if fit is None:
            return np.inf, np.inf
        at = known[fold::_FOLDS]
        missed.append((fit.seconds[at] / table.seconds[row, hidden] - 1, fit.joules[at] / table.joules[row, hidden] - 1))
    if known.size < _LEAST_HELD_BACK:
        return np.inf, np.inf
    time, energy = (np.concatenate(parts) for parts in zip(*missed, strict=True))
    return float(np.sqrt(np.mean(time**2))), float(np.sqrt(np.mean(energy**2)))


def _steps_away(table: PlanTable, row: int, columns: NDArray[np.intp]) -> tuple[Array, NDArray[np.bool_]]:
    """How many cells away the next measured one is, along the core or the memory clock, and whether measured ones lie on both sides. Shapes (columns,).

    Infinite where nothing was measured and none of both has two sides.
    """
    is_known = ~np.isnan(table.seconds[row, columns])
    clocks = np.array([(table.pairs[i].sm_mhz or 0, table.pairs[i].mem_mhz or 0) for i in columns])
    steps, is_between = np.where(is_known, 0.0, np.inf), np.zeros(columns.size, dtype=bool)
    for along, across in ((0, 1), (1, 0)):
        for level in np.unique(clocks[:, across]):
            line = np.flatnonzero(clocks[:, across] == level)
            line = line[np.argsort(clocks[line, along])]
            known = np.flatnonzero(is_known[line])
            if known.size < 2:
                continue
            at = np.arange(line.size)
            inside = (at > known[0]) & (at < known[-1])
            away = np.abs(at[:, None] - known[None]).min(axis=1)
            steps[line] = np.where(inside, np.minimum(steps[line], away), steps[line])
            is_between[line] |= inside
    return steps, is_between


def _families(table: PlanTable) -> list[NDArray[np.intp]]:
    """Columns with both clocks locked, and those with the cores alone; each is a model of its own."""
    both = [i for i, pair in enumerate(table.pairs) if pair.sm_mhz is not None and pair.mem_mhz is not None]
    core = [i for i, pair in enumerate(table.pairs) if pair.sm_mhz is not None and pair.mem_mhz is None]
    return [np.array(columns, dtype=np.intp) for columns in (both, core) if columns]


@dataclass(frozen=True, slots=True, eq=False)
class _RowFit:
    seconds: Array
    joules: Array
    time_errors: Array
    energy_errors: Array
    measured_seconds: Array
    measured_joules: Array

    def quality(self, name: str, held_back: tuple[float, float], *, is_used: bool) -> Fit:
        r2 = [
            _explained(measured, measured * (1 + errors))
            for measured, errors in ((self.measured_seconds, self.time_errors), (self.measured_joules, self.energy_errors))
        ]
        rms = [100 * float(np.sqrt(np.mean(errors**2))) for errors in (self.time_errors, self.energy_errors)]
        return Fit(name, self.time_errors.size, r2[0], r2[1], rms[0], rms[1], 100 * held_back[0], 100 * held_back[1], is_used)


def _explained(measured: Array, model: Array) -> float:
    spread = float(np.sum((measured - measured.mean()) ** 2))
    return 1.0 if spread == 0 else 1 - float(np.sum((measured - model) ** 2)) / spread


def _clocks(table: PlanTable, columns: NDArray[np.intp]) -> tuple[Array, Array]:
    """Clocks over the highest of the table; a memory that is not locked counts as 1. Shapes (columns,)."""
    core = np.array([table.pairs[i].sm_mhz or 0 for i in columns], dtype=float)
    memory = np.array([table.pairs[i].mem_mhz or 0 for i in columns], dtype=float)
    return core / core.max(), memory / memory.max() if memory.max() > 0 else np.ones_like(core)


def _fitted(table: PlanTable, row: int, columns: NDArray[np.intp], knee: float, rise: float) -> _RowFit | None:
    core, memory = _clocks(table, columns)
    seconds, joules = table.seconds[row, columns], table.joules[row, columns]
    is_known = ~np.isnan(seconds)
    if np.count_nonzero(is_known) < _LEAST:
        return None
    time_terms = _time_terms(core, memory, few=int(np.count_nonzero(is_known)) < _FEW)
    time = time_terms @ _factors(time_terms[is_known], seconds[is_known])
    energy_terms = _energy_terms(core, memory, time, knee, rise)
    energy = energy_terms @ _factors(energy_terms[is_known], joules[is_known])
    return _RowFit(
        time,
        energy,
        time[is_known] / seconds[is_known] - 1,
        energy[is_known] / joules[is_known] - 1,
        seconds[is_known],
        joules[is_known],
    )


def _time_terms(core: Array, memory: Array, *, few: bool) -> Array:
    """Shape (columns, terms)."""
    terms = [np.ones_like(core), 1 / core]
    if np.ptp(memory) > 0:
        terms.append(1 / memory)
        if not few:
            terms += [np.maximum(1 / core, balance / memory) for balance in _BALANCES]
    elif not few:
        terms += [np.maximum(1 / core, balance) for balance in _BALANCES if balance > 1]
    return np.stack(terms, axis=1)


def _energy_terms(core: Array, memory: Array, time: Array, knee: float, rise: float) -> Array:
    """Shape (columns, terms)."""
    volts = 1 + rise * np.maximum(core - knee, 0) / max(1 - knee, 1e-9)
    square = volts**2
    terms = [time, square * time, core * square * time, square * float(time.mean())]
    if np.ptp(memory) > 0:
        terms.append(memory * time)
    return np.stack(terms, axis=1)


def _factors(terms: Array, values: Array) -> Array:
    """Non-negative factors of the terms by least squares on relative errors. Shape (terms,)."""
    weighed = terms / values[:, None]
    scale = np.linalg.norm(weighed, axis=0)
    weighed = weighed / scale
    normal = weighed.T @ weighed + 1e-9 * np.eye(scale.size)  # terms can be all but the same
    return np.asarray(nnls(normal, weighed.sum(axis=0))[0] / scale)


def _voltage(table: PlanTable, families: list[NDArray[np.intp]]) -> tuple[float, float]:
    """Knee and rise of the voltage with which the kernels of most energy fit best; it is the board's, not the kernel's."""
    rows = np.argsort(-table.counts * table.joules[:, table.unlocked])[:_SCANNED]
    best, least = (_KNEES[2], _RISES[1]), np.inf
    for knee in _KNEES:
        for rise in _RISES:
            fits = [_fitted(table, int(row), columns, knee, rise) for row in rows for columns in families]
            squares = sum(float(np.mean(fit.energy_errors**2)) for fit in fits if fit is not None)
            if squares < least * (1 - 1e-9):
                best, least = (knee, rise), squares
    return best


def _weighed(measured: Array, sd: Array, model: Array, error: float, steps: Array) -> tuple[Array, Array]:
    """The model where nothing was measured, else both by their variances, with the error of each; NaN out of the model's reach. Shapes (columns,).

    Without known errors of the cells the model stands alone. A filled cell's error grows with the root of the steps to the next measured one.
    """
    is_known, is_reached = steps == 0, np.isfinite(steps)
    own = np.where(is_reached, max(error, _LEAST_ERROR) * np.sqrt(np.maximum(steps, 1.0)) * model, np.nan)
    if np.isnan(sd).all():
        return np.where(is_reached, model, measured), own
    noise = np.where(np.isnan(sd), float(np.nanmean(sd / measured)) * np.nan_to_num(measured), sd)
    left = np.nan_to_num(measured - model)[is_known] / model[is_known]
    misfit = max(float(np.mean(left**2) - np.mean((noise[is_known] / model[is_known]) ** 2)), 1e-8) * model**2
    weight = np.where(is_known, misfit / (misfit + noise**2), 0.0)
    mixed = weight * np.nan_to_num(measured) + (1 - weight) * model
    mixed_sd = np.where(is_known, noise * own / np.sqrt(own**2 + noise**2), own)
    return np.where(is_reached, mixed, np.nan), np.where(is_reached, mixed_sd, np.nan)
