"""Whose clocks they are: plans of another board, driver or order of kernels are refused, and clocks that somebody else turns."""

import os
from collections.abc import Mapping, Sequence

from carbonreport.control.controller import ControlError
from carbonreport.control.holder import is_alive
from carbonreport.control.leases import BadLease, Leases, boot_id, control_folder
from carbonreport.plan_file import BoardNow, PlanFile, mismatch


def refuse(plan: PlanFile, boards: Sequence[BoardNow], environ: Mapping[str, str], sequence_hash: str | None = None) -> None:
    """Refuse a plan of another board, driver or order of kernels, and clocks that a scheduler turns. Other runs are refused where boards are taken.

    Raises:
        ControlError: With the reason; nothing was set.
    """
    if not boards:
        raise ControlError("no NVIDIA GPU is visible to the run: there is nothing to set")
    for board in boards:
        why = mismatch(plan, board, sequence_hash)
        if why:
            raise ControlError(f"{why}; nothing was set on any GPU")
    refuse_scheduler(environ)


def refuse_scheduler(environ: Mapping[str, str]) -> None:
    """Refuse to turn clocks that a scheduler turns. Raises ControlError."""
    for name, value in environ.items():
        if name.startswith("SLURM_") and name.endswith("GPU_FREQ") and value.strip():
            raise ControlError(
                f"Slurm sets the clocks of this job ({name}={value}): leave out --gpu-freq, or the plan; nothing was set on any GPU"
            )


def refuse_other_owners(devices: Sequence[str], environ: Mapping[str, str]) -> None:
    """Refuse to measure on boards whose clocks a scheduler or another run turns, before it takes long; `applied` sees it under the lease.

    Raises:
        ControlError: Somebody else is seen.
    """
    refuse_scheduler(environ)
    leases = Leases(control_folder(os.getuid(), environ), os.getuid(), is_made=False)
    if not leases.exists():
        return
    with leases.turn() as turn:
        for device in devices:
            try:
                lease = turn.read(device)
            except BadLease:
                continue  # `applied` says what is wrong with it
            if lease is None or lease.boot_id != boot_id():
                continue
            others = [holder for holder in lease.holders if holder.pid != os.getpid() and is_alive(holder)]
            if others:
                raise ControlError(
                    f"{device} is held by another run (process {others[0].pid}) with {lease.knobs.in_words()}: its clocks have one owner at a time; "
                    "wait for its end; nothing was set on any GPU"
                )


def boards_now(environ: Mapping[str, str]) -> list[BoardNow]:
    """UUID, model and driver of the boards that the environment shows.

    Raises:
        MeterError: There is no driver, or no binding.
    """
    from carbonreport import nvml
    from carbonreport.measure.meters.nvml import boards_of_run

    binding = nvml.binding()
    nvml.start(binding)
    try:
        driver = binding.nvmlSystemGetDriverVersion()
        text = driver.decode() if isinstance(driver, bytes) else str(driver)
        return [BoardNow(board.uuid, board.name, text) for board in boards_of_run(binding, environ)]
    finally:
        nvml.stop(binding)
