"""The embedded profiles, shipped ones and small ones of a test's own."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from carbonreport.errors import UnknownZone
from carbonreport.grid.sources.embedded import ERRORS_BY_LEVEL, EmbeddedGrid, available, create
from carbonreport.grid.zones import DATA
from carbonreport.model.series import QUALITIES, IntensitySeries

START_S = 1_717_200_000.0  # 2024-06-01 00:00 UTC
END_S = START_S + 86400

ZONES = """zone,name,time_zone,dataset,level_2023,level_2024,sd_fast_6h,sd_synoptic_48h,sd_slow_60d,sd_level_per_sqrt_year,marks,successor,country
AA,Aland,UTC,2022,,200,0.1,0.0,0.3,0.2,,,AA
AA-LO,Low,UTC,,80,100,0.1,0.2,0.3,0.2,,,AA
AA-HI,High,UTC,,300,500,0.1,0.2,0.3,0.2,retired,AA-LO,AA
"""
EMBER = "iso3,iso2,name,year,g_per_kwh\nAAA,AA,Aland,2023,210\nBBB,BB,Bland,2022,50\nWORLD,WORLD,World,2024,400\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "odbl").mkdir()
    (tmp_path / "odbl" / "zones.csv").write_text(ZONES)
    header = ",".join(["zone", *(f"m{month:02}h{hour:02}" for month in range(1, 13) for hour in range(24))])
    row = ",".join(["AA", *(["0.5"] * 12 + ["1.5"] * 12) * 12])
    with gzip.open(tmp_path / "odbl" / "shapes.csv.gz", "wt") as shapes:
        shapes.write(f"{header}\n{row}\n")
    (tmp_path / "odbl" / "weekends.csv").write_text("zone," + ",".join(f"h{hour:02}" for hour in range(24)) + "\n")
    (tmp_path / "ember_yearly.csv").write_text(EMBER)
    return tmp_path


def slugs(series: IntensitySeries) -> list[str]:
    return [slug for slug, _ in series.notes]


def test_a_zone_with_a_shape_follows_it(data):
    series = EmbeddedGrid(data).series("aa", START_S, END_S)
    assert list(series.grams_per_kwh) == [100.0] * 12 + [300.0] * 12
    assert slugs(series) == ["typical-profile"]
    assert series.errors["typical"].terms == ((0.1, 6.0), (0.3, 1440.0))


def test_a_zone_with_weekends_follows_them_and_says_that_holidays_are_not_known(data):
    with (data / "odbl" / "weekends.csv").open("a") as weekends:
        weekends.write("AA," + ",".join(["0.75"] * 12 + ["1.0"] * 12) + "\n")
    saturday = EmbeddedGrid(data).series("AA", START_S, END_S)
    monday = EmbeddedGrid(data).series("AA", START_S + 2 * 86400, END_S + 2 * 86400)
    assert saturday.grams_per_kwh / monday.grams_per_kwh == pytest.approx([0.75] * 12 + [1.0] * 12)
    assert list(monday.grams_per_kwh) == pytest.approx([100 * 7 / 6.5] * 12 + [300.0] * 12)
    assert "holidays are not known" in saturday.notes[0][1]


def test_a_package_without_the_table_of_weekends_has_all_days_alike(data):
    with_empty = EmbeddedGrid(data).series("AA", START_S, END_S)
    (data / "odbl" / "weekends.csv").unlink()
    assert list(EmbeddedGrid(data).series("AA", START_S, END_S).grams_per_kwh) == list(with_empty.grams_per_kwh)


def test_a_zone_without_a_shape_has_its_level_and_says_so(data):
    series = EmbeddedGrid(data).series("AA-LO", START_S, END_S)
    assert list(series.grams_per_kwh) == [100.0]
    assert slugs(series) == ["annual-level"]


def test_a_retired_zone_names_its_successor(data):
    series = EmbeddedGrid(data).series("AA-HI", START_S, END_S)
    assert slugs(series) == ["annual-level", "zone-retired"]
    assert "AA-LO" in series.notes[1][1]


def test_a_guessed_country_spans_the_zones_inside_it(data):
    grid = EmbeddedGrid(data)
    assert grid.series("AA", START_S, END_S, guessed=True).bounds == (0.5, 2.5)
    assert grid.series("AA", START_S, END_S).bounds is None


def test_a_country_that_only_ember_knows_is_charged_at_its_yearly_mean(data):
    series = EmbeddedGrid(data).series("BBB", START_S, END_S)
    assert list(series.grams_per_kwh) == [50.0]
    assert slugs(series) == ["grid-yearly-fallback"]
    assert series.family.accounting == "production"
    assert series.errors["annual"].level_sd == pytest.approx(0.319 * 2**0.5)


def test_the_world_is_charged_at_its_mean_with_bounds_that_span_the_countries(data):
    series = EmbeddedGrid(data).series("WORLD", START_S, END_S)
    low, high = np.percentile([210, 50], [5, 95])
    assert list(series.grams_per_kwh) == [400.0]
    assert series.bounds == pytest.approx((low / 400, high / 400))


def test_without_the_open_database_every_zone_has_embers_yearly_mean(data):
    for file in (data / "odbl").iterdir():
        file.unlink()
    series = EmbeddedGrid(data).series("AA-LO", START_S, END_S)
    assert (series.zone, list(series.grams_per_kwh)) == ("AA", [210.0])
    assert slugs(series) == ["grid-yearly-fallback"]
    assert "AA-LO" in series.notes[0][1]


def test_an_unknown_zone_is_refused(data):
    with pytest.raises(UnknownZone):
        EmbeddedGrid(data).series("ZZ", START_S, END_S)


def test_every_shipped_zone_expands():
    assert available() is None
    grid = create({})
    lines = (DATA / "odbl" / "zones.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert len(lines) == 355
    for line in lines:
        series = grid.series(line.split(",")[0], START_S, END_S)
        assert np.all(series.grams_per_kwh > 0)
        assert "grid-yearly-fallback" not in slugs(series)


def test_every_shipped_shape_has_the_mean_one():
    days = np.array([31, 28.25, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    grid = EmbeddedGrid()
    with gzip.open(DATA / "odbl" / "shapes.csv.gz", "rt") as lines:
        zones = [line.split(",")[0] for line in lines][1:]
    assert len(zones) == 117
    for zone in zones:
        shape = grid.profile(zone).shape
        assert shape is not None
        assert np.average(shape.mean(axis=1), weights=days) == pytest.approx(1, abs=0.002), zone


def test_shipped_weekends_are_those_of_zones_with_measured_hours_and_go_their_way():
    grid = EmbeddedGrid()
    zones = [line.split(",")[0] for line in (DATA / "odbl" / "weekends.csv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(zones) == 101
    for zone in zones:
        profile = grid.profile(zone)
        assert profile.shape is not None and profile.weekend_ratio is not None
        assert not set(profile.marks) & {"constant", "estimated"}
    noon_s = START_S + 10 * 3600  # Saturday in Berlin
    saturday, monday = (grid.series("DE", at_s, at_s + 3600).grams_per_kwh[0] for at_s in (noon_s, noon_s + 2 * 86400))
    assert saturday == pytest.approx(0.79 * monday, abs=0.01 * monday)
    assert grid.profile("TR").weekend_ratio is None  # its weeks scatter by more than its weekends differ


@pytest.mark.parametrize("zone", ["HK", "ID", "US-NW-SCL", "KR"])
def test_a_zone_whose_hours_hardly_change_has_no_day_curve(zone):
    series = EmbeddedGrid().series(zone, START_S, END_S)
    assert series.grams_per_kwh.size == 1
    assert slugs(series)[0] == "grid-constant"


def test_an_estimated_zone_says_so():
    assert slugs(EmbeddedGrid().series("IN-WE", START_S, END_S)) == ["typical-profile", "grid-estimated"]


def test_the_sun_makes_noon_in_california_cleaner_than_the_evening():
    series = EmbeddedGrid().series("CAISO", START_S, END_S)
    # 19:30 and 04:30 UTC are 12:30 and 21:30 in California.
    noon, evening = (series.grams_per_kwh[np.searchsorted(series.edges_s, START_S + hours * 3600) - 1] for hours in (19.5, 4.5))
    assert noon < 0.8 * evening
    assert {QUALITIES[index] for index in series.quality} == {"typical"}


def test_error_classes_in_code_are_those_of_the_shipped_zones_without_hours():
    grid = EmbeddedGrid()
    for zone in ("AE", "AF", "AG", "UG", "ZW", "ET"):
        profile = grid.profile(zone)
        level = profile.levels[2025]
        terms, level_sd = next((terms, level_sd) for upper, terms, level_sd in ERRORS_BY_LEVEL if level < upper)
        assert tuple(sd for sd, _ in profile.terms) == terms
        assert profile.level_sd_per_year == level_sd
