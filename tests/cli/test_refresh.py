"""Hours that are fetched after a run: `carbonreport refresh`, and what show and statement make of them."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from carbonreport.errors import GridError, OutputError, PlaceError
from carbonreport.fetch import Fetcher
from carbonreport.grid.beside import path_beside, read_beside, write_beside
from carbonreport.grid.readings import MEASURED, Readings
from carbonreport.grid.sources import electricitymaps, embedded
from carbonreport.model.run import Place
from carbonreport.model.series import Family, IntensitySeries
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing.records import make_record
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.refresh import refresh
from carbonreport.workflows.statement import statement

HOUR = 3600.0
PLUGIN = """
import numpy as np
from carbonreport.grid.readings import MEASURED, Readings
from carbonreport.model.series import Family

class Flat:
    def series(self, zone, start_s, end_s):
        starts = np.arange(start_s // 3600 * 3600, end_s, 3600.0)
        quality = np.full(starts.size, MEASURED, dtype=np.int8)
        held = Readings(zone, "flat", Family(), "a flat grid", starts, starts + 3600, np.full(starts.size, 100.0), quality, "2026-02-01")
        return held.series(zone, start_s, end_s)

def create(options):
    return Flat()
"""


class Flat:
    """A grid that always has the same intensity, but for hours that are missing."""

    def __init__(self, grams_per_kwh: float = 100.0, family: Family | None = None, missing: int = 0) -> None:
        self.grams_per_kwh, self.family, self.missing = grams_per_kwh, family or Family(), missing

    def series(self, zone: str, start_s: float, end_s: float) -> IntensitySeries:
        starts = np.arange(start_s // HOUR * HOUR, end_s, HOUR)[: -self.missing or None]
        grams, quality = np.full(starts.size, self.grams_per_kwh), np.full(starts.size, MEASURED, dtype=np.int8)
        held = Readings(zone, "flat", self.family, "a flat grid", starts, starts + HOUR, grams, quality, "2026-02-01")
        return held.series(zone, start_s, end_s, embedded.EmbeddedGrid().series)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    save(make_record({"gpu": 1000}, 4.5, start="2026-01-15T12:10Z", zone="DE"), path)
    return path


def grams(record: Path, **options: str) -> float:
    return charge_records(load_records([record]), PlaceOptions(pue="1.0", **options)).footprint.grams.value


def slugs(record: Path, **options: str) -> set[str]:
    return {note.slug for note in charge_records(load_records([record]), PlaceOptions(pue="1.0", **options)).footprint.notes}


def test_a_run_without_network_is_charged_at_its_own_hours_afterwards(record):
    raw, typical = record.read_bytes(), grams(record)
    assert "typical-profile" in slugs(record)

    done = refresh(record, PlaceOptions(pue="1.0"), source=Flat())

    assert record.read_bytes() == raw  # the record stays as it is
    assert sorted(path.name for path in record.parent.iterdir()) == ["run.grid.json", "run.jsonl"]
    assert grams(record) == pytest.approx(4.5 * 100)
    assert done.before.value == pytest.approx(typical)
    assert done.after.value == pytest.approx(450)
    assert done.moved == pytest.approx(450 / typical - 1)
    assert done.after.high / done.after.low < done.before.high / done.before.low  # and it is known better
    assert slugs(record) >= {"grid-refreshed"} and "typical-profile" not in slugs(record)


def test_grid_zone_and_another_file_overrule_what_was_fetched(record, tmp_path):
    typical, swedish = grams(record), grams(record, zone="SE")
    refresh(record, PlaceOptions(), source=Flat())
    assert grams(record, grid="embedded") == pytest.approx(typical)
    assert grams(record, zone="SE") == pytest.approx(swedish)
    assert grams(record, zone="DE") == pytest.approx(450)
    (tmp_path / "own.csv").write_text("time,g_per_kwh\n2026-01-15T12:00Z,200\n2026-01-15T18:00Z,200\n")
    assert grams(record, grid=str(tmp_path / "own.csv")) == pytest.approx(900)


def test_missing_hours_are_filled_from_the_profile_and_named_in_the_statement(record, tmp_path):
    done = refresh(record, PlaceOptions(), source=Flat(missing=2))
    assert dict(done.hours_by_quality) == pytest.approx({"measured": 2 + 50 / 60, "typical": 1 + 40 / 60})
    (path,) = statement([record], [tmp_path / "energy.md"])
    assert "were taken from the typical profile of DE" in path.read_text()
    assert "fetched on 2026-02-01, as kept in run.grid.json" in path.read_text()


def test_a_second_refresh_replaces_the_first_and_a_file_of_somebody_else_stays(record):
    refresh(record, PlaceOptions(), source=Flat(100))
    refresh(record, PlaceOptions(), source=Flat(200))
    assert grams(record) == pytest.approx(900)
    path_beside(record).write_text("my notes")
    with pytest.raises(GridError, match="does not hold hours"):
        refresh(record, PlaceOptions(), source=Flat(100))
    assert path_beside(record).read_text() == "my notes"


def test_hours_of_another_run_or_a_damaged_file_are_refused_by_name(record):
    refresh(record, PlaceOptions(), source=Flat())
    path = path_beside(record)
    text = path.read_text()
    run_id = load(record).id
    for harmed, message in (
        (text.replace(run_id, "other"), "another run"),
        (text.replace('"format": 1', '"format": 9'), "format 9"),
        (text[:100], "does not hold hours"),
        (text.replace('"quality": "measured"', '"quality": "guessed"'), "does not hold hours"),
        (text.replace('"measured": {', '"typical": {'), "no error is given of measured"),
        (text.replace('"g_per_kwh": 100.0', '"g_per_kwh": -1.0'), "does not hold hours"),
    ):
        path.write_text(harmed)
        with pytest.raises(GridError, match=message):
            grams(record)


def test_what_was_kept_is_read_back_to_the_last_digit(record):
    run = load(record)
    series = replace(embedded.EmbeddedGrid().series("DE", run.started_s + 0.123456, run.ended_s), retrieved_on="2026-02-01")
    read = read_beside(write_beside(record, run.id, series), run.id).series
    assert np.array_equal(read.edges_s, series.edges_s) and np.array_equal(read.grams_per_kwh, series.grams_per_kwh)
    assert np.array_equal(read.quality, series.quality)
    assert (read.family, read.source, read.retrieved_on, read.errors) == (series.family, series.source, "2026-02-01", series.errors)
    assert read.notes[1:] == series.notes


def test_what_an_observed_hour_told_is_kept_too(record):
    run = load(record)
    series = embedded.EmbeddedGrid().series("DE", run.started_s, run.ended_s)
    (quality,) = series.errors
    anchored = replace(series, errors={quality: replace(series.errors[quality], observed_s=run.started_s - HOUR)})

    assert read_beside(write_beside(record, run.id, anchored), run.id).series.errors == anchored.errors


def test_another_kind_of_number_is_no_update(record):
    done = refresh(record, PlaceOptions(), source=Flat(family=Family("direct", "production", "average", "CO2")))
    assert not done.is_same_family


def test_a_run_of_which_nobody_knows_where_it_was_is_not_refreshed(tmp_path):
    for name, place in (("nowhere", Place(None, "", "UTC")), ("guessed", Place("DE", "guessed from the time zone Europe/Berlin", None))):
        path = tmp_path / f"{name}.jsonl"
        save(replace(make_record({"gpu": 100}, 1), place=place), path)
        with pytest.raises(PlaceError, match="give --zone"):
            refresh(path, PlaceOptions(), source=Flat())
        refresh(path, PlaceOptions(zone="DE"), source=Flat())
        assert not slugs(path) & {"zone-unknown", "zone-guessed"}


def test_a_folder_that_cannot_be_written_is_an_error_and_leaves_nothing(record):
    (record.parent / "run.grid.json").mkdir()
    with pytest.raises((GridError, OutputError), match="run.grid.json"):
        refresh(record, PlaceOptions(), source=Flat())


def test_the_key_is_in_neither_record_nor_hours_nor_statement(record, httpserver, tmp_path):
    rows = [{"zone": "DE", "carbonIntensity": 300 + i, "datetime": f"2026-01-15T{12 + i}:00:00.000Z"} for i in range(6)]
    httpserver.expect_request("/v4/carbon-intensity/past-range").respond_with_json({"zone": "DE", "data": rows})
    environ = {"ELECTRICITYMAPS_API_KEY": "s3cret"}
    source = electricitymaps.create({"url": httpserver.url_for("").rstrip("/")}, fetch=Fetcher(), environ=environ)
    done = refresh(record, PlaceOptions(pue="1"), source=replace(source, cache=None))
    assert done.after.value == pytest.approx(300 * 50 / 60 + 301 + 302 + 303 + 304 * 40 / 60)
    statement([record], [tmp_path / "energy.md", tmp_path / "energy.json"])
    assert all(b"s3cret" not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


# Through the command line


def carbonreport(folder: Path, *arguments: str, environ: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("CARBONREPORT_", "ELECTRICITYMAPS_"))}
    clean |= {"CARBONREPORT_CACHE": str(folder / ".cache"), "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])}
    return subprocess.run(
        [sys.executable, "-m", "carbonreport", *arguments],
        cwd=folder,
        env={**clean, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_refresh_says_what_was_fetched_and_how_far_the_figure_moved(record):
    (record.parent / "flatgrid.py").write_text(PLUGIN)
    done = carbonreport(record.parent, "refresh", record.name, "--grid", "flatgrid:create", "--pue", "1.0")
    assert done.returncode == 0, done.stderr
    assert "4.50 h measured, DE, a flat grid; wrote run.grid.json" in done.stdout
    assert "its own hours" in done.stdout and "%)" in done.stdout
    shown = json.loads(carbonreport(record.parent, "show", record.name, "--pue", "1.0", "--json").stdout)
    assert shown["grams"]["value"] == pytest.approx(450)


def test_of_several_records_those_that_can_be_are_refreshed_and_the_others_named(record):
    (record.parent / "flatgrid.py").write_text(PLUGIN)
    done = carbonreport(record.parent, "refresh", record.name, "none.jsonl", "--grid", "flatgrid:create")
    assert done.returncode == 1
    assert "none.jsonl" in done.stderr and "wrote run.grid.json" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (("--zone", "DE"), {"CARBONREPORT_OFFLINE": "1"}, "api.energy-charts.info was not asked: CARBONREPORT_OFFLINE"),
        (("--zone", "DE", "--offline"), {}, "was not asked"),
        (("--zone", "DE"), {"CARBONREPORT_OFFLINE": "1", "ELECTRICITYMAPS_API_KEY": "s3cret"}, "api.electricitymaps.com was not asked"),
        (("--zone", "SG"), {}, "no provider of SG answers without a key: set ELECTRICITYMAPS_API_KEY"),
        (("--zone", "GB"), {}, "--grid uk, which is direct CO2 alone"),
        (("--grid", "electricitymaps"), {"CARBONREPORT_OFFLINE": "1"}, "set ELECTRICITYMAPS_API_KEY"),
        (("--grid", "watttime"), {}, "marginal"),
        (("--grid", "oracle"), {}, "neither one of embedded, electricitymaps, energycharts, uk, watttime nor a file"),
    ],
)
def test_what_cannot_be_fetched_is_one_line_and_nothing_is_written(record, arguments, environ, message):
    done = carbonreport(record.parent, "refresh", record.name, *arguments, environ=environ)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and message in done.stderr and "s3cret" not in done.stderr
    assert not path_beside(record).exists()


def test_direct_numbers_are_asked_for_by_a_word_behind_the_source(record):
    lifecycle, direct = grams(record), grams(record, grid="embedded:direct")
    share = embedded.EmbeddedGrid().direct_share("DE")
    assert direct == pytest.approx(share * lifecycle)
    for text, message in (
        ("uk:direct", "neither one of"),
        ("embedded:marginal", "neither one of"),
        ("no.such:create", "something installed"),
    ):
        with pytest.raises(GridError, match=message):
            grams(record, grid=text)


def test_show_takes_the_name_of_a_source_as_its_grid(record):
    done = carbonreport(record.parent, "show", record.name, "--grid", "energycharts", environ={"CARBONREPORT_OFFLINE": "1"})
    assert done.returncode == 1 and "api.energy-charts.info was not asked" in done.stderr
