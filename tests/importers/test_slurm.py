"""Slurm's fields and jobs."""

import pytest

from carbonreport.importers import slurm_fields as fields
from carbonreport.importers.slurm_jobs import jobs
from carbonreport.importers.slurm_rows import rows_of
from carbonreport.importers.wishes import zone_named


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3-00:00:00", 259200),
        ("02:19:48", 8388),
        ("00:47.734", 47.734),
        ("2102", 2102),
        ("00:00:00", 0),
        ("", None),
        ("INVALID", None),
        ("4294967294", None),
    ],
)
def test_elapsed_is_read_in_every_form(text, seconds):
    assert fields.elapsed_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "joules"),
    [
        ("20543125", 20543125),
        ("4.58M", 4.58e6),
        ("12K", 12e3),
        ("0", None),
        ("", None),
        ("18446744073709551614", None),
        ("18446744073709551615", None),
        ("Unknown", None),
        ("9e20", None),
    ],
)
def test_energy_has_decimal_suffixes_and_markers_that_are_none(text, joules):
    assert fields.joules(text) == joules


def test_typed_and_untyped_gpus_are_the_same_boards():
    assert fields.gpus(fields.tres("cpu=8,gres/gpu=4,gres/gpu:a100=4")) == {"a100": 4}
    assert fields.gpus(fields.tres("gres/gpu:a100=4,cpu=8")) == {"a100": 4}
    assert fields.gpus(fields.tres("gres/gpu=4")) == {"": 4}
    assert fields.gpus(fields.tres("gres/gpu=4,gres/gpu:a100=2")) == {"": 4}
    assert fields.gpus(fields.tres("cpu=8")) == {}


def test_resources_by_number_are_named():
    assert fields.tres("1=8,3=2442,4=1") == {"cpu": "8", "energy": "2442", "node": "1"}


@pytest.mark.parametrize(
    ("text", "state"), [("CANCELLED by 1000", "CANCELLED"), ("CD", "COMPLETED"), ("OOM", "OUT_OF_MEMORY"), ("FOO", "FOO"), ("", "")]
)
def test_states_are_in_full_and_unknown_ones_stay(text, state):
    assert fields.state(text) == state


def test_a_part_of_a_heterogeneous_job_is_not_a_cut_id():
    assert fields.is_cut("1629021_123+") and not fields.is_cut("123+0") and not fields.is_cut("16290213.ba+")


def test_a_job_is_read_with_everything_that_a_ledger_needs(logs):
    rejected = []

    found = [job for _, job in jobs(rows_of(logs.SLURM.splitlines(), rejected), rejected, zone=zone_named("Europe/Madrid"))]

    first = found[0]
    assert not rejected
    assert (first.cluster, first.job_id, first.account, first.user, first.partition, first.state) == (
        "c",
        "100",
        "lab",
        "ann",
        "gpu",
        "COMPLETED",
    )
    assert (first.nodes, first.gpus, first.consumed_joules, first.elapsed_s, first.exclusive) == (2, {"a100": 8}, 3.6e6, 3600, None)
    assert first.start_s == 1772442000 and first.end_s == first.start_s + 3600 and first.submit_s == first.start_s - 3600
    assert [job.state for job in found] == ["COMPLETED", "CANCELLED", "COMPLETED"] and found[2].consumed_joules is None


def test_a_requeued_job_is_a_job_for_each_start(read):
    head = "JobIDRaw|Start|End|ElapsedRaw|NNodes|State|ConsumedEnergyRaw|Restarts|Exclusive\n"
    runs = "7|2026-03-02T10:00:00|2026-03-02T10:10:00|600|1|REQUEUED|60000|0|yes\n7|2026-03-02T11:00:00|2026-03-02T11:10:00|600|1|COMPLETED|70000|1|yes\n"

    found = read("sacct.txt", head + runs + runs, time_zone="UTC")

    assert found.it_joules == 130000 and [run.kind for run in found.runs] == ["failed", "other"]
    assert len(found.rejected) == 2 and "repeats" in found.rejected[0][1]
    assert not any(note.slug == "import-node-shared" for note in found.notes)


def test_array_tasks_that_have_not_begun_carry_no_energy(read):
    head = "JobID|JobIDRaw|Start|ElapsedRaw|NNodes|State|ConsumedEnergyRaw\n"
    tasks = "9_[1-3,7]|9|2026-03-02T10:00:00|600|1|PENDING|60000\n9_1|10|2026-03-02T10:00:00|600|1|COMPLETED|60000\n9_2|9|2026-03-02T10:00:00|600|1|COMPLETED|61000\n"

    found = read("sacct.txt", head + tasks, time_zone="UTC")

    assert found.it_joules == 121000


@pytest.mark.parametrize(("joules", "why"), [(1000, "below the 50 W"), (100_000_000, "more than any draws")])
def test_an_energy_that_no_node_can_have_is_refused(read, joules, why):
    lines = f"JobIDRaw|Start|ElapsedRaw|NNodes|State|ConsumedEnergyRaw\n1|2026-03-02T10:00:00|600|2|COMPLETED|{joules}\n"

    found = read("sacct.txt", lines, time_zone="UTC")

    assert found.it_joules is None and why in found.rejected[0][1] and why in found.why_not


@pytest.mark.parametrize("delimiter", ["|", "^|^", "\t", ",", ";"])
def test_any_delimiter_is_known_by_the_header(read, logs, delimiter):
    without_names = "\n".join(line.rsplit("|", 1)[0] for line in logs.SLURM.replace("|a|b", "|ab").strip().split("\n"))
    text = "\n".join(delimiter.join(f'"{c}"' if delimiter in c else c for c in line.split("|")) for line in without_names.split("\n"))

    assert read("sacct.txt", text, time_zone="UTC").it_joules == 4_500_000


def test_parsable_with_its_last_empty_cell_and_a_table_of_a_wiki_are_the_same(read, logs):
    lines = [line.rsplit("|", 1)[0] for line in logs.SLURM.replace("|a|b", "|ab").strip().split("\n")]
    parsable = "\n".join(f"{line}|" for line in lines)
    wiki = "\n".join(f"|{line}|" if i != 1 else f"|{'---|' * 14}\n|{line}|" for i, line in enumerate(lines))

    assert read("a.txt", parsable, time_zone="UTC").it_joules == read("b.txt", wiki, time_zone="UTC").it_joules == 4_500_000


def test_unknown_states_are_listed_and_their_jobs_count(read, logs):
    found = read("sacct.txt", logs.SLURM.replace("|COMPLETED|2|", "|FOO|2|"), time_zone="UTC")

    assert found.it_joules == 4_500_000
    assert any(note.slug == "import-warning" and "FOO" in note.text for note in found.notes)
