"""Clocks are asked for when the GPU reaches a phase, not when the program launches it, and never by the program's own thread."""

import threading
import time
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from carbonreport.control.controller import ControlError
from carbonreport.control.hooks.follow import Follow, Place, rows
from carbonreport.control.hooks.switcher import Switcher
from carbonreport.control.hooks.torch_speed import TorchSpeed
from carbonreport.plan.table import UNLOCKED, ClockPair

LOW, HIGH = ClockPair(1200), ClockPair(1800, 2201)
PAIRS = {"forward": HIGH, "backward": LOW, "forward/norm": LOW}


@dataclass
class FakeMarks:
    """A GPU that reaches marks when told."""

    put: int = 0
    reached: int = 0
    threads: set = field(default_factory=set)

    def mark(self):
        self.threads.add(threading.get_ident())
        self.put += 1
        return self.put

    def resolve(self, mark):
        return mark if mark <= self.reached else None


def switcher(marks, asked, *, sequence=(), pairs=PAIRS):
    return Switcher(Follow(pairs, sequence), marks, asked.append)


def test_clocks_wait_for_the_gpu():
    marks, asked = FakeMarks(), []
    one = switcher(marks, asked)
    one.enter("step/forward")
    one.enter("step/backward")
    one.poll()
    assert asked == []

    marks.reached = 1
    one.poll()
    assert asked == [HIGH]
    marks.reached = 2
    one.poll()
    assert asked == [HIGH, LOW]


def test_of_phases_that_are_over_only_the_newest_counts():
    marks, asked = FakeMarks(), []
    one = switcher(marks, asked)
    for _ in range(3):
        one.enter("forward")
        one.enter("backward")
    marks.reached = 6
    one.poll()

    assert asked == [LOW]
    assert (one.requests, one.passed_over, one.entered) == (1, 5, 6)


def test_the_same_clocks_are_not_asked_for_twice():
    marks, asked = FakeMarks(reached=9), []
    one = switcher(marks, asked)
    for name in ("backward", "forward/norm", "backward", "forward"):
        one.enter(name)
        one.poll()

    assert asked == [LOW, HIGH]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train/step/forward", "forward"),
        ("step/forward/norm", "forward/norm"),
        ("forward", "forward"),
        ("step", None),
        ("my-forward", None),
        ("", None),
    ],
)
def test_a_phase_is_the_longest_planned_end_of_a_path(path, name):
    assert Follow(PAIRS).name_of(path) == name


def test_before_cuda_is_used_a_phase_begins_at_once():
    class NoMarks(FakeMarks):
        def mark(self):
            return None

    asked = []
    one = switcher(NoMarks(), asked)
    one.enter("forward")
    one.poll()
    assert asked == [HIGH]


def test_another_order_than_planned_turns_no_clock():
    asked = []
    right, wrong = (switcher(None, asked, sequence=("forward", "backward", "forward")) for _ in range(2))
    for name in ("forward", "backward", "backward", "forward"):
        wrong.enter(name)
        wrong.poll()
    assert asked == []
    assert wrong.order.first_other == "phase 3 of the first iteration is backward, planned was forward"

    for name in ("forward", "backward", "forward"):
        right.enter(name)
        right.poll()
    assert asked == [HIGH]
    assert right.why_stopped == ""


def test_a_refusal_stops_the_plan_and_not_the_program():
    def refuse(pair):
        raise ControlError("the board is gone")

    one = Switcher(Follow(PAIRS), None, refuse)
    one.enter("forward")
    one.poll()
    one.enter("backward")
    one.poll()

    assert one.why_stopped == "the board is gone"
    assert (one.requests, one.entered) == (0, 1)


class Now:
    """A clock that goes when told."""

    def __init__(self):
        self.s = 0.0

    def __call__(self):
        return self.s


def enter_all(one, names):
    for name in names:
        one.enter(name)
        one.poll()


def broken(call):
    """A guard as the program's: whatever is raised is kept."""
    try:
        call()
    except (ControlError, KeyError, RuntimeError) as error:
        return f"{type(error).__name__}"
    return ""


