"""pandas views: the same numbers, with units in the column names."""

import pytest
from pytest import approx

from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions

pytest.importorskip("pandas", reason="pandas is not installed: THE PANDAS VIEWS ARE NOT TESTED (pip install 'carbonreport[frames]')")

from carbonreport import frames

RUN = make_record({"a": 300.0, "b": 50.0}, 3, spans={"train": 0.5}, items={"train": 100.0}, start="2026-01-15T12:20Z")


def test_samples_have_power_between_their_points():
    frame = frames.samples(RUN)

    assert list(frame.columns) == ["device", "time", "offset_s", "joules", "watts"]
    assert frame.groupby("device")["joules"].max().to_dict() == {"a": approx(300 * 10_800), "b": approx(50 * 10_800)}
    assert frame["watts"].dropna().tolist() == [approx(300.0), approx(50.0)]
    assert str(frame["time"].iloc[0]) == "2026-01-15 12:20:00+00:00"


def test_spans_are_by_path_quarter_hour_and_device():
    frame = frames.spans(RUN)

    assert frame["joules"].sum() == approx(0.5 * 350 * 10_800)
    assert frame.groupby("device")["items"].sum().tolist() == [approx(100.0), approx(100.0)]


def test_hours_add_up_to_the_footprint():
    footprint = charge_records([RUN], PlaceOptions(zone="DE", pue="1.2"), {}).footprint

    frame = frames.hours(footprint)

    assert frame["grams"].sum() == approx(footprint.grams.value)
    assert frame["pue"].tolist() == [approx(1.2)] * 4
    assert frame.index.name == "start"
    assert set(frame["quality"]) == {"typical"}


def test_a_record_without_anything_is_an_empty_view():
    empty = make_record({}, 0)

    assert frames.samples(empty).empty
    assert frames.spans(empty).empty
