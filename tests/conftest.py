"""A virtual NVIDIA driver for tests: `tests/virtual_nvml/*.c`, built once, and its controls.

def test_something(virtual_driver, pynvml):
    gpu = virtual_driver.board(0)
    gpu.square_wave(150, 600, period_s=0.3)
    virtual_driver.advance(60)
    assert pynvml.nvmlDeviceGetPowerUsage(pynvml.nvmlDeviceGetHandleByIndex(0)) == …
"""

import _ctypes
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_uint32, c_uint64
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

# A job in the background starts with these ignored, and so would every program that the tests start and send them to.
for _name, _handler in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL), ("SIGQUIT", signal.SIG_DFL)):
    if hasattr(signal, _name) and signal.getsignal(getattr(signal, _name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, _name), _handler)

SOURCES = Path(__file__).parent / "virtual_nvml"
SONAME = "libnvidia-ml.so.1"
ANY_BOARD = -1
ERRORS = {
    "NotSupported": 3,
    "NoPermission": 4,
    "NotFound": 6,
    "DriverNotLoaded": 9,
    "Timeout": 10,
    "FunctionNotFound": 13,
    "GpuIsLost": 15,
    "ResetRequired": 16,
    "LibRmVersionMismatch": 18,
    "Unknown": 999,
}


@dataclass(frozen=True, slots=True)
class Truth:
    """What is so on a board, whatever it reports. Locks of 0 are no locks; `work_s` is work in seconds at full speed.

    `speed` is relative to full clocks, `joules` count from the creation of the driver.
    """

    joules: float
    watts: float
    speed: float
    work_s: float
    requested_watts: float
    enforced_watts: float
    persistence: float
    core_lock_low_mhz: float
    core_lock_high_mhz: float
    memory_lock_low_mhz: float
    memory_lock_high_mhz: float
    core_mhz: float
    memory_mhz: float


@dataclass(frozen=True, slots=True)
class SetterCall:
    """One call of a setter: what was asked, in W, MHz or 0 and 1, and NVML's code."""

    function: str
    pid: int
    board: int
    code: int
    first: float
    second: float
    at_s: float


class _Process(ctypes.Structure):
    _fields_ = [("pid", c_uint32), ("memory_bytes", c_uint64), ("sm_percent", c_uint32), ("memory_percent", c_uint32)]


class _LogEntry(ctypes.Structure):
    _fields_ = [
        ("function", ctypes.c_char * 64),
        *((name, c_int32) for name in ("pid", "board", "code", "unused")),
        ("first", c_double),
        ("second", c_double),
        ("at_ns", c_int64),
    ]


_ARGUMENTS: dict[str, list[Any]] = {
    "Open": [c_char_p, c_char_p, c_int],
    "Advance": [c_double],
    "Now": [POINTER(c_int64), POINTER(c_int64)],
    "Epoch": [c_int64],
    "Root": [c_int],
    "Fail": [c_int, c_char_p, c_int, c_uint32],
    "Log": [c_uint32, POINTER(_LogEntry)],
    "Set": [c_uint32, c_char_p, c_double],
    "Name": [c_uint32, c_char_p, c_char_p],
    "Constant": [c_uint32, c_double],
    "Square": [c_uint32, *[c_double] * 5],
    "Steps": [c_uint32, c_uint32, POINTER(c_double), POINTER(c_double)],
    "Utilisation": [c_uint32, c_double, c_double],
    "Curve": [c_uint32, c_uint32, *[POINTER(c_double)] * 3],
    "Processes": [c_uint32, c_uint32, POINTER(_Process)],
    "ResetCounter": [c_uint32],
    "Reload": [c_uint32],
    "SetLimit": [c_uint32, c_double],
    "Work": [c_uint32, c_double],
    "Peek": [c_uint32, POINTER(c_double)],
}


