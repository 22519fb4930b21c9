"""Pictures: their numbers add up, what was not read is not drawn, and the drawing is small, the same each time and readable."""

import math
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import carbonreport
from carbonreport.model.run import Device, EnergyTrace, Span
from carbonreport.render.pictures import hour_numbers, mean_watts, pictures_of, power_numbers
from carbonreport.render.plots import draw
from carbonreport.testing import make_record
from carbonreport.units import SECONDS_PER_HOUR

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed: NO PICTURE IS DRAWN (pip install 'carbonreport[plots]')"
)
YEAR_H = 8700


def drawing(charged):
    pictures = draw(pictures_of(charged.footprint, charged.counted))
    assert pictures is not None
    return pictures


def boards(names, watts=300.0, hours=4.0, **options):
    """A run with several devices of the same or of different names."""
    record = make_record({f"device-{i}": watts for i in range(len(names))}, hours, **options)
    return replace(record, devices=tuple(replace(d, name=name) for d, name in zip(record.devices, names, strict=True)))


# Numbers


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.floats(0, 1e5)), min_size=1, max_size=30),
    st.integers(1, 50),
)
def test_power_times_time_is_the_energy(steps, bins):
    offsets_s = np.concatenate([[0.0], np.cumsum([s for s, _ in steps])])
    joules = np.concatenate([[0.0], np.cumsum([j for _, j in steps])])
    edges_s = np.linspace(0.0, offsets_s[-1], bins + 1)

    watts = mean_watts(EnergyTrace("d", tuple(offsets_s), tuple(joules)), edges_s)

    assert math.isclose(float(watts @ np.diff(edges_s)), float(joules[-1]), rel_tol=1e-6, abs_tol=1e-6)


def test_power_that_was_not_read_is_not_zero():
    trace = EnergyTrace("d", (0.0, 10.0, 20.0, 30.0), (0.0, 1000.0, 1000.0, 2000.0), gaps=((10.0, 20.0),))

    watts = mean_watts(trace, np.array([0.0, 5.0, 15.0, 18.0, 30.0, 40.0]))

    assert watts.tolist()[:2] == [100.0, 100.0]  # the second is half read
    assert math.isnan(watts[2])
    assert watts[3] == 100.0
    assert math.isnan(watts[4])


def test_a_device_without_a_trace_has_no_power():
    assert np.isnan(mean_watts(EnergyTrace("d", (), ()), np.array([0.0, 1.0, 2.0]))).all()


def test_the_run_with_the_most_energy_is_drawn(charged):
    result = charged(make_record({"GPU": 1.0}, 9, name="long"), make_record({"GPU": 900.0}, 2, name="hot", start="2026-01-17T00:00Z"))
    numbers = power_numbers(result.counted)

    assert (numbers.run_name, numbers.others) == ("hot", 1)


def test_equal_boards_are_told_apart(charged):
    numbers = power_numbers(charged(boards(["H200", "H200", "Xeon"])).counted)

    assert [c.label for c in numbers.curves] == ["H200 (1)", "H200 (2)", "Xeon"]


def test_many_boards_are_drawn_as_their_sum(charged):
    numbers = power_numbers(charged(boards(["H200"] * 8 + ["Xeon"] * 2)).counted)

    assert [c.label for c in numbers.curves] == ["8 × H200 together", "2 × Xeon together"]
    assert np.allclose(numbers.curves[0].watts, 8 * 300.0)


def test_boards_of_very_many_names_are_drawn_by_kind(charged):
    numbers = power_numbers(charged(boards([f"board {i}" for i in range(9)])).counted)

    assert [c.label for c in numbers.curves] == ["9 × gpu together"]


def test_top_level_spans_are_marked_with_their_share_of_the_time(charged):
    numbers = power_numbers(charged(make_record({"GPU": 300.0}, 4.1, spans={"eval": 0.1, "train/step": 0.5, "train/load": 0.25})).counted)

    assert [mark.label for mark in numbers.marks] == ["train", "eval"]
    assert np.allclose(numbers.marks[0].shares, 0.75)
    assert np.allclose(numbers.marks[1].shares, 0.1)


