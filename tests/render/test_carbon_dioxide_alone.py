"""Grams of CO2 are not called grams of CO2e, in any file and in no picture."""

import re
from dataclasses import replace

import pytest

from carbonreport.cli.tables import print_footprint
from carbonreport.combine.footprint import total
from carbonreport.model.embodied import EmbodiedSource
from carbonreport.model.series import Family
from carbonreport.plugins import names
from carbonreport.render.engine import style_folder, styles, suffixes
from carbonreport.render.pictures import pictures_of
from carbonreport.render.pictures_words import hours_in_words
from carbonreport.testing import make_record
from carbonreport.workflows.statement import statement_text


def of_gas(charged, gas: str, embodied: tuple[EmbodiedSource, ...] = ()):
    """A run in Great Britain by hours of CO2 alone, or of CO2e."""
    result = charged(make_record({"GPU": 300.0}, 3), zone="GB", pue="1.2")
    runs = tuple(replace(c, grid=replace(c.grid, family=Family("direct", "production", "average", gas))) for c in result.runs)
    return replace(result, runs=runs, footprint=total(runs, embodied=embodied))


@pytest.mark.parametrize("name", [n for n in names("format") if n != "pdf"])
def test_no_file_calls_carbon_dioxide_co2e(charged, name):
    for style in styles():
        if name in ("json", "html") and style != "plain":
            continue
        if name != "json" and f".{name}" not in suffixes(style_folder(style)) and name not in suffixes(style_folder(style)):
            continue
        text = statement_text(of_gas(charged, "CO2"), name, style=style)
        assert not re.search(r"CO(₂|2|\\textsubscript\{2\}|\$_2\$|<sub>2</sub>)e\b", text), (style, name)


def test_the_terminal_and_the_pictures_say_it_too(charged, capsys):
    result = of_gas(charged, "CO2")
    print_footprint(result.footprint, result.counted)
    out = capsys.readouterr().out
    assert "gCO₂" in out and "CO₂e" not in out
    _, hours = pictures_of(result.footprint, result.counted)
    assert hours is not None and "gCO₂/kWh" in hours_in_words(hours) and "CO₂e" not in hours_in_words(hours)


def test_a_score_of_carbon_dioxide_does_not_add_the_manufacture_in_co2e(charged):
    made = (EmbodiedSource("GPU", 150.0, 5.0, 0.8, "a paper"),)
    text = statement_text(of_gas(charged, "CO2", made), "md", style="sci")
    assert "not added: the operation is counted in CO₂ alone" in text
