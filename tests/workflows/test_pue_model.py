"""A site whose PUE follows the weather: from the site file through record, refresh and file to the statement; and its water."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.cli.main import main
from carbonreport.combine.pue_fit import fit
from carbonreport.errors import FetchError, SiteError
from carbonreport.grid.beside import path_beside
from carbonreport.grid.openmeteo import OpenMeteo, Spot
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.model.weather import Weather
from carbonreport.site import read_site
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.weather_file import read_weather, stull
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of
from carbonreport.workflows.refresh import refresh
from carbonreport.workflows.statement import statement
from carbonreport.workflows.verify import Asked, verify

HOUR = 3600.0
START = datetime(2026, 7, 15, 11, 30, tzinfo=UTC).timestamp()
SEASONS = 'model = "dry-bulb", winter = 1.12, summer = 1.30, latitude = 52.52, longitude = 13.40'
POINTS = 'model = "wet-bulb", at = [[10, 1.05], [24, 1.25]], latitude = 52.52, longitude = 13.40'


class Sky(OpenMeteo):
    """A summer day of 30 degrees, and a year between 0 and 20."""

    def weather(self, spot: Spot, start_s: float, end_s: float) -> Weather:
        starts = [start_s // HOUR * HOUR + HOUR * i for i in range(math.ceil((end_s - start_s // HOUR * HOUR) / HOUR))]
        is_year = end_s - start_s > 300 * 86400
        celsius = [10 - 10 * math.cos(2 * math.pi * i / 8760) if is_year else 30.0 for i in range(len(starts))]
        return Weather(spot.bulb, tuple(starts), tuple(s + HOUR for s in starts), tuple(celsius), "Open-Meteo (CC BY 4.0)", "2026-08-01")


class Clouded(OpenMeteo):
    """Cannot be asked."""

    def weather(self, spot: Spot, start_s: float, end_s: float) -> Weather:
        raise FetchError("api.open-meteo.com cannot be reached")


SKY, CLOUDED = (kind(lambda request: b"") for kind in (Sky, Clouded))


def site_file(folder: Path, pue: str = SEASONS, more: str = "") -> Path:
    path = folder / "carbonreport.toml"
    path.write_text(f'[place]\nzone = "DE"\ntime_zone = "Europe/Berlin"\npue = {{ {pue} }}\n{more}\n')
    return path


def recorded(folder: Path, site: Path, hours: float = 3.0) -> Path:
    """A run whose record holds what its site file said at the start."""
    options = PlaceOptions(site=str(site))
    place = recording_place(options, site_of(options, {}, folder), {}, None)
    run = replace(make_record({"GPU": 1000.0}, hours, start="2026-07-15T11:30Z"), place=place)
    return save(run, folder / "run.jsonl")


def shown(record: Path, site: Path | None = None, **options):
    return charge_records(load_records([record]), PlaceOptions(site=None if site is None else str(site), **options), {}).footprint


def slugs(footprint) -> set[str]:
    return {note.slug for note in footprint.notes}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab").mkdir()
    return tmp_path / "lab"


def test_without_weather_the_annual_value_is_used_aloud_with_both_numbers_as_its_range(folder):
    footprint = shown(recorded(folder, site_file(folder)))

    assert footprint.pue.value == approx(1.21)
    assert (footprint.pue.low, footprint.pue.high, footprint.pue.origin) == (approx(1.12), approx(1.30), "estimated")
    assert "pue-no-weather" in slugs(footprint) and "pue-modelled" not in slugs(footprint)
    assert any("no weather is known for 3.00\u00a0h of “run”; the annual PUE of 1.21 was used" in note.text for note in footprint.notes)


def test_the_record_tells_the_model_but_not_the_place(folder):
    raw = recorded(folder, site_file(folder)).read_text()

    assert "dry-bulb model fitted to 1.12 in winter and 1.30 in summer" in raw
    assert "52.5" not in raw and "13.4" not in raw


def test_refresh_fetches_the_weather_and_the_statement_says_model_source_and_interval(folder):
    site = site_file(folder)
    record = recorded(folder, site)
    raw = record.read_bytes()

    done = refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)

    model = read_site(site).pue_model
    assert model is not None
    expected = fit(model, SKY.weather(Spot(0, 0, "dry-bulb"), *(datetime(y, 1, 1, tzinfo=UTC).timestamp() for y in (2025, 2026)))).pue(30)
    footprint = shown(record)
    assert record.read_bytes() == raw
    assert footprint.pue.value == approx(expected) and expected > 1.30
    assert (footprint.pue.low, footprint.pue.high) == (approx(0.96 * expected), approx(1.04 * expected))
    assert "pue-modelled" in slugs(footprint) and "pue-no-weather" not in slugs(footprint)
    assert done.pue is not None and not done.without_pue
    assert done.after.value / done.before.value == approx(expected / 1.21)
    (text,) = (path.read_text() for path in statement([record], [folder / "energy.md"]))
    assert "At a modelled PUE of" in text
    assert "dry-bulb model fitted to 1.12 in winter and 1.30 in summer; weather of Open-Meteo, CC BY 4.0" in text
    assert "fitted on weather of 2025" in text and "fetched on 2026-08-01" in text and "−4 to +4" in text
    assert "52.5" not in path_beside(record).read_text() and "13.4" not in path_beside(record).read_text()


def test_each_hour_has_its_own_pue_and_energy_is_multiplied_once(folder):
    site = site_file(folder, POINTS)
    record = recorded(folder, site)
    refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)

    footprint = shown(record)

    assert footprint.pue.value == approx(1.05 + 0.2 * 14 / 8)
    assert footprint.facility_joules.value == approx(3000 * HOUR * footprint.pue.value)


def test_a_number_on_the_command_line_overrules_the_model(folder):
    site = site_file(folder)
    record = recorded(folder, site)
    refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)

    footprint = shown(record, pue="1.5")

    assert footprint.pue.value == 1.5 and not slugs(footprint) & {"pue-modelled", "pue-no-weather"}


def test_hours_of_another_model_are_not_used_and_that_is_said(folder):
    site = site_file(folder)
    record = recorded(folder, site)
    refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)
    path = path_beside(record)
    path.write_text(path.read_text().replace("fitted to 1.12", "fitted to 1.15"))

    footprint = shown(record)

    assert footprint.pue.value == approx(1.21)
    assert any("is of another model" in note.text for note in footprint.notes)


def test_weather_that_cannot_be_had_keeps_nobody_from_the_intensities(folder):
    site = site_file(folder)
    record = recorded(folder, site)

    done = refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=CLOUDED)

    assert done.pue is None and "cannot be reached" in done.without_pue
    assert "grid-refreshed" in slugs(shown(record)) and "pue-no-weather" in slugs(shown(record))
    missing = refresh(record, PlaceOptions(), environ={}, source=EmbeddedGrid(), weather=SKY)
    assert "give --site FILE" in missing.without_pue


def test_without_the_site_file_refresh_says_its_numbers_and_a_file_with_them_and_the_place_serves(folder):
    lost = site_file(folder, SEASONS + ', source = "operator"')
    record = recorded(folder, lost)
    lost.unlink()

    without = refresh(record, PlaceOptions(), environ={}, source=EmbeddedGrid(), weather=SKY)

    assert without.pue is None
    assert "dry-bulb model fitted to 1.12 in winter and 1.30 in summer, operator; give --site FILE" in without.without_pue
    (folder / "again").mkdir()
    again = site_file(folder / "again", SEASONS + ', source = "operator"')
    assert refresh(record, PlaceOptions(site=str(again)), environ={}, source=EmbeddedGrid(), weather=SKY).pue is not None


def test_a_file_of_temperatures_needs_no_network(folder):
    (folder / "air.csv").write_text(
        "time,temperature (°C)\n2026-07-15T11:00Z,30\n2026-07-15T12:00Z,20\n2026-07-15T13:00Z,\n2026-07-15T14:00Z,5\n"
    )
    site = site_file(folder, 'model = "dry-bulb", at = [[5, 1.1], [30, 1.3]], weather = "air.csv"')

    footprint = shown(recorded(folder, site), site)

    model = read_site(site).pue_model
    assert model is not None
    twenty = fit(model).pue(20)
    # half an hour of 30 °C, two of 20 °C (a row lasts until the next one, three hours at most), half an hour of 5 °C
    assert footprint.pue.value == approx((0.5 * 1.3 + 2 * twenty + 0.5 * 1.1) / 3)
    assert any("weather of file air.csv" in note.text for note in footprint.notes)


def test_a_file_that_ends_before_the_run_leaves_the_rest_at_the_annual_value_aloud(folder):
    (folder / "air.csv").write_text("time,temperature\n2026-07-15T11:00Z,30\n2026-07-15T12:00Z,30\n")
    site = site_file(folder, 'model = "dry-bulb", at = [[5, 1.1], [30, 1.3]], weather = "air.csv"')

    footprint = shown(recorded(folder, site), site)

    assert slugs(footprint) >= {"pue-modelled", "pue-no-weather"}
    assert footprint.pue.value == approx((1.5 * 1.3 + 1.5 * 1.2) / 3)
    assert any("no weather is known for 90\u00a0min" in note.text for note in footprint.notes)


def test_the_wet_bulb_is_read_or_made_of_temperature_and_humidity(tmp_path):
    path = tmp_path / "air.csv"
    path.write_text("time (UTC),temperature,relative humidity,wet bulb\n2026-07-15T11:00,20,50,13.5\n2026-07-15T12:00,20,50,13.6\n")
    assert read_weather(path, "wet-bulb").celsius == (13.5, 13.6)
    assert read_weather(path, "dry-bulb").celsius == (20, 20)
    path.write_text("time (UTC),temperature,humidity\n2026-07-15T11:00,20,50\n2026-07-15T12:00,20,50\n")
    assert read_weather(path, "wet-bulb").celsius[0] == approx(13.7, abs=0.05)  # the example of Stull 2011
    assert stull(20, 50) == approx(13.7, abs=0.05)


@pytest.mark.parametrize(
    ("pue", "words"),
    [
        ('model = "dry", winter = 1.1, summer = 1.3, latitude = 1, longitude = 2', "model 'dry' is none of dry-bulb, wet-bulb"),
        ('model = "dry-bulb", summer = 1.3, latitude = 1, longitude = 2', "a model takes two numbers"),
        ('model = "dry-bulb", value = 1.2, winter = 1.1, summer = 1.3, latitude = 1, longitude = 2', "a model takes two numbers"),
        ('model = "dry-bulb", value = 1.1, summer = 1.3, latitude = 1, longitude = 2', "leave 0.9 for the other half"),
        ('model = "dry-bulb", winter = 1.3, summer = 1.1, latitude = 1, longitude = 2', "the warm one above the cold one"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3', "needs the weather"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, latitude = 1', "latitude and longitude belong together"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, latitude = 91, longitude = 2', "no degrees north"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, weather = "none.csv"', "cannot read"),
        ('model = "dry-bulb", at = [[5, 1.1]], latitude = 1, longitude = 2', "two pairs of °C and PUE"),
        ('model = "dry-bulb", at = [[5, 1.1], [30, 1.3]], summer = 1.3, latitude = 1, longitude = 2', "two numbers are enough"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, knee_celsius = 10, latitude = 1, longitude = 2', "belongs to the wet-bulb model"),
        ('model = "wet-bulb", at = [[5, 1.1], [15, 1.3]], latitude = 1, longitude = 2', "not above the knee"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, hours = [1.2], latitude = 1, longitude = 2', "exclude each other"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, load = 0.5, latitude = 1, longitude = 2', "load and fixed_share belong together"),
        ("value = 1.2, latitude = 1", "latitude belongs to a model"),
        ('model = "dry-bulb", winter = 1.1, summer = 1.3, latitud = 1', "nearest: latitude"),
    ],
)
def test_what_a_site_file_says_wrong_is_one_line_before_the_first_step(folder, pue, words):
    with pytest.raises(SiteError, match=words) as caught:
        recorded(folder, site_file(folder, pue))
    assert "\n" not in str(caught.value) and "carbonreport.toml: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("time,pressure\n2026-07-15T11:00Z,3\n2026-07-15T12:00Z,3\n", "no columns of time and temperature"),
        ("time,temperature (°F)\n2026-07-15T11:00Z,3\n2026-07-15T12:00Z,3\n", "must be in °C"),
        ("time,temperature\n2026-07-15T11:00,3\n2026-07-15T12:00,3\n", r"air\.csv:2.*no zone"),
        ("time,temperature\n2026-07-15T11:00Z,x\n2026-07-15T12:00Z,3\n", r"air\.csv:2: 'x' is no temperature"),
        ("time,temperature\n2026-07-15T11:00Z,300\n2026-07-15T12:00Z,3\n", r"air\.csv:2: 300 °C"),
        ("time,temperature\n2026-07-15T11:00Z\n2026-07-15T12:00Z,3\n", r"air\.csv:2: the line ends"),
        ("time,temperature\n2026-07-15T11:00Z,3\n2026-07-15T11:00Z,3\n", "one time twice"),
        ("time,temperature\n2026-07-15T11:00Z,3\n2026-07-15T12:00Z,4\n", "need a year of weather, not 0 days"),
    ],
)
def test_a_wrong_file_of_temperatures_is_refused_with_its_line(folder, text, words):
    (folder / "air.csv").write_text(text)
    with pytest.raises(SiteError, match=words):
        read_site(site_file(folder, 'model = "dry-bulb", winter = 1.1, summer = 1.3, weather = "air.csv"'))


def test_the_command_says_what_became_of_the_weather(folder, capsys, monkeypatch):
    record = recorded(folder, site_file(folder))
    (folder / "de.csv").write_text("time,g_per_kwh\n2026-07-15T11:00Z,300\n2026-07-15T16:00Z,300\n")
    monkeypatch.setenv("CARBONREPORT_OFFLINE", "1")
    monkeypatch.setenv("CARBONREPORT_CACHE", str(folder / ".cache"))
    with pytest.raises(SystemExit) as ended:
        main(["refresh", str(record), "--grid", str(folder / "de.csv"), "--site", str(folder / "carbonreport.toml")])
    out = capsys.readouterr().out
    assert ended.value.code == 0
    assert "pue-no-weather: the annual PUE stays: archive-api.open-meteo.com was not asked" in out


def test_a_blind_statement_tells_neither_the_models_numbers_nor_the_weathers_file(folder):
    (folder / "nebelstadt.csv").write_text("time,temperature\n2026-07-15T11:00Z,30\n2026-07-15T15:00Z,20\n")
    site = site_file(folder, 'model = "dry-bulb", at = [[5, 1.1], [30, 1.3]], weather = "nebelstadt.csv", source = "Nebelstadt"')
    record = recorded(folder, site)

    for path in statement([record], [folder / "blind.md", folder / "blind.json"], site=site, anonymous=True):
        text = path.read_text()
        assert "ebelstadt" not in text and "1.30" not in text
        assert "a model of the facility by the weather" in text


def test_the_hours_beside_a_record_are_inputs_of_the_statement_and_verified(folder):
    site = site_file(folder)
    record = recorded(folder, site)
    statement([record], [folder / "before.json"])
    refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)
    statement([record], [folder / "energy.md", folder / "energy.json"])

    inputs = json.loads((folder / "energy.json").read_text())["inputs"]
    assert [row["file"] for row in inputs["hours"]] == ["run.grid.json"] and len(inputs["hours"][0]["sha256"]) == 64
    assert "hours" not in json.loads((folder / "before.json").read_text())["inputs"]
    assert verify(folder / "energy.md", [record], Asked()) == []
    assert verify(folder / "before.json", [record], Asked())[0] == "run.grid.json beside its record is not the statement’s"

    path = path_beside(record)
    path.write_text(path.read_text().replace('"written_by"', ' "written_by"', 1))
    assert verify(folder / "energy.md", [record], Asked())[0] == "run.grid.json of the statement is not beside its record, or has changed"
    path.unlink()
    assert verify(folder / "energy.md", [record], Asked())[0] == "run.grid.json of the statement is not beside its record, or has changed"


def test_hours_that_were_not_used_are_no_inputs(folder):
    site = site_file(folder)
    record = recorded(folder, site)
    refresh(record, PlaceOptions(site=str(site)), environ={}, source=EmbeddedGrid(), weather=SKY)

    by_weather, by_neither = (
        charge_records(load_records([record]), PlaceOptions(grid="embedded", pue=pue), {}).beside for pue in (None, "1.2")
    )

    assert [name for name, _ in by_weather] == ["run.grid.json"]
    assert by_neither == ()


# Water


def test_water_is_it_energy_times_the_sites_use_in_a_row_of_its_own_and_in_no_sum_of_carbon(folder):
    use = "wue_litres_per_kwh = { value = 0.3, low = 0.2, high = 0.5, source = 'water meter 2025' }"
    dry, wet = (shown(recorded_in(folder / name), site_file(folder, "value = 1.2", more)) for name, more in (("dry", ""), ("wet", use)))

    assert dry.water is None and wet.water is not None
    assert wet.water.value == approx(3 * 0.3) and wet.water.unit == "L"
    assert 0.6 * 0.9 < wet.water.low < wet.water.value < wet.water.high < 1.5 * 1.1
    assert wet.grams == dry.grams and wet.facility_joules == dry.facility_joules


def recorded_in(folder: Path) -> Path:
    folder.mkdir()
    return save(make_record({"GPU": 1000.0}, 3, zone="DE"), folder / "run.jsonl")


def test_the_statement_has_water_where_the_site_gave_it_and_nothing_where_not(folder):
    record = recorded_in(folder / "runs")
    site = site_file(folder, "value = 1.2", "wue_litres_per_kwh = 0.3")

    (with_water,) = (p.read_text() for p in statement([record], [folder / "a.md"], site=site))
    (blind,) = (p.read_text() for p in statement([record], [folder / "c.md"], site=site, anonymous=True))
    (without,) = (p.read_text() for p in statement([record], [folder / "b.md"], zone="DE", pue="1.2"))

    assert (
        "Water on site" in with_water
        and "Water used on site was 900\u00a0mL" in with_water
        and "0.3\u00a0L/kWh (site file, no range given)" in with_water
    )
    assert "900\u00a0mL" in with_water
    assert "Water on site" in blind and "site file" not in blind
    assert "on site" not in without


@pytest.mark.parametrize("use", ["-0.1", "1e9", "{ value = 0.3, low = 0.4 }", "{ value = 0.3, high = 0.2 }", "nan"])
def test_a_use_of_water_that_cannot_be_is_refused(folder, use):
    with pytest.raises(SiteError, match="wue_litres_per_kwh"):
        read_site(site_file(folder, "value = 1.2", f"wue_litres_per_kwh = {use}"))


def test_a_run_of_an_older_record_keeps_its_own_pue(folder):
    record = save(make_record({"GPU": 1000.0}, 1, zone="DE"), folder / "old.jsonl")
    run = load(record)
    assert run.place.pue is None
    assert "pue-no-weather" in slugs(shown(record, site_file(folder)))  # the record has none, so the site's model counts
