"""A plan held on a run's boards: refused where it belongs elsewhere, followed where it may be, taken back, and told."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import msgspec
import pytest
from pytest import approx

from carbonreport.control.applied import TurnedByRank
from carbonreport.control.controller import ControlError
from carbonreport.control.controllers.nvml import NvmlController
from carbonreport.control.holder import Holder, started_ticks
from carbonreport.control.leases import Lease, Leases, boot_id
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.table import ClockPair, PlanError
from carbonreport.plan_file import BoundTo, PlanFile, Ratio, UsedLatency, WithoutSwitches, read_plan, segments_of, write_plan
from carbonreport.store import load
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.plan_apply import PlanKnobs
from carbonreport.workflows.plan_chosen import chosen
from carbonreport.workflows.plan_clocks import Achieved, ClocksNow
from carbonreport.workflows.plan_owners import refuse_other_owners

ONE = Ratio(1.0, 1.0, 1.0)
NAMES = ["forward", "backward"]


def plan(kind="pass", *, model="NVIDIA H200", is_measured=True, **more) -> PlanFile:
    """A pair a phase, or one pair."""
    pairs = {"pass": [(1410, None), (None, 2201)], "static": [(1410, 2201)], "none": [(None, None)], "cap": []}[kind]
    is_switching = len(pairs) > 1
    found = PlanFile(
        board=BoundTo(model=model),
        sequence_hash=sequence_hash(NAMES),
        invocations=2,
        slowdown=0.01,
        latency=UsedLatency(1e-3, 1e-3, 1e-3, "measured on GPU-1", 100.0, "late", is_measured=is_measured),
        kind=kind,
        pairs=pairs,
        segments=[(0, 0), (1, 1)] if is_switching else [(0, 0)] if pairs else [],
        cap_watts=300.0 if kind == "cap" else None,
        time_ratio=ONE,
        energy_ratio=ONE,
        switches=2 if is_switching else 0,
        phases=dict(zip(NAMES, range(2), strict=True)) if is_switching else {},
        sequence=NAMES if is_switching else [],
        without_switches=WithoutSwitches("static", 1500, None, None, 1.0, 0.9),
    )
    return msgspec.structs.replace(found, **more)


# Which way is taken


def test_a_plan_of_phases_is_followed_only_on_a_measured_latency():
    followed, assumed = chosen(plan()), chosen(plan(is_measured=False))

    assert followed.follow.pairs == {"forward": ClockPair(1410), "backward": ClockPair(None, 2201)}
    assert followed.follow.rest == ClockPair(1500)
    assert followed.knobs == Knobs(sm_clock_mhz=1500, mem_clock_mhz=2201)
    assert (assumed.follow, assumed.knobs) == (None, Knobs(sm_clock_mhz=1500))
    (note,) = assumed.notes
    assert note.slug == "plan-not-followed"
    assert "latency of 1 ms was not measured" in note.text and "core clock of at most 1500 MHz" in note.text


def test_where_phases_cannot_be_seen_the_best_way_without_changes_is_held():
    assert chosen(plan(), "no GPU").knobs == Knobs(sm_clock_mhz=1500)
    assert chosen(plan(without_switches=None), "no GPU").knobs.is_nothing
    assert chosen(plan(phases={})).notes[0].slug == "plan-not-followed"


def test_one_pair_a_cap_and_nothing_are_held_as_they_are():
    assert chosen(plan("static")).knobs == Knobs(sm_clock_mhz=1410, mem_clock_mhz=2201)
    assert chosen(plan("cap")).knobs == Knobs(power_cap_watts=300)
    assert chosen(plan("none")).knobs.is_nothing
    assert chosen(plan("none")).notes[0].slug == "plan-sets-nothing"


def test_a_name_with_two_pairs_cannot_be_followed_by_name():
    names = ["norm", "attention", "norm", "mlp"]
    clocks = [ClockPair(1410), ClockPair(1800), ClockPair(990), ClockPair(1800)]
    pairs, segments = segments_of(clocks)
    made = plan(
        pairs=pairs, segments=segments, invocations=4, switches=4, phases={"attention": 1, "mlp": 1}, sequence=names, sequence_hash="x"
    )
    taken = chosen(made)

    assert (taken.follow, taken.knobs) == (None, Knobs(sm_clock_mhz=1500))
    assert "norm has other clocks in one place than in another" in taken.notes[0].text


def test_kernels_too_many_to_be_phases_are_not_followed():
    taken = chosen(msgspec.structs.replace(plan(), kind="kernel", invocations=1056, sequence=[], phases={"gemm": 0, "norm": 1}))

    assert (taken.follow, taken.knobs) == (None, Knobs(sm_clock_mhz=1500))
    assert "it is of 1,056 kernels, too many to be phases of a program" in taken.notes[0].text


def test_a_latency_that_somebody_typed_is_not_a_measured_one():
    typed = UsedLatency(1e-5, 1e-5, 1e-5, "given", 100.0, "late", is_measured=True)

    assert chosen(plan(latency=typed)).notes[0].slug == "plan-not-followed"


def test_rows_of_several_phases_begin_with_their_first():
    names = ["forward", "backward + optimiser"]
    follow = chosen(plan(sequence=names, phases=dict(zip(names, range(2), strict=True)))).follow

    assert follow.pairs == {"forward": ClockPair(1410), "backward": ClockPair(None, 2201)}
    assert (follow.sequence, follow.members) == (("forward", "backward"), {"optimiser"})


# Held on a board in virtual time


def knobs_of(board, made, **more):
    environ = {**os.environ, "CARBONREPORT_CONTROL_DIR": str(board.folder / "control")}
    return PlanKnobs(made, environ, make_knobs=board.knobs, find_boards=lambda environ: [board.now], **more)


def locks(board):
    truth = board.driver.board(0).peek()
    return truth.core_lock_high_mhz, truth.memory_lock_high_mhz


def enter(knobs, names):
    for name in names:
        knobs.switcher.enter(name)
        knobs.switcher.poll()


def test_phases_turn_clocks_and_the_end_unlocks_them(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    (held,), notes = knobs.start()
    assert (held.plan, notes) == ("a clock plan of 2 changes a step", ())
    seen = []
    for name in NAMES * 3:
        knobs.switcher.enter(f"step/{name}")
        knobs.switcher.poll()
        seen.append(locks(virtual_board))
    (after,), notes = knobs.stop()

    assert seen == [(1500, 0), (0, 2201)] + [(1410, 0), (0, 2201)] * 2
    assert (after.switches, notes) == (5, ())
    assert locks(virtual_board) == (0, 0)


def test_the_journal_knows_every_clock_before_it_is_turned(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    (journal,) = (virtual_board.folder / "control").glob("*/*.json")
    assert '"sm_clock_mhz":1500,"mem_clock_mhz":2201' in journal.read_text()
    knobs.stop()
    assert not journal.exists()

    one = virtual_board.knobs(Knobs(sm_clock_mhz=1410))
    one.start()
    with pytest.raises(ControlError, match="would not be taken back after a crash"):
        one.turn(Knobs(mem_clock_mhz=2201))
    one.stop()
    with pytest.raises(ControlError, match="between start and stop"):
        one.turn(Knobs(sm_clock_mhz=1200))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"model": "NVIDIA A100"}, "was made for NVIDIA A100"),
        ({"board": BoundTo(uuid="GPU-other")}, "was made for the board GPU-other"),
        ({"board": BoundTo(model="NVIDIA H200", driver="600")}, "was made with driver 600"),
        ({"board": BoundTo()}, "names no board"),
    ],
)
def test_a_plan_of_another_board_is_refused_with_the_reason(virtual_board, more, words):
    knobs = knobs_of(virtual_board, plan(**more))
    with pytest.raises(ControlError, match=f"{words}.*; nothing was set on any GPU"):
        knobs.start()
    assert virtual_board.driver.setter_calls() == []
    assert knobs.stop() == ((), ())


def test_phases_in_another_order_turn_nothing_and_that_is_said(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    for name in ("backward", "forward"):
        knobs.switcher.enter(name)
        knobs.switcher.poll()
    _, notes = knobs.stop()

    assert [note.slug for note in notes] == ["plan-stopped"]
    assert "phase 1 of the first iteration is backward, planned was forward" in notes[0].text


def test_an_odd_first_iteration_puts_the_plan_off_and_that_is_said(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    enter(knobs, ["forward"] * 3)
    assert locks(virtual_board) == (1500, 0)  # the best way without changes, until the order is seen
    enter(knobs, ["backward", *NAMES])
    assert locks(virtual_board) == (0, 2201)
    _, (note,) = knobs.stop()

    assert note.slug == "plan-paused"
    assert "3 of 6 phases ran outside the planned order, without its clocks: it began in another order" in note.text


def test_a_later_change_of_order_unlocks_and_is_counted(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    enter(knobs, [*NAMES * 12, "forward", "forward"])
    assert locks(virtual_board) == (0, 0)
    enter(knobs, ["backward"])
    assert locks(virtual_board) == (0, 2201)

    assert "2 of 27 phases ran outside the planned order, without its clocks: the order was left 1 times" in knobs.stop()[1][0].text


def test_work_that_was_not_planned_runs_unlocked(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    enter(knobs, [*NAMES * 2, "eval"])
    assert locks(virtual_board) == (0, 0)
    knobs.stop()


@pytest.mark.parametrize("fails", ["driver", "mark"])
def test_a_plan_that_stops_leaves_no_lock_on(virtual_board, fails):
    class Marks:
        reached = 0

        def mark(self):
            return object()

        def resolve(self, mark):
            Marks.reached += 1
            if fails == "mark" and Marks.reached > 3:
                raise KeyError("a stream")
            return 1

    knobs = knobs_of(virtual_board, plan(pairs=[(990, None), (1410, None)]), is_threaded=False, marks=Marks())
    knobs.start()
    enter(knobs, ["forward", "backward", "forward"])
    assert locks(virtual_board) == (990, 0)
    if fails == "driver":
        virtual_board.driver.fail("nvmlDeviceSetGpuLockedClocks", "Unknown")
    enter(knobs, ["backward"])
    virtual_board.driver.fail("nvmlDeviceSetGpuLockedClocks", None)
    assert locks(virtual_board) == (0, 0)
    enter(knobs, NAMES)
    assert locks(virtual_board) == (0, 0)

    (note,) = knobs.stop()[1]
    assert (note.slug, "and clocks were unlocked then" in note.text) == ("plan-stopped", True)


def test_the_helper_thread_outlives_what_is_raised_in_it(virtual_board):
    class Marks:
        def mark(self):
            return object()

        def resolve(self, mark):
            raise KeyError("a stream")

    knobs = knobs_of(virtual_board, plan(), marks=Marks())
    knobs.start()
    knobs.switcher.enter("forward")
    until_s = time.monotonic() + 5
    while not knobs.switcher.why_stopped and time.monotonic() < until_s:
        time.sleep(0.01)
    (note,) = knobs.stop()[1]

    assert (note.slug, "KeyError" in note.text) == ("plan-stopped", True)


def test_a_mark_that_cannot_be_put_does_not_reach_the_program(virtual_board):
    class Marks:
        def mark(self):
            raise RuntimeError("CUDA error: invalid device ordinal")

    knobs = knobs_of(virtual_board, plan(), marks=Marks(), is_threaded=False)
    knobs.start()
    knobs.switcher.enter("forward")
    knobs.switcher.poll()
    assert locks(virtual_board) == (0, 0)
    (note,) = knobs.stop()[1]

    assert (note.slug, "invalid device ordinal" in note.text) == ("plan-stopped", True)


# Turning clocks


def test_what_a_failed_call_left_is_not_believed(virtual_board):
    one = virtual_board.knobs(Knobs(sm_clock_mhz=1410))
    one.start()
    virtual_board.driver.fail("nvmlDeviceSetGpuLockedClocks", "Unknown")
    with pytest.raises(ControlError):
        one.turn(Knobs(sm_clock_mhz=1200))
    virtual_board.driver.fail("nvmlDeviceSetGpuLockedClocks", None)
    assert locks(virtual_board) == (1410, 0)
    one.turn(Knobs(sm_clock_mhz=1200))
    assert locks(virtual_board) == (1200, 0)
    one.stop()


def test_clocks_above_those_in_the_journal_are_refused(virtual_board):
    one = virtual_board.knobs(Knobs(sm_clock_mhz=1410))
    one.start()
    with pytest.raises(ControlError, match="would not be taken back after a crash"):
        one.turn(Knobs(sm_clock_mhz=1900))
    assert locks(virtual_board) == (1410, 0)
    one.stop()


def test_a_call_that_outlasts_the_end_is_taken_back_when_it_returns(virtual_board):
    begun, go = threading.Event(), threading.Event()

    class Slow(NvmlController):
        def set(self, device, knobs):
            if threading.current_thread() is not threading.main_thread():
                begun.set()
                go.wait(10)
            super().set(device, knobs)

    guards = []

    @contextmanager
    def guarded(is_all_back, **settings):
        yield
        guards.append(is_all_back())

    one = virtual_board.knobs(
        Knobs(sm_clock_mhz=1410),
        open_controller=lambda environ: nullcontext(Slow(virtual_board.nvml)),
        guarded=guarded,
        longest_call_s=0.1,
    )
    one.start()
    helper = threading.Thread(target=one.turn, args=(Knobs(sm_clock_mhz=990),))
    helper.start()
    assert begun.wait(5)
    (held,), (note,) = one.stop()
    assert (held.requested, note.slug, guards) == (Knobs(sm_clock_mhz=1410), "knobs-not-restored", [])  # the guardian is still armed

    go.set()
    helper.join(5)
    assert (locks(virtual_board), guards) == ((0, 0), [True])
    assert not list((virtual_board.folder / "control").glob("*/*.json"))
    with pytest.raises(ControlError, match="between start and stop"):
        one.turn(Knobs(sm_clock_mhz=990))


# One owner at a time


def test_clocks_that_are_turned_have_one_owner_and_one_setting_may_be_shared(virtual_board):
    def one(*, is_turned, job=""):
        environ = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": job} if job else {}
        return virtual_board.knobs(Knobs(sm_clock_mhz=1410), environ=environ, is_turned=is_turned)

    turning = one(is_turned=True, job="a")
    turning.start()
    for other, error in (
        (one(is_turned=False), ControlError),
        (one(is_turned=True), ControlError),
        (one(is_turned=True, job="b"), ControlError),
        (one(is_turned=True, job="a"), TurnedByRank),
    ):
        with pytest.raises(error) as raised:
            other.start()
        assert type(raised.value) is error
    turning.stop()

    shared, again = one(is_turned=False), one(is_turned=False)
    shared.start()
    again.start()
    with pytest.raises(ControlError, match="one owner at a time"):
        one(is_turned=True).start()
    shared.stop()
    assert locks(virtual_board) == (1410, 0)
    again.stop()
    assert locks(virtual_board) == (0, 0)


def test_phases_that_never_come_are_said(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    assert "no whole iteration of the planned phases (forward, backward) was seen" in knobs.stop()[1][0].text


def test_phases_shorter_than_a_request_are_said(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    for _ in range(4):
        for name in NAMES:
            knobs.switcher.enter(name)
        knobs.switcher.poll()
    _, (note,) = knobs.stop()

    assert (note.slug, "4 of 8 phases were over" in note.text) == ("plan-late", True)


def test_what_a_driver_throws_in_the_middle_ends_the_plan_and_not_the_program(virtual_board):
    knobs = knobs_of(virtual_board, plan(), is_threaded=False)
    knobs.start()
    virtual_board.driver.fail("nvmlDeviceGetSupportedGraphicsClocks", "Unknown")
    for name in NAMES * 2:
        knobs.switcher.enter(name)
        knobs.switcher.poll()
    virtual_board.driver.fail("nvmlDeviceGetSupportedGraphicsClocks", None)
    _, (note,) = knobs.stop()

    assert (note.slug, "following the plan failed" in note.text) == ("plan-stopped", True)
    assert locks(virtual_board) == (0, 0)


def test_clocks_above_their_lock_are_said(virtual_board):
    seen = Achieved()
    seen.add(virtual_board.uuid, ClocksNow(1980, 2201))
    seen.add(virtual_board.uuid, ClocksNow(345, 2201, is_idle=True))

    knobs = PlanKnobs(
        plan("static"),
        {"CARBONREPORT_CONTROL_DIR": str(virtual_board.folder / "control")},
        make_knobs=lambda asked: virtual_board.knobs(asked, seen),
        find_boards=lambda environ: [virtual_board.now],
    )
    knobs.start()
    (held,), notes = knobs.stop()

    assert (held.sm_clock_mhz, held.mem_clock_mhz) == (1980, 2201)
    assert [note.slug for note in notes] == ["clocks-not-held"]


@pytest.mark.parametrize("names", [NAMES * 4, NAMES[::-1]])
def test_clocks_that_a_plan_unlocked_are_not_held_against_the_board(virtual_board, names):
    seen = Achieved()
    for _ in range(3):
        seen.add(virtual_board.uuid, ClocksNow(1980, 3201))
    knobs = PlanKnobs(
        plan(),
        {"CARBONREPORT_CONTROL_DIR": str(virtual_board.folder / "control")},
        make_knobs=lambda asked: virtual_board.knobs(asked, seen),
        find_boards=lambda environ: [virtual_board.now],
        is_threaded=False,
    )
    knobs.start()
    enter(knobs, names)

    assert "clocks-not-held" not in [note.slug for note in knobs.stop()[1]]


# Other owners


@pytest.mark.parametrize("name", ["SLURM_GPU_FREQ", "SLURM_JOB_GPU_FREQ", "SLURM_TRES_GPU_FREQ"])
def test_clocks_that_slurm_sets_are_left_to_it(name, tmp_path):
    with pytest.raises(ControlError, match=f"Slurm sets the clocks of this job \\({name}=medium\\)"):
        refuse_other_owners(["GPU-1"], {name: "medium", "CARBONREPORT_CONTROL_DIR": str(tmp_path)})
    refuse_other_owners(["GPU-1"], {name: " ", "SLURM_JOB_ID": "1", "CARBONREPORT_CONTROL_DIR": str(tmp_path)})


def test_a_board_that_another_run_holds_is_left_to_it(tmp_path):
    environ = {"CARBONREPORT_CONTROL_DIR": str(tmp_path)}
    parent = Holder(os.getppid(), started_ticks(os.getppid()))
    lease = Lease(1, "GPU-00000", boot_id(), os.getuid(), 700.0, Knobs(power_cap_watts=300), (parent,))
    refuse_other_owners(["GPU-00000"], environ)
    with Leases(tmp_path / str(os.getuid()), os.getuid()).turn() as turn:
        turn.write(lease)

    with pytest.raises(ControlError, match=f"held by another run \\(process {parent.pid}\\) with a power cap of 300 W"):
        refuse_other_owners(["GPU-00000"], environ)
    refuse_other_owners(["GPU-11111"], environ)


# The command line, record and statement, in real time


def carbonreport(driver, folder, *arguments, may_set=True, **more):
    environ = driver.environ(VIRTUAL_NVML_ROOT=str(int(may_set)), CARBONREPORT_CONTROL_DIR=str(folder / "control"), **more)
    command = [sys.executable, "-m", "carbonreport", *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def driver(make_virtual_driver):
    driver = make_virtual_driver("h200", is_virtual=False)
    driver.board(0).utilisation(0.6, 0.3)
    return driver


def record_of(folder):
    (path,) = (folder / "runs").glob("*.jsonl")
    return path, load(path)


def test_a_command_under_a_plan_is_told_in_record_and_statement(driver, tmp_path):
    write_plan(plan("static"), tmp_path / "plan.json")
    done = carbonreport(driver, tmp_path, "run", "--plan", "plan.json", "--zone", "DE", "--pue", "1.2", "--", "sleep", "2.5")
    assert done.returncode == 0, done.stderr
    path, run = record_of(tmp_path)
    (held,) = run.knobs

    assert held.requested == Knobs(sm_clock_mhz=1410, mem_clock_mhz=2201)
    assert (held.sm_clock_mhz, held.mem_clock_mhz) == (1410, 2201)
    assert (driver.board(0).peek().core_lock_high_mhz, driver.board(0).peek().memory_lock_high_mhz) == (0, 0)
    carbonreport(driver, tmp_path, "statement", str(path), "-o", "x.md")
    words = "a core clock of at most 1410 MHz and a memory clock of at most 2201 MHz (seen while busy, in the median: cores at 1410 MHz, memory at 2201 MHz)"
    assert f"ran under {words}; their clocks were unlocked at the end" in (tmp_path / "x.md").read_text()


def test_a_command_cannot_be_looked_into_so_that_one_setting_is_held(driver, tmp_path):
    write_plan(plan(), tmp_path / "plan.json")
    done = carbonreport(driver, tmp_path, "run", "--plan", "plan.json", "--zone", "DE", "--", "true")
    _, run = record_of(tmp_path)

    assert done.returncode == 0
    assert run.knobs[0].requested == Knobs(sm_clock_mhz=1500)
    assert any(note.slug == "plan-not-followed" and "trace(plan=" in note.text for note in run.notes)


@pytest.mark.parametrize(
    ("made", "arguments", "more", "words"),
    [
        (plan("static", model="NVIDIA A100"), [], {}, "was made for NVIDIA A100"),
        (plan("static", pairs=[(3000, None)]), [], {}, "takes core clocks of 345 to 1980 MHz, not 3000 MHz"),
        (plan("static"), [], {"SLURM_JOB_GPU_FREQ": "low"}, "Slurm sets the clocks"),
        (plan("static"), [], {"may_set": False}, "may not set the core clock"),
        (plan("static"), ["--power-cap", "300"], {}, "give one"),
        (None, [], {}, "cannot read plan.json"),
    ],
)
def test_a_refused_plan_does_not_start_the_command(driver, tmp_path, made, arguments, more, words):
    if made is not None:
        write_plan(made, tmp_path / "plan.json")
    done = carbonreport(driver, tmp_path, "run", "--plan", "plan.json", *arguments, "--", "touch", "started", **more)

    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert not (tmp_path / "started").exists()
    assert [call for call in driver.setter_calls() if call.code == 0] == []
    assert not list((tmp_path / "control").glob("*/*.json"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"without_switches": {"sm_mhz": -5}}, "without_switches.sm_mhz is -5; it must be above 0"),
        ({"without_switches": {"kind": "cap", "cap_watts": -5}}, "without_switches.cap_watts is -5"),
        ({"without_switches": {"kind": "cap", "cap_watts": None}}, "without_switches.cap_watts is missing"),
        ({"cap_watts": -5}, "cap_watts is -5"),
        ({"switches": -3}, "switches is -3"),
        ({"version": 2}, "a plan of version 2"),
        ({"version": None}, "a plan of version None"),
    ],
)
def test_what_cannot_be_in_a_plan_is_one_line(tmp_path, change, words):
    made = msgspec.to_builtins(plan())
    inner = change.get("without_switches")
    (tmp_path / "plan.json").write_text(
        json.dumps(made | change | ({"without_switches": made["without_switches"] | inner} if inner else {}))
    )

    with pytest.raises(PlanError, match=words):
        read_plan(tmp_path / "plan.json")


def test_a_plan_without_a_version_is_called_so(tmp_path):
    made = msgspec.to_builtins(plan())
    del made["version"]
    (tmp_path / "plan.json").write_text(json.dumps(made))

    with pytest.raises(PlanError, match=r"plan.json is a plan without a version; this carbonreport reads version 1"):
        read_plan(tmp_path / "plan.json")


def test_a_dry_run_of_a_plan_sets_and_starts_nothing(driver, tmp_path):
    write_plan(plan("static"), tmp_path / "plan.json")
    done = carbonreport(driver, tmp_path, "run", "--plan", "plan.json", "--dry-run", "--", "touch", "started")

    assert "would set a core clock of at most 1410 MHz and a memory clock of at most 2201 MHz" in done.stdout
    assert "would unlock its clocks" in done.stdout
    assert driver.setter_calls() == []
    assert not (tmp_path / "started").exists()


def test_a_dry_run_of_a_plan_says_what_would_refuse_it(driver, tmp_path):
    write_plan(plan("static", model="NVIDIA A100"), tmp_path / "plan.json")
    done = carbonreport(driver, tmp_path, "run", "--plan", "plan.json", "--dry-run", "--", "touch", "started")

    assert (done.returncode, done.stdout) == (1, "")
    assert "error: would be refused: the plan was made for NVIDIA A100" in done.stderr
    assert not (tmp_path / "started").exists()


def test_a_program_without_a_gpu_framework_holds_one_setting(driver, tmp_path):
    write_plan(plan(), tmp_path / "plan.json")
    code = "from carbonreport import trace\nwith trace('x', plan='plan.json', zone='DE') as run:\n    with run.span('forward'): pass\nprint(run.record.notes)"
    environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(tmp_path / "control"))
    done = subprocess.run([sys.executable, "-c", code], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "plan-not-followed" in done.stdout


RANK = """
import os, sys
from pathlib import Path
from carbonreport import trace
from carbonreport.plan_file import read_plan
from carbonreport.workflows.plan_apply import PlanKnobs

