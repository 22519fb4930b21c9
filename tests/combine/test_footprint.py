"""Laws of charging: parts make the whole, time of day counts, a constant grid is a multiplication."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from carbonreport.combine.charge import charge, slice_edges
from carbonreport.combine.footprint import footprint, total
from carbonreport.errors import FamilyMix, GridGap, UnitMix
from carbonreport.model.embodied import Contract
from carbonreport.model.pue import PueProfile, pue_from_text
from carbonreport.model.run import EnergyTrace, RunRecord
from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries
from carbonreport.testing import make_record
from carbonreport.units import JOULES_PER_KWH, kwh

NO_FACILITY = PueProfile(1.0, 1.0, 1.0, "reported", "none")


def posix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def hourly(grams: list[float], *, start: str, zone: str = "XX", step_s: float = 3600.0, family: Family | None = None) -> IntensitySeries:
    """A measured series with one value a step."""
    edges_s = posix(start) + step_s * np.arange(len(grams) + 1)
    quality = np.full(len(grams), QUALITIES.index("measured"), dtype=np.int8)
    return IntensitySeries(zone, edges_s, np.array(grams), quality, {"measured": GridErrors(level_sd=0.039)}, family or Family(), "a test")


def flat(grams: float, run: RunRecord) -> IntensitySeries:
    edges_s = np.array([run.started_s - 1, run.ended_s + 1])
    return IntensitySeries(
        "XX", edges_s, np.array([grams]), np.zeros(1, np.int8), {"measured": GridErrors(level_sd=0.039)}, Family(), "a test"
    )


def test_each_hour_is_charged_at_its_own_intensity():
    grid = hourly([100.0, 200.0, 300.0], start="2026-01-01T11:00Z")
    run = make_record({"gpu": 1000.0}, 2, start="2026-01-01T11:30Z")

    result = footprint(run, grid=grid, pue=NO_FACILITY)

    assert result.grams.value == approx(0.5 * 100 + 1 * 200 + 0.5 * 300)


def test_a_run_that_draws_more_at_night_is_charged_more_at_night():
    grid = hourly([100.0, 500.0], start="2026-01-01T11:00Z")
    run = make_record({"gpu": 0.0}, 2, start="2026-01-01T11:00Z")
    three_to_one = EnergyTrace("gpu", (0.0, 3600.0, 7200.0), (0.0, 3 * JOULES_PER_KWH, 4 * JOULES_PER_KWH))
    run = _with_trace(run, three_to_one)

    result = footprint(run, grid=grid, pue=NO_FACILITY)

    assert result.grams.value / kwh(result.it_joules.value) == approx(200.0)


def _with_trace(run: RunRecord, trace: EnergyTrace) -> RunRecord:
    from dataclasses import replace

    return replace(run, traces=(trace,))


powers = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.floats(0.1, 2000), min_size=1)
starts = st.datetimes(datetime(2025, 1, 1), datetime(2025, 12, 30)).map(lambda t: f"{t:%Y-%m-%dT%H:%M:%S}Z")
shares = st.fixed_dictionaries({"train": st.floats(0, 0.5), "train/step": st.floats(0, 0.2), "eval": st.floats(0, 0.3)})


@settings(deadline=None, max_examples=60)
@given(watts=powers, hours=st.floats(0.01, 60), start=starts, share=shares, seed=st.integers(0, 2**32 - 1))
def test_devices_spans_and_hours_make_the_total_in_joules_and_grams(watts, hours, start, share, seed):
    run = make_record(watts, hours, start=start, spans=share)
    first = np.floor(run.started_s / 3600) * 3600
    count = int((run.ended_s - first) // 3600) + 2
    values = np.random.default_rng(seed).uniform(10, 900, count)
    grid = IntensitySeries(
        "XX", first + 3600.0 * np.arange(count + 1), values, np.zeros(count, np.int8), {"measured": GridErrors()}, Family(), "a test"
    )
    pue = pue_from_text("1.2")

    result = footprint(run, grid=grid, pue=pue)

    joules, grams = result.it_joules.value, result.grams.value
    top = [span for span in result.spans if span.is_top_level]
    assert sum(d.it_joules for d in result.devices) == approx(joules)
    assert sum(d.grams for d in result.devices) == approx(grams)
    assert sum(s.it_joules or 0.0 for s in top) + result.rest_joules == approx(joules)
    assert sum(s.grams or 0.0 for s in top) + result.rest_grams == approx(grams)
    assert result.rest_joules >= -1e-6 * joules
    assert result.rest_grams >= -1e-6 * grams
    assert result.hours.it_joules.sum() == approx(joules)
    assert result.hours.grams.sum() == approx(grams)
    assert result.facility_joules.value == approx(1.2 * joules)


@settings(deadline=None, max_examples=30)
@given(watts=powers, hours=st.floats(0.01, 30), start=starts)
def test_every_hour_is_the_sum_of_the_devices_curves_in_that_hour(watts, hours, start):
    run = make_record(watts, hours, start=start)

    result = footprint(run, grid=flat(300.0, run), pue=NO_FACILITY)

    noise = 1e-5 * sum(watts.values())  # POSIX seconds in double precision are good to 0.2 microseconds
    for begin, joules, grams in zip(result.hours.start_s, result.hours.it_joules, result.hours.grams, strict=True):
        inside = [trace.joules_at(begin + 3600 - run.started_s) - trace.joules_at(begin - run.started_s) for trace in run.traces]
        assert joules == approx(sum(inside), rel=1e-9, abs=noise)
        assert grams == approx(kwh(sum(inside)) * 300.0, rel=1e-9, abs=noise)


@settings(deadline=None, max_examples=30)
@given(watts=powers, hours=st.floats(0.01, 500), start=starts, grams=st.floats(0, 1000), pue=st.floats(1, 2.5))
def test_a_constant_grid_and_pue_are_one_multiplication(watts, hours, start, grams, pue):
    run = make_record(watts, hours, start=start)

    result = footprint(run, grid=flat(grams, run), pue=pue_from_text(f"{pue!r}"))

    assert result.grams.value == approx(sum(watts.values()) * hours / 1000 * pue * grams)


def test_twice_the_intensity_is_twice_the_grams():
    run = make_record({"gpu": 500.0}, 30)
    one, two = (footprint(run, grid=flat(g, run), pue=NO_FACILITY).grams for g in (210.0, 420.0))

    assert (two.value, two.low, two.high) == approx((2 * one.value, 2 * one.low, 2 * one.high))


def test_slices_begin_at_quarter_hours_grid_edges_and_the_ends():
    edges = slice_edges(100.0, 2000.0, np.array([0.0, 450.0, 1000.0, 9000.0]))

    assert edges.tolist() == [100.0, 450.0, 900.0, 1000.0, 1800.0, 2000.0]


def test_a_run_outside_the_series_is_refused():
    run = make_record({"gpu": 1.0}, 5, start="2026-01-01T11:00Z")

    with pytest.raises(GridGap, match="2026-01-01 11:00 to 2026-01-01 16:00 UTC"):
        charge(run, grid=hourly([1.0, 2.0], start="2026-01-01T11:00Z"), pue=NO_FACILITY)


def test_a_gap_in_the_readings_lowers_the_coverage_and_not_the_total():
    run = make_record({"gpu": 100.0}, 1)
    gappy = _with_trace(run, EnergyTrace("gpu", (0.0, 1800.0, 2700.0, 3600.0), (0.0, 180e3, 180e3, 270e3), ((1800.0, 2700.0),)))

    result = footprint(gappy, grid=flat(100.0, run), pue=NO_FACILITY)

    assert result.covered == approx(0.75)
    assert result.it_joules.value == approx(270e3)


def test_a_device_that_was_read_late_is_not_covered_from_the_start():
    run = _with_trace(make_record({"gpu": 100.0}, 1), EnergyTrace("gpu", (360.0, 3600.0), (0.0, 324e3)))

    assert footprint(run, grid=flat(100.0, run), pue=NO_FACILITY).covered == approx(0.9)


def test_intensities_of_two_families_never_meet():
    run = make_record({"gpu": 1.0}, 1, start="2026-01-01T11:00Z")
    families = (Family("lifecycle"), Family("direct"))
    charged = [charge(run, grid=hourly([1.0, 2.0], start="2026-01-01T11:00Z", family=f), pue=NO_FACILITY) for f in families]

    with pytest.raises(FamilyMix, match="lifecycle.*direct"):
        total(charged)


def test_a_run_inside_another_is_counted_once_and_lends_its_spans():
    outer = make_record({"gpu": 300.0}, 2, name="wrapper", run_id="outer")
    inner = make_record({"gpu": 300.0}, 1.9, start="2026-01-15T12:01Z", name="script", run_id="inner", parent="outer", spans={"train": 0.8})
    charged = [charge(run, grid=flat(100.0, outer), pue=NO_FACILITY) for run in (outer, inner)]

    result = total(charged)

    assert result.it_joules.value == approx(300 * 7200)
    assert [span.path for span in result.spans] == ["train"]
    assert result.rest_joules == approx(300 * 7200 - 0.8 * 300 * 1.9 * 3600)
    assert "nested-run" in [note.slug for note in result.notes]


def test_a_run_that_outlived_its_parent_counts_by_itself():
    outer = make_record({"gpu": 300.0}, 1, name="wrapper", run_id="outer")
    later = make_record({"gpu": 300.0}, 3, start="2026-01-15T12:30Z", name="daemon", run_id="later", parent="outer")
    charged = [charge(run, grid=flat(100.0, later), pue=NO_FACILITY) for run in (later,)]
    charged.append(charge(outer, grid=flat(100.0, outer), pue=NO_FACILITY))

    assert total(charged).it_joules.value == approx(300 * 3600 * 4)


def test_a_copy_of_a_record_is_counted_once():
    run = make_record({"gpu": 300.0}, 1)
    charged = [charge(run, grid=flat(100.0, run), pue=NO_FACILITY) for _ in range(2)]

    result = total(charged)

    assert result.it_joules.value == approx(300 * 3600)
    assert "run-not-counted" in [note.slug for note in result.notes]


@pytest.mark.parametrize("whole_first", [True, False])
def test_of_a_whole_record_and_its_cut_copy_the_whole_one_counts(whole_first):
    whole = replace(make_record({"gpu": 300.0}, 2, run_id="one"), source="whole.jsonl")
    cut = replace(make_record({"gpu": 300.0}, 1, run_id="one"), is_complete=False, source="cut.jsonl")
    charged = [charge(run, grid=flat(100.0, run), pue=NO_FACILITY) for run in ((whole, cut) if whole_first else (cut, whole))]

    result = total(charged)

    assert result.it_joules.value == approx(300 * 7200)
    assert [note.text for note in result.notes if note.slug == "run-not-counted"] == [
        "cut.jsonl is the same run as another file and was left out"
    ]


@pytest.mark.parametrize("gas", ["CO2e", "CO2"])
def test_grams_say_whether_they_are_of_carbon_dioxide_alone(gas):
    run = make_record({"gpu": 1000.0}, 2)

    result = footprint(
        run, grid=hourly([100, 200], start="2026-01-15T12:00Z", family=Family("direct", "production", "average", gas)), pue=NO_FACILITY
    )

    assert (result.grams.unit, result.grids[0].grams_per_kwh.unit) == (f"g{gas}", f"g{gas}/kWh")
    assert result.it_joules.unit == "J"


def test_location_and_market_based_totals_stand_side_by_side_and_cannot_be_added():
    run = make_record({"gpu": 1000.0}, 10)

    result = footprint(run, grid=flat(400.0, run), pue=NO_FACILITY, contract=Contract(20.0, 0.5, "wind contract 2026"))

    assert result.grams.value == approx(4000.0)
    assert result.market_grams is not None
    assert result.market_grams.value == approx(10 * 0.5 * 20 + 10 * 0.5 * 400)
    assert "contract-partial" in [note.slug for note in result.notes]
    with pytest.raises(UnitMix, match="side by side"):
        result.grams + result.market_grams


def test_a_nodes_meter_replaces_those_of_its_parts():
    run = make_record({"node": 1000.0, "gpu": 700.0, "cpu": 200.0}, 1, kinds={"node": "node", "cpu": "cpu"}, spans={"train": 0.5})

    result = footprint(run, grid=flat(100.0, run), pue=NO_FACILITY)

    assert result.it_joules.value == approx(3.6e6)
    assert result.spans[0].it_joules == approx(0.5 * 3.6e6)
    assert result.gpu_seconds == 3600
    assert "node-meter" in [note.slug for note in result.notes]


def test_the_origin_of_a_sum_is_its_weakest_part_above_one_percent():
    mostly_measured = make_record({"gpu": 995.0}, 1)
    run = _joined(mostly_measured, make_record({"host": 5.0}, 1, method="model", kinds={"host": "cpu"}))
    half = _joined(mostly_measured, make_record({"host": 500.0}, 1, method="model", kinds={"host": "cpu"}))

    assert footprint(run, grid=flat(1.0, run), pue=NO_FACILITY).it_joules.origin == "measured"
    assert footprint(half, grid=flat(1.0, run), pue=NO_FACILITY).it_joules.origin == "estimated"


def _joined(a: RunRecord, b: RunRecord) -> RunRecord:
    from dataclasses import replace

    return replace(a, devices=a.devices + b.devices, traces=a.traces + b.traces)


def test_emissions_are_never_called_measured():
    run = make_record({"gpu": 100.0}, 1)

    assert footprint(run, grid=flat(1.0, run), pue=NO_FACILITY).grams.origin == "reported"


def test_a_run_without_length_or_devices_is_zero_with_a_note():
    empty = make_record({}, 0)

    result = footprint(empty, grid=flat(100.0, empty), pue=NO_FACILITY)

    assert result.grams.value == 0
    assert "zero-length" in [note.slug for note in result.notes]
