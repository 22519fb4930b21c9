"""Job ledger against meter ledger: whose the energy is, what was idle, and nothing twice."""

import random

import pytest
from pytest import approx

from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US, US_PER_S

NOON = "2026-03-02T12:00Z"


def found(year, slug):
    return next((f for f in year.findings if f.slug == slug), None)


def test_a_job_that_has_its_host_alone_gets_its_metered_energy_and_the_rest_of_the_day_is_idle(audited):
    readings = [a_reading("GPU-a", us("2026-03-02T00:00Z") + h * HOUR_US, 1, 1_000_000 if 12 <= h < 14 else 100_000) for h in range(24)]

    year = audited([a_job("1", NOON, 2)], readings)

    assert year.jobs.energy.measured_mj == 2_000_000
    assert year.idle.measured_mj == 22 * 100_000
    assert year.whole.it_mj == sum(r.energy_mj for r in readings)
    assert (year.busy_gpu_us, year.metered_gpu_us) == (2 * HOUR_US, 24 * HOUR_US)
    assert year.jobs.known_gpu_us == year.jobs.gpu_us


def test_jobs_that_share_a_host_share_its_energy_by_gpu_time_to_the_millijoule(audited):
    readings = [a_reading(f"GPU-{i}", NOON, 1, 1_000_001) for i in range(4)]
    jobs = [a_job("1", NOON, 1, gpus=3, project="vision"), a_job("2", NOON, 1, gpus=1, project="language")]

    year = audited(jobs, readings)

    by_project = {g.name: g.energy for g in year.groups["project"]}
    assert by_project["vision"].it_mj + by_project["language"].it_mj == 4_000_004
    assert by_project["vision"].it_mj == approx(3_000_003, abs=1)
    assert by_project["vision"].split_mj == by_project["vision"].measured_mj


def test_boards_that_no_job_had_while_others_worked_are_idle_at_the_power_that_the_lab_measured(audited):
    quiet = [a_reading(f"GPU-{i}", "2026-03-02T03:00Z", 1, 50_000) for i in range(2)]
    busy = [a_reading("GPU-0", NOON, 1, 800_000), a_reading("GPU-1", NOON, 1, 50_000)]

    year = audited([a_job("1", NOON, 1, gpus=1)], quiet + busy)

    assert year.jobs.energy.measured_mj == 800_000
    assert year.idle.measured_mj == 100_000
    assert year.idle.estimated_mj == 50_000


def test_a_board_without_a_host_or_job_is_unattributed_and_says_why(audited):
    year = audited(
        [a_job("1", NOON, 1)], [a_reading("GPU-x", NOON, 1, 7_000, host=""), a_reading("GPU-y", NOON, 1, 9_000, host="elsewhere")]
    )

    assert {why: e.it_mj for why, e in year.unattributed} == {"the reading names no host": 7_000, "no job was accounted on its host": 9_000}


def test_a_reading_that_names_its_job_is_that_jobs(audited):
    year = audited(
        [a_job("77", NOON, 1)],
        [a_reading("GPU-x", NOON, 1, 7_000, host="", job_id="77"), a_reading("GPU-x", "2026-03-03T12:00Z", 1, 5_000, host="", job_id="78")],
    )

    assert year.jobs.energy.measured_mj == 7_000
    assert dict(year.unattributed)["its job is not in the ledger"].it_mj == 5_000


