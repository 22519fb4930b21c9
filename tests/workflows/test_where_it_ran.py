"""What the command line says of zones, PUE and site files that do not fit together: the run by name, and the way out."""

from dataclasses import replace
from pathlib import Path

import pytest

from carbonreport.errors import GridError, PlaceError, SiteError
from carbonreport.model.pue import pue_from_text
from carbonreport.model.run import RunRecord
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records, overruled
from carbonreport.workflows.place import PlaceOptions, recording_place, site_of


def sourced(name: str, **kwargs: object) -> RunRecord:
    return replace(make_record({"GPU": 500.0}, 2, name=name, **kwargs), source=f"{name}.jsonl")  # type: ignore[arg-type]


def test_a_run_without_a_zone_among_others_is_named_with_the_option_that_settles_it() -> None:
    with pytest.raises(GridError) as refused:
        charge_records([sourced("placed", zone="SE"), sourced("placeless")], PlaceOptions(), {})

    assert str(refused.value).startswith("placeless.jsonl has no grid zone and was charged at the world average")
    assert "give the zone of all runs, such as --zone SE" in str(refused.value)
    charge_records([sourced("placed", zone="SE"), sourced("placeless")], PlaceOptions(zone="SE"), {})


def test_a_country_with_a_yearly_mean_alone_is_named_among_zones_with_hours() -> None:
    with pytest.raises(GridError, match=r"far.jsonl was charged in RU by Ember .*yearly mean"):
        charge_records([sourced("a", zone="DE"), sourced("b", zone="DE"), sourced("far", zone="RU")], PlaceOptions(), {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[host]\nidle_watts = 900\nbusy_watts = 350\n", "host: idle_watts 900 and busy_watts 350: "),
        ("[host]\nidle_watts = -1\nbusy_watts = 350\n", "host: idle_watts -1"),
        ("[host]\nidle_watts = nan\nbusy_watts = 350\n", "host: idle_watts nan"),
        ("[host]\nidle_watts = 90\n", "host.busy_watts is missing"),
        ('[place]\nzone = "Narnia"\n', "place.zone: unknown grid zone 'Narnia'"),
    ],
)
def test_a_site_file_that_cannot_be_is_refused_before_a_run_begins(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "lab.toml"
    path.write_text(text)

    with pytest.raises(SiteError) as refused:
        site_of(PlaceOptions(site=str(path)), {}, tmp_path)

    assert str(refused.value).startswith(f"{path}: {says}")


def test_a_site_file_that_was_asked_for_and_is_overruled_by_the_record_is_said_to_be(tmp_path: Path) -> None:
    site = tmp_path / "lab.toml"
    site.write_text('[place]\nzone = "SE"\npue = 1.5\n')
    own = sourced("own", zone="DE")
    own = replace(own, place=replace(own.place, pue=pue_from_text("1.2")))
    options = PlaceOptions(site=str(site))

    lines = overruled(charge_records([own], options, {}), options)

    assert lines == [
        f"{site}: its zone SE is not used for own.jsonl, where the record has its own; --zone would overrule that",
        f"{site}: its PUE 1.5 is not used for own.jsonl, where the record has its own; --pue would overrule that",
    ]


def test_a_site_file_that_is_used_or_found_by_itself_is_not_remarked_on(tmp_path: Path) -> None:
    site = tmp_path / "lab.toml"
    site.write_text('[place]\nzone = "SE"\npue = 1.5\n')
    options = PlaceOptions(site=str(site))
    by_option = PlaceOptions(site=str(site), zone="DE", pue="1.2")

    assert overruled(charge_records([sourced("open")], options, {}), options) == []
    assert overruled(charge_records([sourced("own", zone="DE")], by_option, {}), by_option) == []
    assert overruled(charge_records([sourced("own", zone="DE")], PlaceOptions(), {}), PlaceOptions()) == []


@pytest.mark.parametrize("field", ["zone", "pue", "grid", "site"])
def test_an_option_out_of_a_variable_that_nobody_set_is_refused_and_makes_no_default(tmp_path: Path, field: str) -> None:
    with pytest.raises(PlaceError, match=f"--{field} is empty"):
        site_of(PlaceOptions(**{field: " "}), {}, tmp_path)


@pytest.mark.parametrize("text", ["AWS", "aws", " Aws "])
def test_a_class_of_facilities_is_known_in_any_case(text: str) -> None:
    place = recording_place(PlaceOptions(pue=text), None, {}, None)

    assert place.pue is not None
    assert place.pue.value == 1.14