def test_a_plan_that_stops_unlocks_the_board_and_tries_until_it_is():
    asked, now, is_broken = [], Now(), []

    def request(pair):
        if is_broken:
            raise ControlError("the board does not answer")
        asked.append(pair)

    one = Switcher(Follow(PAIRS), None, request, now_s=now)
    enter_all(one, ["forward"])
    is_broken.append(True)
    enter_all(one, ["backward"])
    assert (one.why_stopped, asked) == ("the board does not answer", [HIGH])

    is_broken.clear()
    now.s += 2.0
    one.poll()
    one.poll()
    assert asked == [HIGH, UNLOCKED]


def test_a_mark_that_cannot_be_told_ends_the_plan_and_unlocks():
    class Broken(FakeMarks):
        def resolve(self, mark):
            if mark == 2:
                raise KeyError("stream")
            return 1

    asked = []
    one = Switcher(Follow(PAIRS), Broken(), asked.append, guard=broken)
    enter_all(one, ["forward", "backward"])

    assert (one.why_stopped, asked) == ("KeyError", [HIGH, UNLOCKED])


def test_a_mark_that_cannot_be_put_is_not_the_programs_trouble():
    class Broken(FakeMarks):
        def mark(self):
            raise RuntimeError("CUDA error: invalid device ordinal")

    asked = []
    one = Switcher(Follow(PAIRS), Broken(), asked.append, guard=broken)
    enter_all(one, ["forward"])

    assert (one.why_stopped, asked) == ("RuntimeError", [UNLOCKED])


def test_a_mark_that_the_gpu_never_reaches_is_given_up():
    class Lost(FakeMarks):
        def resolve(self, mark):
            return None if mark == 5 else 1

    asked, now, marks = [], Now(), Lost()
    one = Switcher(Follow(PAIRS, ("forward", "backward")), marks, asked.append, now_s=now)
    enter_all(one, ["forward", "backward"] * 3)
    assert asked == [LOW, HIGH, LOW]
    now.s += 59.0
    one.poll()
    assert one.given_up == 0
    now.s += 2.0
    one.poll()
    assert (asked[-1], one.given_up) == (UNLOCKED, 1)

    enter_all(one, ["forward", "backward"] * 3)
    assert asked[4:] == [LOW, HIGH, LOW]  # two iterations in their order were needed
    assert one.why_stopped == ""


def test_after_the_end_no_mark_is_put_and_nothing_waits():
    marks, asked = FakeMarks(), []
    one = switcher(marks, asked)
    one.enter("forward")
    one.stop()
    one.enter("forward")
    marks.reached = 9
    one.poll()

    assert (marks.put, one.entered, asked) == (1, 1, [])


def test_a_call_that_is_under_way_is_waited_for_and_none_follows():
    begun, go, asked = threading.Event(), threading.Event(), []

    def slow(pair):
        begun.set()
        go.wait(5)
        asked.append(pair)

    one = Switcher(Follow(PAIRS), None, slow)
    helper = threading.Thread(target=lambda: enter_all(one, ["forward", "backward"]))
    helper.start()
    begun.wait(5)
    threading.Timer(0.1, go.set).start()
    one.stop()
    assert asked == [HIGH]
    helper.join(5)
    assert asked == [HIGH]


def test_an_end_in_the_middle_of_a_look_asks_for_nothing_any_more():
    class Ending(FakeMarks):
        def resolve(self, mark):
            one.stop()
            return 1

    asked = []
    one = switcher(Ending(), asked)
    enter_all(one, ["forward"])

    assert asked == []


# Work that is no phase


def test_work_that_was_not_planned_runs_unlocked():
    asked = []
    one = Switcher(Follow(PAIRS, ("forward", "backward")), None, asked.append)
    for _ in range(2):
        one.begin("step")
        for name in ("step/forward", "step/backward"):
            one.begin(name)
            one.poll()
            one.leave(name, "step")
            one.poll()
        one.leave("step")
        one.poll()
    assert asked == [LOW, HIGH, LOW]
    one.begin("eval")
    one.poll()
    assert asked[-1] == UNLOCKED
    one.leave("eval")
    enter_all(one, ["step", "step/forward"])
    assert asked[-1] == HIGH


