"""Energy of spans that are shorter than a power sensor's response, from their repeats, or a refusal by name. Pure.

Non-negative least squares of power on occupancy as the sensor sees it; one gain makes the sum agree with the device's
curve. The errors are those of blocks (autocorrelation counts), of the sensor's response, and a floor for edges and for
power that is not constant inside a span. Constants were set on recordings of an H200 (docs/method.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from carbonreport.combine.excerpts import FEW, LONGEST_S, SHORTEST_S
from carbonreport.combine.single import stretches_alone
from carbonreport.combine.solve import Array, Solution, dense, nnls, solved
from carbonreport.combine.tally import BLOCK_S, CUT_FROM_S
from carbonreport.model.attribution import Attribution, How, Told
from carbonreport.model.sums import PIECES, REST, NormalEquations, SpanSums, aliasing_words

FEWEST_BLOCKS = 8
WORST_SD_SHARE = 0.5
WORST_CONDITION = 30.0
SHORTEST_UNCALIBRATED_S = 0.016
SHORTEST_LIMITED_S = 0.004
MOST_LIMITED_SHARE = 0.5
LACK_OF_FIT_SDS = 3.0
WORST_MOVE_SHARE = 0.15  # of its power; a smaller move widens the interval instead
SD_OF_90_PERCENT = 1.645
LONGEST_UNCUT_S = 0.8 * CUT_FROM_S  # with some jitter none of the stretches is cut
EDGE_FLOOR_S = 0.0002
LEAST_CONTRAST_WATTS = 100.0
TINY_SHARE = 0.01
SLIVER_S = 0.002  # longer stretches have a power of their own, however few
ALIKE = 0.9999  # cosine of two columns that always come together
UNSEEN = 1e-6


def attribute(sums: SpanSums, curve_watts: Mapping[str, float]) -> Attribution:
    """Power of every path of one device.

    Args:
        sums: What the run's samples say.
        curve_watts: Mean power of each path by the difference of the device's curve. [W]
    """
    solver = _Solver(sums, curve_watts)
    solver.run()
    return solver.result()


@dataclass(slots=True)
class _Group:
    """Paths whose energy is told as one. The first one gives its name to all.

    Attributes:
        columns: Their columns.
        because: Why the others cannot be told apart, by column.
    """

    columns: list[int]
    because: dict[int, str]


class _Solver:
    def __init__(self, sums: SpanSums, curve_watts: Mapping[str, float]) -> None:
        self.sums, self.curve_watts = sums, curve_watts
        self.aliased = aliasing(sums)
        self.mean_watts = sums.joules / sums.seconds if sums.seconds > 0 else 0.0
        self.alone = stretches_alone(sums, self.mean_watts)
        self.used = [c for c, times in enumerate(sums.times) if times.seconds > 0]
        self.seconds = np.array([times.seconds for times in sums.times])
        self.watts = np.zeros(len(sums.paths))
        self.covariance = np.zeros((len(sums.paths), len(sums.paths)))
        self.solution: Solution | None = None
        self.shares: list[list[int]] = []
        self.groups = [_Group([c], {}) for c in self.used]

    def run(self) -> None:
        """Solve, then tell together what cannot be told apart."""
        if sum(block.count > 0 for block in self.sums.blocks) < FEWEST_BLOCKS:
            self._tell_short_ones_together()
            return
        self._solve()
        refused = self._refused()
        while refused:
            self._tell_together(*refused)
            refused = self._refused_group()
        self._widen_by_lack_of_fit()

    # Solving

    def _solve(self) -> None:
        self.shares = self._columns_of_one_power()
        self.solution = solution = solved(self.sums.blocks, self.shares)
        covariance = solution.covariance + np.diag(self._floor_watts(solution) ** 2)
        for move in self._response_moves(solution):
            covariance += np.outer(move, move)
        for g, columns in enumerate(self.shares):
            self.watts[columns] = solution.watts[g]
            for h, others in enumerate(self.shares):
                self.covariance[np.ix_(columns, others)] = covariance[g, h]

    def _columns_of_one_power(self) -> list[list[int]]:
        """A column each, but slivers between spans share the power of what they lie beside, and twins share theirs."""
        total = NormalEquations()
        for block in self.sums.blocks:
            total.add(block.sums)
        normal = dense(total, [[c] for c in self.used])[0]
        lengths = np.sqrt(np.diag(normal))
        overlap = normal / np.outer(lengths, lengths).clip(1e-12)
        shares = {c: [c] for c in self.used}
        for n, column in enumerate(self.used):
            overlap[n, n] = -1.0
            i = int(overlap[n].argmax())
            neighbour = next((c for c, columns in shares.items() if self.used[i] in columns and c != column), None)
            is_alike = self._is_sliver(column) or overlap[n, i] > ALIKE
            if neighbour is not None and (is_alike or lengths[n] < UNSEEN):
                shares[neighbour] += shares.pop(column)
        return list(shares.values())

    def _is_sliver(self, column: int) -> bool:
        path = self.sums.paths[column]
        is_between = path == REST or any(p.startswith(path + "/") for p in self.sums.paths)
        is_short = self.sums.times[column].stretch_s < SLIVER_S
        return is_between and is_short and self.seconds[column] < TINY_SHARE * self.sums.seconds

    def _response_moves(self, solution: Solution) -> list[Array]:
        """How far power moves when the sensor is one deviation other than believed. [W] Shapes (k,)."""
        sensor = self.sums.sensor
        moves = []
        for derivative, sd_s in ((self.sums.by_width, sensor.width_sd_s), (self.sums.by_delay, sensor.delay_sd_s)):
            normal, right = dense(derivative, self.shares)
            moves.append(solution.inverse @ (right - normal @ solution.watts) * sd_s)
        return moves

    def _floor_watts(self, solution: Solution) -> Array:
        """Edges are not exact and power is not constant inside a span. [W] Shape (k,)."""
        lengths = np.array([max(self._stretch_s(columns), 1e-6) for columns in self.shares])
        floor: Array = EDGE_FLOOR_S * np.maximum(np.abs(solution.watts - self.mean_watts), LEAST_CONTRAST_WATTS) / lengths
        return floor

    def _stretch_s(self, columns: Sequence[int]) -> float:
        return max(self.sums.times[c].stretch_s for c in columns)

    # Telling together

    def _refused(self) -> tuple[_Group, str] | None:
        """The path that is told apart worst, and why; None where all are told apart."""
        assert self.solution is not None
        moved = self._moved_by_pieces()
        candidates = []
        for group in self.groups:
            column = group.columns[0]
            if len(group.columns) == 1 and self._is_judged(column):
                because = self._refusal(column, moved[column])
                if because:
                    candidates.append((self._sd_share(group), group, because))
        return max(candidates, key=lambda c: c[0])[1:] if candidates else None

    def _refused_group(self) -> tuple[_Group, str] | None:
        """As before, also for paths that are already told as one."""
        for group in self.groups:
            if len(group.columns) > 1 and self._is_judged(group.columns[0]) and self._sd_share(group) > WORST_SD_SHARE:
                return group, self._too_uncertain(group)
        return self._refused()

    def _is_judged(self, column: int) -> bool:
        return self.sums.paths[column] != REST and not self._is_sliver(column) and self._how(column) == "repeats"

    def _tell_together(self, group: _Group, because: str) -> None:
        """Add a group to the one whose power is most easily mistaken for its own."""
        others = [g for g in self.groups if g is not group]
        deviations = np.sqrt(np.diag(self.covariance)).clip(1e-9)
        correlation = self.covariance / np.outer(deviations, deviations)
        neighbour = min(others, key=lambda g: float(correlation[np.ix_(group.columns, g.columns)].min()))
        neighbour.columns += group.columns
        neighbour.because |= group.because | {group.columns[0]: because}
        self.groups = others

    def _sd_share(self, group: _Group) -> float:
        return self._sd_watts(group) / max(self._watts(group), 1e-9)

    def _watts(self, group: _Group) -> float:
        return float(self.watts[group.columns] @ self.seconds[group.columns] / self.seconds[group.columns].sum())

    def _sd_watts(self, group: _Group) -> float:
        columns, seconds = group.columns, self.seconds[group.columns]
        variance = float(seconds @ self.covariance[np.ix_(columns, columns)] @ seconds)
        return math.sqrt(max(0.0, variance)) / float(seconds.sum())

    def _how(self, column: int) -> How:
        if self.sums.times[column].stretch_s >= LONGEST_S:
            return "curve"
        return "single" if column in self.alone else "repeats"

    def _refusal(self, column: int, moved_watts: float) -> str:
        sums, times, group = self.sums, self.sums.times[column], _Group([column], {})
        stretch_s, length = times.stretch_s, f"{times.stretch_s * 1000:.3g} ms"
        limited = limited_share(sums)
        if times.stretches < FEW and stretch_s < SHORTEST_S:
            return f"{times.stretches} repeats of {length} are too few"
        if not sums.sensor.is_calibrated and stretch_s < SHORTEST_UNCALIBRATED_S:
            return f"{length} is short for a sensor that was not calibrated on this kind of board"
        if self.aliased and stretch_s < SHORTEST_S:
            return self.aliased
        if limited is not None and limited > MOST_LIMITED_SHARE and stretch_s < SHORTEST_LIMITED_S:
            return f"{length} is short for a board that was at its power limit for {limited:.0%} of the time"
        if self._sd_share(group) > WORST_SD_SHARE:
            return self._too_uncertain(group)
        if self._lacks_fit(column, moved_watts) and abs(moved_watts) > WORST_MOVE_SHARE * self.watts[column]:
            return f"its power moves by {abs(moved_watts):.0f} W when long spans are cut into pieces: power is not constant inside them"
        if self._condition_of(column) > WORST_CONDITION:
            return "it comes together with others too often"
        return ""

    def _lacks_fit(self, column: int, moved_watts: float) -> bool:
        is_uncut = self.sums.times[column].stretch_s < LONGEST_UNCUT_S
        return is_uncut and abs(moved_watts) > LACK_OF_FIT_SDS * self._sd_watts(_Group([column], {}))

    def _widen_by_lack_of_fit(self) -> None:
        """A power that moves a little when long spans are cut is known no better than that move."""
        moved = self._moved_by_pieces()
        for column in self.used:
            if self._is_judged(column) and self._lacks_fit(column, moved[column]):
                self.covariance[column, column] += (moved[column] / SD_OF_90_PERCENT) ** 2

    def _too_uncertain(self, group: _Group) -> str:
        return f"its power would be {self._watts(group):.0f} W with a standard deviation of {self._sd_watts(group):.0f} W"

    def _condition_of(self, column: int) -> float:
        """The condition of all columns, held against the one that is least told apart."""
        assert self.solution is not None
        if self.solution.condition <= WORST_CONDITION:
            return 1.0
        overlap = self.solution.overlap - np.eye(len(self.shares))
        own = next(g for g, columns in enumerate(self.shares) if column in columns)
        return self.solution.condition if overlap[own].max() == overlap.max() else 1.0

    def _moved_by_pieces(self) -> Array:
        """How far the power of each column moves when long stretches are cut at their ends. [W] Shape (columns,)."""
        pieces: list[list[int]] = []
        bodies = []
        for columns in self.shares:
            bodies.append(len(pieces))
            pieces += [[c * PIECES + piece for c in columns] for piece in range(PIECES)]
        normal, right = dense(self.sums.pieces, pieces)
        seen = np.flatnonzero(np.diag(normal) > UNSEEN)
        watts = np.zeros(len(pieces))
        try:
            watts[seen] = nnls(normal[np.ix_(seen, seen)], right[seen])[0]
        except np.linalg.LinAlgError:
            return np.zeros(len(self.sums.paths))
        moved = np.zeros(len(self.sums.paths))
        for body, columns in zip(bodies, self.shares, strict=True):
            moved[columns] = watts[body] - self.watts[columns]
        return moved

    def _tell_short_ones_together(self) -> None:
        """A run that is too short for repeats: what neither its stretches nor the curve tell alone, the curve tells as one."""
        because = f"{self.sums.seconds:.0f} s with spans are too few for repeats; {FEWEST_BLOCKS * BLOCK_S:.0f} s are needed"
        short = [c for c in self.used if self._is_judged(c)]
        if len(short) > 1:
            short.sort(key=lambda c: -self.seconds[c])
            together = _Group(short, dict.fromkeys(short[1:], because))
            self.groups = [g for g in self.groups if g.columns[0] not in short] + [together]

    # Result

    def result(self) -> Attribution:
        """Every path's power, and in whose energy it lies where it is not told apart."""
        model_joules = float(self.watts @ self.seconds)
        free_gain = self.sums.joules * self.sums.gain / model_joules if model_joules > 0 else 1.0
        watts, covariance = self.watts * free_gain, self.covariance * free_gain**2
        for column in self.used:
            how = self._how_known(column)
            if how == "repeats":
                continue
            covariance[column, :] = covariance[:, column] = 0.0
            if how == "single":
                watts[column], sd_watts = (value * self.sums.gain for value in self.alone[column])
            else:
                watts[column], sd_watts = self._curve_watts(column), self._curve_sd_watts(column)
            covariance[column, column] = sd_watts**2
        paths = self.sums.paths
        return Attribution(
            device=self.sums.device,
            paths=paths,
            watts=watts,
            covariance=covariance,
            seconds=self.seconds,
            how={paths[c]: self._how_known(c) for c in self.used},
            told={paths[c]: Told(paths[group.columns[0]], because) for group in self.groups for c, because in group.because.items()},
            residual_watts=0.0 if self.solution is None else self.solution.residual_watts,
            free_gain=free_gain,
            limited_share=limited_share(self.sums),
            aliased=self.aliased,
        )

    def _how_known(self, column: int) -> How:
        how = self._how(column)
        return "curve" if how == "repeats" and self.solution is None else how

    def _curve_watts(self, column: int) -> float:
        return self.curve_watts.get(self.sums.paths[column], self.mean_watts * self.sums.gain)

    def _curve_sd_watts(self, column: int) -> float:
        """A curve is blurred at both ends of a stretch by the sensor's width. [W]"""
        times, sensor = self.sums.times[column], self.sums.sensor
        return LEAST_CONTRAST_WATTS * sensor.width_s / max(times.stretch_s, 1e-6) / math.sqrt(max(times.stretches, 1))


def limited_share(sums: SpanSums) -> float | None:
    """Share of the time at the power limit."""
    if sums.limited_seconds is None or sums.seconds <= 0:
        return None
    return min(1.0, sums.limited_seconds / sums.seconds)


def aliasing(sums: SpanSums) -> str:
    """Why samples always meet the same part of a step, or ""."""
    words = (aliasing_words(path, times.rhythm, sums.sensor.period_s) for path, times in zip(sums.paths, sums.times, strict=True))
    return next((w for w in words if w), "")
