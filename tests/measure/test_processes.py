"""Whose work the host's counters hold."""

import os
import subprocess
import sys
import time

import pytest
from pytest import approx

from carbonreport.measure.processes import RunShare, descendants, machine_ticks, tree_ticks


class Proc:
    """A /proc with processes in it."""

    def __init__(self, root):
        self.root, self.idle = root, 0
        self.machine(0, 0)

    def machine(self, busy, idle):
        (self.root / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 7 0\ncpu0 1 2 3\nintr 99\n")

    def process(self, pid, ticks, *, children=(), waited=0, threads=()):
        for thread in (pid, *threads):
            task = self.root / f"{pid}/task/{thread}"
            task.mkdir(parents=True, exist_ok=True)
            of_this_thread = children if thread == (threads[-1] if threads else pid) else ()
            (task / "children").write_text("".join(f"{child} " for child in of_this_thread))
        (self.root / f"{pid}/stat").write_text(f"{pid} (a) b (c)) S 1 1 1 0 -1 0 0 0 0 0 {ticks} 0 {waited} 0 20 0 1 0\n")


@pytest.fixture
def proc(tmp_path):
    return Proc(tmp_path)


def test_a_tree_holds_children_of_every_thread_and_their_children(proc):
    proc.process(10, 5, children=(11, 12), threads=(100, 101))
    proc.process(11, 7, children=(13,), waited=2)
    proc.process(12, 0)
    proc.process(13, 1)
    proc.process(99, 1000)

    assert set(descendants(10, proc.root)) == {11, 12, 13}
    assert tree_ticks([10], proc.root) == 5 + 7 + 2 + 1
    assert tree_ticks([10, 11], proc.root) == 5 + 7 + 2 + 1


def test_a_process_that_ended_meanwhile_costs_nothing(proc):
    proc.process(10, 5, children=(11,))

    assert tree_ticks([10], proc.root) == 5


def shared(proc, own, busy, idle):
    share = RunShare([10], proc.root)
    proc.process(10, 100)
    proc.machine(1000, 1000)
    share.look(0.0)
    proc.process(10, 100 + own)
    proc.machine(1000 + busy, 1000 + idle)
    share.look(60.0, is_last=True)
    return share


@pytest.mark.parametrize(("own", "busy", "expected"), [(500, 1000, 0.5), (0, 1000, 0.0), (1000, 1000, 1.0), (1001, 1000, 1.0)])
def test_the_share_is_own_time_over_busy_time(proc, own, busy, expected):
    assert shared(proc, own, busy, idle=1000).share() == approx(expected)


def test_a_run_that_others_disturbed_says_its_percentage(proc):
    (note,) = shared(proc, 250, 1000, 3000).notes()

    assert note.slug == "shared-host"
    assert "25 %" in note.text


def test_a_run_that_had_most_of_the_work_says_nothing(proc):
    assert shared(proc, 850, 1000, 3000).notes() == []


def test_the_services_of_an_idle_machine_are_not_others(proc):
    assert shared(proc, 1, 50, 100_000).notes() == []


def test_what_cannot_be_read_is_unknown_and_no_note(tmp_path, proc):
    assert RunShare([10], tmp_path / "none").share() is None
    nobody = RunShare([77], proc.root)
    nobody.look(0.0)
    nobody.look(20.0)
    assert nobody.share() is None and nobody.notes() == []
    assert machine_ticks(tmp_path / "none") is None


def test_it_looks_every_ten_seconds_and_at_the_end(proc):
    share = RunShare([10], proc.root)
    proc.process(10, 0)
    share.look(0.0)
    proc.process(10, 50)
    proc.machine(100, 100)
    share.look(9.0)
    assert share.share() is None
    share.look(10.0)
    assert share.share() == approx(0.5)


def test_a_child_that_nobody_waited_for_takes_nothing_away(proc):
    share = RunShare([10], proc.root)
    proc.process(10, 0, children=(11,))
    proc.process(11, 0)
    share.look(0.0)
    proc.process(11, 80)
    proc.machine(100, 100)
    share.look(10.0)
    proc.process(10, 0)
    share.look(20.0)

    assert share.share() == approx(0.8)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_a_busy_child_of_this_process_is_counted_alive_and_after_it_was_waited_for():
    before = tree_ticks([os.getpid()])
    if before is None:
        pytest.skip("this kernel does not list children")
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.6)
    alive = tree_ticks([os.getpid()])
    child.kill()
    child.wait()
    after = tree_ticks([os.getpid()])

    assert child.pid not in descendants(os.getpid())
    assert before + 10 < alive <= after
