"""The picture of starts: what each costs, and what a delay saves at most."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.render.pictures_plan import FrontierNumbers
from carbonreport.render.pictures_when import StartNumbers, starts_in_words
from carbonreport.render.plots_plan import frontier_picture
from carbonreport.render.plots_when import starts_picture

BEGIN_S = 1_782_900_000.0


def numbers(grams, **more):
    return StartNumbers(BEGIN_S + 3600.0 * np.arange(len(grams)), np.array(grams, float), "a test", **more)


def test_a_delay_saves_what_the_best_start_so_far_saves():
    picture = numbers([400, 500, 300, 350, 100, 200])

    assert picture.savings_percent == approx(np.array([0, 0, 25, 25, 75, 75]))
    assert picture.best == 4
    assert starts_in_words(picture) == "The cheapest start is 4.0 hours after the first one, 75 % lower; the dearest is 25 % higher."


@pytest.mark.parametrize(("at_s", "grams"), [([0.0], [1.0]), ([0.0, 1.0], [1.0]), ([1.0, 0.0], [1.0, 2.0])])
def test_what_cannot_be_drawn_is_refused(at_s, grams):
    with pytest.raises(ValueError):
        StartNumbers(np.array(at_s), np.array(grams), "a test")


@pytest.mark.parametrize("unit", ["gCO2e", None])
def test_it_is_an_element_of_its_own_without_date_or_address(unit):
    pytest.importorskip("matplotlib")
    picture = starts_picture(numbers([400, 500, 300], mass_unit=unit))

    root = ElementTree.fromstring(picture.svg)
    assert root[0].text == picture.title
    assert "://" not in picture.svg
    assert all(attribute.startswith("starts-") for attribute in re.findall(r'\bid="([^"]*)"', picture.svg))
    assert ("% of now" in picture.svg.split("Saving")[0]) == (unit is None)


def test_the_last_start_and_the_last_step_stand_inside_the_axes():
    pytest.importorskip("matplotlib")
    svg = starts_picture(numbers([400, 500, 300, 350, 200, 100])).svg
    frontier = FrontierNumbers(np.array([0.0, 5.0, 10.0]), (("clocks", np.array([0.0, -4.0, -9.0])),), "a test")

    (marker,) = re.findall(r'<g[^>]*>\n<use href="[^"]*" x="([\d.]*)" y="[^"]*" style="stroke: currentColor"/>', svg)
    for text in (svg, frontier_picture(frontier).svg):
        paths = re.findall(r'<path d="([^"]*)" clip-path', text)
        steps = max(([float(x) for x in re.findall(r"[ML] ([\d.]+) ", path)] for path in paths), key=len)
        assert max(steps) > sorted(set(steps))[-2] + 5  # the last step has a width
    assert float(marker) < max(steps) - 5


WHEN = ("when", "--hours", "2", "--kw", "1", "--zone", "DE", "--pue", "1.2", "--earliest", "2026-07-01T10:00Z")


def test_when_draws_it_into_a_file(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "starts.svg"
    result = CliRunner().invoke(cli, [*WHEN, "--plot", str(path)])

    assert result.exit_code == 0, result.output
    root = ElementTree.fromstring(path.read_text())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--plot", "starts.png"), "must end in .svg"),
        (("--plot", "starts.svg", "--slack", "0h"), "only one start"),
        (("--plot", "no/such/folder/starts.svg"), "cannot write"),
    ],
)
def test_what_cannot_be_written_is_said(more, words, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, [*WHEN, *more])

    assert result.exit_code != 0
    assert words in str(result.exception) + result.output
