"""The year's edges in the site's time zone, host lists, and boards of two names."""

import itertools
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from carbonreport.audit.window import board_names, expanded, hours_between, window_of
from carbonreport.testing.ledger import a_job, us
from carbonreport.units import HOUR_US, US_PER_S

FAR_S = 4e9


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Pacific/Auckland"])
def test_a_year_begins_and_ends_at_local_midnight(zone):
    window = window_of(2026, zone, FAR_S)

    local = [datetime.fromtimestamp(edge / US_PER_S, ZoneInfo(zone)) for edge in window.edges_us]
    assert [(t.month, t.day, t.hour, t.minute) for t in local] == [*((m, 1, 0, 0) for m in range(1, 13)), (1, 1, 0, 0)]
    assert window.until_us - window.from_us == 365 * 24 * HOUR_US


def test_months_with_a_change_of_clocks_have_an_hour_less_or_more():
    edges = window_of(2026, "Europe/Berlin", FAR_S).edges_us

    hours = [(b - a) // HOUR_US for a, b in itertools.pairwise(edges)]
    assert (hours[2], hours[9]) == (31 * 24 - 1, 31 * 24 + 1)


def test_a_year_in_progress_goes_up_to_now_and_says_so():
    window = window_of(2026, "UTC", us("2026-03-10T12:34Z") / 1e6)

    assert window.in_progress
    assert (window.until_us, window.months) == (us("2026-03-10T12:34Z"), ("2026-01", "2026-02", "2026-03"))


def test_a_year_that_has_not_begun_is_refused():
    with pytest.raises(ValueError, match="2027 has not begun"):
        window_of(2027, "UTC", us("2026-03-10T12:34Z") / 1e6)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_a_job_over_new_year_is_clipped_at_the_sites_midnight(audited, zone):
    midnight = window_of(2026, zone, FAR_S).from_us
    job = a_job("1", midnight - 2 * HOUR_US, 5, gpus=2, gpu_model="h200")

    before, after = (audited([job], [], year=y, time_zone=zone, watts=100.0) for y in (2025, 2026))

    assert (before.jobs.gpu_us, after.jobs.gpu_us) == (4 * HOUR_US, 6 * HOUR_US)
    assert (before.whole.it_mj, after.whole.it_mj) == (4 * 360_000_000, 6 * 360_000_000)


def test_a_job_that_still_runs_counts_up_to_now(audited):
    job = a_job("1", "2026-03-10T10:00Z", 5, state="RUNNING", gpu_model="h200")

    year = audited([job], [], now_s=us("2026-03-10T12:00Z") / 1e6, watts=100.0)

    assert (year.jobs.gpu_us, year.running) == (2 * HOUR_US, 1)


def test_host_lists_are_spelled_out():
    assert expanded("n[01-03,7],login") == ("n01", "n02", "n03", "n7", "login")
    assert expanded("r[1-2]n[08-09]") == ("r1n08", "r1n09", "r2n08", "r2n09")
    assert expanded("") == ()


def test_slurms_type_and_the_meters_name_are_one_board():
    names = board_names(["h200", "NVIDIA H200", "a100", "NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-40GB"])

    assert names["h200"] == "NVIDIA H200"
    assert names["a100"] == "a100"


def test_hours_cut_a_period_without_a_gap():
    parts = hours_between(HOUR_US // 2, 3 * HOUR_US)

    assert parts == [(HOUR_US // 2, HOUR_US), (HOUR_US, 2 * HOUR_US), (2 * HOUR_US, 3 * HOUR_US)]