class VirtualDriver:
    """Controls of one virtual driver; also the clock of what is measured on it (`carbonreport.measure.clock.Clock`).

    Args:
        library: The built libnvidia-ml.so.1.
        state: Its state file; what is there is used, else it is created.
        models: Boards in PCI order: h200, h100, a100, rtx3090, t4, v100, p100.
        is_virtual: Whether time moves only by `advance`, else as the machine's.
    """

    def __init__(self, library: Path, state: Path, models: Sequence[str] = ("h200",), *, is_virtual: bool = True) -> None:
        self.library, self.state = library, state
        self._calls = ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
        for name, arguments in _ARGUMENTS.items():
            getattr(self._calls, f"nvmlVirtual{name}").argtypes = arguments
        self.call("Open", os.fsencode(state), ",".join(models).encode(), is_virtual)

    def call(self, control: str, *arguments: Any) -> None:
        """One control of controls.c."""
        code = getattr(self._calls, f"nvmlVirtual{control}")(*arguments)
        if code:
            raise ValueError(f"nvmlVirtual{control}{arguments} refused with {code}")

    def board(self, index: int) -> "VirtualBoard":
        """One board by its index."""
        return VirtualBoard(self, index)

    def environ(self, **more: str) -> dict[str, str]:
        """Environment in which a subprocess finds this driver and state."""
        return {**os.environ, "LD_LIBRARY_PATH": str(self.library.parent), "VIRTUAL_NVML_STATE": str(self.state), **more}

    def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.call("Advance", seconds)

    def boot_ns(self) -> int:
        """Time since the driver was created. [ns]"""
        return self._now()[0]

    awake_ns = boot_ns

    def wall_ns(self) -> int:
        """The wall clock by which samples are stamped. [ns]"""
        return self._now()[1]

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock of virtual time forward, or back."""
        now_ns, wall_ns = self._now()
        self.call("Epoch", wall_ns - now_ns + round(seconds * 1e9))

    def allow_setters(self, is_allowed: bool | None) -> None:
        """Whether setters work; None: by the user of the process."""
        self.call("Root", -1 if is_allowed is None else int(is_allowed))

    def fail(self, function: str, error: str | None, *, board: int = ANY_BOARD, from_call: int = 1) -> None:
        """Let a function answer an error from its n-th call on; None lifts it. "*" is every call on a board, "field:186" one field."""
        self.call("Fail", board, function.encode(), 0 if error is None else ERRORS[error], from_call)

    def setter_calls(self) -> list[SetterCall]:
        """The last 256 calls of setters, in order."""
        entry, calls = _LogEntry(), []
        while self._calls.nvmlVirtualLog(len(calls), byref(entry)) == 0:
            function = entry.function.decode()
            calls.append(SetterCall(function, entry.pid, entry.board, entry.code, entry.first, entry.second, entry.at_ns / 1e9))
        return calls

    def _now(self) -> tuple[int, int]:
        now, wall = c_int64(), c_int64()
        self.call("Now", byref(now), byref(wall))
        return now.value, wall.value


class VirtualBoard:
    """Controls of one board; times are seconds from now."""

    def __init__(self, driver: VirtualDriver, index: int) -> None:
        self._driver, self.index = driver, index

    def set(self, **options: float) -> "VirtualBoard":
        """Set options; BOARD_OPTIONS in virtual_nvml.h lists them: `set(counter_gain=1.04, late_share=0.3)`."""
        for name, value in options.items():
            self._call("Set", name.encode(), value)
        return self

    def rename(self, name: str | None = None, uuid: str | None = None) -> None:
        """Give it another model name or UUID."""
        self._call("Name", *(None if text is None else text.encode() for text in (name, uuid)))

    def constant(self, watts: float) -> None:
        """Ask for the same power from now on. [W]"""
        self._call("Constant", watts)

    def square_wave(self, low_watts: float, high_watts: float, *, period_s: float, duty: float = 0.5, phase_s: float = 0.0) -> None:
        """Ask for high power for `duty` of each period, first of all, and for low power for the rest."""
        self._call("Square", low_watts, high_watts, period_s, duty, phase_s)

    def steps(self, steps: Sequence[tuple[float, float]]) -> None:
        """Ask for given powers from given times on; idle before the first. (seconds, watts)"""
        self._call("Steps", len(steps), *_columns(steps, 2))

    def utilisation(self, compute: float, memory: float) -> None:
        """Keep cores and memory busy for these shares of the time at full clocks."""
        self._call("Utilisation", compute, memory)

    def curve(self, points: Sequence[tuple[float, float, float]]) -> None:
        """Take speed and power of a busy board from a measured table instead of the physics. (limit_watts, speed, watts)"""
        self._call("Curve", len(points), *_columns(points, 3))

    def processes(self, *processes: tuple[int, int, int]) -> None:
        """Which processes use it. (pid, sm_percent, memory_bytes)"""
        rows = [_Process(pid, memory_bytes, sm_percent, sm_percent // 2) for pid, sm_percent, memory_bytes in processes]
        self._call("Processes", len(rows), (_Process * len(rows))(*rows))

    def fail(self, function: str, error: str | None, *, from_call: int = 1) -> None:
        """See VirtualDriver.fail."""
        self._driver.fail(function, error, board=self.index, from_call=from_call)

    def reset_counter(self) -> None:
        """Start the energy counter at zero."""
        self._call("ResetCounter")

    def reload(self) -> None:
        """Unload and load the driver: limit, locks and persistence are gone, the counter starts again."""
        self._call("Reload")

    def set_limit(self, watts: float) -> None:
        """Somebody else sets the power limit."""
        self._call("SetLimit", watts)

    def work(self, work_s: float) -> None:
        """Do work that takes so long at full speed; time passes meanwhile."""
        self._call("Work", work_s)

    def peek(self) -> Truth:
        """The truth."""
        values = (c_double * len(Truth.__slots__))()
        self._call("Peek", values)
        return Truth(*values)

    def _call(self, control: str, *arguments: Any) -> None:
        self._driver.call(control, self.index, *arguments)


def _columns(rows: Sequence[Sequence[float]], count: int) -> list[Any]:
    return [(c_double * len(rows))(*(row[i] for row in rows)) for i in range(count)]


# Building and loading


@pytest.fixture(scope="session")
def build_virtual_nvml(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds the library with compiler options such as "-DOLD_DRIVER"; skips where there is no compiler."""
    built: dict[tuple[str, ...], Path] = {}

    def build(*options: str) -> Path:
        if options not in built:
            built[options] = _compiled(tmp_path_factory.mktemp("virtual_nvml"), options)
        return built[options]

    return build


