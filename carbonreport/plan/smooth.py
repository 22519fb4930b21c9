"""A smooth model of each kernel's time and energy over the clocks: it fills cells that nobody measured and takes noise out of the others. Pure.

Time is a sum of terms with factors above 0: constant, 1 / f_core, 1 / f_memory, and the larger of the two for kernels that wait for one of them.
Energy is a sum of power terms over that time, and of work: time, f V^2 time, V^2 work, f_memory time; V is level below a knee and rises above it.
Factors are found by non-negative least squares on relative errors. Unlocked clocks are the governor's business and are never interpolated.
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
    """

    name: str
    cells: int
    time_r2: float
    energy_r2: float
    time_rms_percent: float
    energy_rms_percent: float


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
    """The table with each kernel's model in the cells of locked cores.

    A measured cell is weighed with its model by their errors; without known errors of the cells the model stands alone where it fits.
    A kernel with under four cells of a kind is left as it is.
    """
    families = _families(table)
    knee, rise = _voltage(table, families)
    seconds, joules = table.seconds.copy(), table.joules.copy()
    fits: list[Fit] = []
    best_family = max(families, key=len, default=np.empty(0, dtype=np.intp))
    for row, name in enumerate(table.names):
        for columns in families:
            fit = _fitted(table, row, columns, knee, rise)
            if fit is None:
                continue
            for cells, model, sd in ((seconds, fit.seconds, table.seconds_sd), (joules, fit.joules, table.joules_sd)):
                cells[row, columns] = _weighed(cells[row, columns], model, None if sd is None else sd[row, columns])
            if columns is best_family:
                fits.append(fit.quality(name))
    filled = int(np.count_nonzero(np.isnan(table.seconds) & ~np.isnan(seconds)))
    return Smoothed(replace(table, seconds=seconds, joules=joules), tuple(fits), filled, knee, rise)


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

    def quality(self, name: str) -> Fit:
        r2 = [
            _explained(measured, measured * (1 + errors))
            for measured, errors in ((self.measured_seconds, self.time_errors), (self.measured_joules, self.energy_errors))
        ]
        rms = [100 * float(np.sqrt(np.mean(errors**2))) for errors in (self.time_errors, self.energy_errors)]
        return Fit(name, self.time_errors.size, r2[0], r2[1], rms[0], rms[1])


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


def _weighed(measured: Array, model: Array, sd: Array | None) -> Array:
    """The model where nothing was measured; else both by their variances."""
    is_known = ~np.isnan(measured)
    if sd is None or np.isnan(sd).all():
        return model
    errors = measured[is_known] - model[is_known]
    noise = np.where(np.isnan(sd), np.nanmean(sd), sd)
    own = max(float(np.mean((errors / model[is_known]) ** 2) - np.mean((noise[is_known] / model[is_known]) ** 2)), 1e-8)
    variance = own * model**2
    weight = np.where(is_known, variance / (variance + noise**2), 0.0)
    return np.asarray(weight * np.nan_to_num(measured) + (1 - weight) * model)
