"""Providers against a server on localhost that answers with recorded shapes: what is asked, and what is believed."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_httpserver import HTTPServer

from carbonreport.combine.forecast import hour_factors
from carbonreport.errors import BadAnswer, FamilyMix, FetchError, GridGap, KeyRefused, Offline, UnknownZone
from carbonreport.fetch import Fetcher
from carbonreport.grid.answers import DAY_S, Ask
from carbonreport.grid.cache import GridCache
from carbonreport.grid.online import OnlineGrid
from carbonreport.grid.sources import electricitymaps, embedded, energycharts, uk, watttime
from carbonreport.model.series import QUALITIES, Family
from carbonreport.workflows.grid import next_hours

RECORDED = Path(__file__).parents[1] / "data" / "grid"
KEYS = {"ELECTRICITYMAPS_API_KEY": "em-s3cret", "WATTTIME_USER": "someone", "WATTTIME_PASSWORD": "wt-s3cret"}
HOUR = 3600.0


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-03-29T01:10")
START, END = at("2026-03-28T23:00"), at("2026-03-29T00:00")


def body(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def changed(name: str, change: Any) -> bytes:
    """A recorded answer with something wrong in it."""
    answer = json.loads(body(name))
    change(answer)
    return json.dumps(answer).encode()


def ask(zone: str, kind: Any = "history", start: float = START, end: float = END, now: float = NOW) -> Ask:
    return Ask(zone, kind, start, end, now)


def grid(module: Any, server: HTTPServer, folder: Path, *, now: float = NOW, filled: bool = False, **options: str) -> OnlineGrid:
    keyed = {"environ": KEYS} if module in (electricitymaps, watttime) else {}
    made: OnlineGrid = module.create(
        {"url": server.url_for("").rstrip("/"), **options},
        fetch=Fetcher(sleep=lambda seconds: None),
        cache=GridCache(folder / "cache"),
        fill=embedded.EmbeddedGrid().series if filled else None,
        **keyed,
    )
    return replace(made, now_s=lambda: now)


# What was


def test_the_uk_is_read_by_half_hours_and_what_was_not_observed_is_a_forecast(httpserver, tmp_path):
    httpserver.expect_request("/intensity/2026-03-28T23:00Z/2026-03-29T02:00Z").respond_with_data(body("uk_history"))
    series = grid(uk, httpserver, tmp_path).series("GB", at("2026-03-28T23:30"), at("2026-03-29T01:30"))
    assert list(series.grams_per_kwh) == [148, 139, 131, 130]
    assert [QUALITIES[q] for q in series.quality] == ["measured"] * 3 + ["forecast"]
    assert series.family == Family("direct", "production", "average", "CO2")
    assert [slug for slug, _ in series.notes] == ["grid-forecast"]
    assert "CO2 alone" in series.source and "CO2 alone" in str(series.family)


def test_energy_charts_is_read_by_quarter_hours_and_measured_wins_over_forecast(httpserver, tmp_path):
    query = {"country": "de", "start": "2026-03-28T23:00Z", "end": "2026-03-29T01:00Z"}
    httpserver.expect_request("/co2eq", query_string=query).respond_with_data(body("energycharts_de"))
    readings = grid(energycharts, httpserver, tmp_path).readings("DE", at("2026-03-28T23:00"), at("2026-03-29T00:15"))
    assert list(readings.grams_per_kwh) == [310.5, 312.0, 308.25, 305.0, 301.0]
    assert [QUALITIES[q][0] for q in readings.quality] == list("mmmff")
    assert readings.ends_s[-1] - readings.starts_s[-1] == 900


@pytest.mark.parametrize("version", ["v4", "v3"])
def test_electricity_maps_is_asked_by_both_versions_with_the_key_in_a_header(httpserver, tmp_path, version):
    httpserver.expect_request(
        f"/{version}/carbon-intensity/history",
        headers={"auth-token": "em-s3cret"},
        query_string={"zone": "DE", "emissionFactorType": "lifecycle", "disableCallerLookup": "true"},
    ).respond_with_data(body("electricitymaps_history"))
    series = grid(electricitymaps, httpserver, tmp_path, version=version).series("DE", at("2026-03-28T22:30"), at("2026-03-29T01:00"))
    assert list(series.grams_per_kwh) == [420, 410, 405.5]
    assert [QUALITIES[q] for q in series.quality] == ["measured", "measured", "estimated"]
    assert series.family == Family("lifecycle", "consumption", "average")
    assert series.retrieved_on == "2026-03-29"
    assert [slug for slug, _ in series.notes] == ["grid-estimated"]


def test_older_hours_of_electricity_maps_are_asked_for_ten_days_at_a_time():
    asked = electricitymaps.requests(ask("DE", start=NOW - 25 * DAY_S, end=NOW - DAY_S), "key", "direct")
    assert [request.url.rpartition("/")[2] for request in asked] == ["past-range"] * 3
    assert all(("disableCallerLookup", "true") in r.parameters and ("emissionFactorType", "direct") in r.parameters for r in asked)
    edges = [dict(request.parameters) for request in asked]
    assert [edge["end"] for edge in edges[:-1]] == [edge["start"] for edge in edges[1:]]


def test_each_provider_is_asked_in_pieces_that_it_takes():
    year = {"start": at("2024-01-01T00:00"), "end": at("2025-01-01T00:00")}
    assert len(uk.requests(ask("GB", **year))) == 27  # 366 / 14
    assert len(energycharts.requests(ask("DE", **year))) == 1
    assert len(electricitymaps.requests(ask("DE", **year), "key")) == 37
    assert len(watttime.requests(ask("US-CAL-CISO", **year), "token")) == 12
    assert energycharts.requests(ask("DE", **year))[0].parameters[1:] == (("start", "2024-01-01T00:00Z"), ("end", "2025-01-01T00:00Z"))


def test_watttime_logs_in_once_and_gives_marginal_g_per_kwh(httpserver, tmp_path):
    httpserver.expect_request("/login", headers={"Authorization": "Basic c29tZW9uZTp3dC1zM2NyZXQ="}).respond_with_json({"token": "t0ken"})
    httpserver.expect_request("/v3/historical", headers={"Authorization": "Bearer t0ken"}).respond_with_data(body("watttime_historical"))
    source = grid(watttime, httpserver, tmp_path)
    readings = source.readings("US-CAL-CISO", at("2026-03-29T00:00"), at("2026-03-29T00:15"))
    assert np.allclose(readings.grams_per_kwh, [408.233, 453.592, 0.0], atol=1e-3)
    assert readings.family.signal == "marginal"
    assert "2026-03-01" in readings.source
    source.readings("US-CAL-CISO", at("2026-03-20T00:00"), at("2026-03-20T00:15"))
    assert [request.path for request, _ in httpserver.log].count("/login") == 1


def test_a_marginal_signal_is_never_charged_to_a_footprint(httpserver, tmp_path):
    with pytest.raises(FamilyMix, match=r"footprint \(average\) and .*WattTime \(marginal"):
        grid(watttime, httpserver, tmp_path).series("US-CAL-CISO", START, END)
    assert httpserver.log == []


# Now and next


def test_the_latest_value_keeps_its_own_time_not_that_of_the_question(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    latest = grid(electricitymaps, httpserver, tmp_path).latest("DE")
    assert (latest.starts_s[-1], latest.grams_per_kwh[-1]) == (at("2026-03-29T00:00"), 405.5)


def test_the_single_object_of_latest_is_read_too():
    readings = electricitymaps.parse(ask("DE", "latest"), body("electricitymaps_latest"))
    assert list(readings.grams_per_kwh) == [405]
    assert [QUALITIES[q] for q in readings.quality] == ["estimated"]


def test_a_forecast_may_reach_less_far_than_asked_for(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/forecast").respond_with_data(body("electricitymaps_forecast"))
    forecast = grid(electricitymaps, httpserver, tmp_path).forecast("DE", 24 * HOUR)
    assert list(forecast.grams_per_kwh) == [380, 370, 350]
    assert {QUALITIES[q] for q in forecast.quality} == {"forecast"}
    assert forecast.ends_s[-1] == at("2026-03-29T05:00")


def test_the_latest_of_the_uk_leaves_forecasts_out_and_its_forecast_marks_all():
    assert uk.requests(ask("GB", "latest"))[0].url.endswith("/intensity/2026-03-29T01:10Z/pt24h")
    assert uk.requests(ask("GB", "forecast"))[0].url.endswith("/fw48h")


def test_what_is_ahead_is_forecast_then_typical_corrected_by_the_last_observed_hour(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    httpserver.expect_request("/v4/carbon-intensity/forecast").respond_with_data(body("electricitymaps_forecast"))
    source = grid(electricitymaps, httpserver, tmp_path)
    series = next_hours("germany", 24, None, source=source, now_s=at("2026-03-29T02:00"))
    assert [QUALITIES[q][0] for q in series.quality] == ["f"] * 3 + ["t"] * 21
    assert list(series.grams_per_kwh[:3]) == [380, 370, 350]
    typical = next_hours("DE", 24, None, now_s=at("2026-03-29T02:00"))
    assert np.all(np.abs(np.log(series.grams_per_kwh / typical.grams_per_kwh))[3:] > 0)
    factors, usual = hour_factors(series), hour_factors(typical)
    assert np.all(np.diff(factors[3:]) > 0) and np.all(factors[3:] < usual[3:])  # less certain with every hour, but less wrong than without
    assert {"grid-forecast", "grid-corrected"} <= set(dict(series.notes))


def test_a_key_without_forecasts_still_corrects_by_the_last_hour_and_says_so(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    httpserver.expect_request("/v4/carbon-intensity/forecast").respond_with_json({"error": "not in your plan"}, 403)
    series = next_hours("DE", 6, None, source=grid(electricitymaps, httpserver, tmp_path), now_s=at("2026-03-29T02:00"))
    assert {QUALITIES[q] for q in series.quality} == {"typical"}
    assert any("no forecast" in text and "not in your plan" in text for _, text in series.notes)
    assert "grid-corrected" in dict(series.notes)


def test_what_is_ahead_does_not_mix_kinds_of_number(httpserver, tmp_path):
    for module, zone in ((energycharts, "DE"), (uk, "GB"), (watttime, "US-CAL-CISO")):
        with pytest.raises(FamilyMix, match=r"consumption-based\) and .*production-based"):
            next_hours(zone, 6, None, source=grid(module, httpserver, tmp_path))
    assert httpserver.log == []


# The disk


def test_what_was_asked_before_is_not_asked_again(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/past-range").respond_with_data(body("electricitymaps_past_range"))
    late = at("2026-04-15T00:00")
    source = grid(electricitymaps, httpserver, tmp_path, now=late)
    first = source.series("DE", at("2026-03-28T22:00"), END)
    again = source.series("DE", at("2026-03-28T22:15"), at("2026-03-28T23:45"))
    assert len(httpserver.log) == 1
    assert list(first.grams_per_kwh) == list(again.grams_per_kwh) == [400, 390]
    assert again.retrieved_on == "2026-04-15"


def test_factors_do_not_share_a_memory(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/past-range").respond_with_data(body("electricitymaps_past_range"))
    late = at("2026-04-15T00:00")
    grid(electricitymaps, httpserver, tmp_path, now=late).series("DE", at("2026-03-28T22:00"), END)
    with pytest.raises(BadAnswer, match="lifecycle factors, not direct"):
        grid(electricitymaps, httpserver, tmp_path, now=late, factor="direct").series("DE", at("2026-03-28T22:00"), END)


def test_a_run_of_many_readings_asks_once_an_hour(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    source = grid(electricitymaps, httpserver, tmp_path)
    for minute in range(60):
        source.readings("DE", at("2026-03-29T00:00") + 60 * minute, at("2026-03-29T00:00") + 60 * minute + 60)
    assert len(httpserver.log) == 1


def test_pieces_that_came_before_a_failure_are_not_asked_for_again(httpserver, tmp_path):
    asked = "/v4/carbon-intensity/past-range"
    for start, answer in (("2026-03-01", 300), ("2026-03-11", None)):
        rows = [{"datetime": f"{start}T{hour:02}:00:00Z", "carbonIntensity": answer} for hour in range(24)]
        reply = httpserver.expect_ordered_request(asked)
        reply.respond_with_json({"zone": "DE", "data": rows}) if answer else reply.respond_with_data("", 400)
    source = grid(electricitymaps, httpserver, tmp_path, now=at("2026-04-15T00:00"))
    with pytest.raises(FetchError, match="400"):
        source.readings("DE", at("2026-03-01T00:00"), at("2026-03-20T00:00"))
    assert list(source.readings("DE", at("2026-03-01T00:00"), at("2026-03-02T00:00")).grams_per_kwh) == [300] * 24
    assert len(httpserver.log) == 2


def test_a_provider_that_is_down_is_replaced_by_what_is_remembered_though_old(httpserver, tmp_path):
    httpserver.expect_ordered_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    early = grid(electricitymaps, httpserver, tmp_path).series("DE", at("2026-03-28T22:00"), END)
    later = grid(electricitymaps, httpserver, tmp_path, now=NOW + 2 * HOUR)
    offline = replace(later, fetch=Fetcher(offline=True))
    assert list(offline.series("DE", at("2026-03-28T22:00"), END).grams_per_kwh) == list(early.grams_per_kwh)
    with pytest.raises(Offline):
        offline.series("DE", at("2026-03-20T22:00"), END)


# What is not believed


def _set(path: list[Any], value: Any) -> Any:
    def change(answer: Any) -> None:
        for step in path[:-1]:
            answer = answer[step]
        answer[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("module", "zone", "raw", "message"),
    [
        (electricitymaps, "DE", changed("electricitymaps_history", _set(["zone"], "FR")), "answered for zone FR, not DE"),
        (electricitymaps, "DE", changed("electricitymaps_history", _set(["history", 1, "zone"], "FR")), "answered for zone FR"),
        (electricitymaps, "DE", changed("electricitymaps_history", _set(["history", 0, "emissionFactorType"], "direct")), "direct factors"),
        (electricitymaps, "DE", changed("electricitymaps_history", _set(["unit"], "lb/MWh")), "answered in lb/MWh"),
        (
            electricitymaps,
            "DE",
            changed("electricitymaps_past_range", _set(["data", 1, "datetime"], "2026-03-28T22:00:00Z")),
            "do not rise",
        ),
        (
            electricitymaps,
            "DE",
            changed("electricitymaps_history", _set(["history", 0, "datetime"], "2026-03-28 22:00")),
            "does not say its zone",
        ),
        (electricitymaps, "DE", changed("electricitymaps_history", _set(["history", 0, "carbonIntensity"], 42000)), "more than any plant"),
        (
            electricitymaps,
            "DE",
            changed("electricitymaps_history", _set(["history", 0, "carbonIntensity"], "lots")),
            "form that is not known",
        ),
        (electricitymaps, "DE", b'{"error": "No recent data\\u001b[31m"}', "no data of DE: No recent data"),
        (electricitymaps, "DE", b'{"status": "no-data", "zone": "DE", "data": []}', "no data of DE"),
        (uk, "GB", b'{"error": {"code": "400 Bad Request", "message": "The from date is wrong"}}', "from date is wrong"),
        (uk, "GB", changed("uk_history", _set(["data", 0, "from"], "2026-03-28T23:30")), "does not say its zone"),
        (uk, "GB", changed("uk_history", _set(["data", 0, "to"], "2026-03-28T23:00Z")), "ends before it begins"),
        (uk, "GB", changed("uk_history", _set(["data", 1, "from"], "2026-03-28T23:30Z")), "do not rise"),
        (energycharts, "DE", changed("energycharts_de", _set(["co2eq"], [1.0])), "6 times for 1 values"),
        (energycharts, "DE", changed("energycharts_de", _set(["unix_seconds", 3], 1774740600)), "do not rise"),
        (energycharts, "DE", changed("energycharts_de", _set(["co2eq", 0], 1e9)), "more than any plant"),
        (energycharts, "DE", b"<html><body>Maintenance</body></html>", "a page of HTML instead of data"),
        (energycharts, "DE", body("energycharts_de")[:80], "no complete JSON"),
        (watttime, "US-CAL-CISO", changed("watttime_historical", _set(["meta", "region"], "PJM_DC")), "region PJM_DC, not CAISO_NORTH"),
        (watttime, "US-CAL-CISO", changed("watttime_historical", _set(["meta", "units"], "kg_per_kwh")), "which is not known here"),
        (watttime, "US-CAL-CISO", changed("watttime_historical", _set(["meta", "signal_type"], "co2_aoer")), "co2_aoer, not co2_moer"),
    ],
)
def test_an_answer_that_cannot_be_right_is_refused_in_one_line(module, zone, raw, message):
    with pytest.raises(BadAnswer, match=message) as caught:
        module.parse(ask(zone), raw)
    assert str(caught.value).isprintable()


def test_an_empty_answer_of_the_uk_is_a_gap_and_not_zero(httpserver, tmp_path):
    httpserver.expect_request("/intensity/2016-01-01T00:00Z/2016-01-01T01:00Z").respond_with_data(b"{}")
    with pytest.raises(GridGap, match="no intensity for GB"):
        grid(uk, httpserver, tmp_path).series("GB", at("2016-01-01T00:00"), at("2016-01-01T01:00"))


@pytest.mark.parametrize("value", [0, 1, -20])
def test_a_value_that_no_grid_can_have_is_a_gap_that_is_named(value):
    readings = electricitymaps.parse(ask("DE"), changed("electricitymaps_history", _set(["history", 0, "carbonIntensity"], value)))
    assert list(readings.grams_per_kwh) == [410, 405.5]
    assert readings.notes[0][0] == "grid-dropped"


def test_a_tiny_negative_direct_value_is_zero():
    readings = uk.parse(ask("GB"), changed("uk_history", _set(["data", 0, "intensity", "actual"], -0.4)))
    assert readings.grams_per_kwh[0] == 0


def test_missing_hours_are_filled_from_the_profile_aloud(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    series = grid(electricitymaps, httpserver, tmp_path, filled=True).series("DE", at("2026-03-28T22:00"), at("2026-03-29T01:10"))
    assert [QUALITIES[q] for q in series.quality] == ["measured", "measured", "estimated", "typical"]
    assert "grid-gap-filled" in dict(series.notes)


def test_hours_are_not_filled_across_families_and_the_error_names_both(httpserver, tmp_path):
    httpserver.expect_request("/intensity/2026-03-28T23:00Z/2026-03-29T02:00Z").respond_with_data(b"{}")
    with pytest.raises(GridGap, match=r"profile \(average, lifecycle, consumption-based\).*average, direct, production-based, CO2 alone"):
        grid(uk, httpserver, tmp_path, filled=True).series("GB", at("2026-03-28T23:30"), at("2026-03-29T01:30"))


def test_a_mean_that_the_zone_never_has_is_remarked(httpserver, tmp_path):
    raw = changed("electricitymaps_past_range", lambda answer: [hour.update(carbonIntensity=5) for hour in answer["data"]])
    httpserver.expect_request("/v4/carbon-intensity/past-range").respond_with_data(raw)
    source = grid(electricitymaps, httpserver, tmp_path, now=at("2026-04-15T00:00"), filled=True)
    assert "5 g/kWh in the mean" in dict(source.series("DE", at("2026-03-28T22:00"), END).notes)["grid-unusual"]


# Who may ask


def test_a_zone_that_a_provider_has_not_is_refused_before_it_is_asked():
    with pytest.raises(UnknownZone, match="GB, the only one"):
        uk.requests(ask("DE"))
    with pytest.raises(UnknownZone, match="whole countries of Europe"):
        energycharts.requests(ask("DK-DK1"))
    with pytest.raises(UnknownZone, match="WattTime has"):
        watttime.requests(ask("US-FLA-FPL"), "token")


def test_without_a_key_the_variable_is_named_and_nothing_is_sent(httpserver, tmp_path):
    fetch = Fetcher(sleep=lambda seconds: None)
    for module, variable in ((electricitymaps, "ELECTRICITYMAPS_API_KEY"), (watttime, "WATTTIME_USER")):
        source = module.create({"url": httpserver.url_for("")}, fetch=fetch, cache=GridCache(tmp_path), environ={})
        with pytest.raises(KeyRefused, match=variable):
            source.readings("DE", START, END)
    assert httpserver.log == []


def test_an_error_of_a_provider_reaches_the_user_without_the_key(httpserver, tmp_path):
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_json({"error": "em-s3cret is no token"}, 403)
    with pytest.raises(FetchError) as caught:
        grid(electricitymaps, httpserver, tmp_path).series("DE", at("2026-03-28T22:30"), END)
    assert "ELECTRICITYMAPS_API_KEY" in str(caught.value) and "em-s3cret" not in str(caught.value)


def test_keys_are_nowhere_in_the_cache(httpserver, tmp_path):
    httpserver.expect_request("/login").respond_with_json({"token": "t0ken"})
    httpserver.expect_request("/v3/historical").respond_with_data(body("watttime_historical"))
    httpserver.expect_request("/v4/carbon-intensity/history").respond_with_data(body("electricitymaps_history"))
    grid(watttime, httpserver, tmp_path).readings("US-CAL-CISO", at("2026-03-29T00:00"), at("2026-03-29T00:15"))
    grid(electricitymaps, httpserver, tmp_path).readings("DE", at("2026-03-29T00:00"), at("2026-03-29T00:15"))
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) >= 2
    for path in kept:
        for secret in ("em-s3cret", "wt-s3cret", "t0ken", "c29tZW9uZTp3dC1zM2NyZXQ"):
            assert secret.encode() not in path.read_bytes() + str(path).encode()


def test_the_hours_of_a_day_with_23_and_one_with_25_hours_are_all_there(httpserver, tmp_path):
    for day, hours in (("2026-03-29", 23), ("2026-10-25", 25)):
        begin = datetime.fromisoformat(f"{day}T00:00+01:00" if hours == 23 else f"{day}T00:00+02:00").timestamp()
        rows = [{"datetime": datetime.fromtimestamp(begin + i * HOUR, UTC).isoformat(), "carbonIntensity": 100 + i} for i in range(hours)]
        httpserver.clear()
        httpserver.expect_request("/v4/carbon-intensity/past-range").respond_with_json({"zone": "DE", "data": rows})
        source = grid(electricitymaps, httpserver, tmp_path, now=at("2026-12-01T00:00"))
        series = source.series("DE", begin, begin + hours * HOUR)
        assert series.grams_per_kwh.size == hours
        assert set(np.diff(series.edges_s)) == {HOUR}