def test_spans_of_several_threads_never_fill_more_than_the_time(charged):
    record = make_record({"GPU": 300.0}, 0.25)
    record = replace(record, spans=(Span("a", record.started_s, 4, 3600.0, None, {}), Span("b", record.started_s - 1e6, 1, 1.0, None, {})))
    numbers = power_numbers(charged(record).counted)

    assert [mark.label for mark in numbers.marks] == ["a"]
    assert numbers.marks[0].shares.tolist() == [1.0]


def test_no_more_spans_are_marked_than_can_be_read(charged):
    numbers = power_numbers(charged(make_record({"GPU": 300.0}, 1, spans={f"s{i}": 0.01 * (i + 1) for i in range(9)})).counted)

    assert [mark.label for mark in numbers.marks] == ["s8", "s7", "s6", "s5"]
    assert numbers.more_marks == 5


@pytest.mark.parametrize("hours", [0.01, 2.0, 90.0, 500.0, YEAR_H])
def test_however_long_the_run_the_bars_are_few_and_add_to_the_whole(charged, hours):
    footprint = charged(make_record({"GPU": 500.0}, hours)).footprint
    numbers = hour_numbers(footprint.hours)

    assert 1 <= numbers.start_s.size <= 100
    assert math.isclose(numbers.it_joules.sum(), footprint.it_joules.value)
    assert math.isclose((numbers.it_joules + numbers.overhead_joules).sum(), footprint.facility_joules.value)
    assert math.isclose(numbers.grams.sum(), footprint.grams.value)
    assert np.allclose(numbers.grams_per_kwh, 400.0)
    assert math.isclose(numbers.pue, 1.2)


@pytest.mark.parametrize("hours", [0.001, 1.0, 90.0, YEAR_H])
def test_however_long_the_run_its_curves_have_few_steps(charged, hours):
    numbers = power_numbers(charged(make_record({"GPU": 500.0}, hours, spans={"a": 0.5})).counted)

    assert 1 <= numbers.curves[0].watts.size <= 300
    assert math.isclose(
        numbers.curves[0].watts @ np.diff(numbers.edges_s), 500.0 * hours * SECONDS_PER_HOUR, rel_tol=1e-5
    )  # of POSIX seconds
    assert np.allclose(numbers.marks[0].shares, 0.5)


def test_time_without_energy_is_a_break_and_not_a_row_of_empty_bars(charged):
    result = charged(make_record({"GPU": 1.0}, 2), make_record({"GPU": 1.0}, 3, name="b", start="2026-02-20T10:00Z"))
    numbers = hour_numbers(result.footprint.hours)

    assert numbers.start_s.size == 5
    assert numbers.breaks == (2,)


def test_what_was_only_typed_in_has_no_power_picture(charged):
    result = charged(make_record({"A100": 300.0}, 4, method="model"))
    power, hours = pictures_of(result.footprint, result.counted)

    assert power is None
    assert hours is not None


def test_a_run_inside_one_hour_has_no_picture_by_hour(charged):
    result = charged(make_record({"GPU": 300.0}, 0.5))

    assert pictures_of(result.footprint, result.counted)[1] is None


@pytest.mark.parametrize("record", [make_record({}, 1), make_record({"GPU": 0.0}, 1), make_record({"GPU": 100.0}, 0)])
def test_nothing_to_draw_is_no_picture(charged, record):
    result = charged(record)

    assert pictures_of(result.footprint, result.counted) == (None, None)


# Drawings


