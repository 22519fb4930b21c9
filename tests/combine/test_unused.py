"""Boards that a run did not use: measured, listed apart, and not counted."""

from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import total
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import Family, GridErrors, IntensitySeries
from carbonreport.testing import make_record

NO_FACILITY = PueProfile(1.0, 1.0, 1.0, "reported", "none")
WATTS = {"a": 700.0, "b": 100.0, "c": 200.0, "cpu": 50.0}


def charged(run):
    edges_s = np.array([run.started_s - 1, run.ended_s + 1])
    grid = IntensitySeries("XX", edges_s, np.array([100.0]), np.zeros(1, np.int8), {"measured": GridErrors()}, Family(), "a test")
    return charge(run, grid=grid, pue=NO_FACILITY)


def run_with(*unused, kinds=None):
    return replace(make_record(WATTS, 2, kinds={"cpu": "cpu", **(kinds or {})}, spans={"train": 0.5}), unused=unused)


@pytest.mark.parametrize("unused", [(), ("b",), ("b", "c"), ("a", "c")])
def test_what_counts_and_what_was_unused_are_all_readings(unused):
    run = run_with(*unused)

    counted = charged(run).it_joules.sum()
    apart = sum(trace.joules[-1] for trace in run.traces if trace.device in unused)
    assert counted + apart == approx(sum(trace.joules[-1] for trace in run.traces))


def test_unused_boards_add_neither_energy_nor_hours_nor_devices():
    footprint = total([charged(run_with("b", "c"))])

    assert {device.id for device in footprint.devices} == {"a", "cpu"}
    assert footprint.gpu_seconds == 2 * 3600
    assert footprint.covered == approx(1.0)
    assert footprint.it_joules.value == approx(750 * 7200)


def test_spans_have_the_energy_of_boards_that_count():
    footprint = total([charged(run_with("b", "c"))])

    assert footprint.spans[0].it_joules == approx(0.5 * 750 * 7200)
    assert footprint.rest_joules == approx(0.5 * 750 * 7200)


def test_the_note_says_how_many_and_how_much():
    (note,) = [n for n in charged(run_with("b", "c")).notes if n.slug == "boards-unused"]

    assert note.text.startswith(
        "2 more visible boards drew 0.6 kWh meanwhile; no process of the run was seen on them, and they are not counted"
    )
    (note,) = [n for n in charged(run_with("c")).notes if n.slug == "boards-unused"]
    assert note.text.startswith("1 more visible board drew 0.4 kWh meanwhile; no process of the run was seen on it, and it is not counted")
    assert not [n for n in charged(run_with()).notes if n.slug == "boards-unused"]


def test_a_node_s_meter_holds_unused_boards_like_all_its_parts():
    result = charged(run_with("b", kinds={"cpu": "node"}))

    assert [device.id for device in result.devices] == ["cpu"]
    assert "node-meter" in {note.slug for note in result.notes}
    assert "boards-unused" not in {note.slug for note in result.notes}


def test_a_device_that_is_not_there_cannot_be_unused():
    with pytest.raises(ValueError, match="'z'"):
        run_with("z")
