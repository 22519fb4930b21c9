"""`show --json` keeps to the schema in docs/."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from carbonreport.model.run import EnergyTrace, RunRecord
from carbonreport.render.formats.json import footprint_object
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions

SCHEMA = json.loads((Path(__file__).parents[1] / "docs" / "show.schema.json").read_text())
SITE = """
[contract]
grams_per_kwh = 0
instrument = "PPA"
[embodied]
devices = { "GPU" = { kg = 150, lifetime_years = 6, utilisation = 0.85, source = "a paper" } }
"""


@pytest.mark.parametrize(
    "runs",
    [
        [make_record({"GPU": 500.0, "host": 50.0}, 30, kinds={"host": "cpu"}, spans={"a": 0.5, "a/b": 0.2}, items={"a": 10.0})],
        [make_record({"GPU": 500.0}, 2), make_record({"GPU": 100.0}, 1, name="b", kind="inference")],
        [make_record({}, 1)],
        [make_record({"GPU": 500.0}, 0)],
        [make_record({"A100": 400.0}, 10, method="model", gain=(0.45, 1.0))],
    ],
    ids=["spans", "two runs", "no device", "no length", "estimate"],
)
@pytest.mark.parametrize("zone", ["DE", "SE", None])
def test_every_object_keeps_to_the_schema(runs: list[RunRecord], zone, tmp_path):
    (tmp_path / "site.toml").write_text(SITE)
    charged = charge_records(runs, PlaceOptions(zone=zone, site=str(tmp_path / "site.toml")), {})

    shown = json.loads(json.dumps(footprint_object(charged.footprint), allow_nan=False))

    jsonschema.validate(shown, SCHEMA)


def test_what_was_not_read_is_null_and_never_0(tmp_path):
    unread = make_record({"GPU": 500.0, "host": 50.0}, 2, kinds={"host": "cpu"}, spans={"a": 0.5}, items={"a": 10.0})
    unread = replace(unread, traces=tuple(EnergyTrace(t.device, (), ()) for t in unread.traces))
    (tmp_path / "site.toml").write_text(SITE + "[place]\nwue_litres_per_kwh = 0.3\n")
    charged = charge_records([unread], PlaceOptions(zone="DE", site=str(tmp_path / "site.toml")), {})

    shown = json.loads(json.dumps(footprint_object(charged.footprint), allow_nan=False))

    jsonschema.validate(shown, SCHEMA)
    assert shown["covered"] == 0
    assert [shown[name] for name in ("it_joules", "facility_joules", "grams", "market_grams", "water")] == [None] * 5
    assert shown["rest"] == {"it_joules": None, "grams": None} and shown["origins"] == {} and shown["kinds"] == {}
    for row, names in (
        ("devices", ("it_joules", "grams", "share")),
        ("spans", ("it_joules", "it_joules_low", "grams", "joules_per_item", "own_it_joules")),
    ):
        assert shown[row] and all(item[name] is None for item in shown[row] for name in names)
    assert all(hour[name] is None for hour in shown["hours"] for name in ("it_joules", "facility_joules", "grams", "grams_per_kwh", "pue"))


def test_a_device_without_a_reading_is_null_beside_one_that_was_read():
    run = make_record({"GPU": 500.0, "host": 50.0}, 2, kinds={"host": "cpu"})
    run = replace(run, traces=tuple(t if t.device == "GPU" else EnergyTrace(t.device, (), ()) for t in run.traces))

    shown = footprint_object(charge_records([run], PlaceOptions(zone="DE"), {}).footprint)

    jsonschema.validate(shown, SCHEMA)
    assert {d["name"]: d["it_joules"] is None for d in shown["devices"]} == {"GPU": False, "host": True}


def test_water_is_a_figure_of_its_own(tmp_path):
    (tmp_path / "site.toml").write_text("[place]\nwue_litres_per_kwh = 0.3\n")
    shown = footprint_object(
        charge_records([make_record({"GPU": 500.0}, 2)], PlaceOptions(zone="DE", site=str(tmp_path / "site.toml")), {}).footprint
    )

    jsonschema.validate(shown, SCHEMA)
    assert (shown["water"]["value"], shown["water"]["unit"]) == (pytest.approx(0.3), "L")


def test_the_schema_refuses_what_is_wrong():
    charged = charge_records([make_record({"GPU": 500.0}, 1)], PlaceOptions(zone="DE"), {})
    shown = {**footprint_object(charged.footprint), "covered": 2}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shown, SCHEMA)
