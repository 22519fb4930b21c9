"""The guardian by itself: it outlives what is sent to its owner's group, leaves what lives to the living, and is never waited for in vain."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from carbonreport.control.applied import applied
from carbonreport.control.guardian import guarded_by_a_process
from carbonreport.control.holder import Holder, this_process
from carbonreport.control.leases import Lease, Leases, boot_id, control_folder, foreign_lease
from carbonreport.model.knobs import Knobs
from carbonreport.testing.controller import FakeController, fake_board

CAP = Knobs(power_cap_watts=500)
PROGRAM = """
import sys, time
from carbonreport import trace
with trace("x", out=sys.argv[1], power_cap_watts=500, zone="DE", meters=("hostmodel",)):
    print("set", flush=True)
    time.sleep(60)
"""
NESTED = """
import sys, time
from carbonreport import trace
options = dict(out=sys.argv[1], power_cap_watts=500, zone="DE", meters=("hostmodel",))
with trace("outer", **options):
    with trace("inner", **options):
        pass
    time.sleep(0.5)
    print("inner ended", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def driver(make_virtual_driver):
    driver = make_virtual_driver("h200", is_virtual=False)
    driver.board(0).set_limit(650)
    return driver


def begun(driver, folder: Path, code: str, **more: str) -> subprocess.Popen:
    environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(folder / "control")) | more
    command = [sys.executable, "-c", code, str(folder / "runs")]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True, cwd=folder)


def guardian_of(process: subprocess.Popen) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return next(int(pid) for pid in children if b"carbonreport.control.guardian" in Path(f"/proc/{pid}/cmdline").read_bytes())


def wait_until(is_so, longest_s: float = 15.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL], ids=lambda n: n.name)
def test_a_signal_to_the_whole_group_ends_the_owner_and_the_board_is_back(driver, tmp_path, number):
    process = begun(driver, tmp_path, PROGRAM)
    assert process.stdout.readline() == "set\n"
    os.killpg(process.pid, number)
    process.wait(20)

    wait_until(lambda: driver.board(0).peek().requested_watts == 650)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT], ids=lambda n: n.name)
def test_a_guardian_that_is_asked_to_end_stays_as_long_as_its_owner(driver, tmp_path, number):
    process = begun(driver, tmp_path, PROGRAM)
    assert process.stdout.readline() == "set\n"
    os.kill(guardian_of(process), number)
    time.sleep(0.3)
    assert driver.board(0).peek().requested_watts == 500
    process.kill()
    process.wait(20)

    wait_until(lambda: driver.board(0).peek().requested_watts == 650)


def test_a_run_inside_another_one_leaves_the_outer_ones_cap_with_the_guardians_there_too(driver, tmp_path):
    process = begun(driver, tmp_path, NESTED)
    assert process.stdout.readline() == "inner ended\n"
    assert driver.board(0).peek().requested_watts == 500
    process.communicate("\n", timeout=20)

    assert process.returncode == 0
    assert driver.board(0).peek().requested_watts == 650


def test_a_stopped_guardian_does_not_hold_up_the_end(driver, tmp_path):
    process = begun(driver, tmp_path, PROGRAM)
    assert process.stdout.readline() == "set\n"
    guardian = guardian_of(process)
    os.kill(guardian, signal.SIGSTOP)
    began_s = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.wait(20)

    assert time.monotonic() - began_s < 10
    assert driver.board(0).peek().requested_watts == 650
    wait_until(lambda: not Path(f"/proc/{guardian}").exists())


def test_a_relative_folder_is_the_same_for_the_guardian(driver, tmp_path):
    process = begun(driver, tmp_path, PROGRAM, CARBONREPORT_CONTROL_DIR="control")
    assert process.stdout.readline() == "set\n"
    process.kill()
    process.wait(20)

    wait_until(lambda: driver.board(0).peek().requested_watts == 650)


@pytest.mark.parametrize("loss", ["folder", "file", "spoilt"])
def test_a_journal_that_is_lost_during_the_run_is_made_up_for_from_memory(driver, tmp_path, loss):
    process = begun(driver, tmp_path, PROGRAM)
    assert process.stdout.readline() == "set\n"
    (lease,) = (tmp_path / "control").glob("*/*.json")
    if loss == "spoilt":
        lease.write_bytes(b"{")
    else:
        for path in [lease] if loss == "file" else list(lease.parent.iterdir()):
            path.unlink()
        if loss == "folder":
            lease.parent.rmdir()
    process.send_signal(signal.SIGINT)
    process.wait(20)

    assert driver.board(0).peek().requested_watts == 650
    (record,) = (tmp_path / "runs").glob("*.jsonl")
    assert "knobs-journal-lost" in record.read_text()
    assert not list((tmp_path / "control").glob("*/*.json"))


