"""What the paragraph, the tables and the notes say, case by case, on a grid written here."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind, Place, RunRecord
from carbonreport.model.statement import Row, Statement
from carbonreport.testing.records import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of

FORBIDDEN = (
    "carbon neutral",
    "carbon-neutral",
    "net zero",
    "climate-friendly",
    "measured emissions",
    "exactly",
    "actual",
    "negligible",
    "avoided",
    "saved",
    "green",
    "refresh",
    "verify",
)


@pytest.fixture
def grid(tmp_path: Path) -> str:
    """A year of life-cycle intensities, 300 by night and 500 by day."""
    path = tmp_path / "grid.csv"
    lines = ["Datetime (UTC),Carbon intensity gCO2eq/kWh (Life cycle)"]
    lines += [
        f"2026-{m:02d}-{d:02d}T{h:02d}:00Z,{500 if 8 <= h < 20 else 300}" for m in (1, 2, 3) for d in range(1, 29) for h in range(0, 24, 4)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def written(
    *runs: RunRecord, grid: str | None = None, zone: str | None = None, pue: str | None = "1.1:1.2:1.3", site: str | None = None
) -> Statement:
    return statement_of(charge_records(runs, PlaceOptions(zone=zone, pue=pue, grid=grid, site=site), environ={}))


def paragraph(statement: Statement) -> str:
    return " ".join(sentence.text for sentence in statement.paragraph).replace("\u00a0", " ")


def row(statement: Statement, label: str) -> Row:
    return next(r for r in statement.rows if r.label.startswith(label))


def gpus(count: int, **kwargs: object) -> RunRecord:
    """Boards of one model, each with an id of its own."""
    names = {f"GPU-{i}": "NVIDIA H200" for i in range(count)}
    return named(make_record(dict.fromkeys(names, 500.0), 2, zone="DE", time_zone="Europe/Berlin", **kwargs), names)  # type: ignore[arg-type]


def named(run: RunRecord, names: Mapping[str, str]) -> RunRecord:
    return replace(run, devices=tuple(replace(d, name=names.get(d.id, d.name), source="NVML energy counter") for d in run.devices))


def with_host(run_watts: Mapping[str, float], kinds: Mapping[str, DeviceKind], **kwargs: object) -> RunRecord:
    return make_record(run_watts, 2, kinds=kinds, zone="DE", time_zone="Europe/Berlin", **kwargs)  # type: ignore[arg-type]


def test_one_board_is_spoken_of_in_the_singular_and_its_hours_are_said_once(grid: str) -> None:
    text = paragraph(written(gpus(1, name="train"), grid=grid))

    assert text.startswith(
        "Training “train” used one NVIDIA H200 for 2.00 h, on 15 January 2026 from 13:00 to 15:00 CET in Germany. The GPU drew 1.00 kWh ["
    )
    assert "(the board’s energy counter, not calibrated)" in text
    assert "for the GPU alone" in text


def test_several_boards_are_spoken_of_in_the_plural_with_gpu_hours_and_hosts(grid: str) -> None:
    text = paragraph(written(gpus(4, name="train"), grid=grid))

    assert "used four NVIDIA H200 of one host for 2.00 h (8.00 GPU-hours)," in text
    assert "The GPUs drew 4.00 kWh [" in text
    assert "(the boards’ energy counters, not calibrated)" in text


def test_processors_and_memory_share_the_verb_and_the_method(grid: str) -> None:
    run = with_host({"gpu": 500, "cpu": 100, "ram": 20}, {"cpu": "cpu", "ram": "dram"})

    text = paragraph(written(run, grid=grid))

    assert "the processors 0.200 kWh [" in text
    assert "and the memory 40.0 Wh [" in text
    assert text.count("(RAPL)") == 1
    assert "; power supplies, fans, storage and network were not measured." in text
    assert "alone" not in text


def test_a_run_without_gpu_is_of_the_processors(grid: str) -> None:
    statement = written(with_host({"cpu": 100}, {"cpu": "cpu"}), grid=grid)

    assert "used the processors of one host for 2.00 h, on" in paragraph(statement)
    assert row(statement, "Wall-clock").label == "Wall-clock"


def test_a_model_of_the_processors_is_an_estimate_and_the_gpu_beside_it_a_measurement(grid: str) -> None:
    gpu, cpu = gpus(1), with_host({"host-model": 80}, {"host-model": "cpu"}, method="model", gain=(0.5, 1.7))
    run = replace(gpu, devices=gpu.devices + cpu.devices, traces=gpu.traces + cpu.traces)

    text = paragraph(written(run, grid=grid))

    assert "The GPU drew" in text
    assert ", and the processors are estimated at " in text
    assert "a model of busy time)" in text


def test_several_runs_of_one_name_are_counted_with_their_mean_and_ends(grid: str) -> None:
    runs = [gpus(1, name="tune", start=f"2026-01-{day:02d}T08:00Z") for day in (10, 11, 12)]

    statement = written(*runs, grid=grid)

    assert paragraph(statement).startswith(
        "Three training runs “tune” used one NVIDIA H200 for 6.00 h in all, between 10 January 2026 09:00 and 12 January 11:00 CET"
    )
    assert [(r.runs, r.each.replace("\u00a0", " ")) for r in statement.runs] == [("3", "1.00 kWh")]


def test_a_log_of_another_tool_reports_the_time_and_nobody_measured_it(grid: str) -> None:
    logged = gpus(1, start="2026-01-10T08:00Z")
    logged = replace(logged, notes=(Note("imported-log", "read from emissions.csv, a log of codecarbon"),))

    alone, beside = written(logged, grid=grid), written(logged, gpus(1, start="2026-01-11T08:00Z"), grid=grid)

    assert (row(alone, "Wall-clock").known, row(alone, "Wall-clock").source) == ("reported", "")
    assert (row(beside, "Wall-clock").known, row(beside, "Wall-clock").source) == (
        "reported",
        "2.00\u00a0h read from logs, the rest measured",
    )


def test_training_comes_before_inference_and_items_are_told_with_their_energy(grid: str) -> None:
    train = gpus(2, name="train", start="2026-01-10T08:00Z", spans={"epoch": 0.9}, items={"epoch": 90})
    serve = gpus(1, name="serve", kind="inference", start="2026-01-11T08:00Z", spans={"query": 0.5}, items={"query": 1000})

    statement = written(serve, train, grid=grid)

    assert paragraph(statement).startswith("Two runs (training “train” and inference “serve”) used two NVIDIA H200")
    assert "per item in “epoch” (90 items) and 1,800 J per item in “query” (1,000 items)." in paragraph(statement)
    assert [r.name for r in statement.runs] == ["train", "serve"]
    assert row(statement, "IT energy per item / per 1,000, query").source == "1,000 items"


def test_search_and_failed_runs_are_set_against_the_reported_ones(grid: str) -> None:
    runs = [
        gpus(1, name="final", start="2026-01-20T08:00Z"),
        *(gpus(1, name=f"try {i}", kind="search", start=f"2026-01-{10 + i}T08:00Z") for i in range(2)),
        gpus(1, name="oom", kind="failed", start="2026-01-15T08:00Z"),
    ]

    text = paragraph(written(*runs, grid=grid))

    assert "Of the energy, 75 % went into search and failed runs: the whole is 4.0 times that of the reported runs." in text


def test_a_single_run_has_no_second_table(grid: str) -> None:
    assert written(gpus(1), grid=grid).runs == ()


def test_more_names_than_a_page_bears_are_put_together_by_kind(grid: str) -> None:
    runs = [gpus(1, name=f"try {i}", kind="search", start=f"2026-01-{1 + i % 20:02d}T{8 + 2 * (i // 20):02d}:00Z") for i in range(25)]

    statement = written(*runs, grid=grid)

    assert [(r.name, r.kind, r.runs) for r in statement.runs] == [("25 names", "search", "25")]
    assert paragraph(statement).startswith("25 runs (25 search runs of 25 names) used")


def test_an_unknown_place_is_said_to_be_unknown_and_charged_at_the_world_average() -> None:
    text = paragraph(written(make_record({"gpu": 500}, 2, name="x")))

    assert "from 12:00 to 14:00 UTC at a place that is not known." in text
    assert "the world’s average grid was charged by its yearly mean (mean " in text
    assert "every hour alike" in text


def test_a_guessed_place_is_said_to_be_guessed() -> None:
    run = replace(make_record({"gpu": 500}, 2), place=Place("US", "guessed from the time zone America/New_York", "America/New_York"))

    text = paragraph(written(run))

    assert "from 07:00 to 09:00 EST in the United States, guessed from the clock’s time zone." in text
    assert "the grid of the United States was charged by" in text


def test_a_file_that_names_no_zone_leaves_the_place_unknown(grid: str) -> None:
    text = paragraph(written(make_record({"gpu": 500}, 2, name="x"), grid=grid))

    assert "at a place that is not known." in text
    assert "; its grid was charged by its hours as they were (mean " in text


def test_runs_on_several_grids_share_a_clause_where_they_were_charged_alike() -> None:
    runs = [
        make_record({f"gpu {zone}": 500}, 2, name="x", start=f"2026-01-1{i}T08:00Z", zone=zone)
        for i, zone in enumerate(("DE", "FR", "SE-SE3"))
    ]

    text = paragraph(written(*runs))

    assert "in Germany, France and South Central Sweden (grid zone SE-SE3)." in text
    assert "the grids of Germany, France and South Central Sweden were charged by a typical January profile (means " in text


def test_contract_and_manufacture_stand_beside_the_figure_and_are_not_in_it(grid: str, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    site.write_text(
        '[place]\nsite="Example Lab"\n[contract]\ngrams_per_kwh=40\ninstrument="agreement, wind (2026)"\n'
        '[embodied.devices."NVIDIA H200"]\nkg=300\nlifetime_years=4\nutilisation=0.8\nsource="vendor"\n',
        encoding="utf-8",
    )

    statement = written(gpus(1), grid=grid, site=str(site))

    assert "at Example Lab, Germany." in paragraph(statement)
    assert "By contract (agreement, wind, 2026) the market-based figure is 48 gCO₂e [" in paragraph(statement)
    assert "it stands beside the location-based one and is never added to it." in paragraph(statement)
    assert "Making the hardware accounts for a further " in paragraph(statement)
    assert row(statement, "Market-based").known != "omitted"


def test_a_run_without_length_has_nothing_to_charge(grid: str) -> None:
    run = make_record({"gpu": 0}, 0, name="x", zone="DE", time_zone="Europe/Berlin")

    text = paragraph(written(run, grid=grid))

    assert text.startswith("Training “x” used one gpu for 0 s, on 15 January 2026 at 13:00 CET in Germany. It has no length")
    assert "kWh" not in text


def test_a_run_without_a_reading_has_an_unknown_energy_not_zero(grid: str) -> None:
    statement = written(make_record({}, 1, name="x", zone="DE"), grid=grid)

    assert "No energy could be read, so that neither energy nor emissions can be stated." in paragraph(statement)
    assert row(statement, "Location-based").value == "not known"
    assert row(statement, "Facility energy").value == "not known"
    assert ("Emissions", "not known") in statement.figures


def test_an_interrupted_run_is_called_that(grid: str) -> None:
    run = replace(gpus(1, name="x"), is_complete=False, notes=(Note("interrupted", "x has no clean end"),))

    assert paragraph(written(run, grid=grid)).startswith("The interrupted training “x” used")


def test_a_gap_in_the_readings_is_told_where_the_energy_is_told(grid: str) -> None:
    run = gpus(1)
    run = replace(run, traces=tuple(replace(t, gaps=((0.0, 1800.0),)) for t in run.traces))

    assert "were not measured; readings cover 75 % of the time." in paragraph(written(run, grid=grid))


def test_both_names_of_local_time_are_given_where_the_clocks_change(grid: str) -> None:
    run = make_record({"gpu": 500}, 30, start="2026-03-28T12:00Z", zone="DE", time_zone="Europe/Berlin")

    assert "from 28 March 2026 13:00 CET to 29 March 20:00 CEST" in paragraph(written(run, pue="1.2"))


def test_a_time_zone_without_a_name_is_told_by_its_offset() -> None:
    run = make_record({"gpu": 500}, 2, zone="TR", time_zone="Europe/Istanbul")

    assert "from 15:00 to 17:00 UTC+03:00 in Turkey" in paragraph(written(run))


def test_a_time_zone_that_nobody_knows_gives_way_to_that_of_the_grid() -> None:
    run = make_record({"gpu": 500}, 2, zone="DE", time_zone="Mars/Olympus")

    assert "from 13:00 to 15:00 CET in Germany" in paragraph(written(run))


def test_what_one_slug_says_of_many_runs_is_said_together(grid: str) -> None:
    runs = [
        replace(gpus(1, name=f"r{i}", start=f"2026-01-1{i}T08:00Z"), notes=(Note("interrupted", f"r{i} has no clean end"),))
        for i in range(5)
    ]

    notes = dict(written(*runs, grid=grid).notes)

    assert notes["interrupted"] == "r0 has no clean end; r1 has no clean end; r2 has no clean end; and 2 more alike"


def test_a_component_that_only_some_runs_read_is_named_with_the_runs_that_lack_it(grid: str) -> None:
    runs = [gpus(1, name="a", start="2026-01-10T08:00Z"), with_host({"cpu": 100}, {"cpu": "cpu"}, name="b", start="2026-01-11T08:00Z")]

    assert "processors of one of the two runs, memory, power supplies" in paragraph(written(*runs, grid=grid))


def cases(grid: str) -> Sequence[Statement]:
    return [
        written(gpus(1), grid=grid),
        written(gpus(4)),
        written(with_host({"gpu": 500, "cpu": 100}, {"cpu": "cpu"}), pue=None),
        written(make_record({"gpu": 500}, 2)),
        written(gpus(1), gpus(1, name="s", kind="search", start="2026-01-20T08:00Z"), zone="FR", pue="hpc"),
    ]


def test_no_statement_says_what_a_statement_must_not_say(grid: str) -> None:
    for statement in cases(grid):
        said = paragraph(statement) + str(statement.rows) + str(statement.notes)
        assert not [word for word in FORBIDDEN if word in said.lower()]


def test_a_statement_is_one_paragraph_of_few_sentences_without_brackets_in_brackets(grid: str) -> None:
    for statement in cases(grid):
        assert len(statement.paragraph) <= 8
        text = paragraph(statement)
        assert ") (" not in text
        assert not any(text[: i + 1].count("(") - text[: i + 1].count(")") > 1 for i in range(len(text)))
        assert all(s.text.endswith(".") and s.text[0].isupper() for s in statement.paragraph)


def test_every_row_says_how_it_is_known(grid: str) -> None:
    for statement in cases(grid):
        assert {r.known for r in statement.rows} <= {"measured", "reported", "estimated", "assumed", "omitted"}
