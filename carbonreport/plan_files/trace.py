"""A profiler's trace, whichever wrote it."""

from pathlib import Path

from carbonreport.plan.launches import Launch
from carbonreport.plan_files.kineto import read_kineto
from carbonreport.plan_files.nsys import read_nsys


def read_trace(path: Path) -> list[Launch]:
    """Kernels of a trace of the PyTorch profiler (.json, .json.gz) or of Nsight Systems (.csv).

    Raises:
        PlanError: It cannot be read.
    """
    return read_nsys(path) if path.suffix.lower() == ".csv" else read_kineto(path)