@needs_matplotlib
def test_a_picture_is_well_formed_named_and_described(charged):
    power, hours = drawing(charged(make_record({"NVIDIA H200": 600.0}, 5, spans={"train": 0.9})))

    for picture in (power, hours):
        root = ElementTree.fromstring(picture.svg)
        assert root.tag == "svg"
        assert [child.tag for child in root][:2] == ["title", "desc"]
        assert root[0].text == picture.title
    assert "NVIDIA H200 mean 600 W, highest 600 W" in power.svg
    assert "IT energy 3.00\u00a0kWh, facility overhead 600\u00a0Wh" in hours.svg
    assert "UTC" in power.svg


@needs_matplotlib
def test_axes_have_units_and_begin_at_zero(charged):
    power, hours = drawing(charged(make_record({"NVIDIA H200": 600.0}, 5)))

    assert ">Power, W</text>" in power.svg
    assert ">0</text>" in power.svg
    for unit in ("kWh", "gCO₂e/kWh", "gCO₂e", "PUE 1.20"):
        assert unit in hours.svg


@needs_matplotlib
def test_a_picture_is_black_on_nothing_and_tells_its_parts_by_line_and_hatch(charged):
    power, hours = drawing(charged(make_record({"GPU": 600.0, "host": 80.0}, 5, kinds={"host": "cpu"})))

    for picture in (power, hours):
        assert set(re.findall(r"#[0-9a-f]{6}\b", re.sub(r'(id|href)="[^"]*"|url\([^)]*\)', "", picture.svg))) <= {"#8a8a8a"}
        assert "currentColor" in picture.svg
    assert "stroke-dasharray" in power.svg
    assert "<pattern" in hours.svg


@needs_matplotlib
def test_a_picture_has_no_date_no_address_and_no_style_sheet(charged):
    result = charged(make_record({"GPU": 600.0}, 5))

    assert drawing(result) == drawing(result)
    for picture in drawing(result):
        assert "<metadata" not in picture.svg
        assert "://" not in picture.svg
        assert "<style" not in picture.svg


@needs_matplotlib
def test_a_year_of_hours_stays_small(charged):
    record = boards([f"board {i}" for i in range(5)], hours=YEAR_H)
    pictures = drawing(charged(record))

    assert len(pictures) == 2
    assert sum(len(picture.svg.encode()) for picture in pictures) < 300_000


@needs_matplotlib
@pytest.mark.parametrize(
    "name", ["_hidden", "$\\frac{1}{0}$", "a$b", "<script>x</script>", "中文 \N{GRINNING FACE}", 'id="x" #000000', "</title>", "x" * 300]
)
def test_any_name_is_drawn_as_text(charged, name, recwarn):
    power, _ = drawing(charged(boards([name, "other"], spans={name.replace("/", ""): 0.5})))
    root = ElementTree.fromstring(power.svg)
    words = "\n".join("".join(element.itertext()).strip() for element in root.iter("text"))

    assert (name if len(name) < 40 else "xxx…") in words
    assert not root.findall(".//script")
    assert not list(recwarn)


@needs_matplotlib
def test_a_lost_board_breaks_its_line(charged):
    record = boards(["H200", "H200"], hours=2)
    half = EnergyTrace("device-1", (0.0, 3600.0), (0.0, 300.0 * 3600))
    numbers = power_numbers(charged(replace(record, traces=(record.traces[0], half))).counted)

    assert np.isnan(numbers.curves[1].watts[-1])
    assert not np.isnan(numbers.curves[0].watts).any()


def test_several_boards_that_are_known_only_together_have_one_curve(charged):
    record = make_record({"A100": 1200.0}, 2)
    device = Device("A100", "A100", "gpu", "counter", 0.99, 1.08, "made up", count=4)
    numbers = power_numbers(charged(replace(record, devices=(device,))).counted)

    assert [c.label for c in numbers.curves] == ["4 × A100"]


def test_matplotlib_is_imported_in_one_file():
    package = Path(carbonreport.__file__).parent
    importing = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"""import_module\(["']matplotlib|import matplotlib|from matplotlib""", path.read_text())
    ]

    assert importing == ["plots.py"]
