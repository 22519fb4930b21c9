"""Boards that others use too: split among their users on request, and said to be an estimate."""

import subprocess
import sys

import pytest
from pytest import approx

from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.used import FIRST_NAMESPACE, ProcessTree
from carbonreport.store import load
from carbonreport.testing.clock import FakeClock
from carbonreport.testing.nvml import FakeBoard, FakeNvml

RUN, STRANGER = 10, 99
USE = "nvmlDeviceGetProcessUtilization"


def fake_proc(root, namespace=FIRST_NAMESPACE):
    (root / "self/ns").mkdir(parents=True)
    (root / "self/ns/pid").symlink_to(namespace)
    for pid in (RUN, STRANGER):
        (root / f"{pid}/task/{pid}").mkdir(parents=True)
        (root / f"{pid}/task/{pid}/children").write_text("")
    return root


class Session:
    """A meter on one board of 400 W that is split, polled once a second."""

    def __init__(self, folder, *, is_split=True, namespace=FIRST_NAMESPACE, watts=lambda _s: 400.0, processes=None, **options):
        self.clock, self.board = FakeClock(), FakeBoard("GPU-a", watts, **options)
        self.nvml = FakeNvml(self.clock, [self.board])
        self.clock.advance(10)
        self.run_clock = RunClock(self.clock)
        tree = ProcessTree((RUN,), fake_proc(folder / "proc", namespace))
        self.board.processes = dict(processes or {})
        self.meter = NvmlMeter(self.nvml, {}, tree=tree, is_split=is_split)
        (self.device,) = self.meter.open(self.run_clock)
        self.points, self.notes, self.samples, self.gain = [], [], [], 1.0
        self.poll()

    def poll(self, *, is_last=False):
        self.run_clock.look()
        poll = self.meter.poll(is_last=is_last)
        self.points += [(reading.offset_s, reading.joules) for reading in poll.readings]
        self.notes += poll.notes
        self.samples += poll.samples
        self.gain = poll.gains.get("GPU-a", self.gain)

    def run(self, seconds, **processes):
        """Let time pass while the run and a stranger use so much of the cores. [percent]"""
        self.board.processes = {{"run": RUN, "stranger": STRANGER}[who]: percent for who, percent in processes.items()}
        for _ in range(seconds):
            self.clock.advance(1)
            self.poll()
        return self

    def end(self):
        self.clock.advance(0.5)
        self.poll(is_last=True)
        return self

    def watts(self):
        (t0, e0), (t1, e1) = self.points[0], self.points[-1]
        return (e1 - e0) / (t1 - t0) * self.gain

    def texts(self, slug):
        return [note.text for note in self.notes if note.slug == slug]


def test_a_board_used_30_to_70_gives_the_run_30_percent(tmp_path):
    session = Session(tmp_path, processes={RUN: 30, STRANGER: 70}).run(120, run=30, stranger=70).end()

    assert session.watts() == approx(0.3 * 400, rel=0.03)
    (text,) = session.texts("board-split")
    assert text.startswith(("30 % of the energy of GPU 0", "31 % of the energy of GPU 0"))
    assert session.texts("shared-board") == []


def test_what_a_stranger_draws_before_the_run_begins_its_work_is_not_the_run_s(tmp_path):
    session = Session(tmp_path, processes={STRANGER: 70}).run(60, stranger=70).run(60, run=50, stranger=50).end()

    assert session.watts() == approx(400 * 0.5 / 2, rel=0.03)


def test_two_runs_that_split_a_board_make_the_whole_of_it(tmp_path):
    mine = Session(tmp_path / "a").run(60, run=20, stranger=50).run(60, run=60, stranger=20).end()
    theirs = Session(tmp_path / "b").run(60, run=50, stranger=20).run(60, run=20, stranger=60).end()

    assert mine.watts() + theirs.watts() == approx(400, rel=0.03)


def test_alone_on_the_board_the_run_has_all_of_it(tmp_path):
    assert Session(tmp_path).run(60, run=40).end().watts() == approx(400, rel=0.01)


def test_before_any_work_was_seen_the_whole_board_counts(tmp_path):
    assert Session(tmp_path).run(60, run=0, stranger=0).end().watts() == approx(400, rel=0.01)


def test_idle_time_is_shared_as_the_work_so_far(tmp_path):
    session = Session(tmp_path).run(60, run=25, stranger=75).run(60, run=100).run(240).end()

    work, idle = 0.25 * 60 + 60, 240 * (25 + 100) / 200
    assert session.watts() == approx(400 * (work + idle) / 360, rel=0.04)


