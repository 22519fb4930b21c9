"""The table of boards: rated power by name."""

import csv
from pathlib import Path

import pytest

import carbonreport
from carbonreport.boards import find_board

TABLE = Path(carbonreport.__file__).parent / "data" / "boards.csv"
ROWS = list(csv.DictReader(line for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")))


def spellings() -> list[tuple[str, str]]:
    return [(name, row["name"]) for row in ROWS for name in (row["name"], *filter(None, row["aliases"].split(";")))]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_board_has_a_power_and_a_source(row: dict[str, str]) -> None:
    assert 10 < float(row["rated_watts"]) < 3000
    assert row["source"]
    assert None not in row


def test_every_name_and_alias_leads_to_its_own_board() -> None:
    for spelling, name in spellings():
        assert find_board(spelling).name == name


def test_no_two_boards_share_a_name_however_it_is_spelled() -> None:
    owners: dict[str, set[str]] = {}
    for spelling, name in spellings():
        owners.setdefault("".join(c for c in spelling.casefold() if c.isalnum()), set()).add(name)

    assert [names for names in owners.values() if len(names) > 1] == []


@pytest.mark.parametrize("spelling", ["a100 sxm4 80gb", "NVIDIA A100-SXM4-80GB", "A100_SXM4_80GB", "nvidia a100-sxm4-80gb"])
def test_case_hyphens_and_the_vendors_name_do_not_matter(spelling: str) -> None:
    assert find_board(spelling).rated_watts == 400


def test_an_unknown_board_has_no_power_and_names_some_like_it() -> None:
    board = find_board("RTX 4091")

    assert board.rated_watts is None
    assert "NVIDIA GeForce RTX 4090" in board.nearest


def test_boards_like_an_unknown_one_are_named_once_each() -> None:
    for name in ("H20000", "A1000", "V1000", "MI3000"):
        nearest = find_board(name).nearest
        assert len(nearest) == len(set(nearest)) == 3
