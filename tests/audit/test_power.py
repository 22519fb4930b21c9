"""Bulk samples: every joule between its own stamps, cut at hours; nothing for gaps, resets and wild values; a board once."""

import random
from itertools import pairwise

import pytest
from pytest import approx

from carbonreport.audit.power import columns_of, meters_query
from carbonreport.errors import BadTime, RecordError
from carbonreport.units import HOUR_US

T0 = 1_772_355_600  # 2026-03-01T09:00Z


@pytest.fixture
def read(con, tmp_path):
    def run(text, name="samples.csv", limit=700.0):
        path = tmp_path / name
        path.write_text(text)
        query, taken = meters_query(con, path, "hash", lambda board: limit)
        found = con.execute(f"SELECT * FROM ({query}) ORDER BY device, start_us, job_id")
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()], dict(taken.not_used)

    return run


def table(rows, columns="uuid,timestamp,watts"):
    return "\n".join([columns, *(",".join(str(cell) for cell in row) for row in rows)]) + "\n"


def by_hand(samples, gap_s):
    """Joules by hour of one device: straight lines between samples, cut at hours."""
    hours = {}
    for (t0, w0), (t1, w1) in pairwise(sorted(samples)):
        if not 0 < t1 - t0 <= gap_s:
            continue
        edges = [t0, *(h for h in range((int(t0) // 3600 + 1) * 3600, int(t1) + 1, 3600) if t0 < h < t1), t1]
        for a, b in pairwise(edges):
            power = [w0 + (w1 - w0) * (t - t0) / (t1 - t0) for t in (a, b)]
            hours[int(a) // 3600] = hours.get(int(a) // 3600, 0.0) + sum(power) / 2 * (b - a)
    return hours


@pytest.mark.parametrize("seed", range(4))
def test_power_is_integrated_between_real_stamps_by_device_and_hour(read, seed):
    rng = random.Random(seed)
    devices = {}
    for device in range(3):
        t, samples = T0 + rng.uniform(0, 900), []
        for _ in range(400):
            t += rng.choice([55, 60, 65, 61]) if rng.random() < 0.97 else 2000
            samples.append((round(t, 3), rng.uniform(60, 700)))
        devices[f"GPU-{device}"] = samples
    rows = [(device, t, w) for device, samples in devices.items() for t, w in samples]
    rng.shuffle(rows)

    found, not_used = read(table(rows))

    for device, samples in devices.items():
        expected = by_hand(samples, 5 * 60.5)
        got = {row["start_us"] // HOUR_US: row["energy_mj"] / 1e3 for row in found if row["device"] == device}
        assert dict(got.items()) == {h: approx(j, rel=1e-5, abs=0.01) for h, j in expected.items()}
    assert all(row["start_us"] // HOUR_US == (row["end_us"] - 1) // HOUR_US for row in found)
    assert sum(count for why, count in not_used.items() if "gaps" in why) > 0


def test_a_constant_power_is_power_times_time(read):
    ((row,), _) = read(table([("GPU-a", T0 + 15 * i, 250) for i in range(200)]))

    assert (row["energy_mj"], row["read_us"], row["method"]) == (250 * 15 * 199 * 1000, 15 * 199 * 10**6, "averaged")


def test_instances_of_one_board_repeat_its_power_and_count_once(read):
    rows = [("GPU-a", T0 + 60 * i, 300, instance) for i in range(30) for instance in (1, 2, 3)]

    ((row,), not_used) = read(table(rows, "UUID,timestamp,DCGM_FI_DEV_POWER_USAGE,GPU_I_ID"))

    assert row["energy_mj"] == 300 * 60 * 29 * 1000
    assert not_used == {"the same device and moment again, as MIG instances repeat their board": 60}


def test_instances_of_one_board_repeat_its_counter_and_count_once(read):
    rows = [("GPU-a", T0 + 60 * i, 257_858_316 + 18_000_000 * i) for i in range(30) for _ in range(3)]

    ((row,), _) = read(table(rows, "UUID,timestamp,DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"))

    assert (row["energy_mj"], row["method"]) == (18_000_000 * 29, "counter")


def test_a_counter_that_began_again_adds_what_it_shows_since(read):
    values = [100_000_000, 101_000_000, 102_000_000, 400_000, 1_400_000]

    ((row,), not_used) = read(table([("GPU-a", T0 + 60 * i, v) for i, v in enumerate(values)], "uuid,timestamp,energy_mj"))

    assert row["energy_mj"] == 1_000_000 + 1_000_000 + 400_000 + 1_000_000
    assert not_used == {"the counter began again": 1}


def test_a_bad_reading_that_comes_back_does_not_book_a_lifetime(read):
    values = [55_800_000_000_000, 55_800_001_000_000, 0, 55_800_003_000_000, 55_800_004_000_000]

    ((row,), not_used) = read(table([("GPU-a", T0 + 60 * i, v) for i, v in enumerate(values)], "uuid,timestamp,energy_mj"))

    assert row["energy_mj"] == 4_000_000
    assert not_used == {"dip of the counter that came back; bridged": 1}


@pytest.mark.parametrize("dip", [[55_800_000_999_999], [0, 0, 0], [55_800_000_999_999, 55_800_000_999_998]])
def test_a_dip_of_the_counter_is_bridged_and_loses_nothing(read, dip):
    values = [55_800_000_000_000, 55_800_001_000_000, *dip, 55_800_004_000_000]

    ((row,), not_used) = read(table([("GPU-a", T0 + 60 * i, v) for i, v in enumerate(values)], "uuid,timestamp,energy_mj"))

    assert row["energy_mj"] == 4_000_000
    ((why, count),) = not_used.items()
    assert (why.partition(" of ")[2], count) == ("the counter that came back; bridged", len(dip))


def test_a_young_counter_that_steps_back_by_a_millijoule_has_not_begun_again(read):
    values = [1_000_000, 999_999, 2_000_000]

    ((row,), _) = read(table([("GPU-a", T0 + 60 * i, v) for i, v in enumerate(values)], "uuid,timestamp,energy_mj"))

    assert row["energy_mj"] == 1_000_000


def test_jobs_that_alternate_on_a_board_have_their_own_begins_and_ends(read):
    rows = [("GPU-a", T0 + 60 * i, 600, "A" if i <= 20 else "B" if i <= 30 else "" if i <= 40 else "A") for i in range(51)]

    found, _ = read(table(rows, "uuid,timestamp,watts,hpc_job"))

    stretches = [(row["job_id"], (row["start_us"] // 10**6 - T0) / 60, (row["end_us"] // 10**6 - T0) / 60) for row in found]
    assert stretches == [("A", 0, 20), ("B", 20, 30), (None, 30, 40), ("A", 40, 50)]
    assert [row["energy_mj"] for row in found] == [600 * 60_000 * n for n in (20, 10, 10, 10)]


def test_instances_of_one_board_with_two_jobs_make_one_stretch(read):
    rows = [("GPU-a", T0 + 60 * i, 300, job) for i in range(30) for job in ("7", "8")]

    ((row,), _) = read(table(rows, "uuid,timestamp,watts,hpc_job"))

    assert (row["energy_mj"], row["read_us"]) == (300 * 60 * 29 * 1000, 60 * 29 * 10**6)


def test_a_board_that_moves_to_another_host_is_of_each_in_its_time(read):
    rows = [("GPU-a", T0 + 60 * i, 600, "n1" if i <= 10 else "n2") for i in range(21)]

    found, _ = read(table(rows, "uuid,timestamp,watts,hostname"))

    assert [(row["host"], row["energy_mj"]) for row in found] == [("n1", 360_000_000), ("n2", 360_000_000)]


def test_an_index_is_another_board_on_each_host(read):
    rows = [("nvidia0", T0 + 60 * i, watts, host) for i in range(11) for host, watts in (("n1", 600), ("n2", 400))]

    found, not_used = read(table(rows, "device,timestamp,watts,hostname"))

    assert [(row["device"], row["host"], row["energy_mj"]) for row in found] == [
        ("n1/nvidia0", "n1", 360_000_000),
        ("n2/nvidia0", "n2", 240_000_000),
    ]
    assert not_used == {}


def test_a_file_may_leave_model_host_and_job_blank(read):
    rows = [("GPU-a", T0 + 60 * i, 300, "", "", "") for i in range(3)]

    ((row,), _) = read(table(rows, "device,timestamp,watts,modelname,hostname,hpc_job"))

    assert (row["energy_mj"], row["gpu_model"], row["host"], row["job_id"]) == (36_000_000, "", "", None)


def test_a_broken_parquet_is_one_line(read):
    with pytest.raises(RecordError, match=r"^cannot read .*samples\.parquet: [^\n]+$"):
        read("PAR1xxxx", name="samples.parquet")


def test_a_power_that_no_such_board_draws_is_left_out(read):
    rows = [("GPU-a", T0 + 60 * i, 3_000_000 if i == 5 else 300) for i in range(30)]

    ((row,), not_used) = read(table(rows))

    assert row["energy_mj"] == 300 * 60 * 29 * 1000  # the gap of two steps is bridged
    assert list(not_used.values()) == [1]


def test_milliwatts_called_watts_are_refused(read):
    with pytest.raises(RecordError, match="milliwatts"):
        read(table([("GPU-a", T0 + 60 * i, 300_000) for i in range(30)]))


def test_a_gap_is_no_energy_and_is_said(read):
    rows = [("GPU-a", T0 + 60 * i, 300) for i in [*range(10), *range(25, 35)]]

    ((row,), not_used) = read(table(rows))

    assert row["energy_mj"] == 300 * 60 * 18 * 1000
    assert (row["read_us"], row["end_us"] - row["start_us"]) == (60 * 18 * 10**6, 60 * 34 * 10**6)
    assert not_used == {"gap without a reading": 1}


def test_the_job_of_a_sample_is_kept_and_the_exporters_own_pod_is_nobody(read):
    rows = [("GPU-a", T0 + 60 * i, 300, job) for i, job in enumerate(["", "", "42", "42", "nvidia-dcgm-exporter-x1", "0"])]

    found, _ = read(table(rows, "uuid,timestamp,watts,hpc_job"))

    assert sum(row["energy_mj"] for row in found if row["job_id"] == "42") == 300 * 120 * 1000
    assert {row["job_id"] for row in found} == {"42", None}


def test_stamps_with_a_zone_and_values_with_a_unit_are_read(read):
    text = "timestamp,uuid,power.draw [W],name\n2026-03-01T10:00:00+01:00,GPU-a,250.00 W,NVIDIA H200\n2026-03-01T10:01:00+01:00,GPU-a,250.00 W,NVIDIA H200\n2026-03-01T10:02:00+01:00,GPU-a,[N/A],NVIDIA H200\n"

    ((row,), not_used) = read(text)

    assert (row["energy_mj"], row["start_us"], row["gpu_model"]) == (250 * 60 * 1000, T0 * 10**6, "NVIDIA H200")
    assert list(not_used.values()) == [1]


def test_stamps_without_a_zone_are_refused(read):
    with pytest.raises(BadTime, match="no zone"):
        read("timestamp,uuid,watts\n2026-03-01 10:00:00,GPU-a,250\n2026-03-01 10:01:00,GPU-a,250\n")


@pytest.mark.parametrize(
    ("names", "what"), [(["time", "watts"], "a device"), (["uuid", "watts"], "a time"), (["uuid", "time", "util"], "watts or a counter")]
)
def test_what_is_missing_is_said(names, what):
    with pytest.raises(RecordError, match=f"not derivable: no column of {what}"):
        columns_of(names, "x.csv")
