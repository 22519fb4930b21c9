"""Records and statements for the tests of words and formats."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from carbonreport.model.run import RunRecord
from carbonreport.workflows.charge import Charged, charge_records
from carbonreport.workflows.place import PlaceOptions

FLAT = "time,g_per_kwh\n2020-01-01T00:00Z,400\n2030-01-01T00:00Z,400\n"


@pytest.fixture
def charged(tmp_path: Path) -> Callable[..., Charged]:
    """Charge records; on a flat grid of 400 g/kWh where nothing else is said."""

    def charge(*runs: RunRecord, environ: Mapping[str, str] = {}, **place: str | None) -> Charged:
        if not place:
            (tmp_path / "flat.csv").write_text(FLAT)
            place = {"grid": str(tmp_path / "flat.csv"), "pue": "1.1:1.2:1.3"}
        return charge_records(runs, PlaceOptions(**place), environ)

    return charge
