"""sacct in bulk: what the SQL makes of a cell is what the importer's field rules make of it; steps, repeats and clocks."""

import random
from zoneinfo import ZoneInfo

import pytest
from pytest import approx

from carbonreport.audit.people import named
from carbonreport.audit.sacct import jobs_query
from carbonreport.audit.sacct_cells import header_of
from carbonreport.errors import BadTime, RecordError
from carbonreport.importers.slurm_jobs import jobs
from carbonreport.importers.slurm_rows import rows_of
from carbonreport.testing.ledger import us
from carbonreport.workflows.ledger import rules

COLUMNS = [
    "JobIDRaw",
    "JobID",
    "Cluster",
    "Partition",
    "Account",
    "User",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "State",
    "NNodes",
    "NodeList",
    "AllocTRES",
    "ConsumedEnergyRaw",
    "Exclusive",
    "JobName",
]
ROW = {
    "JobIDRaw": "1", "JobID": "1", "Cluster": "lab", "Partition": "gpu", "Account": "vision", "User": "ada", "Submit": "2026-03-01T09:00:00Z", "Start": "2026-03-01T10:00:00Z",
    "End": "2026-03-01T12:00:00Z", "ElapsedRaw": "7200", "State": "COMPLETED", "NNodes": "1", "NodeList": "n1", "AllocTRES": "billing=8,cpu=8,gres/gpu=2,node=1", "JobName": "train",
}  # fmt: skip


