"""Names of grid zones."""

import subprocess
import sys

import pytest

from carbonreport.errors import UnknownZone
from carbonreport.grid.zones import WORLD_ZONE, country_of_time_zone, resolve_zone, sub_zones, time_zone_of


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("DE", "DE"),
        ("de", "DE"),
        (" us-cal-ciso ", "US-CAL-CISO"),
        ("UK", "GB"),
        ("DE-LU", "DE"),
        ("DE_LU", "DE"),
        ("DEU", "DE"),
        ("gbr", "GB"),
        ("USA", "US"),
        ("FRA", "FR"),
        ("XKX", "XK"),
        ("UKR", "UA"),
        ("CHL", "CL-SEN"),
        ("CAISO", "US-CAL-CISO"),
        ("ercot", "US-TEX-ERCO"),
        ("PJM", "US-MIDA-PJM"),
        ("NO_2", "NO-NO2"),
        ("JP_TK", "JP-TK"),
        ("US-HI-OA", "US-HI-OA"),
        ("world", WORLD_ZONE),
    ],
)
def test_a_zone_is_found_by_its_code_country_or_market_name(text, zone):
    assert resolve_zone(text) == zone


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Germany", "DE"),
        ("germany", "DE"),
        ("Hong Kong", "HK"),
        ("hong_kong", "HK"),
        ("California", "US-CAL-CISO"),
        ("Korea", "KR"),
        ("South Korea", "KR"),
        ("Deutschland", "DE"),
        ("Österreich", "AT"),
        ("the Netherlands", "NL"),
        ("United Kingdom", "GB"),
        ("United States", "US"),
        ("Quebec", "CA-QC"),
        ("Tokyo", "JP-TK"),
        ("India", "IN"),
        ("Chile", "CL-SEN"),
        ("Côte d'Ivoire", "CI"),
        ("Russia", "RU"),
    ],
)
def test_a_zone_is_found_by_a_name_that_means_it_alone(text, zone):
    assert resolve_zone(text) == zone


@pytest.mark.parametrize(
    ("text", "offered"), [("Georgia", "GE"), ("Congo", "CD"), ("East", "RU-AS"), ("Virgin Islands", "VI"), ("Victoria", "AU-VIC")]
)
def test_a_name_of_several_places_is_refused_and_its_zone_offered(text, offered):
    with pytest.raises(UnknownZone, match=rf"nearest: .*\b{offered}\b"):
        resolve_zone(text)


@pytest.mark.parametrize(("text", "nearest"), [("Swedden", "SE"), ("Norwegen", "NO"), ("Nothern Ireland", "GB-NIR")])
def test_a_misspelt_name_offers_the_zone_of_that_name_first(text, nearest):
    with pytest.raises(UnknownZone, match=rf"nearest: {nearest} "):
        resolve_zone(text)


def test_a_name_is_never_taken_for_a_zone_that_it_does_not_mean():
    for text in ("Narnia", "north", "central", "island", "power", "Washington"):
        with pytest.raises(UnknownZone):
            resolve_zone(text)


@pytest.mark.parametrize(("text", "nearest"), [("US-CAL-CISC", "US-CAL-CISO"), ("Germny", "DE"), ("FRAA", "FR")])
def test_an_unknown_zone_names_the_nearest(text, nearest):
    with pytest.raises(UnknownZone, match=rf"nearest: .*\b{nearest}\b"):
        resolve_zone(text)


@pytest.mark.parametrize("text", ["", "??", "qqqqqqqqqqq", "DE\x00", "ß" * 1000])
def test_nonsense_is_refused_in_one_line(text):
    with pytest.raises(UnknownZone) as caught:
        resolve_zone(text)
    assert "\n" not in str(caught.value)


def test_without_the_table_of_zones_a_zone_becomes_its_country(tmp_path):
    (tmp_path / "ember_yearly.csv").write_text("iso3,iso2,name,year,g_per_kwh\nUSA,US,United States,2024,384\n")
    assert resolve_zone("CAISO", tmp_path) == "US"
    assert resolve_zone("usa", tmp_path) == "US"
    with pytest.raises(UnknownZone):
        resolve_zone("DE", tmp_path)


@pytest.mark.parametrize(
    ("time_zone", "country"),
    [
        ("Europe/Berlin", "DE"),
        ("America/Los_Angeles", "US"),
        ("Asia/Kathmandu", "NP"),
        ("Europe/Kyiv", "UA"),
        ("Asia/Calcutta", "IN"),
        ("US/Pacific", "US"),
        ("UTC", None),
        ("GMT", None),
        ("EST", None),
        ("CET", None),
        ("Etc/UTC", None),
        ("Etc/GMT+5", None),
        ("", None),
        ("Mars/Olympus", None),
    ],
)
def test_the_country_of_a_time_zone_is_known_and_that_of_utc_is_not(time_zone, country):
    assert country_of_time_zone(time_zone) == country


def test_zones_inside_a_country_do_not_include_itself():
    assert "IT-NO" in sub_zones("IT")
    assert "IT" not in sub_zones("IT")
    assert sub_zones("DE") == ()


def test_the_time_zone_of_a_zone_is_known():
    assert time_zone_of("AU-NSW") == "Australia/Sydney"
    assert time_zone_of("NO-SUCH") is None


def test_zones_need_neither_numpy_nor_a_socket():
    code = (
        "import sys, socket\n"
        "def refuse(*a, **k): raise AssertionError('a socket was opened')\n"
        "socket.socket = refuse\n"
        "from carbonreport.grid import zones\n"
        "zones.resolve_zone('DEU'); zones.country_of_time_zone('Europe/Berlin'); zones.sub_zones('US')\n"
        "assert 'numpy' not in sys.modules\n"
        "from carbonreport.grid.sources import embedded\n"
        "embedded.create({}).series('DE', 1.7e9, 1.7e9 + 3600)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
