"""sacct in other shapes: its hosts, its encodings, and what a file is that is none of sacct."""

import json

import pytest

pytest.importorskip("duckdb", reason="the audit's packages are not installed")

from carbonreport.audit.ledger import Ledger
from carbonreport.errors import BadTime, RecordError
from carbonreport.workflows.ledger import Keeping, keep_sacct

COLUMNS = "JobIDRaw|JobID|Account|User|Start|End|ElapsedRaw|State|NodeList|AllocTRES\n"
ROW = "127|123_4|vision|ada|2026-03-01T10:00:00|2026-03-01T12:00:00|7200|COMPLETED|n[1-2]|gres/gpu:h200=2\n"
JOB = {
    "job_id": 127,
    "cluster": "lab",
    "account": "vision",
    "user": "ada",
    "partition": "gpu",
    "nodes": "n1",
    "state": {"current": ["COMPLETED"]},
    "time": {"start": 1772359200, "end": 1772366400, "elapsed": 7200, "submission": 1772355600},
    "tres": {"allocated": [{"type": "gres", "name": "gpu:h200", "id": 1001, "count": 2}]},
    "steps": [],
}


@pytest.fixture
def kept(con, tmp_path):
    """What the ledger has of a file: id, the array's id, hosts, GPUs and project of each job; and what was said."""

    def run(content, *, name="sacct.txt", time_zone="UTC"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        taken = keep_sacct(path, Keeping(str(tmp_path / "ledger"), people="none", time_zone=time_zone), con=con)
        Ledger(str(tmp_path / "ledger")).open(con)
        return con.execute("SELECT job_id, array_id, hosts, gpus, project FROM jobs ORDER BY 1").fetchall(), taken

    return run


def test_hosts_are_kept_whatever_cuts_the_cells(kept):
    (rows, taken) = kept((COLUMNS + ROW).replace("|", "\t"))

    assert rows == [("127", "123_4", "n[1-2]", 2, "vision")]
    assert taken.rows == 1


def test_json_of_sacct_is_read_without_a_time_zone(kept):
    (rows, _) = kept(json.dumps({"jobs": [JOB]}), time_zone=None)

    assert rows == [("127", "", "n1", 2, "vision")]


def test_a_job_in_text_and_json_is_one(kept):
    kept(json.dumps({"jobs": [JOB]}), name="a.json")

    assert len(kept(COLUMNS + ROW)[0]) == 1


def test_local_times_of_a_table_need_a_zone(kept):
    with pytest.raises(BadTime, match="--time-zone"):
        kept((COLUMNS + ROW).replace("|", "\t"), time_zone=None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (ROW, "no header line"),
        (ROW.replace("|", "^|^"), r"cut by '\^\|\^'"),
        ((COLUMNS + ROW).encode("utf-16"), "UTF-16"),
        ("", "is empty"),
        (json.dumps({"jobs": []}), "its list of jobs is empty"),
        (json.dumps({"jobs": [{"job_id": 1}]}), "squeue"),
        ("JobID,JobName,State\n1,x,COMPLETED\n", "no Start and no AllocTRES"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(kept, content, words):
    with pytest.raises(RecordError, match=words):
        kept(content)


def test_lines_of_windows_are_read_and_said(kept):
    (rows, taken) = kept((COLUMNS + ROW.replace("vision", "pröj")).encode("cp1252"))

    assert rows[0][4] == "pröj"
    assert taken.noted == (("line is not UTF-8 and was read as Windows-1252", 1),)


def test_a_last_line_without_an_end_is_torn_in_every_shape(kept):
    rows, taken = kept((COLUMNS + ROW + ROW.replace("127|123_4", "128|123_5").rstrip("\n")).replace("|", "\t"))

    assert (len(rows), [n for why, n in taken.not_used if "torn" in why]) == (1, [1])
