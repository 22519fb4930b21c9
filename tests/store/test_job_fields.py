"""A record may name its distributed job; one that does not is read as before."""

import json
from dataclasses import replace

from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record


def first_line(path):
    return json.loads(path.read_text().splitlines()[0])


def test_job_rank_and_world_size_come_back_as_they_were_saved(tmp_path):
    run = replace(make_record({"a": 300.0}, 1), job="0f0f", rank=3, world_size=8)

    again = load(save(run, tmp_path / "run.jsonl"))

    assert (again.job, again.rank, again.world_size) == ("0f0f", 3, 8)


def test_a_run_of_its_own_has_none_of_them_in_its_record(tmp_path):
    path = save(make_record({"a": 300.0}, 1), tmp_path / "run.jsonl")

    assert not {"job", "rank", "world_size"} & first_line(path).keys()
    assert (load(path).job, load(path).rank, load(path).world_size) == (None, None, None)


def test_a_launcher_that_does_not_say_how_many_there_are_leaves_that_out(tmp_path):
    path = save(replace(make_record({"a": 300.0}, 1), job="0f0f", rank=0), tmp_path / "run.jsonl")

    assert "world_size" not in first_line(path)
    assert (load(path).rank, load(path).world_size) == (0, None)
