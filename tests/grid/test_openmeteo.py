"""Weather of Open-Meteo: what is asked, what is believed, and what is asked only once."""

import json
from datetime import UTC, datetime
from urllib.parse import parse_qs

import pytest
from pytest import approx
from werkzeug import Response

from carbonreport.errors import BadAnswer, FetchError, Offline
from carbonreport.fetch import Fetcher
from carbonreport.grid.cache import GridCache
from carbonreport.grid.openmeteo import OpenMeteo, Spot, create, parse, requests

HOUR = 3600.0
BERLIN = Spot(52.52, 13.405, "dry-bulb")
NOW = datetime(2026, 3, 31, 12, 30, tzinfo=UTC).timestamp()
START = datetime(2026, 3, 28, 22, tzinfo=UTC).timestamp()  # over the change of the clocks in Berlin


def body(start_s=START, count=4, spot=BERLIN, **other) -> bytes:
    variable = "temperature_2m" if spot.bulb == "dry-bulb" else "wet_bulb_temperature_2m"
    times = [start_s + HOUR * i for i in range(count)]
    answer = {
        "latitude": round(spot.latitude, 1),
        "longitude": round(spot.longitude, 1),
        "utc_offset_seconds": 0,
        "timezone": "GMT",
        "hourly_units": {"time": "unixtime", variable: "°C"},
        "hourly": {"time": times, variable: [-2.5 + i % 24 for i in range(count)]},
    }
    return json.dumps({**answer, **other}).encode()


class Sky:
    """Answers every day that it is asked for, and counts how often."""

    def __init__(self, lag_h: float = 0.0) -> None:
        self.asked, self.lag_h = [], lag_h

    def __call__(self, request):
        self.asked.append(request)
        query = dict(request.parameters)
        if "start_date" in query:
            begin, end = (datetime.fromisoformat(query[k]).replace(tzinfo=UTC).timestamp() for k in ("start_date", "end_date"))
            end += 24 * HOUR
        else:
            midnight = NOW // 86400 * 86400
            begin, end = midnight - 86400 * int(query["past_days"]), midnight + 86400 * int(query["forecast_days"])
        return body(begin, int((end - begin) / HOUR - self.lag_h))


def test_old_days_are_asked_of_the_archive_new_ones_of_the_forecast_in_gmt():
    day = 24 * HOUR
    (old,) = requests(BERLIN, NOW - 30 * day, NOW - 29 * day, NOW)
    (new,) = requests(BERLIN, NOW - 2 * day, NOW - day, NOW)
    both = requests(BERLIN, NOW - 10 * day, NOW + 2 * day, NOW)

    assert old.host == "archive-api.open-meteo.com" and new.host == "api.open-meteo.com"
    assert [r.host for r in both] == ["archive-api.open-meteo.com", "api.open-meteo.com"]
    for request in (old, new, *both):
        query = dict(request.parameters)
        assert (query["latitude"], query["longitude"]) == ("52.52", "13.40")
        assert (query["timezone"], query["timeformat"], query["hourly"]) == ("GMT", "unixtime", "temperature_2m")
        assert request.headers == ()
    assert dict(old.parameters)["start_date"] == "2026-03-01"
    assert int(dict(both[1].parameters)["forecast_days"]) <= 16
    assert dict(requests(Spot(1, 2, "wet-bulb"), 0, 1, NOW)[0].parameters)["hourly"] == "wet_bulb_temperature_2m"


def test_an_answer_is_hours_in_utc_without_those_that_nobody_knows():
    starts, celsius = parse(BERLIN, body(hourly={"time": [0, 3600, 7200], "temperature_2m": [-1.5, None, 3]}))

    assert (starts, celsius) == ([0.0, 7200.0], [-1.5, 3.0])


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"utc_offset_seconds": 3600}, "in a local time"),
        ({"latitude": 48.1}, "answered for 48.1, 13.4, not for 52.52,13.40"),
        ({"hourly_units": {"time": "unixtime", "temperature_2m": "°F"}}, "°C is"),
        ({"hourly_units": {"time": "iso8601", "temperature_2m": "°C"}}, "not known here"),
        ({"hourly": {"time": [0, 3600], "temperature_2m": [1]}}, "2 times for 1 temperatures"),
        ({"hourly": {"time": [3600, 0], "temperature_2m": [1, 2]}}, "do not rise"),
        ({"hourly": {"time": [0], "temperature_2m": [290]}}, "290 °C"),
        ({"hourly": {"time": [0], "temperature_2m": ["warm"]}}, "not known here"),
        ({"error": True, "reason": "bad\nday"}, "refused the request: bad day"),
    ],
)
def test_an_answer_that_cannot_be_believed_is_refused(other, words):
    with pytest.raises(BadAnswer, match=words):
        parse(BERLIN, body(**other))


