"""However a program ends, every board is as it was before: its limit, here 650 W where the default is 700 W, and its clocks unlocked."""

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carbonreport.plan.identity import sequence_hash
from carbonreport.plan_file import BoundTo, PlanFile, Ratio, UsedLatency, write_plan

BEFORE_WATTS, CAP_WATTS, CLOCK_MHZ, MEMORY_MHZ = 650.0, 300.0, 1410, 2201
PROGRAM = """
import os, resource, sys, threading, time
from pathlib import Path
from carbonreport import trace
from carbonreport.measure.tracer import Run
from carbonreport.model.knobs import Knobs
from carbonreport.plan_file import read_plan
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.knobs import RunKnobs
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.plan_apply import PlanKnobs
from carbonreport.workflows.plan_run import PlannedRun

way, folder, kind, plan = sys.argv[1:]

knobs = PlanKnobs(read_plan(Path(plan)), os.environ)

def planned(knobs):
    place = PlaceOptions(zone="DE", pue=None, site=None)
    return plan_run(
        "crash", kind="training", folder=Path(folder), options=place, interval_s=1.0, meters=("hostmodel",), environ=os.environ, clock_plan=knobs
    )

def run_of(kind):
    if kind == "cap":
        return trace("crash", out=folder, zone="DE", meters=("hostmodel",), power_cap_watts=300)
    if kind == "clocks":
        return trace("crash", out=folder, zone="DE", meters=("hostmodel",), plan=plan)
    if kind == "both":
        return Run(planned(RunKnobs(Knobs(300, 1410, 2201), is_optional=False, environ=os.environ)))
    return PlannedRun(planned(knobs), knobs)

def switch(run):
    while True:
        for phase in ("forward", "backward"):
            run.enter(phase)
            time.sleep(0.005)

if way == "full disk":
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, resource.RLIM_INFINITY))
with run_of(kind) as run:
    if kind == "switching":
        threading.Thread(target=switch, args=(run,), daemon=True).start()
        while not knobs.switcher.requests:
            time.sleep(0.001)
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


State = tuple[float, float, float]
"""Power limit, lock of the cores, lock of the memory; 0 is no lock."""

BEFORE: State = (BEFORE_WATTS, 0, 0)
KINDS = ("cap", "clocks", "both", "switching")
SETTER = {"cap": "nvmlDeviceSetPowerManagementLimit", "both": "nvmlDeviceSetPowerManagementLimit"}
TAKE_BACK = SETTER | {"both": "nvmlDeviceResetGpuLockedClocks"}


def is_held(kind: str, state: State) -> bool:
    """Whether a board has what was asked for; in the middle of a change the cores may be free, the memory is not."""
    watts, core_mhz, memory_mhz = state
    is_locked = memory_mhz == MEMORY_MHZ and (kind == "switching" or core_mhz == CLOCK_MHZ)
    return {"cap": (watts, core_mhz, memory_mhz) == (CAP_WATTS, 0, 0), "both": watts == CAP_WATTS and is_locked}.get(
        kind, watts == BEFORE_WATTS and is_locked
    )


def plan_file(folder: Path, kind: str) -> Path:
    """One pair all along, or a pair a phase."""
    pairs = [(CLOCK_MHZ, MEMORY_MHZ), (990, MEMORY_MHZ)] if kind == "switching" else [(CLOCK_MHZ, MEMORY_MHZ)]
    one, names = Ratio(1.0, 1.0, 1.0), ["forward", "backward"][: len(pairs)]
    plan = PlanFile(
        board=BoundTo(model="NVIDIA H200"),
        sequence_hash=sequence_hash(names),
        invocations=len(pairs),
        slowdown=0.01,
        latency=UsedLatency(0.01, 0.01, 0.01, "measured", 100.0, "late", is_measured=True),
        kind="pass" if kind == "switching" else "static",
        pairs=pairs,
        segments=[(i, i) for i in range(len(pairs))],
        cap_watts=None,
        time_ratio=one,
        energy_ratio=one,
        switches=len(pairs) if len(pairs) > 1 else 0,
        phases={name: i for i, name in enumerate(names)},
        sequence=names,
    )
    write_plan(plan, folder / "plan.json")
    return folder / "plan.json"


@pytest.fixture(scope="module")
def passed(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """Counts the cells of the matrix that were seen; printed at the end."""
    seen: list[str] = []
    yield seen
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\ncrash matrix: {len(seen)} of {len(WAYS) * len(KINDS) * 2} cells, every limit back and every clock unlocked", flush=True)


class Owner:
    """A program under a cap."""

    def __init__(self, driver, folder: Path, way: str, kind: str) -> None:
        self.environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(folder / "control"))
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, way, str(folder / "runs"), kind, str(plan_file(folder, kind))],
            env=self.environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
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
@pytest.mark.parametrize("kind", KINDS)
def test_every_board_is_back_as_it_was(make_virtual_driver, tmp_path, passed, kind, way, boards):
    driver = make_virtual_driver(*["h200"] * boards, is_virtual=False)
    gpus = [driver.board(i) for i in range(boards)]
    for gpu in gpus:
        gpu.set_limit(BEFORE_WATTS)

    def states() -> list[State]:
        seen = [gpu.peek() for gpu in gpus]
        return [(one.requested_watts, one.core_lock_high_mhz, one.memory_lock_high_mhz) for one in seen]

    _crash(way, kind, driver, tmp_path, gpus[min(1, boards - 1)], states)

    wait_until(lambda: states() == [BEFORE] * boards)
    wait_until(lambda: not list((tmp_path / "control").glob("*/*.json")))
    passed.append(way)


def _crash(way: str, kind: str, driver, folder: Path, second, states: Callable[[], list[State]]) -> None:
    setter, take_back = SETTER.get(kind, "nvmlDeviceSetMemoryLockedClocks"), TAKE_BACK.get(kind, "nvmlDeviceResetMemoryLockedClocks")

    def are_held() -> bool:
        return all(is_held(kind, state) for state in states())

    if way == "full disk at the journal":
        owner = Owner(driver, folder, "full disk", kind)
        assert not owner.is_set()
        assert "without it nothing is set" in owner.end()
        assert driver.setter_calls() == []
        return
    if way == "NVML failing at the second board while setting":
        second.fail(setter, "Unknown")
        owner = Owner(driver, folder, "end", kind)
        assert not owner.is_set()
        assert "could not be set" in owner.end()
        second.fail(setter, None)
        return
    owner = Owner(driver, folder, {"exception": "exception", "SIGKILL while forked workers live": "workers"}.get(way, "sleep"), kind)
    assert owner.is_set(), owner.end()
    if way != "exception":
        assert are_held(), states()
    match way:
        case "exception":
            assert "diverged" in owner.end()
        case "NVML failing at the second board while restoring":
            second.fail(take_back, "Unknown")
            owner.send(signal.SIGINT)
            assert sum(state != BEFORE for state in states()) == 1
            second.fail(take_back, None)
        case "SIGKILL while forked workers live":
            group = Path(f"/proc/{owner.process.pid}/task/{owner.process.pid}/children").read_text().split()
            guardian = owner.guardian()
            workers = [int(pid) for pid in group if int(pid) != guardian]
            owner.send(signal.SIGKILL)
            wait_until(lambda: states() == [BEFORE] * len(states()))
            assert len(workers) == 2
            for worker in workers:
                os.kill(worker, signal.SIGKILL)  # fails where one has not lived so long
        case "SIGKILL of owner and guardian, then the next start":
            _kill_both(owner)
            assert are_held()
            following = Owner(driver, folder, "end", kind)
            assert following.is_set()
            following.end()
        case "all killed, then the epilog":
            _kill_both(owner)
            assert are_held()
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
