"""`show --json` keeps to the schema in docs/."""

import json
from pathlib import Path

import jsonschema
import pytest

from carbonreport.model.run import RunRecord
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


def test_the_schema_refuses_what_is_wrong():
    charged = charge_records([make_record({"GPU": 500.0}, 1)], PlaceOptions(zone="DE"), {})
    shown = {**footprint_object(charged.footprint), "covered": 2}

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shown, SCHEMA)
