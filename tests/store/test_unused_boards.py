"""Which boards a run did not use is kept in its record; records that say nothing load as before."""

from dataclasses import replace

import pytest

from carbonreport.errors import RecordError
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record


def test_unused_boards_come_back_with_their_readings(tmp_path):
    run = replace(make_record({"a": 300.0, "b": 80.0}, 1), unused=("b",))

    again = load(save(run, tmp_path / "run.jsonl"))

    assert again.unused == ("b",)
    assert len(again.devices) == len(again.traces) == 2


def test_a_record_without_unused_boards_says_nothing_of_them(tmp_path):
    path = save(make_record({"a": 300.0}, 1), tmp_path / "run.jsonl")

    assert "unused" not in path.read_text()
    assert load(path).unused == ()


def test_an_unused_board_that_is_none_of_the_record_is_refused(tmp_path):
    path = save(replace(make_record({"a": 300.0, "b": 80.0}, 1), unused=("b",)), tmp_path / "run.jsonl")
    path.write_text(path.read_text().replace('"unused":["b"]', '"unused":["z"]'))

    with pytest.raises(RecordError, match="'z'"):
        load(path)
