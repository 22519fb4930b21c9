"""PUE out of files, site files and cloud regions."""

import pytest
from pytest import approx

from carbonreport.cloud import is_region, pue_of_region
from carbonreport.errors import BadPue, BadTime, SiteError
from carbonreport.pue_file import read_pue
from carbonreport.site import read_site


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


def test_a_cloud_region_has_its_operators_own_figure_with_year():
    pue = pue_of_region("aws:eu-central-1")

    assert (pue.value, pue.source) == (1.35, "AWS 2024, eu-central-1")
    assert (pue.low, pue.high) == (approx(1.32), approx(1.38))


def test_an_unknown_region_names_the_nearest():
    with pytest.raises(BadPue, match="nearest: aws:eu-central-1"):
        pue_of_region("aws:eu-central-9")
    assert not is_region("1.1:1.5")


def test_a_series_is_read_with_its_mean_over_time(tmp_path):
    pue = read_pue(written(tmp_path, "pue.csv", "time,pue\n2026-01-01T00:00Z,1.2\n2026-01-01T01:00Z,1.4\n"))

    assert pue.value == approx(1.3)
    assert pue.varies


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("time,pue\n2026-01-01T00:00Z,0.9\n2026-01-01T01:00Z,1.4\n", BadPue, "pue.csv:2: PUE 0.9"),
        ("time,pue\n2026-01-01T00:00,1.2\n2026-01-01T01:00,1.4\n", BadTime, "pue.csv:2"),
        ("time,ratio\n2026-01-01T00:00Z,1.2\n", BadPue, "no columns of time and PUE"),
        ("time,pue\n2026-01-01T00:00Z,1.2\n", BadPue, "one time only"),
        ("time,pue\n2026-01-01T00:00Z,1.2\n2026-01-01T00:00Z,1.3\n", BadPue, "one time twice"),
        ("time,pue\n2026-01-01T00:00Z,many\n2026-01-01T01:00Z,1.4\n", BadPue, "'many' is no PUE"),
    ],
)
def test_a_wrong_series_is_refused_with_its_line(tmp_path, text, error, words):
    with pytest.raises(error, match=words):
        read_pue(written(tmp_path, "pue.csv", text))


@pytest.mark.parametrize(
    ("pue", "july", "three_at_night"),
    [
        ("1.2", None, None),
        ('"hpc"', None, None),
        ('"aws:eu-central-1"', None, None),
        ("{ value = 1.35, low = 1.3, high = 1.4 }", None, None),
        ("{ summer = 1.6, winter = 1.1 }", 1.6, None),
        ("{ summer = 1.6, winter = 1.1, southern = true }", 1.1, None),
        ("{ day = 1.5, night = 1.3 }", None, 1.3),
        ("{ summer = 1.6, winter = 1.1, day = 1.5, night = 1.3 }", 1.6, 1.3),
        ("{ months = [1.1, 1.1, 1.1, 1.2, 1.2, 1.3, 1.4, 1.3, 1.2, 1.2, 1.1, 1.1] }", 1.4, None),
    ],
)
def test_every_form_of_a_site_files_pue(tmp_path, pue, july, three_at_night):
    site = read_site(written(tmp_path, "site.toml", f"[place]\npue = {pue}\n"))

    assert site.pue is not None
    assert (site.pue.months[6] if site.pue.months else None) == july
    assert (site.pue.hours[3] if site.pue.hours else None) == three_at_night


def test_a_series_stands_beside_the_site_file(tmp_path):
    written(tmp_path, "pue.csv", "time,pue\n2026-01-01T00:00Z,1.2\n2026-01-01T01:00Z,1.4\n")

    site = read_site(written(tmp_path, "site.toml", '[place]\npue = { series = "pue.csv" }\n'))

    assert site.pue is not None
    assert site.pue.varies


def test_a_table_without_any_value_is_refused_with_the_file(tmp_path):
    with pytest.raises(SiteError, match=r"site\.toml: place\.pue needs value"):
        read_site(written(tmp_path, "site.toml", '[place]\npue = { source = "x" }\n'))


def test_numbers_among_the_facts_may_stand_in_quotes(tmp_path):
    text = '[facts]\nparameters = "1.3e9"\nruns = 19\nproject_gpu_hours = 280\nfunctional_unit = "1,000 requests"\nuses_per_year = 1e6\n'

    facts = read_site(written(tmp_path, "site.toml", text)).facts

    assert (facts.parameters, facts.runs, facts.project_gpu_hours, facts.functional_unit) == (1.3e9, 19, 280, "1,000 requests")