plan = read_plan(Path("plan.json"))
if plan.switches:
    knobs = PlanKnobs(plan, os.environ)
    _, notes = knobs.start()
    print("entered", *(note.slug for note in notes), flush=True)
    sys.stdin.readline()
    knobs.stop()
else:
    with trace("x", plan="plan.json", zone="DE"):
        print("entered", flush=True)
        sys.stdin.readline()
"""


def ranks_of(driver, folder, jobs):
    """Processes that have begun, one a job's rank; what each said first."""
    begun = []
    for rank, job in enumerate(jobs):
        more = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": job, "MASTER_PORT": "29500"}
        environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(folder / "control"), **more)
        pipe = subprocess.PIPE
        begun.append(
            subprocess.Popen([sys.executable, "-c", RANK], env=environ, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        )
    return begun, [one.stdout.readline().strip() for one in begun]


def ended(begun):
    return [one.communicate("\n", timeout=30) for one in begun]


def test_ranks_of_one_job_share_one_pair(driver, tmp_path):
    write_plan(plan("static"), tmp_path / "plan.json")
    begun, said = ranks_of(driver, tmp_path, ["a", "a"])
    assert said == ["entered", "entered"]
    assert driver.board(0).peek().core_lock_high_mhz == 1410
    begun[0].communicate("\n", timeout=30)
    assert driver.board(0).peek().core_lock_high_mhz == 1410
    ended(begun[1:])

    assert driver.board(0).peek().core_lock_high_mhz == 0


def test_of_the_ranks_of_one_job_one_turns_clocks_and_the_others_go_on(driver, tmp_path):
    write_plan(plan(), tmp_path / "plan.json")
    begun, said = ranks_of(driver, tmp_path, ["a", "a"])
    assert sorted(said) == ["entered", "entered plan-by-another-rank"]
    assert driver.board(0).peek().core_lock_high_mhz == 1500
    ended(begun)

    assert [one.returncode for one in begun] == [0, 0]
    assert driver.board(0).peek().core_lock_high_mhz == 0


def test_of_two_jobs_that_begin_at_once_one_has_the_board(driver, tmp_path):
    write_plan(plan(), tmp_path / "plan.json")
    for _ in range(3):
        begun, said = ranks_of(driver, tmp_path, ["a", "b"])
        errors = "".join(err for _, err in ended(begun))

        assert sorted(said) == ["", "entered"]
        assert "clocks that are turned have one owner at a time" in errors
        assert sorted(one.returncode for one in begun) == [0, 1]
    assert driver.board(0).peek().core_lock_high_mhz == 0


FOLLOWED = """
import os, sys, time
from pathlib import Path
from carbonreport.plan_file import read_plan
from carbonreport.workflows.begin import plan_run
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.plan_apply import PlanKnobs
from carbonreport.workflows.plan_run import PlannedRun

knobs = PlanKnobs(read_plan(Path("plan.json")), os.environ)
place = PlaceOptions(zone="DE", pue=None, site=None)
run_plan = plan_run("x", kind="training", folder=Path("runs"), options=place, interval_s=1.0, meters=None, environ=os.environ, clock_plan=knobs)
with PlannedRun(run_plan, knobs) as run:
    for _ in range(10):
        with run.span("step"):
            for name in ("forward", "backward"):
                with run.span(name):
                    time.sleep(0.12)
"""


def test_a_program_whose_phases_are_followed_turns_clocks_from_a_thread_of_its_own(driver, tmp_path):
    write_plan(plan(), tmp_path / "plan.json")
    environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(tmp_path / "control"))
    done = subprocess.run([sys.executable, "-c", FOLLOWED], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path, run = record_of(tmp_path)

    assert run.knobs[0].switches == approx(19, abs=2)
    assert [note.slug for note in run.notes if note.slug.startswith("plan")] == []
    calls = [call.function for call in driver.setter_calls() if call.at_s > 0]
    assert calls.count("nvmlDeviceSetMemoryLockedClocks") >= 8
    truth = driver.board(0).peek()
    assert (truth.core_lock_high_mhz, truth.memory_lock_high_mhz) == (0, 0)
    carbonreport(driver, tmp_path, "statement", str(path), "-o", "x.md")
    assert "ran under a clock plan of 2 changes a step (other clocks asked for" in (tmp_path / "x.md").read_text()


def test_a_record_keeps_what_was_seen_of_clocks(tmp_path):
    held = KnobsHeld(
        "GPU", Knobs(sm_clock_mhz=1410), 700.0, 700.0, plan="one pair of clocks", sm_clock_mhz=1405.0, mem_clock_mhz=3201.0, switches=7
    )
    path = save(replace(make_record({"GPU": 500.0}, 1), knobs=(held,)), tmp_path / "x.jsonl")

    assert load(path).knobs == (held,)
