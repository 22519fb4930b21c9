"""The engine against a plain loop: every hour at its own PUE and intensity, in local months, over the changes of the clocks."""

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from pytest import approx

from carbonreport.audit.engine import Engine
from carbonreport.audit.ledger import Ledger
from carbonreport.audit.window import window_of
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US, US_PER_S


@pytest.fixture
def engine(con, tmp_path):
    def run(jobs, readings, time_zone="UTC", pue=None, grams=None):
        ledger = Ledger(str(tmp_path / "ledger"))
        ledger.add(jobs, "jobs", con)
        ledger.add(readings, "meters", con)
        window = window_of(2026, time_zone, 4e9)
        ledger.open(con)
        found = Engine(con, window)
        found.reconcile(lambda board: 350.0)
        if pue is not None:
            edges_s = np.arange(window.from_us // US_PER_S // 3600, window.until_us // US_PER_S // 3600 + 2) * 3600.0
            found.price(np.clip(edges_s, window.from_us / 1e6, window.until_us / 1e6)[: pue.size + 1], pue, grams)
        return found

    return run


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("time_zone", ["UTC", "Europe/Berlin"])
def test_the_sums_of_sql_are_those_of_a_plain_loop(engine, seed, time_zone):
    rng = random.Random(seed)
    year_hours = 365 * 24
    pue = np.array([rng.uniform(1.1, 1.6) for _ in range(year_hours)])
    grams = np.array([rng.uniform(50, 700) for _ in range(year_hours)])
    begin_us = window_of(2026, time_zone, 4e9).from_us
    jobs = [
        a_job(str(i), begin_us + rng.randrange(-100 * 3600, 8700 * 3600) * US_PER_S, rng.choice([0.2, 3, 50, 900]), gpus=rng.choice([1, 4]), hosts="", project=rng.choice("ab"), gpu_model="h200")
        for i in range(40)
    ]  # fmt: skip

    found = engine(jobs, [], time_zone, pue, grams)
    year = found.year(lambda person, _: person)

    months, projects = {}, {}
    for job in jobs:
        watts = 350.0 * job.gpus
        for hour in range(year_hours):
            a, b = max(job.start_us, begin_us + hour * HOUR_US), min(job.end_us, begin_us + (hour + 1) * HOUR_US)
            if b <= a:
                continue
            joules = watts * (b - a) / US_PER_S
            local = datetime.fromtimestamp(a / US_PER_S, UTC).astimezone(ZoneInfo(time_zone))
            for sums, name in ((months, f"{local:%Y-%m}"), (projects, job.project)):
                was = sums.get(name, np.zeros(3))
                sums[name] = was + np.array([joules, joules * pue[hour], joules * pue[hour] * grams[hour] / 3.6e6])
    for groups, sums in ((year.groups["month"], months), (year.groups["project"], projects)):
        assert {g.name for g in groups} == set(sums)
        for group in groups:
            energy = group.energy
            assert [energy.it_joules, energy.facility_joules, energy.grams] == approx(sums[group.name].tolist(), rel=1e-6)
    assert found.hourly_joules().sum() == approx(year.whole.it_joules, rel=1e-9)


def test_twice_the_intensity_is_twice_the_grams_and_the_same_energy(engine):
    jobs = [a_job(str(i), f"2026-0{i + 1}-03T10:20Z", 30, gpu_model="h200", hosts="") for i in range(6)]
    flat = np.full(365 * 24, 1.2)

    years = [engine(jobs, [], "UTC", flat, np.full(365 * 24, g)).year(lambda p, _: p) for g in (200.0, 400.0)]

    assert years[1].whole.grams == approx(2 * years[0].whole.grams)
    assert years[1].whole.facility_joules == approx(years[0].whole.facility_joules)


@pytest.mark.parametrize("time_zone", ["Europe/Berlin", "Asia/Kathmandu"])
def test_the_week_holds_all_energy_at_its_local_hour(engine, time_zone):
    job = a_job("1", "2026-07-06T10:00Z", 1, gpu_model="h200", hosts="")  # a Monday

    found = engine([job], [], time_zone)
    week = found.weekday_hours(found.hourly_joules())

    local = datetime.fromtimestamp(us("2026-07-06T10:00Z") / US_PER_S, UTC).astimezone(ZoneInfo(time_zone))
    assert week[0, local.hour] == approx(350.0 * 3600)
    assert week.sum() == approx(350.0 * 3600)


def test_the_jobs_with_the_most_energy_come_first(engine):
    jobs = [a_job(str(i), "2026-07-06T10:00Z", 1 + i, gpu_model="h200", hosts="") for i in range(30)]
    ones = np.ones(365 * 24)

    top = engine(jobs, [], "UTC", ones, ones).year(lambda p, _: p).top

    assert [job.job_id for job in top] == [f"lab {i}" for i in range(29, 14, -1)]


def test_measured_energy_keeps_its_hours(engine):
    pue, grams = np.ones(365 * 24), np.full(365 * 24, 100.0)
    noon = (us("2026-03-02T12:00Z") - us("2026-01-01T00:00Z")) // HOUR_US
    grams[noon] = 900.0
    readings = [a_reading("GPU-a", "2026-03-02T12:00Z", 1, 3_600_000_000), a_reading("GPU-a", "2026-03-02T13:00Z", 1, 7_200_000_000)]

    year = engine([a_job("1", "2026-03-02T12:00Z", 2)], readings, "UTC", pue, grams).year(lambda p, _: p)

    assert year.jobs.energy.grams == approx(1 * 900.0 + 2 * 100.0)
