"""PUE by month, by hour, both, as a series, and by two numbers: each slice at the PUE of its own local time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from carbonreport.combine.footprint import footprint
from carbonreport.errors import BadPue
from carbonreport.model.pue import PueProfile, day_and_night, pue_from_text, pue_profile, two_seasons
from carbonreport.model.run import RunRecord
from carbonreport.model.series import Family, GridErrors, IntensitySeries
from carbonreport.testing import make_record

MONTHS = tuple(1.1 + 0.05 * m for m in range(12))
HOURS = tuple(1.2 + 0.01 * h for h in range(24))


def flat(run: RunRecord) -> IntensitySeries:
    edges_s = np.array([run.started_s - 1, run.ended_s + 1])
    return IntensitySeries("XX", edges_s, np.array([100.0]), np.zeros(1, np.int8), {"measured": GridErrors()}, Family(), "a test")


@settings(deadline=None, max_examples=25)
@given(
    start=st.datetimes(datetime(2025, 1, 1), datetime(2025, 12, 1)),
    hours=st.floats(0.1, 80),
    zone=st.sampled_from(["Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "America/New_York"]),
    has_months=st.booleans(),
)
def test_every_quarter_hour_has_the_pue_of_its_own_local_month_and_hour(start, hours, zone, has_months):
    run = make_record({"GPU": 1000.0}, hours, start=f"{start:%Y-%m-%dT%H:%M:%S}Z", time_zone=zone)
    pue = pue_profile(MONTHS if has_months else (), HOURS, source="test")
    mean = sum(HOURS) / 24

    result = footprint(run, grid=flat(run), pue=pue)

    moments = np.arange(run.started_s, run.ended_s, 60.0)
    expected = 0.0
    for at_s, until_s in zip(moments, np.append(moments[1:], run.ended_s), strict=True):
        local = datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(zone))
        ratio = HOURS[local.hour] / mean * MONTHS[local.month - 1] if has_months else HOURS[local.hour]
        expected += ratio * 1000.0 * (until_s - at_s)
    assert result.facility_joules.value == approx(expected, rel=2e-3)


def test_a_series_is_charged_by_its_own_intervals():
    run = make_record({"GPU": 1000.0}, 2, start="2026-01-01T11:30Z")
    edges = tuple(datetime(2026, 1, 1, h, tzinfo=UTC).timestamp() for h in (11, 12, 13, 14))
    pue = PueProfile(1.3, 1.3, 1.3, "reported", "test", edges_s=edges, values=(1.1, 1.3, 1.5))

    result = footprint(run, grid=flat(run), pue=pue)

    assert result.facility_joules.value / 3.6e6 == approx(0.5 * 1.1 + 1.3 + 0.5 * 1.5)


def test_a_series_that_does_not_cover_the_run_is_refused():
    run = make_record({"GPU": 1000.0}, 2)

    with pytest.raises(BadPue, match="does not cover the run"):
        footprint(run, grid=flat(run), pue=PueProfile(1.3, 1.3, 1.3, "reported", "old", edges_s=(0.0, 1.0, 2.0), values=(1.1, 1.3)))


def test_a_warm_season_of_1_60_and_a_cold_one_of_1_072_differ_by_a_third():
    pue = pue_profile(two_seasons(1.60, 1.072), source="site")
    july, january = (make_record({"GPU": 1000.0}, 1, start=start) for start in ("2026-07-01T12:00Z", "2026-01-01T12:00Z"))

    summer, winter = (footprint(run, grid=flat(run), pue=pue).facility_joules.value for run in (july, january))

    assert 1 - winter / summer == approx(0.330, abs=1e-4)


def test_a_cap_and_a_season_together_at_equal_length_leave_0_578():
    pue = pue_profile(two_seasons(1.60, 1.072), source="site")
    uncapped = make_record({"GPU": 1000.0}, 1, start="2026-07-01T12:00Z")
    capped = make_record({"GPU": 863.0}, 1, start="2026-01-01T12:00Z")

    before, after = (footprint(run, grid=flat(run), pue=pue).facility_joules.value for run in (uncapped, capped))

    assert after / before == approx(0.578, abs=5e-4)


def test_the_warm_half_of_the_year_lies_the_other_way_round_in_the_south():
    assert two_seasons(1.6, 1.1)[6] == 1.6
    assert two_seasons(1.6, 1.1, is_south=True)[6] == 1.1


def test_nights_are_cheaper_where_the_site_says_so():
    hours = day_and_night(1.5, 1.35)

    assert (hours[3], hours[12], hours[20]) == (1.35, 1.5, 1.35)


@pytest.mark.parametrize(("months", "hours"), [((1.1,) * 11, ()), ((), (1.2,) * 25), ((0.9,) * 12, ()), ((), ())])
def test_a_profile_that_cannot_be_is_refused(months, hours):
    with pytest.raises(BadPue):
        pue_profile(months, hours, source="test")


@pytest.mark.parametrize("text", ["12", "1.1:12", "nan", "0.9", "1.5:1.1"])
def test_a_number_that_no_facility_has_is_refused_with_one_that_it_may_have(text):
    with pytest.raises(BadPue, match=r"1\.2|1\.1:1\.5"):
        pue_from_text(text)


def test_an_hour_of_little_load_may_have_a_pue_that_no_year_has():
    assert pue_profile(hours=(12.0,) + (1.2,) * 23, source="test").hours[0] == 12.0
