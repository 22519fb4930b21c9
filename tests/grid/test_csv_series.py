"""Intensities out of CSV files, good and bad."""

from pathlib import Path

import numpy as np
import pytest

from carbonreport.errors import BadSeries, BadTime, CarbonreportError, GridGap
from carbonreport.grid.sources.csv import CsvGrid, create
from carbonreport.grid.sources.embedded import EmbeddedGrid
from carbonreport.model.series import QUALITIES, Family, IntensitySeries

START_S = 1_704_067_200.0  # 2024-01-01 00:00 UTC
HOUR = 3600.0

ROWS = """2024-01-01 00:00:00,Spain,Spain,ES,82.99,114.42,84.03,50.66,entsoe.eu,false,
2024-01-01 01:00:00,Spain,Spain,ES,85.96,117.69,83.61,49.16,entsoe.eu,true,TIME_SLICER_AVERAGE
"""
OLD = (
    "Datetime (UTC),Country,Zone Name,Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA),"
    "Low Carbon Percentage,Renewable Percentage,Data Source,Data Estimated,Data Estimation Method\n" + ROWS
)
NEW = (
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO₂eq/kWh (direct),Carbon intensity gCO₂eq/kWh (Life cycle),"
    "Carbon-free energy percentage (CFE%),Renewable energy percentage (RE%),Data source,Data estimated,Data estimation method\n" + ROWS
)
ACADEMIC = """datetime,created_at,updated_at,timestamp,zone_name,carbon_intensity_avg,power_origin_percent_fossil_avg
2024-01-01 00:00:00+00:00,x,x,1,ES,114.42,20
2024-01-01 01:00:00+00:00,x,x,2,ES,117.69,20
"""
PLAIN = "time,g_per_kwh\n2024-01-01T00:00Z,100\n2024-01-01T01:00Z,200\n2024-01-01T02:00Z,300\n"


def grid(folder: Path, text: str | bytes, **options: str) -> CsvGrid:
    return create({"path": str(written(folder, text)), **options})


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "grid.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def slugs(series: IntensitySeries) -> list[str]:
    return [slug for slug, _ in series.notes]


@pytest.mark.parametrize("text", [OLD, NEW, ACADEMIC], ids=["old", "new", "academic"])
def test_each_header_of_electricity_maps_gives_life_cycle_intensities(tmp_path, text):
    series = grid(tmp_path, text).series("ES", START_S, START_S + 2 * HOUR)
    assert list(series.grams_per_kwh) == [114.42, 117.69]
    assert list(series.edges_s) == [START_S, START_S + HOUR, START_S + 2 * HOUR]
    assert series.family == Family("lifecycle", "consumption", "average")
    assert series.zone == "ES"


def test_hours_that_the_provider_estimated_are_noted_and_less_certain(tmp_path):
    series = grid(tmp_path, NEW).series("ES", START_S, START_S + 2 * HOUR)
    assert [QUALITIES[index] for index in series.quality] == ["measured", "estimated"]
    assert (series.errors["measured"].level_sd, series.errors["estimated"].level_sd) == (0.039, 0.1)
    assert slugs(series) == ["grid-estimated"]


def test_the_direct_column_is_taken_only_where_asked_for(tmp_path):
    series = grid(tmp_path, OLD, factor="direct").series("ES", START_S, START_S + HOUR)
    assert list(series.grams_per_kwh) == [82.99]
    assert series.family.factor == "direct"


def test_the_case_of_a_file_with_direct_intensities_only_is_refused(tmp_path):
    with pytest.raises(BadSeries, match="factor=direct"):
        grid(tmp_path, "datetime (UTC),gCO2eq/kWh (direct)\n2024-01-01,1\n2024-01-02,1\n")


def test_a_plain_file_does_not_claim_a_family(tmp_path):
    series = grid(tmp_path, PLAIN, zone="DE").series("DE", START_S, START_S + 3 * HOUR)
    assert list(series.grams_per_kwh) == [100, 200, 300]
    assert series.family == Family("not stated", "not stated", "average")


def test_a_series_is_cut_at_the_ends_of_the_period(tmp_path):
    series = grid(tmp_path, PLAIN).series("DE", START_S + 1800, START_S + 1.25 * HOUR)
    assert list(series.edges_s) == [START_S + 1800, START_S + HOUR, START_S + 1.25 * HOUR]
    assert list(series.grams_per_kwh) == [100, 200]