def written(path, *rows, columns=COLUMNS):
    lines = ["|".join(columns), *("|".join((ROW | row).get(name, "") for name in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def read(con, tmp_path):
    def run(*rows, zone=None, columns=COLUMNS, people="names"):
        path = written(tmp_path / "sacct.txt", *rows, columns=columns)
        query, taken = jobs_query(con, path, rules(), zone, named(people, None), "hash")
        found = con.execute(query)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()], taken

    return run


def test_a_job_is_a_row(read):
    ((job,), taken) = read(ROW)

    assert (job["job_id"], job["project"], job["person"], job["partition"], job["state"], job["gpus"], job["nodes"], job["hosts"]) == (
        "1",
        "vision",
        "ada",
        "gpu",
        "COMPLETED",
        2,
        1,
        "n1",
    )
    assert (job["submit_us"], job["start_us"], job["end_us"]) == (us("2026-03-01T09:00Z"), us("2026-03-01T10:00Z"), us("2026-03-01T12:00Z"))
    assert (job["energy_mj"], job["method"], job["exclusive"]) == (None, "", None)
    assert (taken.rows, taken.not_used) == (1, ())


def test_a_delimiter_inside_a_jobs_name_harms_nothing(read):
    (found, _) = read({"JobName": "a|b|c"}, {"JobIDRaw": "2", "JobID": "2", "JobName": "|".join("x" * 40)})

    assert [job["job_id"] for job in sorted(found, key=lambda j: j["job_id"])] == ["1", "2"]
    assert {job["gpus"] for job in found} == {2}


def test_posix_seconds_are_times(read):
    ((job,), _) = read({"Submit": "1772355600", "Start": "1772359200", "End": "1772366400"})

    assert (job["start_us"], job["end_us"]) == (us("2026-03-01T10:00Z"), us("2026-03-01T12:00Z"))


def test_a_job_that_was_requeued_is_two_and_a_repeated_row_is_none(read):
    again = {"Start": "2026-03-01T13:00:00Z", "End": "2026-03-01T15:00:00Z"}

    found, taken = read({"State": "REQUEUED"}, again, again)

    assert len(found) == 2
    assert dict(taken.not_used) == {"the same job again": 1}


def test_steps_are_never_jobs_and_fill_an_energy_that_the_job_row_lacks(read):
    steps = [
        {"JobIDRaw": f"1.{step}", "JobID": f"1.{step}", "User": "", "ConsumedEnergyRaw": joules}
        for step, joules in (("batch", "1000000"), ("extern", "1000000"), ("0", "900000"))
    ]

    ((job,), _) = read({"ConsumedEnergyRaw": "0"}, *steps)
    ((whole,), _) = read({"ConsumedEnergyRaw": "2000000"}, *steps)

    assert (job["energy_mj"], whole["energy_mj"]) == (1_000_000_000, 2_000_000_000)


def test_a_step_under_the_bare_id_is_not_a_second_job(read):
    found, taken = read({"ConsumedEnergyRaw": "2000000"}, {"User": "", "Account": "vision", "ConsumedEnergyRaw": "1900000"})

    assert [job["energy_mj"] for job in found] == [2_000_000_000]
    assert dict(taken.not_used) == {"the same job again": 1}


def test_what_no_node_can_use_is_left_out_and_said(read):
    found, taken = read({"ConsumedEnergyRaw": "794"}, {"JobIDRaw": "2", "JobID": "2", "ConsumedEnergyRaw": "9000000000"})

    assert [job["energy_mj"] for job in found] == [None, None]
    assert [count for why, count in taken.not_used if "not that of a node" in why] == [2]


def test_jobs_that_have_not_begun_are_counted_apart(read):
    found, taken = read(
        ROW, {"JobIDRaw": "2", "JobID": "2_[1-3]", "Start": "Unknown", "End": "Unknown", "State": "PENDING", "ElapsedRaw": "0"}
    )

    assert len(found) == 1
    assert dict(taken.not_used) == {"not begun": 1}


def test_a_running_job_ends_where_its_length_does(read):
    ((job,), _) = read({"End": "Unknown", "State": "RUNNING", "ElapsedRaw": "5400"})
    ((same,), _) = read({"End": "2026-03-01T10:00:00Z", "State": "RUNNING", "ElapsedRaw": "5400"})

    assert (job["end_us"], same["end_us"]) == (us("2026-03-01T11:30Z"),) * 2


def test_an_id_cut_by_a_fixed_width_is_refused_and_said(read):
    found, taken = read(ROW, {"JobIDRaw": "", "JobID": "16290213_1+"})

    assert len(found) == 1
    assert "parsable2" in taken.not_used[0][0]


def test_local_times_need_a_zone(read):
    with pytest.raises(BadTime, match="--time-zone"):
        read({"Submit": "", "Start": "2026-03-01T10:00:00", "End": "2026-03-01T12:00:00"})


@pytest.mark.parametrize(
    ("start", "end", "elapsed", "expected"),
    [
        ("2026-07-01T10:00:00", "2026-07-01T12:00:00", 7200, ("2026-07-01T08:00Z", "2026-07-01T10:00Z")),
        ("2026-10-25T02:30:00", "2026-10-25T04:00:00", 5400, ("2026-10-25T01:30Z", "2026-10-25T03:00Z")),
        ("2026-10-25T02:30:00", "2026-10-25T04:00:00", 9000, ("2026-10-25T00:30Z", "2026-10-25T03:00Z")),
        ("2026-10-25T01:00:00", "2026-10-25T02:30:00", 5400, ("2026-10-24T23:00Z", "2026-10-25T00:30Z")),
        ("2026-10-25T01:00:00", "2026-10-25T02:30:00", 9000, ("2026-10-24T23:00Z", "2026-10-25T01:30Z")),
        ("2026-03-29T01:30:00", "2026-03-29T03:30:00", 3600, ("2026-03-29T00:30Z", "2026-03-29T01:30Z")),
        ("2026-12-31T23:00:00", "2027-01-01T01:00:00", 7200, ("2026-12-31T22:00Z", "2027-01-01T00:00Z")),
    ],
)  # fmt: skip
def test_both_hours_of_the_autumn_are_told_by_the_jobs_length(read, start, end, elapsed, expected):
    ((job,), _) = read({"Submit": "", "Start": start, "End": end, "ElapsedRaw": str(elapsed)}, zone=ZoneInfo("Europe/Berlin"))

    assert (job["start_us"], job["end_us"]) == tuple(us(text) for text in expected)


def test_an_hour_that_never_was_is_refused_and_said(read):
    found, taken = read(
        {"Submit": "", "Start": "2026-03-29T02:30:00", "End": "2026-03-29T04:30:00", "ElapsedRaw": "9999"}, zone=ZoneInfo("Europe/Berlin")
    )

    assert found == []
    assert any("does not exist" in why for why, _ in taken.not_used)


ENERGIES = [
    "",
    "0",
    "1500000",
    "1.5M",
    "4.58M",
    "2442K",
    "18446744073709551614",
    "18446744073709551615",
    "4294967294",
    "N/A",
    "abc",
    "3e6",
    "1.5G",
    "99999999999999999999",
]
TRES = [
    "", "billing=32,cpu=32,energy=1442000,gres/gpu:a100=4,node=1", "cpu=8,gres/gpu=4,gres/gpu:a100=4", "cpu=8,gres/gpu:h200=2,gres/gpu:a100=1", "gres/gpu=3,gres/gpu:a100=1", "1=8,2=64,3=1442000,4=2",
    "cpu=8,gres/gpu:h200=2,energy=1700000,node=1", "energy=18446744073709551614,gres/gpu=2", "cpu=4,mem=20G",
]  # fmt: skip
STATES = [
    "COMPLETED",
    "CD",
    "CANCELLED by 1000",
    "CANCELLED+",
    "TIMEOUT",
    "TO",
    "OUT_OF_ME+",
    "NODE_FAIL",
    "whatever",
    "PREEMPTED",
    "FAILED",
]
ELAPSED = ["7200", "02:00:00", "1-00:00:00", "47:12", "4294967294", "", "0"]


@pytest.mark.parametrize("seed", range(3))
def test_every_cell_means_what_the_importer_of_single_files_says(read, seed):
    rng = random.Random(seed)
    rows = [
        {
            "JobIDRaw": str(i), "JobID": str(i), "ConsumedEnergyRaw": rng.choice(ENERGIES), "AllocTRES": rng.choice(TRES), "State": rng.choice(STATES), "ElapsedRaw": rng.choice(ELAPSED),
            "NNodes": rng.choice(["1", "2", "", "4294967294"]), "Exclusive": rng.choice(["", "Yes", "no", "Unknown"]),
        }
        for i in range(300)
    ]  # fmt: skip

    found, _ = read(*rows)

    lines = ["|".join(COLUMNS), *("|".join((ROW | row).get(name, "") for name in COLUMNS) for row in rows)]
    expected = {job.job_id: job for _, job in jobs(rows_of(lines, []), [], zone=ZoneInfo("UTC"))}
    assert len(found) == len(expected)
    for job in found:
        other = expected[job["job_id"]]
        assert job["gpus"] == sum(other.gpus.values()), rows[int(job["job_id"])]
        assert job["gpu_model"] == "+".join(sorted(name for name in other.gpus if name))
        assert job["state"] == other.state
        assert job["nodes"] == other.nodes
        assert job["exclusive"] == other.exclusive
        assert (job["energy_mj"] is None) == (other.consumed_joules is None), (
            rows[int(job["job_id"])],
            job["energy_mj"],
            other.consumed_joules,
        )
        if other.consumed_joules is not None:
            assert job["energy_mj"] == approx(other.consumed_joules * 1e3)
        assert (job["start_us"] / 1e6, job["end_us"] / 1e6) == (other.start_s, other.end_s)


def test_a_file_of_another_shape_is_not_read_in_bulk(con, tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("JobID   State\n------- -----\n1  COMPLETED\n")

    assert header_of(path) is None
    with pytest.raises(RecordError, match="--parsable2"):
        jobs_query(con, path, rules(), None, named("none", None), "")


def test_lines_that_cannot_be_read_are_counted_and_the_others_stay(con, tmp_path):
    path = written(
        tmp_path / "sacct.txt",
        ROW,
        {"JobIDRaw": "2", "JobID": "2", "JobName": "caf?"},
        {"JobIDRaw": "4", "JobID": "4", "Account": "caf?"},
        {"JobIDRaw": "3", "JobID": "3"},
    )
    path.write_bytes(path.read_bytes().replace(b"caf?", b"caf\xe9"))

    query, taken = jobs_query(con, path, rules(), None, named("none", None), "")

    assert [row[0] for row in con.execute(f"SELECT job_id FROM ({query}) ORDER BY 1").fetchall()] == [
        "1",
        "3",
    ]
    assert sum(count for why, count in taken.not_used if "cannot be read" in why) == 2


def test_watts_of_tresusageoutave_are_a_power_and_never_joules(read):
    ((job,), _) = read(
        {"ElapsedRaw": "128", "End": "2026-03-01T10:02:08Z", "TRESUsageOutAve": "energy=794,fs/disk=1"},
        columns=[*COLUMNS[:-1], "TRESUsageOutAve", "JobName"],
    )

    assert job["energy_mj"] == 794 * 128 * 1000


def test_a_line_that_is_torn_is_rejected_and_said(con, tmp_path):
    path = written(tmp_path / "sacct.txt", ROW, {"JobIDRaw": "2", "JobID": "2"})
    text = path.read_text()
    torn = [text + "3|3|lab|gpu|vision|ada|2026-03-01T09:00:00Z\n", text.rstrip("\n"), text[:-3]]

    for content, rows in zip(torn, (2, 1, 1), strict=True):
        path.write_text(content)
        _, taken = jobs_query(con, path, rules(), None, named("none", None), "")
        assert (taken.rows, [n for why, n in taken.not_used if "torn" in why]) == (rows, [1])


def test_a_delimiter_before_the_last_column_makes_a_line_no_other_job(read):
    columns = ["JobIDRaw", "JobName", "Account", "User", "Start", "End", "ElapsedRaw", "AllocTRES", "State"]

    found, taken = read({"JobName": "my|ada"}, {"JobIDRaw": "2"}, columns=columns)

    assert ([job["job_id"] for job in found], [n for why, n in taken.not_used if "torn" in why]) == (["2"], [1])


@pytest.mark.parametrize(
    "far", [{"End": "17408268000000"}, {"Start": "99999999999999"}, {"End": "9999-01-01T00:00:00Z"}, {"Start": "1970-01-01T00:00:00Z"}]
)
def test_a_time_beyond_all_years_costs_its_row_and_not_the_file(read, far):
    found, taken = read({"JobIDRaw": "2", "JobID": "2"}, far)

    assert ([job["job_id"] for job in found], [n for why, n in taken.not_used if "outside any year" in why]) == (["2"], [1])


@pytest.mark.parametrize(
    "huge", [{"ElapsedRaw": "99999999999999999"}, {"NNodes": "99999999999999"}, {"AllocTRES": "gres/gpu:h200=99999999999999999999"}]
)
def test_a_size_that_no_job_has_costs_its_row_and_not_the_file(read, huge):
    found, taken = read({"JobIDRaw": "2", "JobID": "2"}, huge)

    assert ([job["job_id"] for job in found], [n for why, n in taken.not_used if "than any job" in why]) == (["2"], [1])


def test_a_row_that_is_not_used_has_one_reason_and_time_that_never_passed_is_said(read):
    before = "2026-03-01T09:00:00Z"
    rows = [
        {"End": ROW["Start"], "ElapsedRaw": "0"},
        {"End": before, "ElapsedRaw": ""},
        {"End": before, "ElapsedRaw": "600"},
        {"State": "PENDING", "ConsumedEnergyRaw": "1"},
    ]

    found, taken = read(*({"JobIDRaw": str(i), "JobID": str(i)} | row for i, row in enumerate(rows)))

    assert [job["job_id"] for job in found] == ["2"]
    assert dict(taken.not_used) == {"ran for no time": 1, "ends before its start, without a length": 1, "not begun": 1}
    assert sum(n for _, n in taken.noted) == 1


def test_slices_of_boards_are_said(read):
    (_, taken) = read({"AllocTRES": "gres/gpu:a100_1g.5gb=2,gres/gpu=2"}, {"JobIDRaw": "2", "JobID": "2"})

    assert [n for what, n in taken.noted if "MIG" in what] == [1]


def test_a_name_with_signs_of_patterns_is_that_file_alone(con, tmp_path):
    written(tmp_path / "axb.txt", {"JobIDRaw": "2", "JobID": "2"})
    path = written(tmp_path / "a?b.txt", ROW)

    query, _ = jobs_query(con, path, rules(), None, named("none", None), "")

    assert con.execute(f"SELECT job_id FROM ({query})").fetchall() == [("1",)]
