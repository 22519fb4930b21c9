"""Phases that are told one after another become spans, in the program's thread and in others."""

import sys
import threading

import pytest

from carbonreport.measure.phases import PhaseSpans
from carbonreport.measure.spans import SpanQueue
from carbonreport.measure.tracer import Run, RunPlan
from carbonreport.model.run import Place
from carbonreport.store import load
from carbonreport.testing import FakeMeter
from carbonreport.workflows.trace import trace


class Told:
    """A queue whose stamps count up, and phases that fill it."""

    def __init__(self):
        self.now = 0
        self.queue = SpanQueue(self._tick)
        self.phases = PhaseSpans(self.queue)

    def _tick(self):
        self.now += 1
        return self.now

    def enter(self, *names):
        for name in names:
            self.phases.enter(name)
        return self

    def edges(self):
        return [f"{'+' if is_start else '-'}{span.path}" for _, span, is_start, _ in self.queue.take()]


@pytest.mark.parametrize(
    ("names", "edges"),
    [
        (["forward", "backward", ""], ["+forward", "-forward", "+backward", "-backward"]),
        (["forward", "forward", ""], ["+forward", "-forward", "+forward", "-forward"]),
        (["forward", "forward/a", "forward", ""], ["+forward", "+forward/a", "-forward/a", "-forward"]),
        (["forward/a", "forward/b", ""], ["+forward/a", "-forward/a", "+forward/b", "-forward/b"]),
        (
            ["forward", "forward/0", "forward/0/2", "forward/0", "forward", "forward"],
            ["+forward", "+forward/0", "+forward/0/2", "-forward/0/2", "-forward/0", "-forward", "+forward"],
        ),
        (["backward", "backward/3", "backward/2", "optimiser"], ["+backward", "+backward/3", "-backward/3", "+backward/2", "-backward/2", "-backward", "+optimiser"]),
        (["", "", "for", "forward"], ["+for", "-for", "+forward"]),
    ],
)  # fmt: skip
def test_a_phase_ends_where_one_begins_that_is_not_inside_it(names, edges):
    assert Told().enter(*names).edges() == edges


def test_inner_phases_know_the_one_around_them():
    told = Told().enter("forward", "forward/0", "forward/0/2")
    spans = [span for _, span, _, _ in told.queue.take()]

    assert [span.parent and span.parent.path for span in spans] == [None, "forward", "forward/0"]


def test_phases_lie_in_the_block_around_them_also_from_another_thread(tmp_path):
    ladders = [[("fake", lambda: FakeMeter(100.0))]]
    with Run(RunPlan("run", "training", tmp_path, Place("DE", "option", "UTC"), "host", ladders, 0.1, {}, load)) as run:
        for _ in range(2):
            with run.span("train"), run.span("step"):
                run.enter("forward")
                other = threading.Thread(target=run.enter, args=("backward",))
                other.start()
                other.join()
                run.enter("optimiser")
                run.enter("")
        run.enter("forward")
        other = threading.Thread(target=run.enter, args=("backward",))
        other.start()
        other.join()

    counts = {span.path: span.count for span in run.record.spans}
    assert counts == {
        "train/step/forward": 2, "train/step/backward": 2, "train/step/optimiser": 2, "forward": 1, "backward": 1, "train": 2, "train/step": 2,
    }  # fmt: skip


def test_many_threads_at_once_break_nothing():
    told = Told()
    failed = []

    def enter_all():
        try:
            for i in range(3000):
                told.phases.enter(("forward", "forward/a", "backward", "")[i % 4])
        except IndexError as error:
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=enter_all) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    sys.setswitchinterval(before)

    edges = told.enter("").edges()
    assert not failed
    assert sum(edge[0] == "+" for edge in edges) == sum(edge[0] == "-" for edge in edges)


def test_after_the_end_phases_are_nothing(tmp_path):
    with trace("run", out=tmp_path) as run:
        run.enter("forward")
    run.enter("backward")

    assert {span.path for span in run.record.spans} <= {"forward"}
