"""The ways in which others have got grid data wrong, one test each, in the order in which they hurt."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

from carbonreport.combine.charge import charge
from carbonreport.combine.footprint import footprint, total
from carbonreport.combine.forecast import ahead
from carbonreport.combine.seasonal import calendar, expand, local_hours
from carbonreport.errors import BadAnswer, BadTime, FamilyMix, FetchError, KeyRefused, Offline, UnknownZone
from carbonreport.fetch import Fetcher
from carbonreport.grid.answers import Ask
from carbonreport.grid.cache import GridCache
from carbonreport.grid.readings import MEASURED, Readings, joined
from carbonreport.grid.sources import csv, electricitymaps, embedded, energycharts, uk, watttime
from carbonreport.grid.zones import resolve_zone
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries, Quality
from carbonreport.request import Request
from carbonreport.store.writer import save
from carbonreport.testing.records import make_record
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.refresh import refresh

HOUR = 3600.0
NOW = datetime(2026, 3, 29, 1, 10, tzinfo=UTC).timestamp()
NO_PUE = PueProfile(1.0, 1.0, 1.0, "reported", "no facility")
KEYS = {"ELECTRICITYMAPS_API_KEY": "em-s3cret", "WATTTIME_USER": "someone", "WATTTIME_PASSWORD": "wt-s3cret"}
ERRORS: dict[Quality, GridErrors] = {"measured": GridErrors(level_sd=0.039)}
RECORDED = Path(__file__).parents[1] / "data" / "grid"


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def ask(zone: str, kind: str = "history", start: float = NOW - HOUR, end: float = NOW) -> Ask:
    return Ask(zone, kind, start, end, NOW)  # type: ignore[arg-type]


def hourly(start: str, grams: Sequence[float], family: Family | None = None, zone: str = "DE") -> IntensitySeries:
    edges = at(start) + HOUR * np.arange(len(grams) + 1)
    return IntensitySeries(
        zone, edges, np.array(grams, dtype=float), np.zeros(len(grams), dtype=np.int8), ERRORS, family or Family(), "made up"
    )


def readings(grams: Sequence[float], family: Family | None = None) -> Readings:
    starts = NOW + HOUR * np.arange(len(grams))
    quality = np.full(len(grams), MEASURED, dtype=np.int8)
    return Readings("DE", "a provider", family or Family(), "a provider", starts, starts + HOUR, np.array(grams, dtype=float), quality)


def maps(**hour: object) -> bytes:
    """An answer of Electricity Maps with one hour in it."""
    row = {"zone": "DE", "carbonIntensity": 300, "datetime": "2026-03-29T00:00:00.000Z", "emissionFactorType": "lifecycle"} | hour
    return json.dumps({"zone": row["zone"], "history": [row]}).encode()


@pytest.mark.parametrize(
    ("time_zone", "day", "offset", "hours"),
    [
        ("Europe/Berlin", "2026-03-29", "+01:00", 23),
        ("Europe/Berlin", "2026-10-25", "+02:00", 25),
        ("America/New_York", "2026-03-08", "-05:00", 23),
        ("America/New_York", "2026-11-01", "-04:00", 25),
        ("Australia/Sydney", "2026-10-04", "+10:00", 23),
        ("Australia/Sydney", "2026-04-05", "+11:00", 25),
        ("Australia/Lord_Howe", "2026-10-04", "+10:30", 23.5),
        ("Australia/Lord_Howe", "2026-04-05", "+11:00", 24.5),
        ("America/Sao_Paulo", "2018-11-04", "-03:00", 23),  # midnight itself was left out
        ("Europe/London", "2026-03-29", "+00:00", 23),
        ("Europe/London", "2026-10-25", "+01:00", 25),
    ],
)
def test_a_day_on_which_the_clock_changes_has_all_its_hours_and_no_other(time_zone, day, offset, hours):
    begin = at(f"{day}T00:00{offset}")
    edges, local = local_hours(time_zone, begin, begin + hours * HOUR)
    _, _, hour_of_day = calendar(local)
    assert edges[-1] - edges[0] == hours * HOUR
    assert hour_of_day[0] in (0, 1) and hour_of_day[-1] == 23
    assert set(range(24)) - set(hour_of_day.tolist()) <= {0, 1, 2}
    assert local_hours(time_zone, edges[-1], edges[-1] + HOUR)[1][0] % 86400 == 0  # the next day begins


@pytest.mark.parametrize(("time_zone", "minutes"), [("Asia/Kolkata", 30), ("Australia/Adelaide", 30), ("Asia/Kathmandu", 15)])
def test_a_utc_hour_of_a_zone_at_half_an_hour_is_split_over_its_two_local_hours(time_zone, minutes):
    profile = replace(embedded.EmbeddedGrid().profile("DE"), time_zone=time_zone)
    series = expand(profile, at("2026-01-15T00:00Z"), at("2026-01-15T01:00Z"))
    assert list((series.edges_s - series.edges_s[0]) / 60) == [0, minutes, 60]
    assert series.grams_per_kwh[0] != series.grams_per_kwh[1]


def test_stamps_that_are_ends_of_hours_are_moved_to_their_begin_and_the_sun_stays_at_noon(tmp_path):
    solar = [400 - 300 * max(np.cos((hour + 0.5 - 12) / 24 * 2 * np.pi), 0) for hour in range(24)]
    begins = [f"2026-06-15T{hour:02}:00Z,{grams}" for hour, grams in enumerate(solar)]
    ends = [f"{datetime.fromtimestamp(at('2026-06-15T00:00Z') + HOUR * (i + 1), UTC):%Y-%m-%dT%H:%MZ},{g}" for i, g in enumerate(solar)]
    found = []
    for header, rows in (("time", begins), ("hour ending", ends), ("Time end (UTC)", ends)):
        path = tmp_path / "grid.csv"
        path.write_text("\n".join([f"{header},g_per_kwh", *rows]))
        found.append(csv.create({"path": str(path)}).series("DE", at("2026-06-15T00:00Z"), at("2026-06-16T00:00Z")))
    for series in found:
        assert np.allclose(series.grams_per_kwh, solar)
        assert np.argmin(series.grams_per_kwh) in (11, 12)


def test_a_time_without_its_offset_is_never_taken_for_utc(tmp_path):
    path = tmp_path / "grid.csv"
    path.write_text("time,g_per_kwh\n2024-03-31T00:00,1\n2024-03-31T01:00,1\n")
    with pytest.raises(BadTime, match="no zone"):
        csv.create({"path": str(path)})
    with pytest.raises(BadAnswer, match="does not say its zone"):
        electricitymaps.parse(ask("DE"), maps(datetime="2026-03-29T00:00:00"))
    every = [*uk.requests(ask("GB")), *energycharts.requests(ask("DE")), *electricitymaps.requests(ask("DE", start=NOW - 9e5), "k")]
    texts = [text for request in every for text in (request.url, *(v for _, v in request.parameters)) if "2026-" in text]
    assert texts and all(text.endswith("Z") for text in texts)


def test_a_rounding_below_zero_is_zero_and_a_larger_one_is_a_gap():
    half_hour = {"from": "2026-03-29T00:00Z", "to": "2026-03-29T00:30Z"}
    for value, kept in ((-0.5, [0.0]), (-50, [])):
        answer = json.dumps({"data": [{**half_hour, "intensity": {"forecast": 1, "actual": value}}]}).encode()
        assert list(uk.parse(ask("GB"), answer).grams_per_kwh) == kept


def test_a_mean_far_from_what_the_zone_has_is_remarked_upon(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(maps(zone="SE", carbonIntensity=4))
    source = electricitymaps.create(
        {"url": httpserver.url_for("").rstrip("/")},
        fetch=Fetcher(),
        cache=GridCache(tmp_path),
        fill=embedded.EmbeddedGrid().series,
        environ=KEYS,
    )
    series = replace(source, now_s=lambda: NOW).series("SE", at("2026-03-29T00:00Z"), at("2026-03-29T01:00Z"))
    assert "grid-unusual" in dict(series.notes)


@pytest.mark.parametrize("filler", [0, 1, 1.0, None])
def test_a_missing_value_that_was_written_as_a_number_is_missing(filler):
    assert electricitymaps.parse(ask("DE"), maps(carbonIntensity=filler)).grams_per_kwh.size == 0


def test_an_old_value_counts_at_its_own_time_and_not_at_the_time_of_asking():
    profile = embedded.EmbeddedGrid().profile("DE")
    moved = []
    for hours_old in (1, 3, 200, 2000):
        seen = IntensitySeries(
            "DE", NOW - HOUR * np.array([hours_old, hours_old - 1]), np.array([900.0]), np.zeros(1, dtype=np.int8), {}, Family(), "seen"
        )
        result = ahead(profile, NOW, NOW + HOUR, observed=seen)
        moved.append(float(result.grams_per_kwh[0] / expand(profile, NOW, NOW + HOUR).grams_per_kwh[0]))
    assert moved[0] > moved[1] > moved[2] > moved[3] == approx(1)


def test_hours_that_the_provider_estimated_are_counted_named_and_less_certain():
    series = electricitymaps.parse(ask("DE"), maps(isEstimated=True)).series("DE", at("2026-03-29T00:00Z"), at("2026-03-29T01:00Z"))
    assert QUALITIES[series.quality[0]] == "estimated"
    assert dict(series.notes)["grid-estimated"] == "the provider estimated 1 h of DE"
    assert series.errors["estimated"].level_sd > 0.039


def test_the_date_of_the_data_and_of_the_model_are_kept_since_history_is_rewritten(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(maps())
    source = electricitymaps.create({"url": httpserver.url_for("").rstrip("/")}, fetch=Fetcher(), cache=GridCache(tmp_path), environ=KEYS)
    series = replace(source, now_s=lambda: NOW).series("DE", at("2026-03-29T00:00Z"), at("2026-03-29T01:00Z"))
    assert series.retrieved_on == "2026-03-29"
    assert series.errors["measured"].level_sd == 0.039  # two downloads of the same year differ by that
    assert "model of 2026-03-01" in watttime.parse(ask("US-CAL-CISO"), (RECORDED / "watttime_historical.json").read_bytes()).source


def test_a_forecast_that_ends_before_the_job_goes_on_as_a_profile_and_says_so():
    profile = embedded.EmbeddedGrid().profile("DE")
    seen = hourly("2026-03-29T01:00Z", [300] * 15)
    result = ahead(profile, at("2026-03-29T01:20Z"), at("2026-03-30T07:40Z"), forecast=seen)
    assert float(np.diff(result.edges_s).sum()) == approx(30 * HOUR + 1200)
    assert [QUALITIES[q] for q in result.quality[[0, -1]]] == ["forecast", "typical"]
    assert "reaches to 2026-03-29 16:00 UTC" in dict(result.notes)["grid-forecast"]
    job = make_record({"gpu": 1000}, 0.5, start="2026-03-29T15:45Z")
    mean = footprint(job, grid=result, pue=NO_PUE).grams.value / 0.5
    after = result.grams_per_kwh[np.searchsorted(result.edges_s, at("2026-03-29T16:00Z"))]
    assert mean == approx((300 + after) / 2)  # a part of an hour counts as that part


def test_average_and_marginal_never_meet(tmp_path):
    marginal = watttime.FAMILIES["co2_moer"]
    with pytest.raises(FamilyMix, match="marginal"):
        watttime.create({}, fetch=Fetcher(offline=True), cache=GridCache(tmp_path), environ=KEYS).series("US-CAL-CISO", NOW, NOW + HOUR)
    with pytest.raises(FamilyMix, match=r"average.*marginal"):
        joined([readings([1.0]), readings([1.0], marginal)])


def test_pounds_per_megawatt_hour_are_converted_by_the_unit_that_the_answer_names():
    raw = json.loads((RECORDED / "watttime_historical.json").read_bytes())
    assert watttime.parse(ask("US-CAL-CISO"), json.dumps(raw).encode()).grams_per_kwh[1] == approx(453.59237)
    for unit in ("kg_co2_per_mwh", "g_per_kwh", ""):
        raw["meta"]["units"] = unit
        with pytest.raises(BadAnswer, match="not known here"):
            watttime.parse(ask("US-CAL-CISO"), json.dumps(raw).encode())


def test_co2_alone_is_another_kind_of_number_than_co2e():
    assert uk.FAMILY.gas == "CO2" and str(uk.FAMILY).endswith("CO2 alone")
    assert Family("direct", "production") != uk.FAMILY


@pytest.mark.parametrize(
    "other",
    [Family(accounting="production"), Family("direct"), Family(gas="CO2"), Family(signal="marginal")],
    ids=lambda family: str(family),
)
def test_two_kinds_of_number_are_not_added_and_the_error_names_both(other):
    runs = [make_record({"gpu": 100}, 1, start="2026-01-15T12:00Z", name=name) for name in ("a", "b")]
    grids = [hourly("2026-01-15T12:00Z", [100]), hourly("2026-01-15T12:00Z", [100], other)]
    with pytest.raises(FamilyMix) as caught:
        total([charge(run, grid=grid, pue=NO_PUE) for run, grid in zip(runs, grids, strict=True)])
    assert str(Family()) in str(caught.value) and str(other) in str(caught.value)
    with pytest.raises(FamilyMix):
        joined([readings([1.0]), readings([1.0], other)])


@pytest.mark.parametrize(
    ("old", "new"), [("IN-KA", "IN-SO"), ("IN-DL", "IN-NO"), ("MX-BC", "MX"), ("US-HI-MA", "US-HI"), ("ES-CN-FVLZ", "ES-CN-FV")]
)
def test_a_zone_that_was_given_up_names_its_successor(old, new):
    with pytest.raises(UnknownZone, match=rf"{new} \(.*where its hours are now"):
        resolve_zone(old)
    assert resolve_zone("CL-SIC") == "CL-SEN"
    assert "successor is IN-WE" in dict(embedded.EmbeddedGrid().series("IN-MH", NOW, NOW + HOUR).notes)["zone-retired"]


def test_the_place_of_the_caller_is_never_asked_for():
    for kind in ("history", "latest", "forecast"):
        for start in (NOW - HOUR, NOW - 9e5):
            for request in electricitymaps.requests(ask("DE", kind, start), "key"):
                assert ("disableCallerLookup", "true") in request.parameters and ("zone", "DE") in request.parameters
    with pytest.raises(BadAnswer, match="zone FR, not DE"):
        electricitymaps.parse(ask("DE"), maps(zone="FR"))


def test_a_refusal_that_means_too_often_is_tried_again_once_the_key_has_worked(httpserver):
    waits: list[float] = []
    fetch, request = Fetcher(sleep=waits.append), Request(httpserver.url_for("/x"), (), (("auth-token", "k"),), "SOME_KEY")
    for code in (200, 401, 200, 503, 200):
        httpserver.expect_ordered_request("/x").respond_with_data("{}", code)
    assert [fetch(request) for _ in range(3)] == [b"{}"] * 3
    assert len(waits) == 2
    httpserver.clear()
    httpserver.expect_request("/x").respond_with_data("", 401)
    with pytest.raises(KeyRefused, match="not active yet"):
        Fetcher(sleep=waits.append)(request)


def test_a_thousand_readings_of_a_run_ask_once_and_fail_once(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(maps())
    source = replace(
        electricitymaps.create({"url": httpserver.url_for("").rstrip("/")}, fetch=Fetcher(), cache=GridCache(tmp_path), environ=KEYS),
        now_s=lambda: NOW,
    )
    for second in range(1000):
        source.readings("DE", at("2026-03-29T00:00Z") + second, at("2026-03-29T00:00Z") + second + 1)
    assert len(httpserver.log) == 1


def test_no_address_holds_a_key():
    every = [
        *electricitymaps.requests(ask("DE"), "em-s3cret"),
        *electricitymaps.requests(ask("DE", "forecast"), "em-s3cret"),
        *watttime.requests(ask("US-CAL-CISO"), "t0ken"),
        watttime.login("someone", "wt-s3cret"),
    ]
    for request in every:
        shown = f"{request.url} {request.parameters} {request!r} {request}"
        assert all(secret not in shown for secret in ("em-s3cret", "t0ken", "wt-s3cret", "someone"))
        assert request.headers


def test_a_key_does_not_follow_to_another_host(httpserver):
    from pytest_httpserver import HTTPServer

    with HTTPServer(port=0) as other:
        other.expect_request("/x").respond_with_data("{}")
        httpserver.expect_request("/x").respond_with_data("", 307, {"Location": other.url_for("/x")})
        with pytest.raises(FetchError, match="not followed"):
            Fetcher()(Request(httpserver.url_for("/x"), (), (("auth-token", "k"),)))
        assert other.log == []


def test_large_bodies_pages_and_control_characters_do_no_harm(httpserver):
    httpserver.expect_request("/x").respond_with_data(b"[" + b"1," * 10_000)
    with pytest.raises(BadAnswer, match="more than"):
        Fetcher(most_bytes=1000)(Request(httpserver.url_for("/x")))
    for raw in (b"<!doctype html><p>Wartung</p>", b"", b"\xff\xfe\x00"):
        for module, zone in ((uk, "GB"), (energycharts, "DE"), (electricitymaps, "DE"), (watttime, "US-CAL-CISO")):
            with pytest.raises(BadAnswer) as caught:
                module.parse(ask(zone), raw)
            assert str(caught.value).isprintable()
    answer = json.loads((RECORDED / "watttime_historical.json").read_bytes())
    answer["meta"]["model"]["date"] = "2026\n[ERROR] all is lost" + "x" * 500
    source = watttime.parse(ask("US-CAL-CISO"), json.dumps(answer).encode()).source
    assert source.isprintable() and len(source) < 120


def test_a_node_without_network_is_charged_now_and_refreshed_later(tmp_path):
    record = tmp_path / "run.jsonl"
    save(make_record({"gpu": 1000}, 1, start="2026-01-15T12:00Z", zone="DE"), record)
    environ = {"CARBONREPORT_OFFLINE": "1", "CARBONREPORT_CACHE": str(tmp_path / "cache")}
    with pytest.raises(Offline):
        refresh(record, PlaceOptions(), environ=environ)

    class Later:
        def series(self, zone: str, start_s: float, end_s: float) -> IntensitySeries:
            return replace(hourly("2026-01-15T12:00Z", [100]), zone=zone)

    assert refresh(record, PlaceOptions(pue="1"), environ=environ, source=Later()).after.value == approx(100)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        ("DE_LU", "DE"),
        ("10Y1001A1001A82H", "DE"),
        ("DEU", "DE"),
        ("UK", "GB"),
        ("GBR", "GB"),
        ("CAISO_NORTH", "US-CAL-CISO"),
        ("CISO", "US-CAL-CISO"),
        ("PJM_DC", "US-MIDA-PJM"),
        ("FPL", "US-FLA-FPL"),
        ("IT_NORD", "IT-NO"),
        ("SE_3", "SE-SE3"),
        ("JP_TK", "JP-TK"),
        ("aws:eu-central-1", "DE"),
        ("eu-west-2", "GB"),
        ("gcp:us-central1", "US-MIDW-MISO"),
        ("azure:uksouth", "GB"),
    ],
)
def test_a_zone_is_found_by_the_names_of_others(name, zone):
    assert resolve_zone(name) == zone


def test_a_leap_day_and_months_of_unequal_length_are_weighted_by_energy_not_by_rows(tmp_path):
    path = tmp_path / "grid.csv"
    rows = "".join(f"2024-{month:02}-01,{100 * month}\n" for month in range(1, 13)) + "2025-01-01,100\n"
    path.write_text("Datetime (UTC),g_per_kwh\n" + rows)
    year = make_record({"gpu": 1000}, 366 * 24, start="2024-01-01T00:00Z")
    grid = csv.create({"path": str(path)}).series("DE", at("2024-01-01T00:00Z"), at("2025-01-01T00:00Z"))
    days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    mean = footprint(year, grid=grid, pue=NO_PUE).grams.value / (366 * 24)
    assert mean == approx(sum(100 * (i + 1) * d for i, d in enumerate(days)) / 366)
    february = make_record({"gpu": 1000}, 24, start="2024-02-29T00:00Z")
    assert footprint(february, grid=grid, pue=NO_PUE).grams.value == approx(24 * 200)
