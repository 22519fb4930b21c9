"""The search against an exact solver (HiGHS in scipy) that proves its optimum. Skipped where scipy is not installed; it is no dependency."""

import numpy as np
import pytest

from carbonreport.plan.prices import Search, by_prices
from carbonreport.plan.problem import Problem
from carbonreport.plan.repair import repaired
from carbonreport.plan.switching import Latency, Switching

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")
LIMIT_S = 6.0


def highs(problem, budget_s):
    """Energy of the best plan that HiGHS found, and what it proved. Changes: z[i] >= x[i, c] - x[i - 1, c], round the cycle."""
    n, k = problem.n, problem.near_s.size
    latency = float(problem.near_s[0])
    each_s, each_j = problem.seconds[problem.rows], problem.joules[problem.rows]
    cost = np.concatenate([each_j.ravel(), np.full(n, latency * problem.stall_watts)])
    one = sparse.hstack([sparse.kron(sparse.eye(n), np.ones((1, k))), sparse.csr_matrix((n, n))])
    before = sparse.kron(sparse.csr_matrix(np.roll(np.eye(n), -1, axis=1).T), sparse.eye(k))
    change = sparse.hstack([sparse.eye(n * k) - before, -sparse.kron(sparse.eye(n), np.ones((k, 1)))])
    time = sparse.csr_matrix(np.concatenate([each_s.ravel(), np.full(n, latency)])[None] / budget_s)
    done = optimize.milp(
        cost,
        constraints=[
            optimize.LinearConstraint(one.tocsr(), 1, 1),
            optimize.LinearConstraint(change.tocsr(), -np.inf, 0),
            optimize.LinearConstraint(time, -np.inf, 1),
        ],
        integrality=np.concatenate([np.ones(n * k), np.zeros(n)]),
        bounds=optimize.Bounds(0, 1),
        options={"time_limit": LIMIT_S, "mip_rel_gap": 1e-7},
    )
    return (None if done.x is None else float(done.fun)), done.mip_dual_bound


def searched(problem, budget_s):
    search = Search(problem, budget_s)
    by_prices(search)
    repaired(search)
    return search


@pytest.mark.parametrize("latency_s", [0.0, 1e-4, 1e-3, 5e-3])
def test_the_search_is_near_the_proved_optimum(layer, latency_s):
    over = []
    for kernels, cores, slowdown in ((12, 4, 0.02), (14, 5, 0.05)):
        table = layer(kernels, cores=cores)
        problem = Problem.of(table, Switching(Latency.exactly(latency_s), 100.0))
        budget_s = (1 + slowdown) * table.baseline_seconds
        least, proved = highs(problem, budget_s)
        search = searched(problem, budget_s)
        assert least is not None
        assert search.bound_joules <= least * (1 + 1e-6), "a bound is never above the optimum"
        assert search.best_joules >= proved * (1 - 1e-6)
        over.append(search.best_joules / least - 1)

    assert 100 * np.mean(over) <= 0.3