def test_a_device_that_is_read_twice_counts_once(audited):
    first = a_reading("GPU-a", NOON, 1, 1_000_000)
    later = a_reading("GPU-a", us(NOON) + HOUR_US // 2, 1, 1_000_000)

    year = audited([], [first, later])

    assert year.whole.it_mj == 1_500_000
    assert found(year, "meter-twice").energy_mj == 500_000


def test_what_a_record_measured_of_a_board_is_taken_out_of_the_boards_hours(audited):
    hour = a_reading("GPU-a", NOON, 1, 1_000_000)
    record = a_job("run-1", NOON, 0.5, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200")
    own = a_reading("GPU-a", NOON, 0.5, 900_000, host="", job_id="run-1", method="anchored")

    year = audited([record, a_job("1", "2026-03-09T12:00Z", 1, hosts="n1")], [hour, own])

    assert year.whole.measured_mj == 1_000_000
    assert year.jobs.energy.measured_mj == 900_000
    assert found(year, "record-in-meter").energy_mj == 900_000


def test_a_record_inside_a_job_of_slurm_is_that_jobs_energy_and_no_job_of_its_own(audited):
    slurm = a_job("9", NOON, 2, gpus=1, gpu_model="h200", project="vision")
    record = a_job("run-1", us(NOON) + 60 * US_PER_S, 1, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200", project="")
    own = a_reading("GPU-a", us(NOON) + 60 * US_PER_S, 1, 900_000, host="", job_id="run-1", method="anchored")

    year = audited([slurm, record], [own])

    assert year.jobs.jobs == 1
    assert year.jobs.energy.measured_mj == 900_000
    assert [g.name for g in year.groups["project"]] == ["vision"]


def test_a_record_stands_for_its_own_part_of_a_job_and_the_rest_is_estimated(audited):
    slurm = a_job("9", NOON, 30, gpus=1, gpu_model="h200")
    record = a_job("run-1", us(NOON) + 60 * US_PER_S, 1, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200")
    board = a_reading("GPU-a", us(NOON) + 60 * US_PER_S, 1, 900_000, host="", job_id="run-1", method="anchored")
    processor = a_reading(
        "host cpu", us(NOON) + 60 * US_PER_S, 1, 50_000, kind="cpu", host="", job_id="run-1", method="model", gpu_model=""
    )

    energy = audited([slurm, record], [board, processor], watts=100.0).jobs.energy

    assert (energy.measured_mj, energy.estimated_mj) == (900_000, 29 * 360_000_000 + 50_000)


def test_a_record_of_processors_alone_says_nothing_of_the_jobs_boards(audited):
    slurm = a_job("9", NOON, 2, gpus=1, gpu_model="h200")
    record = a_job("run-1", us(NOON) + 60 * US_PER_S, 1, gpus=0, hosts="", cluster="carbonreport", gpu_model="")
    processor = a_reading(
        "host cpu", us(NOON) + 60 * US_PER_S, 1, 50_000, kind="cpu", host="", job_id="run-1", method="model", gpu_model=""
    )

    energy = audited([slurm, record], [processor], watts=100.0).jobs.energy

    assert (energy.measured_mj, energy.estimated_mj) == (0, 2 * 360_000_000 + 50_000)


def test_what_a_model_says_of_boards_is_for_its_own_time(audited):
    slurm = a_job("9", NOON, 4, gpus=1, gpu_model="h200")
    record = a_job("run-1", us(NOON) + 60 * US_PER_S, 1, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200")
    board = a_reading("GPU-a", us(NOON) + 60 * US_PER_S, 1, 900_000, host="", job_id="run-1", method="model")

    year = audited([slurm, record], [board], watts=100.0)

    assert (year.jobs.energy.measured_mj, year.jobs.energy.estimated_mj) == (0, 3 * 360_000_000 + 900_000)
    assert year.jobs.known_gpu_us == 0


def test_the_gpu_time_of_a_record_is_known_though_its_processors_are_a_model(audited):
    record = a_job("run-1", NOON, 1, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200")
    board = a_reading("GPU-a", NOON, 1, 900_000, host="", job_id="run-1", method="anchored")
    processor = a_reading("host cpu", NOON, 1, 50_000, kind="cpu", host="", job_id="run-1", method="model", gpu_model="")

    year = audited([record], [board, processor], watts=100.0)

    assert year.jobs.known_gpu_us == year.jobs.gpu_us == HOUR_US
    assert year.whole.it_mj == 950_000


def test_a_record_that_may_be_of_several_jobs_is_not_counted_beside_them(audited):
    jobs = [a_job(str(i), NOON, 2, gpus=1, hosts=f"n{i}", gpu_model="h200") for i in range(2)]
    record = a_job("run-1", us(NOON) + 60 * US_PER_S, 1, hosts="", cluster="carbonreport", gpu_model="NVIDIA H200")
    own = a_reading("GPU-a", us(NOON) + 60 * US_PER_S, 1, 900_000, host="", job_id="run-1", method="anchored")

    year = audited([*jobs, record], [own], watts=100.0)

    assert year.jobs.jobs == 2
    assert year.whole.measured_mj == 0
    assert found(year, "record-in-jobs").energy_mj == 900_000


def test_energy_of_a_node_counts_where_the_job_had_it_alone_and_not_where_it_was_shared(audited):
    alone = a_job("1", NOON, 1, hosts="n1", energy_mj=5_000_000)
    shared = [a_job(str(i), NOON, 1, hosts="n2", energy_mj=6_000_000) for i in (2, 3)]

    year = audited([alone, *shared], [])

    assert year.jobs.energy.reported_mj == 5_000_000
    assert (found(year, "node-shared").count, found(year, "node-shared").energy_mj) == (2, 12_000_000)


def test_slurm_may_say_that_a_job_did_not_have_its_node_alone(audited):
    assert audited([a_job("1", NOON, 1, energy_mj=5_000_000, exclusive=False)], []).whole.it_mj == 0


def test_a_nodes_energy_holds_its_boards_and_only_the_rest_comes_on_top(audited):
    year = audited([a_job("1", NOON, 1, energy_mj=5_000_000)], [a_reading("GPU-a", NOON, 1, 3_000_000)])

    assert (year.jobs.energy.measured_mj, year.jobs.energy.reported_mj) == (3_000_000, 2_000_000)


def test_gpu_time_that_nobody_measured_is_estimated_at_the_mean_of_the_same_board(audited):
    measured = [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, 360_000_000) for h in range(12)]  # 100 W
    jobs = [a_job("1", NOON, 12, gpu_model="h200"), a_job("2", NOON, 3, hosts="n9", gpus=2, gpu_model="h200")]

    year = audited(jobs, measured, watts=999.0)

    assert year.jobs.energy.estimated_mj == 6 * 360_000_000
    assert year.jobs.known_gpu_us == 12 * HOUR_US


def test_gpu_time_of_a_board_that_nobody_knows_is_unknown_and_not_zero(audited):
    year = audited([a_job("1", NOON, 3, gpus=2)], [])

    assert year.jobs.energy.it_mj == 0
    assert year.jobs.unknown_gpu_us == 6 * HOUR_US


def test_a_requeued_job_is_two_runs_and_the_energy_of_both_counts(audited):
    first = a_job("4", NOON, 1, state="REQUEUED", gpu_model="h200")
    second = a_job("4", "2026-03-02T15:00Z", 1, gpu_model="h200")

    year = audited([first, second], [], watts=100.0)

    assert year.jobs.jobs == 2
    assert {g.name: g.energy.it_mj for g in year.groups["outcome"]} == {"COMPLETED": 360_000_000, "REQUEUED": 360_000_000}


def test_energy_of_jobs_that_failed_or_were_stopped_counts_and_stands_apart(audited):
    states = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
    jobs = [a_job(str(i), NOON, 1, hosts=f"n{i}", state=state, gpu_model="h200") for i, state in enumerate(states)]

    year = audited(jobs, [], watts=50.0)

    assert {g.name for g in year.groups["outcome"]} == set(states)
    assert sum(g.energy.it_mj for g in year.groups["outcome"]) == year.jobs.energy.it_mj == 5 * 180_000_000


HALF_KWH = 1_800_000_000  # mJ: 500 W for an hour


@pytest.mark.parametrize(
    ("job_host", "meter_host"),
    [("n1", ""), ("", "n1"), ("n1", "n1-mgmt")],
    ids=["no host of the meter", "no host of the job", "a name that goes on"],
)
def test_board_time_that_nobody_matched_and_the_estimate_of_the_same_hour_are_not_both_counted(audited, job_host, meter_host):
    job = a_job("1", NOON, 1, hosts=job_host, gpu_model="h200")

    year = audited([job], [a_reading("GPU-a", NOON, 1, HALF_KWH, host=meter_host)], watts=455.0)

    assert year.whole.it_mj == HALF_KWH
    assert (found(year, "estimate-or-stray").count, found(year, "estimate-or-stray").energy_mj) == (1, 455 * 3_600_000)


def test_gpu_time_beyond_the_unmatched_boards_stays_estimated(audited):
    jobs = [a_job(str(i), NOON, 1, hosts=f"n{i}", gpus=2, gpu_model="h200") for i in range(2)]

    year = audited(jobs, [a_reading("GPU-a", NOON, 1, HALF_KWH, host="")], watts=100.0)

    assert year.jobs.energy.estimated_mj == 3 * 360_000_000
    assert year.whole.it_mj == HALF_KWH + 3 * 360_000_000


@pytest.mark.parametrize(
    ("start", "model"), [("2026-03-02T15:00Z", "NVIDIA H200"), (NOON, "NVIDIA A100")], ids=["another hour", "another board"]
)
def test_unmatched_boards_of_another_hour_or_type_leave_the_estimate_alone(audited, start, model):
    year = audited([a_job("1", NOON, 1, gpu_model="h200")], [a_reading("GPU-a", start, 1, HALF_KWH, host="", gpu_model=model), a_reading("GPU-b", NOON, 1, None)], watts=100.0)  # fmt: skip

    assert year.whole.it_mj == HALF_KWH + 360_000_000
    assert found(year, "estimate-or-stray") is None


def test_hosts_of_two_names_that_never_meet_are_said(audited):
    year = audited([a_job("1", NOON, 1, gpu_model="h200")], [a_reading("GPU-a", NOON, 1, HALF_KWH, host="rack7")], watts=100.0)

    assert year.whole.it_mj == HALF_KWH + 360_000_000
    assert found(year, "hosts-do-not-meet").energy_mj == HALF_KWH


def test_a_nodes_meter_holds_its_boards(audited):
    readings = [a_reading("GPU-a", NOON, 1, HALF_KWH), a_reading("ipmi", NOON, 1, 2 * HALF_KWH, kind="node", gpu_model="")]

    year = audited([a_job("1", NOON, 1)], readings)

    assert (year.whole.it_mj, year.jobs.energy.measured_mj) == (2 * HALF_KWH, HALF_KWH)
    assert dict(year.unattributed)["the rest of the host"].it_mj == HALF_KWH
    assert found(year, "board-in-node").energy_mj == HALF_KWH


def test_a_nodes_meter_and_slurms_energy_of_the_node_count_once(audited):
    readings = [a_reading("GPU-a", NOON, 1, HALF_KWH), a_reading("ipmi", NOON, 1, 2 * HALF_KWH + 7, kind="node", gpu_model="")]

    year = audited([a_job("1", NOON, 1, energy_mj=2 * HALF_KWH, exclusive=True)], readings)

    assert (year.jobs.energy.measured_mj, year.jobs.energy.reported_mj) == (HALF_KWH, HALF_KWH)
    assert year.whole.it_mj == 2 * HALF_KWH + 7
    assert found(year, "rest-in-node").energy_mj == HALF_KWH


def test_a_nodes_meter_below_its_boards_takes_nothing_from_them(audited):
    readings = [a_reading("GPU-a", NOON, 1, HALF_KWH), a_reading("ipmi", NOON, 1, 7, kind="node", gpu_model="")]

    year = audited([a_job("1", NOON, 1)], readings)

    assert year.whole.it_mj == HALF_KWH
    assert found(year, "node-meter-below-boards").energy_mj == HALF_KWH - 7


def test_both_runs_of_a_requeued_job_get_their_own_energy_and_the_job_between_its_own(audited):
    third = HOUR_US // 3
    jobs = [a_job("1", NOON, 1 / 3, state="PREEMPTED"), a_job("2", us(NOON) + third, 1 / 3), a_job("1", us(NOON) + 2 * third, 1 / 3)]
    readings = [a_reading("GPU-a", us(NOON) + i * third, 1 / 3, 720_000_000, job_id=job) for i, job in enumerate("121")]

    year = audited(jobs, readings, watts=999.0)

    assert {g.name: g.energy.it_mj for g in year.groups["outcome"]} == {"PREEMPTED": 720_000_000, "COMPLETED": 1_440_000_000}
    assert year.jobs.known_gpu_us == year.jobs.gpu_us == HOUR_US


def test_a_board_that_a_reading_gives_to_a_job_leaves_the_others_of_its_host_idle(audited):
    readings = [a_reading("GPU-a", NOON, 1, HALF_KWH, job_id="1"), a_reading("GPU-b", NOON, 1, 360_000_000)]

    year = audited([a_job("1", NOON, 1)], readings)

    assert (year.jobs.energy.it_mj, year.idle.measured_mj) == (HALF_KWH, 360_000_000)


def test_a_gap_within_an_hour_is_gpu_time_that_nobody_measured(audited):
    year = audited([a_job("1", NOON, 1, gpu_model="h200")], [a_reading("GPU-a", NOON, 1, 1_080_000_000, read_us=HOUR_US // 2)], watts=999.0)

    assert (year.jobs.known_gpu_us, year.metered_gpu_us) == (HOUR_US // 2, HOUR_US // 2)
    assert (year.jobs.energy.measured_mj, year.jobs.energy.estimated_mj) == (1_080_000_000, 1_080_000_000)
    assert found(year, "host-overfull") is None


def test_a_board_under_its_uuid_and_its_bus_id_counts_once(audited):
    readings = [a_reading(f"GPU-{i}", us(NOON) + h * HOUR_US, 1, HALF_KWH + i * h) for i in range(2) for h in range(3)]
    again = [
        a_reading(f"n1/00000000:{i}8:00.0", us(NOON) + h * HOUR_US, 1, HALF_KWH + 10_000_000, source="smi")
        for i in range(2)
        for h in range(3)
    ]

    year = audited([a_job("1", NOON, 3, gpus=2)], readings + again)

    assert year.whole.it_mj == sum(r.energy_mj for r in readings)
    assert (found(year, "board-twice").count, found(year, "board-twice").energy_mj) == (2, sum(r.energy_mj for r in again))


def test_a_bus_id_that_draws_otherwise_or_that_a_job_needs_is_a_board_of_its_own(audited):
    other = [a_reading("GPU-a", NOON, 1, HALF_KWH), a_reading("n1/0000:18:00.0", NOON, 1, HALF_KWH * 9 // 10, source="smi")]
    needed = [a_reading("GPU-b", NOON, 1, HALF_KWH, host="n2"), a_reading("n2/0000:18:00.0", NOON, 1, HALF_KWH, host="n2", source="smi")]

    year = audited([a_job("1", NOON, 1), a_job("2", NOON, 1, hosts="n2", gpus=2)], other + needed)

    assert year.whole.it_mj == sum(r.energy_mj for r in other + needed)
    assert found(year, "board-twice") is None


def test_two_uuids_of_two_files_that_draw_the_same_are_said_and_kept(audited):
    year = audited([a_job("1", NOON, 1)], [a_reading("GPU-a", NOON, 1, HALF_KWH), a_reading("GPU-b", NOON, 1, HALF_KWH, source="smi")])

    assert year.whole.it_mj == 2 * HALF_KWH
    assert found(year, "board-maybe-twice").energy_mj == HALF_KWH


def test_a_host_that_two_clusters_name_is_said(audited):
    jobs = [a_job("1", NOON, 1, cluster=cluster) for cluster in ("a", "b")]

    year = audited(jobs, [a_reading("GPU-a", NOON, 1, HALF_KWH)])

    assert (found(year, "host-of-several-clusters").count, found(year, "host-of-several-clusters").energy_mj) == (1, HALF_KWH)


def test_a_number_of_gpus_that_no_job_has_is_refused_by_name(audited):
    year = audited([a_job("13", NOON, 1, gpus=9_999_999_999, gpu_model="h200"), a_job("2", NOON, 1, gpu_model="h200")], [], watts=100.0)

    assert year.whole.it_mj == 360_000_000
    assert "job 13" in found(year, "gpus-impossible").text


def a_lab(seed):
    """A random lab of two months around new year: jobs of several projects, some metered hosts, gaps, repeats."""
    rng = random.Random(seed)
    begin = us("2025-12-15T00:00Z")
    jobs, readings = [], []
    for _i in range(60):
        start = begin + rng.randrange(40 * 24 * 3600) * US_PER_S
        hosts = rng.choice(["n1", "n2", "n[1-2]", "n3", "x[07,9]", ""])
        energy = rng.choice([None, None, rng.randrange(1, 10**10)])
        jobs.append(
            a_job(str(rng.randrange(50)), start, rng.uniform(0.01, 60), gpus=rng.choice([0, 1, 2, 4]), hosts=hosts, project=rng.choice("abc"), person=rng.choice(["p-1", "p-2", ""]),
                  state=rng.choice(["COMPLETED", "FAILED", "TIMEOUT", "RUNNING"]), gpu_model=rng.choice(["", "h200", "a100"]), energy_mj=energy, exclusive=rng.choice([None, True, False]))
        )  # fmt: skip
    for h in range(40 * 24):
        for device in range(3):
            if rng.random() < 0.7:
                offset = rng.choice([0, 0, 0, 600 * US_PER_S])
                readings.append(
                    a_reading(
                        f"GPU-{device}",
                        begin + h * HOUR_US + offset,
                        rng.choice([1, 1, 0.5]),
                        rng.randrange(10**9),
                        host=f"n{device % 2 + 1}",
                        job_id=rng.choice([None, None, str(rng.randrange(60))]),
                    )
                )
    return jobs, readings


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("time_zone", ["UTC", "Europe/Berlin", "Asia/Kathmandu"])
def test_parts_add_up_to_the_whole_to_the_millijoule(audited, con, seed, time_zone):
    jobs, readings = a_lab(seed)

    year = audited(jobs, readings, time_zone=time_zone, watts=300.0)

    for dimension, groups in year.groups.items():
        assert sum(g.energy.it_mj for g in groups) == year.jobs.energy.it_mj, dimension
        assert sum(g.energy.measured_mj for g in groups) == year.jobs.energy.measured_mj, dimension
        assert sum(g.gpu_us for g in groups) == year.jobs.gpu_us, dimension
        assert sum(g.known_gpu_us for g in groups) == year.jobs.known_gpu_us, dimension
    assert sum(e.it_mj for _, e in year.months) == year.whole.it_mj
    kept, left_out = (
        con.execute(f"SELECT coalesce(sum(energy_mj), 0)::BIGINT FROM audit_meters WHERE is_left_out = {flag}").fetchall()[0][0]
        for flag in ("false", "true")
    )
    metered = con.execute(
        "SELECT coalesce(sum(energy_mj), 0)::BIGINT FROM audit_pieces WHERE known = 'measured' OR method = 'idle power'"
    ).fetchall()[0][0]
    assert metered == kept
    assert left_out == 0
    assert year.whole.grams == approx(year.whole.facility_joules / 3.6e6 * 400.0)
    assert year.whole.facility_joules == approx(1.5 * year.whole.it_joules)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("time_zone", ["UTC", "Asia/Kathmandu"])
def test_two_years_that_adjoin_hold_all_of_it_once(audited, seed, time_zone):
    jobs, readings = a_lab(seed)
    readings = [r for r in readings if r.job_id is None and r.start_us % HOUR_US == 0]

    years = [audited(jobs, readings, year=y, time_zone=time_zone, watts=300.0) for y in (2025, 2026)]

    assert sum(y.whole.measured_mj + y.idle.estimated_mj for y in years) == sum(r.energy_mj for r in readings)
    distinct = {(j.cluster, j.job_id, j.start_us): j for j in sorted(jobs, key=lambda j: j.end_us)}
    assert sum(y.jobs.gpu_us for y in years) == sum(j.gpus * (j.end_us - j.start_us) for j in distinct.values())


@pytest.mark.parametrize("seed", range(5))
def test_the_shares_of_a_host_are_those_of_a_plain_loop(audited, seed):
    rng = random.Random(seed)
    begin, boards, hours = us("2026-05-01T00:00Z"), 4, 72
    jobs = [
        a_job(str(i), begin + rng.randrange(hours) * HOUR_US, rng.choice([0.5, 1, 3, 7.25]), gpus=rng.choice([1, 2]), hosts=rng.choice(["n0", "n1"]), project=f"project {i}")
        for i in range(12)
    ]  # fmt: skip
    power = {(host, hour): [rng.randrange(10**8, 10**9) for _ in range(boards)] for host in ("n0", "n1") for hour in range(hours)}
    readings = [
        a_reading(f"GPU-{host}-{board}", begin + hour * HOUR_US, 1, energy, host=host) for (host, hour), energies in power.items() for board, energy in enumerate(energies)
    ]  # fmt: skip

    year = audited(jobs, readings)

    known = {job.hosts for job in jobs}
    held = {
        key: {job.job_id: job.gpus * max(min(job.end_us, begin + (key[1] + 1) * HOUR_US) - max(job.start_us, begin + key[1] * HOUR_US), 0) for job in jobs if job.hosts == key[0]}
        for key in power
    }  # fmt: skip
    waiting = [sum(power[key]) for key in power if key[0] in known and not sum(held[key].values())]
    idle_rate = sum(waiting) / (len(waiting) * boards * HOUR_US)
    idle, shares = 0.0, {job.job_id: 0.0 for job in jobs}
    for key, energies in power.items():
        if key[0] not in known:
            continue
        energy, used = sum(energies), sum(held[key].values())
        rest = energy if not used else min(max(boards * HOUR_US - used, 0) * idle_rate, energy)
        idle += rest
        for job_id, part in held[key].items():
            shares[job_id] += (energy - rest) * part / used if used else 0.0
    assert year.idle.it_mj == approx(idle, rel=1e-9, abs=hours)
    assert {g.name: g.energy.measured_mj for g in year.groups["project"]} == {
        f"project {job_id}": approx(mj, rel=1e-9, abs=2 * hours) for job_id, mj in shares.items()
    }


def test_where_no_host_was_ever_free_the_boards_that_drew_least_beside_jobs_are_the_idle_ones(audited):
    powers_mj = {"GPU-a": 75 * 3_600_000, "GPU-b": 500 * 3_600_000, "GPU-c": 75 * 3_600_000, "GPU-d": 75 * 3_600_000}
    readings = [a_reading(name, us(NOON) + h * HOUR_US, 1, energy) for name, energy in powers_mj.items() for h in range(24)]
    job, unmetered = (
        a_job("1", NOON, 24, gpus=1, project="metered"),
        a_job("2", "2026-05-04T12:00Z", 24, hosts="n9", gpu_model="NVIDIA H200", project="other"),
    )

    year = audited([job, unmetered], readings, watts=999.0)

    energies = {group.name: group.energy.it_mj for group in year.groups["project"]}
    assert energies == {"metered": 24 * 500 * 3_600_000, "other": 24 * 500 * 3_600_000}
    assert year.idle.estimated_mj == 24 * 3 * 75 * 3_600_000
    assert found(year, "idle-beside-jobs").count == 24 * 3
    assert found(year, "idle-unknown") is None


def test_an_hour_without_a_job_tells_more_than_boards_beside_one(audited):
    readings = [
        a_reading(name, us(NOON) + h * HOUR_US, 1, 50 if h == 0 else watts)
        for name, watts in (("GPU-a", 500), ("GPU-b", 75))
        for h in range(3)
    ]

    year = audited([a_job("1", us(NOON) + HOUR_US, 2)], readings)

    assert year.idle.estimated_mj == 2 * 50
    assert found(year, "idle-beside-jobs") is None


def test_a_board_that_waited_for_a_part_of_an_hour_alone_has_an_idle_power_that_nobody_knows(audited):
    year = audited([a_job("1", NOON, 0.5)], [a_reading("GPU-a", NOON, 1, 1_000_000)])

    assert (year.jobs.energy.measured_mj, year.idle.it_mj, year.known_idle) == (1_000_000, 0, None)
    assert found(year, "idle-unknown").count == 1
