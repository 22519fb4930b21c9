"""What was not measured is not known: never printed as 0, never called measured or estimated."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carbonreport.cli.tables import print_footprint
from carbonreport.model.pue import pue_from_text
from carbonreport.model.run import EnergyTrace, RunRecord, Span
from carbonreport.model.statement import Row, Statement
from carbonreport.render.paragraph_purpose import item_energy
from carbonreport.render.setting import Group
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.charge import Charged, charge_records
from carbonreport.workflows.estimate import Job, estimated_run
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of, statement_text

FORMS = ("plain", "acl", "gpai", "icml", "modelcard", "neurips", "sci")


def row(statement: Statement, label: str) -> Row:
    return next(r for r in statement.rows if r.label.startswith(label))


def paragraph(statement: Statement) -> str:
    return " ".join(sentence.text for sentence in statement.paragraph).replace("\u00a0", " ")


@pytest.fixture
def cut(tmp_path: Path) -> Callable[[int], RunRecord]:
    """A record of a run in Germany at a PUE of 1.2, cut after so many of its lines."""
    run = make_record({"host": 60.0}, 2, kinds={"host": "cpu"}, method="model", gain=(0.5, 2.0), zone="DE", name="cut")
    whole = save(replace(run, place=replace(run.place, pue=pue_from_text("1.2"))), tmp_path / "whole.jsonl")

    def first(lines: int) -> RunRecord:
        path = tmp_path / f"first-{lines}.jsonl"
        path.write_text("".join(whole.read_text(encoding="utf-8").splitlines(keepends=True)[:lines]), encoding="utf-8")
        return load(path)

    return first


@pytest.mark.parametrize("lines", [1, 2])
def test_a_record_cut_before_its_first_reading_knows_neither_time_nor_energy(charged, cut, lines: int) -> None:
    statement = statement_of(charge_records([cut(lines)], PlaceOptions(), {}))

    assert "broke off before a first reading, on 15 January 2026 at 12:00 UTC in Germany. No energy could be read" in paragraph(statement)
    for label in ("Wall-clock", "Facility energy", "Location-based"):
        assert (row(statement, label).value, row(statement, label).known) == ("not known", "omitted")
    assert row(statement, "PUE").value == "1.20"
    assert row(statement, "Grid intensity").source.startswith("typical January profile of DE; ")
    assert dict(statement.figures)["WallClock"] == "not known"
    assert "neither how long it ran nor what it used is known" in dict(statement.notes)["interrupted"]
    assert "zero-length" not in dict(statement.notes)


@pytest.mark.parametrize("style", FORMS)
def test_no_form_prints_a_zero_for_a_record_cut_before_its_first_reading(cut, style: str) -> None:
    text = statement_text(charge_records([cut(2)], PlaceOptions(), {}), "md", style=style).replace("\u00a0", " ")

    for zero in (" 0 s", " 0 kWh", " 0 gCO₂e", " 0 MWh", " 0 days"):
        assert zero not in text


def test_a_record_cut_after_some_readings_promises_nothing_of_the_rest(tmp_path: Path) -> None:
    whole = save(make_record({"gpu": 500.0}, 2, zone="DE"), tmp_path / "whole.jsonl")
    (tmp_path / "cut.jsonl").write_bytes(whole.read_bytes()[:-9])

    (note,) = [note.text for note in load(tmp_path / "cut.jsonl").notes if note.slug == "interrupted"]

    assert note.endswith("it is counted up to 7200 s after its start, what came later is not known, for its .tail is not beside it")


def unread(items: float = 100.0) -> RunRecord:
    """A run that lasted an hour and whose device gave one point and no more."""
    run = make_record({"host": 60.0}, 1, kinds={"host": "cpu"}, spans={"eval": 0.5}, items={"eval": items}, name="x", zone="DE")
    spans = tuple(replace(span, joules={}) for span in run.spans)
    return replace(run, traces=(EnergyTrace("host", (0.0,), (0.0,)),), spans=spans)


def test_items_of_a_run_without_a_reading_have_an_energy_that_is_not_known(charged) -> None:
    statement = statement_of(charged(unread()))

    assert "No energy could be read" in paragraph(statement)
    assert (row(statement, "IT energy per item").value, row(statement, "IT energy per item").known) == ("not known", "omitted")
    assert not [r for r in statement.rows if r.label.startswith("CPU energy")]


def test_show_says_of_a_run_without_a_reading_that_its_parts_are_not_known(charged, capsys) -> None:
    result: Charged = charged(unread())

    print_footprint(result.footprint, result.counted)

    out = capsys.readouterr().out.replace("\u00a0", " ")
    assert " 0 kWh" not in out
    assert " 0 gCO₂e" not in out
    for name in ("IT energy", "host", "eval", "outside spans"):
        assert "not known" in next(line for line in out.splitlines() if line.startswith(name))


def with_empty_span() -> RunRecord:
    run = make_record({"GPU": 500.0}, 1, spans={"train": 0.9}, name="x", zone="DE")
    empty = Span("query", run.spans[0].quarter_s, 1, 4e-6, 100.0, {"GPU": 0.0})
    return replace(run, spans=(*run.spans, empty))


def test_a_span_too_short_for_its_meter_is_not_said_to_take_no_energy(charged, capsys) -> None:
    result = charged(with_empty_span())
    statement = statement_of(result)
    print_footprint(result.footprint, result.counted)

    assert "per item" not in paragraph(statement)
    assert (row(statement, "IT energy per item").value, row(statement, "IT energy per item").known) == ("too short to read", "omitted")
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("query"))
    assert "0 kWh" not in line


def test_boards_that_gave_no_reading_beside_a_host_that_did_are_named_as_missing(charged) -> None:
    run = make_record({"GPU": 500.0, "host": 60.0}, 1, kinds={"host": "cpu"}, zone="DE")
    run = replace(run, traces=tuple(t for t in run.traces if t.device == "host"))

    statement = statement_of(charged(run))

    assert not [r for r in statement.rows if r.label.startswith("GPU energy")]
    assert row(statement, "Not measured").value.startswith("GPUs that gave no reading, memory")


# Estimates beside measurements


@pytest.fixture
def mixed() -> Statement:
    """An estimate of 49.6 GPU-hours at Amazon, and a measured minute elsewhere."""
    job = Job("A100-SXM4-80GB", 4, 12.4, None, "2026-01-14T18:20+01:00")
    place = replace(make_record({}, 0, zone="DE").place, pue=pue_from_text("aws"))
    typed = estimated_run(job, name="typed", kind="training", place=place, run_id="typed")
    read = make_record({"GPU": 500.0}, 1 / 60, start="2026-03-02T12:00Z", zone="DE", name="read")
    read = replace(read, place=replace(read.place, pue=pue_from_text("1.2")))
    return statement_of(charge_records([typed, read], PlaceOptions(), {}))


def test_the_form_of_the_eu_does_not_call_typed_in_energy_read(mixed: Statement) -> None:
    method = dict(mixed.details.gpai_rows)["Method"].replace("\u00a0", " ")

    assert method.startswith(
        "Of the energy, under 1 % was read while the training ran and over 99 % was estimated from power and hours, not measured, "
    )
    assert "Readings cover under 1 % of the time." in method


def test_hours_that_the_author_typed_in_are_reported_not_measured(mixed: Statement) -> None:
    time = row(mixed, "Wall-clock / GPU-hours")

    assert (time.known, time.source.replace("\u00a0", " ")) == ("reported", "12.4 h given by the author, the rest measured")


def test_the_hosts_of_an_estimate_are_not_counted_as_those_of_a_measurement(mixed: Statement) -> None:
    assert "host" not in row(mixed, "Hardware").value
    assert "host" not in paragraph(mixed).partition(" for ")[0]


def test_several_pues_are_named_each_with_its_own_value_and_source(mixed: Statement) -> None:
    assert row(mixed, "PUE").source == "1.14, AWS global average 2025, range of its regions; 1.20, given by the author"


def test_energy_of_an_item_that_nobody_counted_is_not_known(charged) -> None:
    run = make_record({"gpu": 300.0}, 2, spans={"train": 1.0, "generate": 1.0}, items={"generate": 1000.0}, name="items")
    found = charged(run)
    group = Group("items", "training", found.runs, found.footprint)
    told = {span.path: item_energy(group, span) for span in found.footprint.spans}

    assert told["train"] == "not known"
    assert told["generate"].endswith("\u00a0J")
