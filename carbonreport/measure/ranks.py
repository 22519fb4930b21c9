"""Which process of a distributed job this one is, by what its launcher set. Pure."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from carbonreport.measure.variables import RUN_VARIABLE

_SALT = b"carbonreport job"


@dataclass(frozen=True, slots=True)
class Launcher:
    """Variables of one launcher.

    Attributes:
        local_rank: Number among the processes of the host; the same as `rank` where the launcher does not say.
        rank: Number among all.
        world_size: How many there are.
        job: What tells one job from another; all that are set together.
    """

    local_rank: str
    rank: str
    world_size: str
    job: tuple[str, ...]


_TORCH_JOB = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
_SLURM_JOB = ("SLURM_JOB_ID", "SLURM_STEP_ID")
# The innermost launcher first: torchrun inside srun sets its own beside Slurm's.
LAUNCHERS = (
    Launcher("LOCAL_RANK", "RANK", "WORLD_SIZE", _TORCH_JOB),
    Launcher("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri")),
    Launcher("MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ()),
    Launcher("MPI_LOCALRANKID", "PMI_RANK", "PMI_SIZE", ("PMI_JOBID",)),
    Launcher("PMI_LOCAL_RANK", "PMI_RANK", "PMI_SIZE", ("PALS_APID", "PMI_JOBID")),
    Launcher("SLURM_LOCALID", "SLURM_PROCID", "SLURM_NTASKS", _SLURM_JOB),
    Launcher("PMI_RANK", "PMI_RANK", "PMI_SIZE", ("PMI_JOBID",)),
    Launcher("RANK", "RANK", "WORLD_SIZE", _TORCH_JOB),
)
# What tells jobs apart where a launcher sets nothing of its own; the run around it comes after the batch systems.
_BATCH_JOBS = (_SLURM_JOB, ("PBS_JOBID",), ("LSB_JOBID",), ("FLUX_JOB_ID",), ("JOB_ID", "SGE_TASK_ID"), (RUN_VARIABLE,))
_VISIBILITY = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")
# With these, Slurm shows each task other boards, which may all be called 0.
_BOARDS_BY_TASK = ("SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_GPU_BIND", "SLURM_TRES_PER_TASK")


@dataclass(frozen=True, slots=True)
class Rank:
    """One process of a job.

    Attributes:
        job: Salted hash: equal for all processes of a job on all hosts, and not to be read back.
        rank: Its number among all processes.
        local_rank: Its number among those of this host.
        world_size: Number of all processes; None where the launcher does not say.
        boards: Salted hash of what it is shown of the host's GPUs: equal for processes that see the same ones.
    """

    job: str
    rank: int
    local_rank: int
    world_size: int | None
    boards: str


def rank_of(environ: Mapping[str, str], parent_pid: int) -> Rank | None:
    """Rank of the process with this environment; None where no launcher started it.

    Args:
        environ: Its environment.
        parent_pid: Its parent, the launcher's process on this host: tells jobs apart where nothing else does.
    """
    for launcher in LAUNCHERS:
        local_rank, rank = _number(environ, launcher.local_rank), _number(environ, launcher.rank)
        world_size = _number(environ, launcher.world_size)
        if local_rank is None or (launcher.local_rank == launcher.rank and world_size is None):
            continue
        return Rank(
            job=_hash(_job(environ, launcher, parent_pid)),
            rank=local_rank if rank is None else rank,
            local_rank=local_rank,
            world_size=world_size,
            boards=_hash(_boards(environ, local_rank)),
        )
    return None


def _job(environ: Mapping[str, str], launcher: Launcher, parent_pid: int) -> str:
    own = _words(environ, launcher.job)
    if own:
        return own
    return next((words for names in _BATCH_JOBS if (words := _words(environ, names))), f"started by process {parent_pid}")


def _boards(environ: Mapping[str, str], local_rank: int) -> str:
    shown = " ".join(f"{name}={environ.get(name)}" for name in _VISIBILITY)
    is_by_task = environ.get("SLURM_LOCALID") == str(local_rank) and any(
        name in environ and (name != "SLURM_TRES_PER_TASK" or "gpu" in environ[name]) for name in _BOARDS_BY_TASK
    )
    return f"{shown} task {local_rank}" if is_by_task else shown


def _words(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return " ".join(f"{name}={environ[name]}" for name in names if environ.get(name))


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _hash(words: str) -> str:
    return hashlib.blake2b(words.encode(), key=_SALT, digest_size=8).hexdigest()
