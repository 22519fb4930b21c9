"""Which process of which job: read from what launchers set."""

import pytest

from carbonreport.measure.processes import roots_of_run
from carbonreport.measure.ranks import rank_of

TORCHRUN = {"LOCAL_RANK": "1", "RANK": "9", "WORLD_SIZE": "16", "LOCAL_WORLD_SIZE": "8", "TORCHELASTIC_RUN_ID": "none"} | {
    "MASTER_ADDR": "node0",
    "MASTER_PORT": "29500",
}
SRUN = {"SLURM_LOCALID": "2", "SLURM_PROCID": "6", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (TORCHRUN, (9, 1, 16)),
        (SRUN, (6, 2, 8)),
        (SRUN | TORCHRUN, (9, 1, 16)),
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_RANK": "4", "OMPI_COMM_WORLD_SIZE": "8"}, (4, 0, 8)),
        ({"MV2_COMM_WORLD_LOCAL_RANK": "0", "MV2_COMM_WORLD_RANK": "4", "MV2_COMM_WORLD_SIZE": "8"}, (4, 0, 8)),
        ({"MPI_LOCALRANKID": "3", "PMI_RANK": "3", "PMI_SIZE": "4"}, (3, 3, 4)),
        ({"PMI_LOCAL_RANK": "1", "PMI_RANK": "5", "PMI_SIZE": "8"}, (5, 1, 8)),
        ({"PMI_RANK": "5", "PMI_SIZE": "8"}, (5, 5, 8)),
        ({"LOCAL_RANK": "2"}, (2, 2, None)),
        ({"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "pod-0"}, (2, 2, 4)),
        ({"LOCAL_RANK": "0", "RANK": "0", "WORLD_SIZE": "many"}, (0, 0, None)),
    ],
)
def test_the_innermost_launcher_tells_the_rank(environ, expected):
    rank = rank_of(environ, 1234)

    assert rank is not None
    assert (rank.rank, rank.local_rank, rank.world_size) == expected


@pytest.mark.parametrize(
    "environ", [{}, {"LOCAL_RANK": ""}, {"RANK": "first", "WORLD_SIZE": "2"}, {"RANK": "1"}, {"WORLD_SIZE": "8"}, {"SLURM_JOB_ID": "77"}]
)
def test_a_program_that_nobody_launched_as_a_rank_has_none(environ):
    assert rank_of(environ, 1234) is None


def job(environ, parent_pid=1234):
    rank = rank_of(environ, parent_pid)
    assert rank is not None
    return rank.job


def test_all_ranks_of_a_job_share_its_hash_on_every_host():
    assert job(TORCHRUN) == job(TORCHRUN | {"RANK": "3", "LOCAL_RANK": "3"}, parent_pid=99)
    assert job(SRUN) == job(SRUN | {"SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, parent_pid=99)


def test_other_jobs_have_other_hashes():
    jobs = [TORCHRUN, TORCHRUN | {"MASTER_PORT": "29501"}, SRUN, SRUN | {"SLURM_STEP_ID": "1"}, SRUN | {"SLURM_JOB_ID": "78"}]

    assert len({job(environ) for environ in jobs}) == len(jobs)


def test_a_launcher_without_a_job_id_is_told_by_the_batch_job_the_run_around_it_or_its_process():
    bare = {"PMI_RANK": "0", "PMI_SIZE": "2"}

    assert job(bare | {"PBS_JOBID": "5"}) != job(bare | {"PBS_JOBID": "6"})
    assert job(bare | {"CARBONREPORT_RUN": "aa"}, 1) == job(bare | {"CARBONREPORT_RUN": "aa"}, 2)
    assert job(bare, 1) != job(bare, 2)


def test_the_hash_holds_nothing_that_can_be_read():
    assert "77" not in job(SRUN) and len(job(SRUN)) == 16


def boards(environ):
    rank = rank_of(environ, 1)
    assert rank is not None
    return rank.boards


def test_ranks_that_are_shown_the_same_boards_have_the_same_key():
    assert boards(TORCHRUN) == boards(TORCHRUN | {"RANK": "3", "LOCAL_RANK": "3"})
    assert boards(TORCHRUN | {"CUDA_VISIBLE_DEVICES": "0"}) != boards(TORCHRUN | {"CUDA_VISIBLE_DEVICES": "1"})


@pytest.mark.parametrize("variable", ["SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPU_BIND"])
def test_tasks_that_slurm_gives_boards_of_their_own_differ_although_all_are_called_0(variable):
    shown = SRUN | {"CUDA_VISIBLE_DEVICES": "0", variable: "1"}

    assert boards(shown) != boards(shown | {"SLURM_LOCALID": "3", "SLURM_PROCID": "7"})
    assert boards(shown | {variable: "1"}) == boards(shown)


def test_the_processes_of_a_run_begin_at_its_launcher_where_it_has_more_than_one_rank():
    assert roots_of_run({}, 20, 10) == (20,)
    assert roots_of_run(TORCHRUN, 20, 10) == (10,)
    assert roots_of_run(TORCHRUN, 20, 1) == (20,)
    assert roots_of_run(TORCHRUN | {"WORLD_SIZE": "1"}, 20, 10) == (20,)
