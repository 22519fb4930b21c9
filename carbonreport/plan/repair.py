"""Closing what the search by prices leaves: plans are spliced, and stretches take other clocks in the time that is left. Pure."""

import numpy as np

from carbonreport.plan.prices import Search
from carbonreport.plan.table import Array, IntArray

_MOST_CUTS, _MOST_MOVES = 200, 60
_MOST_CELLS = 1_500_000  # stretches times choices, of all moves of one start
_MOST_INTERVALS = 300_000  # intervals times choices of a problem whose intervals are all looked at
_CLOSE = 1e-4  # of the energy: closer nobody looks
_TINY = 1e-12
Moves = tuple[IntArray, IntArray, Array, Array]
"""Begins and lengths of stretches (m,), and what each adds in time and energy with each choice. [s, J] Shapes (m, choices)."""


def repaired(search: Search) -> None:
    """Offer the search every plan that splicing and recolouring finds."""
    slow, fast = search.slow, search.fast
    if slow is not None and fast is not None:
        for first, then in ((slow, fast), (fast, slow)):
            _spliced(search, first, then)
    starts = [plan for plan in (search.best, slow, fast) if plan is not None]
    for start in starts:
        if search.gap > _CLOSE:
            _recoloured(search, start)


def _spliced(search: Search, first: IntArray, then: IntArray) -> None:
    """Begin with one plan and go on with the other, cut where that is in time and needs least."""
    problem = search.problem
    costs = [_running(search, plan) for plan in (first, then)]
    seconds = costs[0][0] + costs[1][0][-1] - costs[1][0]
    joules = costs[0][1] + costs[1][1][-1] - costs[1][1]
    order = np.argsort(np.where(seconds <= search.limit_s, joules, np.inf), kind="stable")[:_MOST_CUTS]
    for cut in order:
        if not np.isfinite(seconds[cut]) or seconds[cut] > search.limit_s or joules[cut] > search.best_joules:
            break
        search.offer(np.concatenate([first[:cut], then[cut:]]))
        if problem.is_free:
            break


def _running(search: Search, plan: IntArray) -> tuple[Array, Array]:
    """Time and energy before each cut, its own changes included. [s, J] Shapes (n + 1,)."""
    problem = search.problem
    waits = problem.switch_s(np.roll(plan, 1), plan)
    seconds = problem.seconds[problem.rows, plan] + waits
    joules = problem.joules[problem.rows, plan] + waits * problem.stall_watts
    return np.concatenate([[0.0], np.cumsum(seconds)]), np.concatenate([[0.0], np.cumsum(joules)])


def _recoloured(search: Search, start: IntArray) -> None:
    """Give one stretch of a plan after another the clocks that help most: into the budget first, then to less energy within it."""
    problem, plan = search.problem, start.copy()
    seconds, joules = search.offer(plan)
    k, cells = problem.near_s.size, 0
    moves = _intervals if problem.n**2 * k <= _MOST_INTERVALS else _stretches
    for _ in range(_MOST_MOVES):
        if search.gap < _CLOSE or cells > _MOST_CELLS * (10 if moves is _intervals else 1):
            return
        begins, lengths, more_s, more_j = moves(search, plan)
        cells += more_s.size
        if seconds > search.limit_s:
            price = np.where(more_s < -_TINY, more_j / np.maximum(-more_s, _TINY), np.inf)
        else:
            price = np.where((more_s <= search.limit_s - seconds) & (more_j < -_TINY * joules), more_j, np.inf)
        which, choice = np.unravel_index(int(price.argmin()), price.shape)
        if not np.isfinite(price[which, choice]):
            return
        plan[np.arange(begins[which], begins[which] + lengths[which]) % problem.n] = choice
        seconds, joules = search.offer(plan)


def _intervals(search: Search, plan: IntArray) -> Moves:
    """Every interval of a small problem with every choice: begins, lengths, and the time and energy that each adds."""
    problem, n, k = search.problem, search.problem.n, search.problem.near_s.size
    twice = np.tile(np.arange(n), 2)
    waits = problem.switch_s(np.roll(plan, 1), plan)
    begins, lengths = (grid.ravel() for grid in np.meshgrid(np.arange(n), np.arange(1, n), indexing="ij"))
    ends = begins + lengths
    choices = np.arange(k)
    before, after = plan[begins - 1], plan[ends % n]
    new_waits = _switches(search, before[:, None], choices[None]) + _switches(search, choices[None], after[:, None])
    more_waits = new_waits - _between(waits[twice], begins, ends + 1)[:, None]
    rows = problem.rows[twice]
    more = []
    for cells in (problem.seconds, problem.joules):
        more.append(_between(cells[rows], begins, ends) - _between(cells[rows, plan[twice]], begins, ends)[:, None])
    return begins, lengths, more[0] + more_waits, more[1] + more_waits * problem.stall_watts


def _between(values: Array, begins: IntArray, ends: IntArray) -> Array:
    """Sums of values over intervals."""
    running = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    return np.asarray(running[ends] - running[begins])


def _stretches(search: Search, plan: IntArray) -> Moves:
    """Each stretch of one choice with every choice: begins, lengths, and the time and energy that each adds, changes at its ends included."""
    problem = search.problem
    begins = np.flatnonzero(plan != np.roll(plan, 1))
    if begins.size == 0:
        begins = np.array([0])
    turned = np.roll(np.arange(problem.n), -int(begins[0]))
    rows, held = problem.rows[turned], plan[turned]
    starts = begins - begins[0]
    label = np.repeat(np.arange(begins.size), np.diff(np.append(starts, problem.n)))
    kinds = len(problem.seconds)
    counts = np.bincount(label * kinds + rows, minlength=begins.size * kinds).reshape(begins.size, kinds).astype(float)
    every_s, every_j = counts @ problem.seconds, counts @ problem.joules
    mine = held[starts]
    lines = np.arange(begins.size)
    choices = np.arange(problem.near_s.size)
    before, after = np.roll(mine, 1), np.roll(mine, -1)
    if begins.size == 1:
        waits = np.zeros((1, choices.size))
    else:
        waits = _switches(search, before[:, None], choices[None]) + _switches(search, choices[None], after[:, None])
    more_s = every_s + waits - (every_s[lines, mine] + waits[lines, mine])[:, None]
    more_j = every_j + waits * problem.stall_watts - (every_j[lines, mine] + waits[lines, mine] * problem.stall_watts)[:, None]
    return begins, np.diff(np.append(starts, problem.n)), more_s, more_j


def _switches(search: Search, before: IntArray, after: IntArray) -> Array:
    one, other = np.broadcast_arrays(before, after)
    return search.problem.switch_s(np.asarray(one, dtype=np.intp), np.asarray(other, dtype=np.intp))