@pytest.mark.parametrize(
    "text",
    [
        "time;g_per_kwh\n2024-01-01T00:00Z;100,5\n2024-01-01T01:00Z;200\n",
        "time\tg_per_kwh\n2024-01-01T00:00Z\t100.5\n2024-01-01T01:00Z\t200\n",
        "\ufefftime,g_per_kwh\n2024-01-01T00:00Z,100.5\n2024-01-01T01:00Z,200\n",
        "time,g_per_kwh\n2024-01-01T00:00Z,100.5\n2024-01-01T01:00Z,200\n".encode("utf-16"),
        "Time (UTC), g/kWh\r\n2024-01-01 00:00, 100.5\r\n\r\n2024-01-01 01:00, 200\r\n",
        "time,g_per_kwh\n2024-01-01T06:30+05:30,200\n2024-01-01T01:00+01:00,100.5\n",
        "time,gCO2e_per_kWh\n2024-01-01T00:00Z,100.5\n2024-01-01T00:00Z,100.5\n2024-01-01T01:00Z,200\n",
        "time,energy_kwh,carbon intensity (gCO₂/kWh)\n2024-01-01T00:00Z,7,100.5\n2024-01-01T01:00Z,7,200\n",
    ],
    ids=["semicolons", "tabs", "utf-8 bom", "utf-16", "utc column", "offsets out of order", "the same row twice", "another kwh"],
)
def test_every_common_way_to_write_a_file_is_read(tmp_path, text):
    series = grid(tmp_path, text).series("DE", START_S, START_S + 2 * HOUR)
    assert list(series.grams_per_kwh) == [100.5, 200]


