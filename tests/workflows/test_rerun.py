"""When to run again: hours by the zone's own clock, with its name."""

from pathlib import Path

import pytest

from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "examples" / "records" / "h200.jsonl"  # its host keeps UTC, in Germany


def advice(options: PlaceOptions) -> str:
    words = statement_of(charge_records(load_records([RECORD]), options, {}))
    return " ".join(sentence.text for sentence in words.rerun).replace("\u00a0", " ")


@pytest.mark.parametrize("zone", [None, "DE", "Germany"])
def test_the_best_hour_is_by_the_clock_of_the_zone_whatever_the_host_keeps(zone: str | None) -> None:
    assert "(a typical profile names 12:00 CET, 4 % lower)" in advice(PlaceOptions(zone=zone))


def test_a_clock_without_a_name_is_told_by_its_offset() -> None:
    assert "00 UTC-03:00" in advice(PlaceOptions(zone="BR-S")) or "00 UTC+03:00" in advice(PlaceOptions(zone="TR"))


def test_the_readme_quotes_the_advice_of_its_record() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())

    assert f"For that run: “{advice(PlaceOptions())}”" in readme
