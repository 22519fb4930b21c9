"""However a program ends, every board is back at the limit that it had before: here 650 W, where the default is 700 W."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

BEFORE_WATTS, CAP_WATTS = 650.0, 300.0
PROGRAM = """
import os, resource, sys, time
from carbonreport import trace

way = sys.argv[1]
if way == "full disk":
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, resource.RLIM_INFINITY))
with trace("crash", out=sys.argv[2], power_cap_watts=300, zone="DE", meters=("hostmodel",)):
    if way == "workers":
        for _ in range(2):
            if os.fork() == 0:
                time.sleep(60)
    print("set", flush=True)
    if way == "exception":
        raise RuntimeError("the model diverged")
    if way != "end":
        time.sleep(60)
    sys.stdin.readline()
"""

WAYS = (
    "exception",
    "SIGINT",
    "SIGTERM",
    "SIGHUP",
    "SIGKILL",
    "SIGKILL while forked workers live",
    "SIGKILL of owner and guardian, then the next start",
    "all killed, then the epilog",
    "full disk at the journal",
    "NVML failing at the second board while setting",
    "NVML failing at the second board while restoring",
)


@pytest.fixture(scope="module")
def passed(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Counts the cells of the matrix that were seen; printed at the end."""
    seen: list[str] = []
    yield seen
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\ncrash matrix: {len(seen)} of {len(WAYS) * 2} cells, every limit back at its previous value", flush=True)


class Owner:
    """A program under a cap."""

    def __init__(self, driver, folder: Path, way: str) -> None:
        self.environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(folder / "control"))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, way, str(folder / "runs")], env=self.environ, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def is_set(self) -> bool:
        return self.process.stdout.readline() == "set\n"

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(20)

    def end(self) -> str:
        return self.process.communicate("\n", timeout=20)[1]

    def guardian(self) -> int:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return next(int(pid) for pid in children if b"carbonreport.control.guardian" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def restore(self) -> str:
        command = [sys.executable, "-m", "carbonreport", "restore"]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=30, check=True)
        return done.stdout


@pytest.mark.parametrize("boards", [1, 4])
@pytest.mark.parametrize("way", WAYS)
def test_every_limit_is_back_at_its_previous_value(make_virtual_driver, tmp_path, passed, way, boards):
    driver = make_virtual_driver(*["h200"] * boards, is_virtual=False)
    gpus = [driver.board(i) for i in range(boards)]
    for gpu in gpus:
        gpu.set_limit(BEFORE_WATTS)

    def limits() -> list[float]:
        return [gpu.peek().requested_watts for gpu in gpus]

    _crash(way, driver, tmp_path, gpus[min(1, boards - 1)], limits)

    wait_until(lambda: limits() == [BEFORE_WATTS] * boards)
    wait_until(lambda: not list((tmp_path / "control").glob("*/*.json")))
    passed.append(way)


def _crash(way: str, driver, folder: Path, second, limits: Callable[[], list[float]]) -> None:
    capped = [CAP_WATTS] * len(limits())
    if way == "full disk at the journal":
        owner = Owner(driver, folder, "full disk")
        assert not owner.is_set()
        assert "without it nothing is set" in owner.end()
        assert driver.setter_calls() == []
        return
    if way == "NVML failing at the second board while setting":
        second.fail("nvmlDeviceSetPowerManagementLimit", "Unknown")
        owner = Owner(driver, folder, "end")
        assert not owner.is_set()
        assert "could not be set" in owner.end()
        second.fail("nvmlDeviceSetPowerManagementLimit", None)
        return
    owner = Owner(driver, folder, {"exception": "exception", "SIGKILL while forked workers live": "workers"}.get(way, "sleep"))
    assert owner.is_set(), owner.end()
    if way != "exception":
        assert limits() == capped
    match way:
        case "exception":
            assert "diverged" in owner.end()
        case "NVML failing at the second board while restoring":
            second.fail("nvmlDeviceSetPowerManagementLimit", "Unknown")
            owner.send(signal.SIGINT)
            assert limits().count(CAP_WATTS) == 1
            second.fail("nvmlDeviceSetPowerManagementLimit", None)
        case "SIGKILL while forked workers live":
            group = Path(f"/proc/{owner.process.pid}/task/{owner.process.pid}/children").read_text().split()
            guardian = owner.guardian()
            workers = [int(pid) for pid in group if int(pid) != guardian]
            owner.send(signal.SIGKILL)
            wait_until(lambda: limits() == [BEFORE_WATTS] * len(capped))
            assert len(workers) == 2
            for worker in workers:
                os.kill(worker, signal.SIGKILL)  # fails where one has not lived so long
        case "SIGKILL of owner and guardian, then the next start":
            _kill_both(owner)
            assert limits() == capped
            following = Owner(driver, folder, "end")
            assert following.is_set()
            following.end()
        case "all killed, then the epilog":
            _kill_both(owner)
            assert limits() == capped
            assert "restored" in owner.restore()
        case _:
            owner.send(signal.Signals[way])


def _kill_both(owner: Owner) -> None:
    os.kill(owner.guardian(), signal.SIGKILL)
    owner.send(signal.SIGKILL)


def wait_until(is_so: Callable[[], bool], longest_s: float = 15.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


def test_a_file_size_limit_stands_for_a_full_disk(tmp_path):
    """What the matrix uses for a full disk does stop a write."""
    code = "import resource, os; resource.setrlimit(resource.RLIMIT_FSIZE, (16, -1)); f = os.open('x', os.O_CREAT | os.O_WRONLY); print(os.write(f, bytes(64)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "16\n"
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
