"""The paragraph and the tables: what is said, and what is never said."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonreport.model.notes import Note
from carbonreport.model.run import RunRecord
from carbonreport.model.statement import Statement
from carbonreport.render.words import count_in_words, listed, shortened
from carbonreport.testing import make_record

NEVER = (
    "carbon neutral",
    "net zero",
    "climate-friendly",
    "green",
    "saved",
    "avoided",
    "exactly",
    "negligible",
    "actual",
    "accurate",
    "offset",
)


def text_of(statement: Statement) -> str:
    return " ".join(sentence.text for sentence in statement.paragraph).replace("\u00a0", " ")


def rows_of(statement: Statement) -> dict[str, tuple[str, str, str]]:
    return {row.label: (row.value.replace("\u00a0", " "), row.interval, row.known) for row in statement.rows}


def measured(**options) -> RunRecord:
    """Four boards, their processors and memory."""
    watts = {f"GPU-{i}": 300.0 for i in range(4)} | {"cpu-package-0": 150.0, "cpu-package-0-dram": 30.0}
    kinds = {"cpu-package-0": "cpu", "cpu-package-0-dram": "dram"}
    run = make_record(watts, 12.4, start="2026-01-14T17:20Z", kinds=kinds, time_zone="Europe/Berlin", zone="DE", **options)
    boards = tuple(
        replace(d, name="NVIDIA A100-SXM4-80GB") if d.kind == "gpu" else replace(d, gain_low=0.95, gain_high=1.05) for d in run.devices
    )
    return replace(run, devices=boards, environment={"driver": "580.65"})


def test_the_paragraph_says_what_ran_where_when_and_what_it_drew(said):
    text = text_of(said(measured(name="bert")))

    assert text.startswith(
        "Training “bert” used four NVIDIA A100-SXM4-80GB of one host for 12.4 h (49.6 GPU-hours), from 14 January 2026 18:20 to 15 January 06:44 CET"
    )
    assert "The GPUs drew 14.9 kWh [14.8, 15.8] (the boards’ energy counters, not calibrated)" in text
    assert "RAPL" in text
    assert "power supplies, fans, storage and network were not measured" in text
    assert "At a PUE of 1.20 [1.10, 1.30] (given by the author) the facility used" in text
    assert "location-based" in text
    assert "Intervals are 90 %" in text


def test_one_board_is_singular(said):
    text = text_of(said(make_record({"NVIDIA H200": 600.0}, 1, name="x")))

    assert "used one NVIDIA H200 for 60 min" in text
    assert "The GPU drew 600 Wh [590, 650] (" in text
    assert "the board’s energy counter" in text


def test_digits_follow_the_interval_and_a_wide_range_comes_first(said):
    text = text_of(said(make_record({"cpu": 100.0}, 1, method="model", gain=(0.5, 2.0), kinds={"cpu": "cpu"})))

    assert "The processors are estimated at 50–200 Wh (central value 100; a model of busy time)" in text


def test_typical_hours_are_never_called_the_hours_as_they_were(said):
    text = text_of(said(measured(), pue="1.2"))

    assert "charged by a typical January profile" in text
    assert "not by its hours as they were" in text


def test_the_weakest_input_is_named(said):
    assert "that of the emissions chiefly from the grid’s intensity" in text_of(said(measured(), pue="1.2"))


def test_an_unknown_place_is_said_and_not_guessed(said):
    run = replace(measured(), place=replace(measured().place, zone=None, zone_source=""))
    statement = said(run, pue="1.2")

    assert "a place that is not known" in text_of(statement)
    assert "zone-unknown" in dict(statement.notes)


def test_a_guessed_zone_is_said_in_the_paragraph(said):
    run = replace(measured(), place=replace(measured().place, zone_source="guessed from the time zone Europe/Berlin"))
    statement = said(run, pue="1.2")

    assert "Germany, guessed from the clock’s time zone" in text_of(statement)
    assert "zone-guessed" in dict(statement.notes)


def test_training_and_inference_are_told_apart_with_energy_per_item(said):
    run = make_record({"GPU": 500.0}, 2, spans={"train": 0.7, "inference": 0.2}, items={"train": 1e6, "inference": 2000.0})
    statement = said(run)

    assert "per item in “train” (1,000,000 items)" in text_of(statement)
    assert "360 J per item in “inference” (2,000 items)" in text_of(statement).replace("[", "")
    value, _, known = rows_of(statement)["IT energy per item / per 1,000, inference"]
    assert value == "360 J / 100 Wh"
    assert known == "measured"


def test_repeats_and_resumed_runs_of_one_name_form_one_row(said):
    runs = [make_record({"GPU": 500.0}, h, start=f"2026-01-0{d}T10:00Z", name="sweep", kind="search") for d, h in ((1, 1), (2, 2), (3, 3))]
    final = make_record({"GPU": 500.0}, 4, start="2026-01-05T10:00Z", name="final")
    statement = said(*runs, final)

    assert [(row.name, row.kind, row.runs) for row in statement.runs] == [("final", "training", "1"), ("sweep", "search", "3")]
    assert "of the reported runs" in text_of(statement)
    assert "60 % went into search runs: the whole is 2.5 times" in text_of(statement)


def test_one_run_needs_no_table_of_runs(said):
    assert said(measured()).runs == ()


def test_what_was_not_measured_is_an_omission_and_never_a_zero(said):
    statement = said(make_record({"GPU": 500.0}, 1))

    assert rows_of(statement)["Not measured"][0].startswith("processors, memory")
    assert rows_of(statement)["Market-based emissions"] == ("not stated", "", "omitted")
    assert rows_of(statement)["Embodied emissions"] == ("not stated", "", "omitted")
    assert any(line.startswith("processors: ") for line in statement.omissions)
    assert not any(value.startswith("0 ") for value, _, _ in rows_of(statement).values())


def test_a_run_without_a_reading_has_unknown_energy(said):
    statement = said(make_record({}, 1))

    assert "No energy could be read" in text_of(statement)
    assert rows_of(statement)["Facility energy"][0] == "not known"


def test_a_run_without_length_has_nothing_to_charge(said):
    assert "there is nothing to charge" in text_of(said(make_record({"GPU": 500.0}, 0)))


def test_an_interrupted_run_is_called_so(said):
    run = replace(make_record({"GPU": 500.0}, 1, name="x"), is_complete=False, notes=(Note("interrupted", "it was killed"),))

    assert "The interrupted training “x”" in text_of(said(run))


def test_market_based_and_embodied_stand_apart(said, tmp_path):
    site = tmp_path / "site.toml"
    site.write_text(
        '[contract]\ngrams_per_kwh = 0\nshare = 0.5\ninstrument = "PPA (wind)"\n'
        '[embodied]\ndevices = { "GPU" = { kg = 150, lifetime_years = 6, utilisation = 0.85, source = "a paper" } }\n'
    )
    statement = said(make_record({"GPU": 500.0}, 10), site=str(site), pue="1.2", zone="DE")

    assert "it stands beside the location-based one and is never added to it" in text_of(statement)
    assert "not included above" in text_of(statement)
    assert rows_of(statement)["Market-based emissions"][2] != "omitted"


def test_estimates_never_say_measured(said):
    run = make_record({"A100": 400.0}, 10, method="model", gain=(0.45, 1.0))
    text = text_of(said(run))

    assert "drew" not in text
    assert "is estimated at" in text
    assert "were not included" in text


@pytest.mark.parametrize("name", ["100% _$&{}<script>\\input{x} \N{GRINNING FACE}\n₂", "", "x" * 500, "\u202e\u0000"])
def test_names_are_shown_on_one_line_and_shortened(said, name):
    text = text_of(said(make_record({"GPU": 500.0}, 1, name=name)))

    assert "\n" not in text
    assert len(text) < 1500


def test_no_statement_praises_or_promises(said):
    for run in (measured(), make_record({}, 1), make_record({"GPU": 1.0}, 500, method="model")):
        text = text_of(said(run, pue="1.2")).lower()
        assert not [word for word in NEVER if re.search(rf"\b{word}\b", text)]


def test_the_paragraph_is_short(said):
    assert len(said(measured(), pue="1.2").paragraph) <= 8


@given(st.lists(st.text(min_size=1), max_size=6))
def test_lists_read_a_b_and_c(parts):
    text = listed(parts)

    assert all(part in text for part in parts)
    assert text.count(" and ") >= (len(parts) > 1)


def test_small_counts_are_words():
    assert [count_in_words(n) for n in (0, 1, 10, 11, 1200)] == ["no", "one", "ten", "11", "1,200"]


@given(st.text(), st.integers(5, 80))
def test_a_shortened_text_is_one_line_of_that_length(text, longest):
    assert len(shortened(text, longest)) <= longest
    assert shortened(text, longest).isprintable()
