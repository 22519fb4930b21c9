"""One path is one path: neither a record nor an output is taken for a list of letters."""

from pathlib import Path

import pytest

from carbonreport.errors import RecordError
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.statement import statement


@pytest.mark.parametrize("kind", [str, Path])
def test_one_record_and_one_output_need_no_list(tmp_path: Path, kind: type) -> None:
    record = save(make_record({"GPU": 500.0}, 1, zone="DE"), tmp_path / "run.jsonl")

    assert statement(kind(record), kind(tmp_path / "energy.md")) == [tmp_path / "energy.md"]


def test_a_folder_of_records_is_refused_with_what_to_give_instead(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"is a folder; name the records in it, such as .*/\*\.jsonl"):
        statement(str(tmp_path), [tmp_path / "energy.md"])
