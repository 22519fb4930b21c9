"""Which visible boards count: those on which the run was seen, where nobody chose them."""

import shutil
import subprocess
import sys
import time

import pytest
from pytest import approx

from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.measure.used import FIRST_NAMESPACE, LOOK_PERIOD_S, ProcessTree, is_chosen
from carbonreport.model.run import Place
from carbonreport.store import load
from carbonreport.testing.clock import FakeClock
from carbonreport.testing.nvml import FakeBoard, FakeNvml

RUN, CHILD, STRANGER = 10, 11, 99
LIST = "nvmlDeviceGetComputeRunningProcesses_v3"
WATTS = (100.0, 200.0, 300.0, 400.0)


class Proc:
    """A /proc with a run, its child and a stranger."""

    def __init__(self, root, *, namespace=FIRST_NAMESPACE):
        self.root = root
        (root / "self/ns").mkdir(parents=True)
        (root / "self/ns/pid").symlink_to(namespace)
        self.process(RUN, CHILD)
        self.process(CHILD)
        self.process(STRANGER)

    def process(self, pid, *children):
        task = self.root / f"{pid}/task/{pid}"
        task.mkdir(parents=True, exist_ok=True)
        (task / "children").write_text("".join(f"{child} " for child in children))

    def end(self, pid):
        shutil.rmtree(self.root / str(pid))
        if pid == CHILD:
            self.process(RUN)


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path / "proc")


class Session:
    """A meter on four boards of 100 to 400 W, polled once a second, and what it says of their use."""

    def __init__(self, proc, *, failures=None, of_board=None, roots=(RUN,), **environ):
        self.clock = FakeClock()
        self.boards = [FakeBoard(f"GPU-{i}", lambda _s, w=w: w, **(of_board or {}).get(i, {})) for i, w in enumerate(WATTS)]
        self.nvml = FakeNvml(self.clock, self.boards, failures)
        self.clock.advance(10)
        self.run_clock = RunClock(self.clock)
        self.meter = NvmlMeter(self.nvml, environ, tree=ProcessTree(roots, proc.root))
        self.notes = []
        self.meter.open(self.run_clock)
        self.poll()

    def poll(self, *, is_last=False):
        self.run_clock.look()
        poll = self.meter.poll(is_last=is_last)
        self.is_used = dict(poll.is_used)
        self.notes += poll.notes
        return self

    def run(self, seconds):
        for _ in range(seconds):
            self.clock.advance(1)
            self.poll()
        return self

    def end(self):
        self.clock.advance(0.5)
        return self.poll(is_last=True)

    def unused(self):
        return [device for device, is_used in self.is_used.items() if not is_used]

    def shared(self):
        return [note.text for note in self.notes if note.slug == "shared-board"]


def test_of_four_visible_boards_the_one_in_use_counts_and_three_are_told_apart(proc):
    session = Session(proc)
    session.boards[1].processes = {RUN: 90}

    assert session.run(6).end().unused() == ["GPU-0", "GPU-2", "GPU-3"]
    assert session.is_used["GPU-1"]


def test_the_board_of_a_child_counts(proc):
    session = Session(proc)
    session.boards[0].processes = {RUN: 10}
    session.boards[3].processes = {CHILD: 90}

    assert session.end().unused() == ["GPU-1", "GPU-2"]


def test_ranks_under_one_launcher_are_one_tree(proc):
    proc.process(5, RUN, 12)
    proc.process(12)
    session = Session(proc, roots=(5,))
    session.boards[0].processes, session.boards[1].processes = {RUN: 90}, {12: 90}

    assert session.end().unused() == ["GPU-2", "GPU-3"]


def test_a_process_that_ends_before_the_run_leaves_its_board_counted(proc):
    session = Session(proc)
    session.boards[0].processes, session.boards[2].processes = {RUN: 90}, {CHILD: 90}
    session.run(6)
    session.boards[2].processes = {}
    proc.end(CHILD)

    assert session.run(60).end().unused() == ["GPU-1", "GPU-3"]


def test_a_process_whose_parent_ended_stays_with_the_run(proc):
    session = Session(proc)
    session.boards[0].processes = {RUN: 90}
    session.run(6)
    proc.process(RUN)  # the child belongs to process 1 from now on
    session.boards[1].processes = {CHILD: 90}

    assert session.run(6).end().unused() == ["GPU-2", "GPU-3"]
    assert session.shared() == []