def test_more_descriptors_than_select_takes_are_no_hindrance(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        leases = Leases(tmp_path / "control", os.getuid())
        with (
            contextlib.suppress(Exception),
            guarded_by_a_process(lambda: True, owner=this_process(), devices=(), leases=leases, environ={}),
        ):
            pass
        with pytest.raises(Exception, match="could not be started"):  # there is no driver here, which is the only reason left
            guarded_by_a_process(lambda: True, owner=this_process(), devices=(), leases=leases, environ={}).__enter__()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The journal


@contextlib.contextmanager
def no_guardian(is_all_back):
    yield


def one_board() -> FakeController:
    return FakeController({"GPU-00000": fake_board()})


def test_the_journal_is_synced_file_and_folder_before_the_setter_is_called(tmp_path):
    order: list[str] = []

    class Watching(FakeController):
        def set(self, device, knobs):
            order.append("set")
            super().set(device, knobs)

    leases = Leases(tmp_path / "control", os.getuid(), sync=lambda handle: order.append("sync"))
    with applied(Watching({"GPU-00000": fake_board()}), {"GPU-00000": CAP}, leases, this_process(), "boot", no_guardian):
        pass
    assert order[:3] == ["sync", "sync", "set"]


def test_a_fork_that_leaves_the_block_changes_nothing(tmp_path):
    fake, leases = one_board(), Leases(tmp_path / "control", os.getuid())
    stack = contextlib.ExitStack()
    stack.enter_context(applied(fake, {"GPU-00000": CAP}, leases, this_process(), "boot", no_guardian))
    child = os.fork()
    if child == 0:
        stack.close()
        os._exit(0 if fake.boards["GPU-00000"].limit_watts == 500 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert list((tmp_path / "control").glob("*.json"))
    stack.close()
    assert fake.boards["GPU-00000"].limit_watts == 650


def test_a_fork_inside_a_turn_does_not_keep_the_lock(tmp_path):
    leases = Leases(tmp_path / "control", os.getuid())
    with leases.turn():
        child = os.fork()
        if child == 0:
            time.sleep(20)
            os._exit(0)
    try:
        with leases.turn(longest_s=0.5):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_dead_holders_are_dropped_when_another_run_joins(tmp_path):
    leases, fake = Leases(tmp_path / "control", os.getuid()), one_board()
    dead = Holder(2**22 - 1, 1)
    with leases.turn() as turn:
        turn.write(Lease(1, "GPU-00000", "boot", os.getuid(), 650.0, CAP, (dead, Holder(os.getppid(), None))))
    fake.boards["GPU-00000"] = fake_board(limit_watts=500)
    with applied(fake, {"GPU-00000": CAP}, leases, this_process(), "boot", no_guardian), leases.turn() as turn:
        assert turn.read("GPU-00000").holders == (Holder(os.getppid(), None), this_process())


def test_a_run_that_joins_another_one_says_the_limit_of_before_both(tmp_path):
    leases, fake = Leases(tmp_path / "control", os.getuid()), one_board()
    join = partial(applied, fake, {"GPU-00000": CAP}, leases)
    with join(Holder(os.getppid(), None), "boot", no_guardian), join(this_process(), "boot", no_guardian) as second:
        assert second.before["GPU-00000"].limit_watts == 650


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's files")
@pytest.mark.parametrize(("boot", "is_seen"), [(boot_id(), True), ("an older one", False)])
def test_another_users_lease_of_this_boot_is_seen_alive_or_dead(tmp_path, boot, is_seen):
    environ = {"CARBONREPORT_CONTROL_DIR": str(tmp_path)}
    folder = control_folder(4321, environ)
    folder.mkdir()
    os.chown(folder, 4321, 4321)
    with Leases(folder, 4321, is_made=False).turn() as turn:
        turn.write(Lease(1, "GPU-00000", boot, 4321, 700.0, CAP, (Holder(2**22 - 1, 1),)))
    os.chown(folder / "GPU-00000.json", 4321, 4321)

    assert (foreign_lease("GPU-00000", 0, environ) is not None) is is_seen
    assert (folder / "turn").stat().st_uid == 4321