def test_a_page_of_html_is_no_weather():
    with pytest.raises(BadAnswer, match="a page of HTML"):
        parse(BERLIN, b"<html>maintenance</html>")


def test_hours_are_asked_once_and_come_back_from_the_disk_below_zero_too(tmp_path):
    sky = Sky()
    source = OpenMeteo(sky, GridCache(tmp_path), lambda: NOW)
    old = NOW - 40 * 24 * HOUR

    first, again = (source.weather(BERLIN, old + 60, old + 5 * HOUR) for _ in range(2))

    assert len(sky.asked) == 1
    assert (first.starts_s, first.celsius) == (again.starts_s, again.celsius)
    assert min(first.celsius) < 0 or first.celsius[0] == approx(9.5)
    assert first.starts_s[0] <= old + 60 and first.ends_s[-1] >= old + 5 * HOUR
    assert first.retrieved_on == again.retrieved_on == "2026-03-31"
    assert [(e.provider, e.family, e.zone) for e in GridCache(tmp_path).entries()] == [("open-meteo", "dry-bulb.history", "52.52,13.40")]


def test_the_thermometers_are_kept_apart(tmp_path):
    asked = []

    def sky(request):
        asked.append(dict(request.parameters)["hourly"])
        return body(NOW - 30 * 86400, 48, Spot(52.52, 13.405, "wet-bulb" if "wet" in asked[-1] else "dry-bulb"))

    source = OpenMeteo(sky, GridCache(tmp_path), lambda: NOW)
    for bulb in ("dry-bulb", "wet-bulb", "dry-bulb"):
        source.weather(Spot(52.52, 13.405, bulb), NOW - 30 * 86400, NOW - 30 * 86400 + HOUR)

    assert asked == ["temperature_2m", "wet_bulb_temperature_2m"]


def test_hours_that_the_provider_lacks_are_absent_not_made_up():
    weather = OpenMeteo(Sky(lag_h=40), None, lambda: NOW).weather(BERLIN, NOW - 40 * 86400, NOW - 40 * 86400 + 12 * HOUR)

    assert len(weather.celsius) < 12


def test_what_was_fetched_before_serves_where_the_network_is_gone(tmp_path):
    old = NOW - 3 * 24 * HOUR
    OpenMeteo(Sky(), GridCache(tmp_path), lambda: NOW).weather(BERLIN, old, old + HOUR)

    def gone(request):
        raise FetchError("no network")

    later = OpenMeteo(gone, GridCache(tmp_path), lambda: NOW + 10 * 86400)
    assert later.weather(BERLIN, old, old + HOUR).celsius
    with pytest.raises(FetchError):
        later.weather(BERLIN, old - 86400, old)


def test_offline_nothing_is_asked_and_the_way_out_is_a_file_of_temperatures(tmp_path):
    source = create({"CARBONREPORT_OFFLINE": "1", "CARBONREPORT_CACHE": str(tmp_path)})
    with pytest.raises(Offline, match=r'give weather = "FILE\.csv" in the site file instead'):
        source.weather(BERLIN, NOW - 86400, NOW)


def test_a_server_is_asked_with_the_place_alone(httpserver):
    queries = []

    def answer(request):
        queries.append(parse_qs(request.query_string.decode()))
        return Response(body(NOW - 30 * 86400, 24), content_type="application/json")

    httpserver.expect_request("/v1/archive").respond_with_handler(answer)
    source = OpenMeteo(Fetcher(), None, lambda: NOW, archive=httpserver.url_for("/v1/archive"))

    assert len(source.weather(BERLIN, NOW - 30 * 86400, NOW - 30 * 86400 + 5 * HOUR).celsius) == 6
    assert set(queries[0]) == {"latitude", "longitude", "hourly", "timezone", "timeformat", "temperature_unit", "start_date", "end_date"}
