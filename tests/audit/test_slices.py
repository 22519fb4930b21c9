"""Slices of boards (MIG): each is a part of a board, and the parts of a board are never more than it."""

import pytest
from pytest import approx

from carbonreport.audit.window import board_names
from carbonreport.model.slices import board_share, is_slice
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US

NOON = "2026-03-02T12:00Z"
HALF_KWH = 1_800_000_000  # mJ: 500 W for an hour


def found(year, slug):
    return next((f for f in year.findings if f.slug == slug), None)


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("h200", 1),
        ("a100_1g.5gb", 1 / 7),
        ("1g.10gb", 1 / 7),
        ("nvidia_h100_80gb_hbm3_3g.40gb", 3 / 7),
        ("h200_7g.141gb", 1),
        ("1c.3g.20gb", 1 / 7),
        ("a30_1g.6gb", 1 / 4),
        ("2g.12gb", 2 / 4),
        ("rtx_pro_6000_1g.24gb", 1 / 4),
        ("h100_1g.24gb", 1 / 7),
        ("4g.40gb", 4 / 7),
        ("a100_1g.5gb+a100_1g.5gb", 1 / 7),
        ("a100+h100", 1),
        ("1g.10gb+me", 1 / 7),
        ("a100_1g.5gb+me.all", 1 / 7),
        ("rtxpro6000_1g.24gb+gfx", 1 / 4),
        ("h100nvl_1g.24gb", 1 / 7),
        ("a100x_1g.10gb", 1 / 7),
        ("1g.24gb", None),
        ("9g.80gb", None),
        ("2c.1g.5gb", None),
        ("a100_1g.5gb+a100_3g.20gb", None),
        ("a100+a100_1g.5gb", None),
    ],
)
def test_a_slice_is_the_part_of_a_board_that_its_name_tells(name, share):
    assert board_share(name) == (None if share is None else approx(share))


def test_seven_slices_of_a_board_hold_the_board_and_share_its_energy(audited):
    jobs = [a_job(str(i), NOON, 1, gpu_model="a100_1g.5gb", project=f"project {i}") for i in range(7)]

    year = audited(jobs, [a_reading("GPU-a", NOON, 1, 7 * HALF_KWH, gpu_model="NVIDIA A100")])

    assert year.jobs.gpu_us == approx(HOUR_US, abs=7)
    assert year.busy_gpu_us == approx(year.metered_gpu_us, abs=7)
    assert {g.energy.measured_mj for g in year.groups["project"]} == {HALF_KWH}
    assert year.whole.it_mj == 7 * HALF_KWH
    assert found(year, "host-overfull") is None
    assert (found(year, "slices-as-parts").count, found(year, "slices-as-boards")) == (7, None)


def test_a_slice_beside_a_whole_board_has_its_share_of_the_hosts_energy(audited):
    quiet = [a_reading(f"GPU-{i}", us(NOON) - HOUR_US, 1, 0, gpu_model="NVIDIA A100") for i in range(2)]
    readings = [a_reading(f"GPU-{i}", NOON, 1, 5 * HALF_KWH, gpu_model="NVIDIA A100") for i in range(2)]
    jobs = [a_job("1", NOON, 1, gpu_model="a100", project="board"), a_job("2", NOON, 1, gpu_model="a100_3g.20gb", project="slice")]

    year = audited(jobs, quiet + readings)

    assert {g.name: g.energy.it_mj for g in year.groups["project"]} == {"board": 7 * HALF_KWH, "slice": 3 * HALF_KWH}
    assert year.jobs.known_gpu_us == year.jobs.gpu_us == approx(HOUR_US * 10 / 7, abs=1)
    assert year.whole.it_mj == 10 * HALF_KWH


def test_a_slice_of_an_unknown_size_counts_as_a_board_and_is_said(audited):
    year = audited([a_job("1", NOON, 1, gpu_model="1g.24gb")], [a_reading("GPU-a", NOON, 1, HALF_KWH, gpu_model="NVIDIA A100")])

    assert (year.jobs.gpu_us, year.jobs.energy.measured_mj) == (HOUR_US, HALF_KWH)
    assert found(year, "slices-as-boards").count == 1


def test_a_reading_that_names_a_slices_job_covers_no_more_than_it_held(audited):
    year = audited([a_job("1", NOON, 1, gpu_model="a100_1g.5gb")], [a_reading("GPU-a", NOON, 1, HALF_KWH, job_id="1")])

    assert year.jobs.known_gpu_us == year.jobs.gpu_us == round(HOUR_US / 7)


def test_an_unmetered_slice_is_unknown_by_its_part(audited):
    year = audited([a_job("1", NOON, 7, gpu_model="a100_1g.5gb", gpus=2)], [])

    assert year.jobs.unknown_gpu_us == year.jobs.gpu_us == 2 * HOUR_US
    assert year.jobs.energy.it_mj == 0


def test_a_board_is_not_taken_for_a_slice_of_it():
    names = board_names(["a100", "a100_1g.5gb", "NVIDIA A100-SXM4-80GB"])

    assert names == {"a100": "NVIDIA A100-SXM4-80GB", "a100_1g.5gb": "a100_1g.5gb", "NVIDIA A100-SXM4-80GB": "NVIDIA A100-SXM4-80GB"}
    assert is_slice("a100_1g.5gb")


def test_the_power_of_a_metered_slice_is_no_power_of_an_unmetered_one(audited):
    readings = [a_reading("GPU-a", us(NOON) + h * HOUR_US, 1, 600 * 3_600_000) for h in range(100)]
    slices = {"gpus": 1, "gpu_model": "h200_1g.18gb"}

    year = audited([a_job("1", NOON, 100, **slices), a_job("2", us(NOON) + 1000 * HOUR_US, 100, hosts="n9", **slices)], readings)

    assert year.jobs.energy.it_mj == 100 * 600 * 3_600_000
    assert year.jobs.unknown_gpu_us == year.jobs.gpu_us // 2
    assert [one.gpu_us for one in year.missing] == [year.jobs.gpu_us // 2]
