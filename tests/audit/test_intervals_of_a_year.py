"""How certain a year's energy is: what stands on meters has their error at least, and few jobs tell little of the others."""

import pytest
from pytest import approx

from carbonreport.audit.ledger import Ledger
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.place import PlaceOptions

NOON = "2026-03-02T12:00Z"
LATER = "2026-05-04T12:00Z"
WATT_HOUR_MJ = 3_600_000
COUNTER = (0.99, 1.08)  # true energy over a counter's, 90 %


@pytest.fixture
def interval(con, tmp_path):
    """Lower and upper end of the year's IT energy over its value."""

    def of(jobs, readings):
        ledger = Ledger(str(tmp_path / "ledger"))
        ledger.add(jobs, "jobs", con)
        ledger.add(readings, "meters", con)
        found = audit(Asked(2026, ledger.url, people="none"), PlaceOptions(zone="DE", pue="1"), environ={}, con=con).priced.it_joules
        return found.low / found.value, found.high / found.value

    return of


def metered(count, watts):
    """Jobs of 20 hours in turn, each at its own power."""
    jobs = [a_job(f"m{i}", us(NOON) + i * 20 * HOUR_US, 20) for i in range(count)]
    readings = [
        a_reading("GPU-a", us(NOON) + (i * 20 + h) * HOUR_US, 1, round(watts(i) * WATT_HOUR_MJ)) for i in range(count) for h in range(20)
    ]
    return jobs, readings


def unmetered(hours):
    return a_job("u", LATER, hours, hosts="n9", gpu_model="NVIDIA H200")


def test_what_meters_say_alone_has_their_error(interval):
    assert interval(*metered(3, lambda i: 400)) == (approx(COUNTER[0], abs=1e-3), approx(COUNTER[1], abs=1e-3))


def test_an_estimate_from_meters_is_no_more_certain_than_they_are(interval):
    jobs, readings = metered(8, lambda i: 400)

    low, high = interval([*jobs, unmetered(100_000 / 24)], readings)

    assert low < COUNTER[0] + 1e-3 and high > COUNTER[1] - 0.01


def test_jobs_that_differ_widen_what_stands_for_the_others(interval):
    jobs, readings = metered(8, lambda i: 250 + 50 * i)

    low, high = interval([*jobs, unmetered(4000)], readings)

    assert low < 0.7 and high > 1.3


def test_few_jobs_tell_as_little_of_the_others_as_a_rated_power_does(interval):
    jobs, readings = metered(1, lambda i: 400)

    low, high = interval([*jobs, unmetered(4000)], readings)

    assert low < 0.75 and high > 1.5
