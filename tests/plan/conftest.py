"""Tables for plans: the published one, and made-up ones whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from carbonreport.plan.table import UNLOCKED, ClockPair, PlanTable
from carbonreport.plan_files.table_csv import read_table

DATA = Path(__file__).resolve().parents[1] / "data" / "dvfs"


@pytest.fixture(scope="session")
def kernels():
    """46 kernels of GPT-3 XL, unlocked and at their own best clocks (arXiv 2601.08539)."""
    return read_table(DATA / "gpt3xl_kernels.csv").table


@pytest.fixture(scope="session")
def passes():
    """Forward and backward pass under 66 pairs of clocks."""
    return read_table(DATA / "gpt3xl_passes.csv").table


@pytest.fixture(scope="session")
def both_file(tmp_path_factory):
    """Both in one file: kernels, and passes measured as a whole."""
    path = tmp_path_factory.mktemp("dvfs") / "both.csv"
    rows = [line for line in (DATA / "gpt3xl_passes.csv").read_text().splitlines() if line.startswith("*")]
    path.write_text((DATA / "gpt3xl_kernels.csv").read_text() + "\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="session")
def both(both_file):
    return read_table(both_file).table


@pytest.fixture(scope="session")
def layer():
    """Makes a transformer layer on a made-up board of roofline type: kernels that wait for their cores, their memory, or both.

    Time is a sharp mix of both roofs, power grows with f V^2; with relative noise where asked for.
    """

    def make(kernels=20, *, cores=8, layers=1, noise=0.0, seed=0, repeats_known=True, memories=(9501, 5001)):
        work = np.random.default_rng(7)
        core_s = work.uniform(0.2e-3, 6e-3, kernels)
        memory_s = core_s * 10 ** work.uniform(-1, 1, kernels)
        sm = np.linspace(600, 1950, cores).round().astype(int)
        pairs = [UNLOCKED, *(ClockPair(int(f), m) for m in memories for f in sm)]
        f = np.array([1.0, *(s / 1950 for _ in memories for s in sm)])
        m = np.array([1.0, *(mem / 9501 for mem in memories for _ in sm)])
        volts = np.where(f < 0.65, 1.0, 1.0 + 0.5 * (f - 0.65) / 0.35) ** 2
        tc, tm = core_s[:, None] / f, memory_s[:, None] / m
        seconds = (tc**4 + tm**4) ** 0.25 + 3e-6
        watts = 60 + 40 * m + 60 * f * volts + tc / seconds * 200 * f * volts + tm / seconds * m * 70
        joules = watts * seconds
        random = np.random.default_rng(seed)
        noisy_s = seconds * random.normal(1, noise / 2, seconds.shape) if noise else seconds
        noisy_j = joules * random.normal(1, noise, joules.shape) if noise else joules
        sds = (seconds * noise / 2, joules * noise) if noise and repeats_known else (None, None)
        order = np.tile(np.arange(kernels), layers)
        halves = tuple("forward" if k < kernels // 3 else "backward" for k in order) if layers == 1 else ()
        return PlanTable(tuple(f"k{i}" for i in range(kernels)), order, tuple(pairs), noisy_s, noisy_j, halves, *sds)

    return make