def test_the_device_is_called_an_estimate_with_a_wide_interval_and_says_how(tmp_path):
    whole = Session(tmp_path / "a", is_split=False).device
    device = Session(tmp_path / "b").device

    assert (whole.origin, device.origin) == ("measured", "estimated")
    assert device.source == f"{whole.source}, split among its users by SM utilisation"
    assert device.gain_low == approx(0.5 * whole.gain_low) and device.gain_high == approx(2 * whole.gain_high)


def test_power_samples_do_not_tell_short_spans_of_a_split_board(tmp_path):
    assert Session(tmp_path / "a", is_split=False).run(3).samples
    assert not Session(tmp_path / "b").run(3).samples


def test_nobody_asks_for_the_use_unless_it_is_requested(tmp_path):
    session = Session(tmp_path, is_split=False).run(20, run=30, stranger=70).end()

    assert session.nvml.calls[USE] == 0
    assert session.watts() == approx(400, rel=0.01)
    assert len(session.texts("shared-board")) == 1


def test_the_use_is_asked_once_a_second(tmp_path):
    session = Session(tmp_path)
    before = session.nvml.calls[USE]
    for _ in range(100):
        session.clock.advance(0.1)
        session.poll()

    assert 10 <= session.nvml.calls[USE] - before <= 11


def test_figures_that_no_process_can_have_are_left_out(tmp_path):
    assert Session(tmp_path).run(60, run=30, stranger=4_294_967).end().watts() == approx(400, rel=0.01)


def test_a_wall_clock_set_back_does_not_stop_the_split(tmp_path):
    session = Session(tmp_path).run(10, run=50, stranger=50)
    session.clock.step_wall(-3600)
    session.run(100, run=30, stranger=70).end()

    assert session.watts() == approx(400 * (0.5 * 10 + 0.3 * 100) / 110, rel=0.05)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"missing": frozenset({USE})}, "the driver does not tell the use by process"),
        ({"migs": ("MIG-1",)}, "it is cut into MIG instances"),
        ({"namespace": "pid:[4026532000]"}, "a container does not show the processes of others"),
    ],
)
def test_a_board_that_cannot_be_split_counts_whole_and_says_why(tmp_path, options, why):
    session = Session(tmp_path, **options).run(60, run=30, stranger=70).end()

    assert session.watts() == approx(400, rel=0.01)
    assert session.device.origin == "measured"
    (text,) = session.texts("split-refused")
    assert text.startswith("GPU 0 (NVIDIA H200) could not be split") and why in text
    assert session.texts("board-split") == []


def test_the_real_binding_splits_too(make_virtual_driver, pynvml, tmp_path):
    driver = make_virtual_driver("h200")
    driver.board(0).constant(400.0)
    driver.board(0).processes((RUN, 30, 1 << 30), (STRANGER, 70, 1 << 30))
    joules = {}
    for is_split in (False, True):
        clock, meter = (
            RunClock(driver),
            NvmlMeter(pynvml, {}, tree=ProcessTree((RUN,), fake_proc(tmp_path / str(is_split))), is_split=is_split),
        )
        meter.open(clock)
        readings = list(meter.poll(is_last=False).readings)
        for second in range(60):
            driver.advance(1)
            readings += meter.poll(is_last=second == 59).readings
        joules[is_split] = readings[-1].joules - readings[0].joules
        meter.close()

    assert joules[True] / joules[False] == approx(0.3, rel=0.05)


_TRACED = """
import sys, time
from carbonreport import trace
with trace("job", zone="DE", pue=1.2, out=sys.argv[1], meters=("nvml",), share_gpus=True):
    time.sleep(0.3)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "carbonreport", "run", "--share-gpus", "--zone", "DE", "--pue", "1.2", "--quiet", "--out", "{runs}", "--", "sleep", "0.3"),
        ("-c", _TRACED, "{runs}"),
    ],
)
def test_the_command_and_trace_split_on_request(make_virtual_driver, tmp_path, command):
    driver, runs = make_virtual_driver("h200", is_virtual=False), str(tmp_path / "runs")
    subprocess.run([sys.executable, *(part.replace("{runs}", runs) for part in command)], env=driver.environ(), check=True, timeout=60)

    record = load(next((tmp_path / "runs").glob("*.jsonl")))
    (gpu,) = [device for device in record.devices if device.kind == "gpu"]
    slugs = {note.slug for note in record.notes}
    assert (gpu.origin, "board-split" in slugs) == ("estimated", True) or "split-refused" in slugs