@pytest.fixture(scope="session")
def virtual_nvml(build_virtual_nvml: Callable[..., Path]) -> Path:
    """The built library of a present driver."""
    return build_virtual_nvml()


@pytest.fixture
def make_virtual_driver(virtual_nvml: Path, tmp_path: Path) -> Iterator[Callable[..., VirtualDriver]]:
    """Makes the test's driver: `make_virtual_driver("h200", "a100", is_virtual=False)`; one at a time."""

    def make(*models: str, is_virtual: bool = True) -> VirtualDriver:
        return VirtualDriver(virtual_nvml, tmp_path / "virtual_nvml.state", models or ("h200",), is_virtual=is_virtual)

    yield make
    _unload()


@pytest.fixture
def virtual_driver(make_virtual_driver: Callable[..., VirtualDriver]) -> VirtualDriver:
    """Two H200 boards in virtual time."""
    return make_virtual_driver("h200", "h200")


@pytest.fixture
def pynvml(make_virtual_driver: Callable[..., VirtualDriver], virtual_nvml: Path) -> Iterator[ModuleType]:
    """The unmodified binding, started on the test's driver; make that one first, or one H200 in real time is there."""
    import pynvml as binding

    with _forgetful(binding):
        ctypes.CDLL(str(virtual_nvml), ctypes.RTLD_GLOBAL)
        if not hasattr(ctypes.CDLL(SONAME), "nvmlVirtualNow"):  # a real driver was loaded before: its name is taken
            binding.nvmlLib = ctypes.CDLL(str(virtual_nvml))
        binding.nvmlInit()
        try:
            yield binding
        finally:
            binding.nvmlShutdown()


@contextmanager
def _forgetful(binding: Any) -> Iterator[None]:
    """The binding without what it remembers of a driver; that is put back at the end."""
    library, cache = binding.nvmlLib, binding._nvmlGetFunctionPointer_cache
    binding.nvmlLib, binding._nvmlGetFunctionPointer_cache = None, {}
    try:
        yield
    finally:
        binding.nvmlLib, binding._nvmlGetFunctionPointer_cache = library, cache


def _compiled(folder: Path, options: Sequence[str]) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        reason = "THE VIRTUAL NVML WAS NOT TESTED: it needs Linux and gcc (apt-get install gcc libc6-dev)"
        warnings.warn(reason, stacklevel=2)
        pytest.skip(reason)
    library = folder / SONAME
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{SONAME}"]
    sources = sorted(str(source) for source in SOURCES.glob("*.c"))
    done = subprocess.run(
        [compiler, *flags, *options, "-o", str(library), *sources, "-lpthread", "-lm"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return library


def _unload() -> None:
    """Take the virtual driver out of this process, so that no later test finds a GPU by its name.

    Every `ctypes.CDLL` of it holds it once, and nobody but us lets go: ctypes never does.
    """
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    no_load = os.RTLD_NOW | os.RTLD_NOLOAD
    while handle := dlopen(SONAME.encode(), no_load):
        if not hasattr(ctypes.CDLL(SONAME, handle=handle), "nvmlVirtualNow"):
            return
        _ctypes.dlclose(handle)  # what was opened here
        _ctypes.dlclose(handle)  # and one of the earlier ones