@pytest.mark.parametrize(
    "environ",
    [
        {"CUDA_VISIBLE_DEVICES": "0,1,2,3", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        {"SLURM_JOB_GPUS": "0,1,2,3"},
        {"SLURM_STEP_GPUS": "0,1,2,3"},
        {"NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1,GPU-2,GPU-3"},
    ],
)
def test_boards_that_somebody_chose_all_count(proc, environ):
    session = Session(proc, **environ)
    session.boards[1].processes = {RUN: 90}

    assert session.run(6).end().is_used == {}


@pytest.mark.parametrize("environ", [{}, {"NVIDIA_VISIBLE_DEVICES": "all"}, {"SLURM_JOB_GPUS": ""}])
def test_all_boards_of_a_machine_are_no_choice(environ):
    assert not is_chosen(environ)


def test_where_no_board_was_used_all_count(proc):
    session = Session(proc)
    session.boards[2].processes = {STRANGER: 90}

    assert session.run(20).end().is_used == {}


@pytest.mark.parametrize("error", ["NotSupported", "NoPermission", "FunctionNotFound"])
def test_a_driver_that_tells_no_processes_leaves_all_counted(proc, error):
    session = Session(proc, failures={LIST: error})
    session.boards[1].processes = {RUN: 90}

    assert session.run(6).end().is_used == {}


def test_a_kernel_that_lists_no_children_leaves_all_counted(tmp_path):
    proc = Proc(tmp_path / "proc")
    (proc.root / f"{RUN}/task/{RUN}/children").unlink()
    session = Session(proc)
    session.boards[1].processes = {RUN: 90}

    assert session.run(6).end().is_used == {}


def test_process_ids_of_the_host_mean_nothing_in_a_container(tmp_path):
    session = Session(Proc(tmp_path / "proc", namespace="pid:[4026532000]"))
    session.boards[0].processes = {RUN: 90}  # a stranger's, by chance the same number
    session.boards[1].processes = {31_337: 90}

    assert session.run(6).end().is_used == {}
    assert session.shared() == []


def test_a_container_that_is_shown_its_own_ids_is_seen(tmp_path):
    session = Session(Proc(tmp_path / "proc", namespace="pid:[4026532000]"))
    session.boards[1].processes = {CHILD: 90}

    assert session.run(6).end().unused() == ["GPU-0", "GPU-2", "GPU-3"]


def test_a_board_that_does_not_say_counts_beside_one_in_use(proc):
    session = Session(proc, of_board={1: {"migs": ("MIG-1",)}, 2: {"missing": frozenset({LIST})}})
    session.boards[0].processes = {RUN: 90}

    assert session.run(6).end().unused() == ["GPU-3"]


def test_a_board_that_is_lost_stays_what_it_was(proc):
    session = Session(proc)
    session.boards[0].processes, session.boards[1].processes = {RUN: 90}, {RUN: 10}
    session.run(6)
    session.boards[1].lose()

    assert session.run(6).end().unused() == ["GPU-2", "GPU-3"]


def test_it_looks_every_five_seconds_and_at_the_end(proc):
    session = Session(proc).run(20).end()

    assert session.nvml.calls[LIST] == len(WATTS) * (1 + 20 // LOOK_PERIOD_S + 1)


def test_nobody_asks_where_no_tree_is_given():
    clock = FakeClock()
    nvml = FakeNvml(clock, [FakeBoard("GPU-0", lambda _s: 100.0)])
    meter = NvmlMeter(nvml, {})
    meter.open(RunClock(clock))

    assert meter.poll(is_last=True).is_used == {}
    assert nvml.calls[LIST] == 0


# Others


def test_others_on_a_counted_board_are_named_once_with_the_board(proc):
    session = Session(proc)
    session.boards[1].processes = {RUN: 30, STRANGER: 70}
    session.run(20).end()

    (text,) = session.shared()
    assert text == "GPU 1 (NVIDIA H200) (1 process): processes outside the run were seen there; what they drew is included"


def test_others_on_boards_that_do_not_count_are_no_concern(proc):
    session = Session(proc)
    session.boards[1].processes, session.boards[2].processes = {RUN: 30}, {STRANGER: 70}

    assert session.run(20).end().shared() == []


def test_others_on_a_board_that_counts_because_nobody_was_seen_are_told_at_the_end(proc):
    session = Session(proc)
    session.boards[2].processes = {STRANGER: 70}

    assert session.run(20).shared() == []
    assert len(session.end().shared()) == 1


def test_others_who_come_later_to_another_board_are_told_then(proc):
    session = Session(proc, CUDA_VISIBLE_DEVICES="0,1,2,3", CUDA_DEVICE_ORDER="PCI_BUS_ID")
    session.boards[0].processes = {STRANGER: 70}
    session.run(6)
    session.boards[1].processes = {STRANGER: 70, 98: 5}
    session.run(6).end()

    assert [text.partition(":")[0] for text in session.shared()] == ["GPU 0 (NVIDIA H200) (1 process)", "GPU 1 (NVIDIA H200) (2 processes)"]


# The record


def started(folder, proc, fakes):
    """A run in real time on fake boards, killed or ended by the test."""
    clock = FakeClock()
    meter = NvmlMeter(FakeNvml(clock, fakes), {}, tree=ProcessTree((RUN,), proc.root))
    ladders = [[("nvml", lambda: meter)]]
    plan = RunPlan("run", "training", folder, Place("DE", "option", "UTC"), "host", ladders, 0.1, {}, load, clock=clock)
    return clock, Run(plan).start()


def until(is_so):
    give_up_s = time.monotonic() + 20
    while not is_so() and time.monotonic() < give_up_s:
        time.sleep(0.02)


def test_a_record_keeps_the_readings_of_unused_boards_and_which_they_are(tmp_path, proc):
    fakes = [FakeBoard(f"GPU-{i}", lambda _s, w=w: w) for i, w in enumerate(WATTS)]
    fakes[1].processes = {RUN: 90}
    clock, run = started(tmp_path / "runs", proc, fakes)
    until(lambda: fakes[3].calls > 10)
    for _ in range(20):
        clock.advance(1)
        time.sleep(0.05)
    run.stop()

    assert run.record.unused == ("GPU-0", "GPU-2", "GPU-3")
    assert {trace.device for trace in run.record.traces} == {f"GPU-{i}" for i in range(4)}
    joules = {trace.device: trace.joules[-1] - trace.joules[0] for trace in run.record.traces}
    assert joules["GPU-3"] / joules["GPU-0"] == approx(4.0, rel=0.05)


def test_a_killed_run_keeps_the_list(tmp_path, proc):
    """What lies on the disk while the run goes on is what a kill leaves."""
    fakes = [FakeBoard(f"GPU-{i}", lambda _s: 100.0) for i in range(3)]
    fakes[2].processes = {CHILD: 90}
    _, run = started(tmp_path / "runs", proc, fakes)

    def copied():
        for path in (tmp_path / "runs").iterdir():
            shutil.copy(path, tmp_path / path.name)
        return load(next(tmp_path.glob("*.jsonl")))

    until(lambda: copied().unused)
    record = copied()
    run.stop()

    assert not record.is_complete
    assert record.unused == ("GPU-0", "GPU-1")


# The real binding and the real /proc


_TRACED = """
import sys
from pathlib import Path
from carbonreport import trace
with trace("job", zone="DE", pue=1.2, out=sys.argv[1], meters=("nvml",)):
    print("up", flush=True)
    sys.stdin.readline()
"""


def test_the_driver_s_list_and_this_machine_s_processes_tell_which_boards_are_used(make_virtual_driver, tmp_path):
    if not ProcessTree(()).is_of_host:
        pytest.skip("process ids of this container are not the machine's")
    driver = make_virtual_driver("h200", "h200", "h200", "h200", is_virtual=False)
    environ = {k: v for k, v in driver.environ().items() if k not in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")}
    command = [sys.executable, "-c", _TRACED, str(tmp_path / "runs")]
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout.readline() == "up\n"
        driver.board(2).processes((job.pid, 80, 1 << 30), (1, 10, 1 << 30))
        driver.board(0).processes((1, 10, 1 << 30))
        time.sleep(0.5)
        job.communicate("\n", timeout=30)

    record = load(next((tmp_path / "runs").glob("*.jsonl")))
    assert len(record.unused) == 3 and len(record.devices) == 4
    assert record.devices[2].id not in record.unused
    assert [note.text.partition(":")[0] for note in record.notes if note.slug == "shared-board"] == ["GPU 2 (NVIDIA H200) (1 process)"]


def test_an_old_driver_under_the_real_binding_leaves_all_counted(make_virtual_driver, pynvml, proc):
    driver = make_virtual_driver("h200", "h200")
    driver.board(0).processes((RUN, 80, 1 << 30))
    driver.fail(LIST, "FunctionNotFound")
    clock = RunClock(driver)
    meter = NvmlMeter(pynvml, {}, tree=ProcessTree((RUN,), proc.root))
    meter.open(clock)
    driver.advance(1)

    assert meter.poll(is_last=True).is_used == {}
    driver.fail(LIST, None)
    assert sorted(meter.poll(is_last=True).is_used.values()) == [False, True]