ROW = "time,g_per_kwh\n2024-01-01T00:00Z,1\n"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (ROW + "2024-01-01T01:00,2\n", BadTime, r"grid.csv:3: .*no zone; append Z"),
        (ROW + "yesterday,2\n", BadTime, r"grid.csv:3: cannot read the time 'yesterday'; write it as"),
        (ROW + "2024-01-01T01:00Z,-2\n", BadSeries, r"grid.csv:3: -2 g/kWh is not a possible intensity"),
        (ROW + "2024-01-01T01:00Z,nan\n", BadSeries, r"grid.csv:3: nan g/kWh"),
        (ROW + "2024-01-01T01:00Z,inf\n", BadSeries, r"grid.csv:3: inf g/kWh"),
        (ROW + "2024-01-01T01:00Z,lots\n", BadSeries, r"grid.csv:3: 'lots' is not a number"),
        (ROW + "2024-01-01T01:00Z\n", BadSeries, r"grid.csv:3: .*cut off"),
        (ROW + "2024-01-01T01:00Z,100,5\n", BadSeries, r"grid.csv:3: 3 cells .*semicolons"),
        (ROW + "2024-01-01T00:00Z,2\n", BadSeries, r"grid.csv:3: the time of grid.csv:2 again"),
        (ROW, BadSeries, "one time only"),
        ("time,g_per_kwh\n", BadSeries, "no rows"),
        ("", BadSeries, "no rows"),
        ("time,g_per_kwh\n2024-01-01T00:00Z,\n2024-01-01T01:00Z,\n", BadSeries, "no intensity in any row"),
        ("when,g_per_kwh\n2024-01-01T00:00Z,1\n", BadSeries, "no column of times"),
        ("time,lb_per_mwh\n2024-01-01T00:00Z,1\n", BadSeries, "0.4536"),
        ("time,kwh\n2024-01-01T00:00Z,1\n", BadSeries, "no column of intensities"),
        ("time,g_per_kwh,old g/kWh\n2024-01-01T00:00Z,1,2\n", BadSeries, "2 columns of intensities"),
        ("time,zone,g_per_kwh\n2024-01-01T00:00Z,DE,1\n2024-01-01T01:00Z,FR,1\n", BadSeries, r"grid.csv:3: zone FR in a file of DE"),
        (b"time,g_per_kwh\n2024-01-01T00:00Z,1\xff\n", BadSeries, "not UTF-8"),
    ],
)
def test_a_bad_file_is_refused_with_its_line_and_a_way_out(tmp_path, text, error, message):
    with pytest.raises(error, match=message) as caught:
        grid(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(BadSeries, match="cannot read"):
        create({"path": str(tmp_path / "none.csv")})
    with pytest.raises(BadSeries, match="needs the path"):
        create({})


def test_an_unknown_factor_is_refused(tmp_path):
    with pytest.raises(BadSeries, match="neither lifecycle nor direct"):
        grid(tmp_path, PLAIN, factor="marginal")


def test_a_file_of_another_zone_is_refused(tmp_path):
    with pytest.raises(BadSeries, match="holds zone ES, not DE"):
        grid(tmp_path, NEW).series("DE", START_S, START_S + HOUR)
    with pytest.raises(BadSeries, match="holds zone ES, not DE"):
        grid(tmp_path, NEW, zone="DE")
    assert grid(tmp_path, NEW).series("esp", START_S, START_S + HOUR).zone == "ES"
    assert grid(tmp_path, NEW).series("WORLD", START_S, START_S + HOUR).zone == "ES"


HOLED = "time,zone,gCO2/kWh (life cycle)\n2024-01-01T00:00Z,DE,100\n2024-01-01T01:00Z,DE,\n2024-01-01T02:00Z,DE,300\n2024-01-01T03:00Z,DE,400\n2024-01-01T06:00Z,DE,700\n"


@pytest.mark.parametrize(("start", "end"), [(0, 2), (0, 4), (3, 5), (-1, 1), (6, 8), (100, 101)])
def test_a_period_with_missing_hours_is_refused_without_a_filling(tmp_path, start, end):
    with pytest.raises(GridGap, match="no intensity for DE"):
        grid(tmp_path, HOLED).series("DE", START_S + start * HOUR, START_S + end * HOUR)


def test_hours_around_a_hole_can_be_used(tmp_path):
    held = grid(tmp_path, HOLED)
    assert list(held.series("DE", START_S + 2 * HOUR, START_S + 4 * HOUR).grams_per_kwh) == [300, 400]
    assert list(held.series("DE", START_S + 6 * HOUR, START_S + 7 * HOUR).grams_per_kwh) == [700]


def test_missing_hours_are_taken_from_the_typical_profile_aloud(tmp_path):
    profiles = EmbeddedGrid()
    filled = create({"path": str(written(tmp_path, HOLED))}, fill=profiles.series).series("DE", START_S - HOUR, START_S + 8 * HOUR)

    assert list(filled.edges_s) == [START_S + hour * HOUR for hour in range(-1, 9)]
    assert [QUALITIES[index][0] for index in filled.quality] == list("tmtmmttmt")
    assert filled.grams_per_kwh[2] == profiles.series("DE", START_S + HOUR, START_S + 2 * HOUR).grams_per_kwh[0]
    assert set(filled.errors) == {"measured", "typical"}
    assert slugs(filled) == ["grid-gap-filled"]
    assert filled.notes[0][1].startswith("5 h missing from grid.csv")


def test_a_hole_of_less_than_a_second_is_filled_to_its_end(tmp_path):
    filled = create({"path": str(written(tmp_path, HOLED))}, fill=EmbeddedGrid().series).series("DE", START_S - 0.5, START_S + 0.25)
    assert list(filled.edges_s) == [START_S - 0.5, START_S, START_S + 0.5]


def test_a_run_outside_the_file_is_a_gap_like_any_other(tmp_path):
    filled = create({"path": str(written(tmp_path, HOLED))}, fill=EmbeddedGrid().series).series("DE", START_S + 1e6, START_S + 1e6 + HOUR)
    assert {QUALITIES[index] for index in filled.quality} == {"typical"}
    assert slugs(filled) == ["grid-gap-filled"]


def test_a_gap_is_not_filled_across_families_or_without_a_zone(tmp_path):
    for text, options, message in (
        (HOLED.replace("life cycle", "direct"), {"factor": "direct"}, "another family"),
        (HOLED.replace("DE", "MY-CELLAR"), {}, "no typical profile of MY-CELLAR"),
        (HOLED.replace("zone", "place"), {}, "--zone"),
    ):
        held = create({"path": str(written(tmp_path, text)), **options}, fill=EmbeddedGrid().series)
        with pytest.raises(GridGap, match=message):
            held.series("", START_S, START_S + 4 * HOUR)


def test_the_last_row_lasts_as_long_as_the_one_before(tmp_path):
    text = "time,g_per_kwh\n2024-01-01T00:00Z,1\n2024-01-01T00:30Z,2\n"
    series = grid(tmp_path, text).series("DE", START_S, START_S + HOUR)
    assert series.edges_s[-1] == START_S + HOUR
    with pytest.raises(GridGap):
        grid(tmp_path, text).series("DE", START_S, START_S + HOUR + 2)


def test_months_of_unequal_length_are_no_gap(tmp_path):
    rows = "".join(f"2024-{month:02}-01,{month}\n" for month in range(1, 13))
    series = grid(tmp_path, "Datetime (UTC),g_per_kwh\n" + rows).series("DE", START_S, START_S + 365 * 24 * HOUR)
    assert series.grams_per_kwh.size == 12


def test_every_error_belongs_to_the_tree():
    assert issubclass(BadSeries, CarbonreportError)
    assert issubclass(GridGap, CarbonreportError)


def test_a_year_of_five_minutes_is_read(tmp_path):
    begin = np.datetime64("2024-01-01T00:00")
    rows = "".join(f"{begin + np.timedelta64(5 * i, 'm')}Z,{i % 500}\n" for i in range(366 * 288))
    series = grid(tmp_path, "time,g_per_kwh\n" + rows).series("DE", START_S, START_S + 366 * 24 * HOUR)
    assert series.grams_per_kwh.size == 366 * 288