def test_what_runs_on_after_an_iteration_runs_unlocked():
    asked, now = [], Now()
    one = Switcher(Follow(PAIRS, ("forward", "backward")), None, asked.append, now_s=now)
    enter_all(one, ["forward", "backward", ""])
    now.s += 0.05
    one.poll()
    assert asked == [LOW]
    now.s += 0.1
    one.poll()
    assert asked == [LOW, UNLOCKED]
    enter_all(one, ["forward"])
    assert asked[-1] == HIGH


def test_a_later_change_of_order_unlocks_until_it_is_seen_again():
    asked = []
    one = Switcher(Follow(PAIRS, ("forward", "backward")), None, asked.append)
    enter_all(one, ["forward", "backward"] * 12 + ["forward", "forward", "forward"])
    assert asked[-2:] == [HIGH, UNLOCKED]
    enter_all(one, ["backward"])
    assert (asked[-1], one.order.lost) == (LOW, 1)


def test_a_span_inside_a_phase_is_a_part_of_it():
    asked = []
    one = Switcher(Follow(PAIRS, ("forward", "backward")), None, asked.append)
    for _ in range(2):
        for name in ("forward", "backward"):
            one.begin(name)
            one.begin(f"{name}/inner")
            one.leave(f"{name}/inner", name)
            one.leave(name)
            one.poll()

    assert (one.order.lost, one.entered) == (0, 4)
    assert UNLOCKED not in asked


def test_hooks_inside_a_span_make_it_one_around_the_phases():
    asked = []
    one = Switcher(Follow(PAIRS, ("forward", "backward")), None, asked.append)
    for _ in range(3):
        one.begin("step")
        one.poll()
        enter_all(one, ["forward", "backward", ""])
        one.leave("step")
        one.poll()

    assert asked == [LOW, HIGH, LOW, HIGH, LOW]


def test_later_phases_of_a_row_run_in_its_clocks():
    first, members = rows(("forward", "backward + optimiser"))
    assert (first, members) == (("forward", "backward"), {"optimiser"})
    assert Follow(PAIRS, first, members=members).place_of("step/optimiser") is Place.ON
    asked, now = [], Now()
    one = Switcher(Follow(PAIRS, first, members=members), None, asked.append, now_s=now)
    enter_all(one, ["forward", "backward", "", "optimiser"])
    now.s += 9.0
    one.poll()

    assert asked == [LOW]


def test_a_slow_request_does_not_hold_the_program_up():
    asked, threads = [], set()

    def slow(pair):
        threads.add(threading.get_ident())
        time.sleep(0.05)
        asked.append(pair)

    marks = FakeMarks(reached=10**9)
    one = Switcher(Follow(PAIRS), marks, slow)
    one.start()
    try:
        begin_s = time.perf_counter()
        for _ in range(200):
            one.enter("forward")
            one.enter("backward")
        took_s = time.perf_counter() - begin_s
        until_s = time.monotonic() + 5
        while not asked and time.monotonic() < until_s:
            time.sleep(0.01)
    finally:
        one.stop()

    assert took_s < 0.05  # one request alone takes longer
    assert asked
    assert threads == {ident for ident in threads if ident != threading.get_ident()}
    assert marks.threads == {threading.get_ident()}


# PyTorch


def test_the_speed_of_a_small_load_is_pieces_a_second():
    class Torch:
        """A GPU on which every piece takes half a millisecond."""

        uint8 = "uint8"
        pieces: ClassVar[list] = []

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self): ...
            def synchronize(self): ...
            def elapsed_time(self, other):
                return 0.5

        class cuda:
            @staticmethod
            def device(number):
                import contextlib

                return contextlib.nullcontext()

            @staticmethod
            def _sleep(cycles):
                Torch.pieces.append(cycles)

        @staticmethod
        def zeros(count, dtype, device):
            return Torch

        @staticmethod
        def empty_like(one):
            return Torch

        @staticmethod
        def copy_(one):
            Torch.pieces.append("copy")

    Torch.cuda.Event = Torch.Event
    speed = TorchSpeed(Torch, 0)
    Torch.pieces.clear()

    assert speed.read(False) == 2000
    assert speed.read(True) == 2000
    assert Torch.pieces == [200_000, "copy"]
