"""NVIDIA's management library: its binding, its start and its end. The one file that imports `pynvml`."""

import ctypes
import sys
from importlib import import_module
from typing import Any

from carbonreport.errors import MeterAbsent, MeterDenied, MeterError

WAYS_OUT = {
    "NVMLError_LibraryNotFound": "libnvidia-ml.so.1 was not found: install the NVIDIA driver, or start the container with --gpus all",
    "NVMLError_DriverNotLoaded": "the NVIDIA driver is not loaded: sudo modprobe nvidia",
    "NVMLError_LibRmVersionMismatch": "the NVIDIA driver was updated while the old one runs: restart the machine",
    "NVMLError_NoPermission": "the NVIDIA driver may not be used here: add the user to the group of /dev/nvidiactl (ls -l /dev/nvidiactl)",
}
_START_ERRORS = {"NVMLError_LibraryNotFound": MeterAbsent, "NVMLError_DriverNotLoaded": MeterAbsent, "NVMLError_NoPermission": MeterDenied}


def binding() -> Any:
    """The module `pynvml`; not imported where there is no driver, for that takes longer than all the rest of a start."""
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        if sys.platform == "linux":
            raise MeterAbsent(WAYS_OUT["NVMLError_LibraryNotFound"]) from error
    try:
        return import_module("pynvml")
    except ModuleNotFoundError as error:
        raise MeterError("NVIDIA GPUs are read through nvidia-ml-py, which is not installed: pip install nvidia-ml-py") from error


def start(nvml: Any) -> None:
    """Start the driver's library; each start wants its stop.

    Raises:
        MeterError: It does not start; the message says the way out.
    """
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        name = type(error).__name__
        raise _START_ERRORS.get(name, MeterError)(WAYS_OUT.get(name, f"NVML cannot be started: {error}")) from error


def stop(nvml: Any) -> None:
    """End what `start` began."""
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError_Uninitialized:  # closed before, or the driver has gone
        return
