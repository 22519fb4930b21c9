"""A year out of rows of jobs and readings, at a constant PUE and intensity."""

import pytest

pytest.importorskip("duckdb", reason="the audit's packages are not installed")
pytest.importorskip("ibis", reason="the audit's packages are not installed")

from carbonreport.audit.database import connect
from carbonreport.audit.engine import Engine
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.window import window_of

FAR_S = 4e9  # after every year of the tests


@pytest.fixture
def con():
    return connect(threads=1)


@pytest.fixture
def audited(con, tmp_path):
    """The year of jobs and readings at a constant PUE and intensity."""

    def run(jobs, readings, *, year=2026, time_zone="UTC", now_s=FAR_S, watts=None, pue=1.5, grams_per_kwh=400.0):
        import numpy as np

        ledger = Ledger(str(tmp_path / "ledger"))
        ledger.add(jobs, "jobs", con)
        ledger.add(readings, "meters", con)
        window = window_of(year, time_zone, now_s)
        ledger.open(con, from_us=window.from_us, until_us=window.until_us)
        engine = Engine(con, window)
        engine.reconcile(lambda board: watts)
        edges_s = np.array([window.from_us / 1e6, window.until_us / 1e6])
        engine.price(edges_s, np.array([pue]), np.array([grams_per_kwh]))
        return engine.year(lambda person, is_pseudonym: person)

    return run
