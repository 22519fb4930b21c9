"""Profile, solve, apply and validate on a virtual board whose physics is known: what was planned is what is seen."""

import functools
import math
import os
import subprocess
import sys
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from pytest import approx

from carbonreport.errors import CarbonreportError
from carbonreport.plan.identity import sequence_hash
from carbonreport.plan.table import UNLOCKED, ClockPair, PlanError
from carbonreport.plan_file import BoardNow, BoundTo, PlanFile, Ratio, UsedLatency, Validated, read_plan, write_plan
from carbonreport.plan_files.table_csv import read_table
from carbonreport.workflows.plan import make_plan
from carbonreport.workflows.plan_ask import PlanAsk
from carbonreport.workflows.plan_groups import groups_of
from carbonreport.workflows.plan_journal import Identity, opened_stages
from carbonreport.workflows.plan_keep import keep_plan
from carbonreport.workflows.plan_pairs import coarse_grid, finer, pairs_of, written
from carbonreport.workflows.plan_profile import Profile, ProfilePlan
from carbonreport.workflows.plan_profile_order import best_pairs, stage_order
from carbonreport.workflows.plan_profile_table import write_table
from carbonreport.workflows.plan_stage import Phase, Stage
from carbonreport.workflows.plan_step import arguments_of, source_of, step_of
from carbonreport.workflows.plan_ticks import TickWatch, per_step
from carbonreport.workflows.plan_validate import Validation, checked, is_order_known, paired_ratio, verdict, with_validation

PAIRS = tuple(ClockPair(sm, mem) for mem in (None, 2201) for sm in (None, 1740, 1500, 1290, 1080) if (sm, mem) != (None, None))


def identity(**more):
    return Identity(
        **{
            "step": "made:up",
            "sequence_hash": "x",
            "devices": ("GPU-1",),
            "driver": "580",
            "is_dry": False,
            "seconds": 3.0,
            "settle_s": 1.0,
        }
        | more
    )


def profiled(board, bench, plan, said=None):
    with opened_stages(board.folder / "stages.jsonl", identity()) as journal, board.held(plan.pairs) as turn:
        return Profile(plan, bench, turn, journal, [].append if said is None else said.append).run()


@pytest.mark.parametrize("effect", ["stalls", "late"])
@pytest.mark.parametrize("latency_s", [0.0001, 0.001, 0.020])
def test_the_saving_that_was_planned_is_the_saving_that_is_seen(virtual_board, tmp_path, latency_s, effect):
    board = virtual_board.driver.board(0).set(clock_latency_s=latency_s, switch_stalls=effect == "stalls", stall_watts=200)
    bench = virtual_board.bench()
    found = profiled(virtual_board, bench, ProfilePlan(PAIRS, 2, 3.0, 1.0))
    write_table(found, tmp_path / "table.csv", {"board": "made up"})
    ask = PlanAsk(
        tmp_path / "table.csv", latency_s=latency_s, stall_watts=200.0, effect=effect, gpu=virtual_board.uuid, driver="580.159.04"
    )
    answer = make_plan(ask, 0.02)
    keep_plan(answer, ask, tmp_path / "plan.json")
    plan = on_measured(read_plan(tmp_path / "plan.json"))

    with virtual_board.held(PAIRS) as turn:
        again = virtual_board.bench(seed=7)
        validation = Validation(plan, virtual_board.now, again, turn, lambda follow: virtual_board.followed(follow, turn), [].append)
        seen = validation.run(8, 3.0, 1.0)
    assert plan.energy_ratio.value < 0.97
    assert seen.energy_ratio.low <= plan.energy_ratio.high and plan.energy_ratio.low <= seen.energy_ratio.high
    assert seen.energy_ratio.value == approx(plan.energy_ratio.value, abs=0.0005)
    assert seen.time_ratio.value <= 1.02 + 0.001
    assert seen.requests == approx(plan.switches, abs=0.3)
    assert (board.peek().core_lock_high_mhz, board.peek().memory_lock_high_mhz) == (0, 0)
    write_plan(with_validation(plan, seen), tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json").validated == seen


def on_measured(plan):
    """The plan as it is made with a file of `plan latency`."""
    latency = msgspec.structs.replace(plan.latency, source="measured on a virtual board", is_measured=True)
    return msgspec.structs.replace(plan, latency=latency)


def solved(board, folder, latency_s, **more):
    board.driver.board(0).set(clock_latency_s=latency_s)
    found = profiled(board, board.bench(), ProfilePlan(PAIRS, 2, 2.0, 0.5))
    write_table(found, folder / "table.csv", {})
    ask = PlanAsk(folder / "table.csv", latency_s=latency_s, effect="late", gpu=board.uuid, driver="580.159.04", **more)
    keep_plan(make_plan(ask, 0.02), ask, folder / "plan.json")
    return on_measured(read_plan(folder / "plan.json"))


def test_the_table_says_order_passes_repeats_and_the_whole_step(virtual_board, tmp_path):
    found = profiled(virtual_board, virtual_board.bench(), ProfilePlan(PAIRS[:2], 2, 2.0, 0.5))
    write_table(found, tmp_path / "table.csv", {"board": "made up"})
    read = read_table(tmp_path / "table.csv")

    assert (tmp_path / "table.csv").read_text().startswith("# board: made up\nkernel,pass,position,count,sm_mhz,mem_mhz,seconds,joules")
    assert [read.table.names[row] for row in read.table.sequence] == [name for name, *_ in virtual_board.bench().phases]
    assert read.table.passes == ("embedding", "forward", "forward", "loss", "backward", "backward", "optimiser")
    assert read.table.whole.baseline_joules == approx(read.table.baseline_joules, rel=0.01)
    assert not np.isnan(read.table.seconds_sd).any()
    assert [len(found.of(pair)) for pair in found.pairs] == [3, 2, 2]


def test_clocks_are_what_was_asked_for_in_each_stage_and_unlocked_at_the_end(virtual_board):
    bench = virtual_board.bench()
    found = profiled(virtual_board, bench, ProfilePlan(PAIRS, 1, 1.0, 0.5))

    for (sm_mhz, mem_mhz), (pair, _) in zip(bench.stages, found.stages, strict=True):
        assert (sm_mhz or None, mem_mhz or None) == (pair.sm_mhz, pair.mem_mhz)
    truth = virtual_board.driver.board(0).peek()
    assert (truth.core_lock_high_mhz, truth.memory_lock_high_mhz) == (0, 0)
    assert not list((virtual_board.folder / "control").glob("*/*.json"))


def test_a_profile_that_was_stopped_goes_on_where_it_was(virtual_board):
    plan, said = ProfilePlan(PAIRS[:3], 2, 1.0, 0.2), []
    with pytest.raises(CarbonreportError, match="the power failed; finished stages are kept"):
        profiled(virtual_board, virtual_board.bench(fails_at=5), plan)
    assert virtual_board.driver.board(0).peek().core_lock_high_mhz == 0
    journal = virtual_board.folder / "stages.jsonl"
    journal.write_text(journal.read_text() + '{"key":"coarse:to')

    bench = virtual_board.bench()
    found = profiled(virtual_board, bench, plan, said)

    assert len(found.stages) == 9
    assert len(bench.stages) == 4
    assert said[0].startswith("5 of 9 stages from the journal, the last of 20") and "UTC" in said[0]
    assert "3 more after it, about" in said[1]
    for other in ({"seconds": 9.0}, {"source": "f00"}, {"arguments": "f00"}, {"driver": "600"}, {"devices": ("GPU-2",)}):
        (name,) = other
        with pytest.raises(CarbonreportError, match=f"another {name}"), opened_stages(journal, identity(**other)):
            pass


def test_pairs_that_are_added_later_have_unlocked_clocks_measured_beside_them(virtual_board):
    first = profiled(virtual_board, virtual_board.bench(), ProfilePlan(PAIRS[:2], 1, 1.0, 0.2))
    bench = virtual_board.bench()
    both = profiled(virtual_board, bench, ProfilePlan(PAIRS[:3], 1, 1.0, 0.2))

    assert [len(first.of(pair)) for pair in (UNLOCKED, *PAIRS[:2])] == [2, 1, 1]
    assert [len(both.of(pair)) for pair in (UNLOCKED, *PAIRS[:3])] == [4, 1, 1, 1]
    assert len(bench.stages) == 3


def test_a_step_is_another_one_with_other_code_or_other_arguments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = []
    for number, seconds in enumerate((1, 1, 4)):
        (tmp_path / f"work{number}.py").write_text(f"import time\ndef step(span, batch=8):\n    time.sleep({seconds})\n")
        found.append(step_of(f"work{number}:step"))
    one, same, other = found

    assert source_of(one) == source_of(same) != source_of(other)
    assert arguments_of(one) == arguments_of(same) != arguments_of(functools.partial(one, batch=16))
    assert source_of(functools.partial(one, batch=16)) == source_of(one)
    assert arguments_of(functools.partial(one, batch=object())) == arguments_of(functools.partial(one, batch=object()))


def test_the_coarse_grid_is_made_finer_around_the_best(virtual_board):
    state = virtual_board.state
    coarse = coarse_grid(state, 16)
    plan = ProfilePlan(coarse, 1, 1.0, 0.2, state=state, slowdown=0.1)

    found = profiled(virtual_board, virtual_board.bench(), plan)

    assert len(coarse) == 13  # 7 of 110 core clocks above a third, or none, with and without the lower memory clock
    added = set(found.pairs) - set(coarse) - {UNLOCKED}
    assert added
    assert added == set(finer(best_pairs([(p, x) for p, x in found.stages if p not in added], 0.1), [*coarse, UNLOCKED], state))
    assert all(pair.sm_mhz in state.sm_clocks_mhz for pair in added)


def test_unlocked_clocks_come_first_last_and_between_and_each_repeat_has_an_order_of_its_own():
    order = stage_order(PAIRS, 2, 3)
    at = [i for i, pair in enumerate(order) if pair == UNLOCKED]

    assert at[0] == 0 and at[-1] == len(order) - 1
    assert max(b - a for a, b in pairwise(at)) <= 5
    blocks = [pair for pair in order if pair != UNLOCKED]
    assert sorted(blocks[: len(PAIRS)], key=written) == sorted(blocks[len(PAIRS) :], key=written) == sorted(PAIRS, key=written)
    assert blocks[: len(PAIRS)] != blocks[len(PAIRS) :]
    assert stage_order((), 1, 0) == (UNLOCKED, UNLOCKED)


def test_pairs_are_read_as_they_are_written():
    assert pairs_of("1410:2201, 1410,auto:2201") == (ClockPair(1410, 2201), ClockPair(1410), ClockPair(None, 2201))
    assert pairs_of(",".join(written(pair) for pair in PAIRS)) == PAIRS
    for wrong in ("", "fast", "1410:x", "-3"):
        with pytest.raises(PlanError, match="clocks"):
            pairs_of(wrong)


# Validation


def test_a_plan_of_other_work_or_another_board_is_not_measured(virtual_board, tmp_path):
    plan = solved(virtual_board, tmp_path, 0.001)
    sequence = virtual_board.bench().sequence()

    assert checked(plan, virtual_board.now, sequence).pairs
    with pytest.raises(PlanError, match="run in another order"):
        checked(plan, virtual_board.now, sequence[::-1])
    with pytest.raises(PlanError, match="this one is GPU-other"):
        checked(plan, BoardNow("GPU-other", "NVIDIA H200", "580.159.04"), sequence)
    with pytest.raises(PlanError, match="made with driver"):
        checked(plan, BoardNow(virtual_board.uuid, "NVIDIA H200", "600"), sequence)
    with pytest.raises(PlanError, match="was not followed: no GPU events; nothing was measured$"):
        checked(plan, virtual_board.now, sequence, "no GPU events")
    with pytest.raises(PlanError, match="run in another order"):
        checked(plan, virtual_board.now, (*sequence, "eval"))


def test_work_whose_order_cannot_be_compared_is_not_called_the_plans(virtual_board, tmp_path):
    phases = solved(virtual_board, tmp_path, 0.001)
    whole = msgspec.structs.replace(phases, kind="static", switches=0, pairs=[(1410, None)], segments=[(0, 0)], phases={})
    kernels = msgspec.structs.replace(whole, sequence=[], sequence_hash="0" * 64)

    assert is_order_known(whole, ("forward", "backward"))
    assert not is_order_known(whole, ())
    assert not is_order_known(kernels, ("forward",))
    assert not is_order_known(msgspec.structs.replace(whole, sequence=["iteration"]), ("forward",))
    with pytest.raises(PlanError, match="the step marks none of the phases of the plan"):
        checked(phases, virtual_board.now, ())

    said = []
    with virtual_board.held(PAIRS) as turn:
        seen = Validation(kernels, virtual_board.now, virtual_board.bench(), turn, virtual_board.followed, said.append).run(2, 1.0, 0.2)
    assert seen.is_order_known is False
    assert "could not be compared" in said[0]
    assert "could not be compared with the plan's" in verdict(seen, kernels)
    assert "could not be compared" not in verdict(msgspec.structs.replace(seen, is_order_known=True), kernels)


def test_plan_and_unlocked_clocks_take_turns_at_coming_first(virtual_board, tmp_path):
    plan = msgspec.structs.replace(
        solved(virtual_board, tmp_path, 0.001), kind="static", switches=0, pairs=[(1410, None)], segments=[(0, 0)], phases={}
    )
    bench = virtual_board.bench()
    with virtual_board.held(PAIRS) as turn:
        Validation(plan, virtual_board.now, bench, turn, virtual_board.followed, [].append).run(4, 1.0, 0.2)

    assert [sm_mhz for sm_mhz, _ in bench.stages] == [1410, 0, 0, 1410, 1410, 0, 0, 1410]


@pytest.mark.parametrize(("high", "words"), [(0.999, "A saving: "), (1.0, "No saving was seen"), (1.01, "No saving was seen")])
def test_a_saving_is_one_only_where_the_whole_interval_is(virtual_board, high, words):
    ratio = Ratio(1.0, 1.0, 1.0)
    latency = UsedLatency(0.01, 0.01, 0.01, "measured", 100.0)
    plan = PlanFile(BoundTo(), "x", 1, 0.05, latency, "static", [(1410, None)], [(0, 0)], None, ratio, ratio, 0)

    assert verdict(Validated(6, ratio, Ratio(0.99, 0.98, high), BoundTo(), 0.0, True), plan).startswith(words)


def test_the_same_measured_twice_is_no_saving(virtual_board):
    ratio = paired_ratio([0.01, -0.01, 0.005, -0.005])

    assert ratio.low < 1 < ratio.high
    assert ratio.value == approx(1)
    assert math.log(ratio.high) == approx(2.353 * np.std([0.01, -0.01, 0.005, -0.005], ddof=1) / 2, rel=1e-3)


# Phases that cannot be told apart


def stage_of(**told):
    names = ("forward", "backward", "optimiser")
    return Stage(5, 0.1, 50.0, tuple(Phase(name, 1, 0.02 + 0.01 * i, 10.0 + i, 0.3, told.get(name, "")) for i, name in enumerate(names)))


def test_phases_that_any_stage_tells_together_are_one_row():
    sequence = ("forward", "backward", "optimiser")
    apart = groups_of(sequence, [stage_of()])
    together = groups_of(sequence, [stage_of(), stage_of(optimiser="backward")])

    assert [(group.name, group.positions) for group in apart] == [("forward", (0,)), ("backward", (1,)), ("optimiser", (2,))]
    assert [(group.name, group.members, group.positions) for group in together] == [
        ("forward", ("forward",), (0,)),
        ("backward + optimiser", ("backward", "optimiser"), (1,)),
    ]
    assert together[1].cost(stage_of()) == (approx(0.07), approx(23.0), approx(0.3 * 2**0.5))


def test_phases_over_the_end_of_a_step_begin_where_their_row_begins():
    (group, alone) = groups_of(("forward", "backward", "optimiser"), [stage_of(optimiser="forward")])

    assert (group.name, group.members, group.positions) == ("optimiser + forward", ("forward", "optimiser"), (2,))
    assert alone.name == "backward"


@pytest.mark.parametrize(
    ("sequence", "told"),
    [
        (("forward", "backward", "optimiser"), {"optimiser": "the rest of the step"}),
        (("forward", "backward", "optimiser"), {"optimiser": "backward", "forward": "backward"}),
        (("forward", "backward", "forward", "optimiser"), {"forward": "backward"}),
        ((), {}),
        (("forward", "backward", "optimiser", "loss"), {}),
    ],
)
def test_where_that_leaves_no_phases_there_are_none(sequence, told):
    assert groups_of(sequence, [stage_of(**told)]) == ()


# Ticks


def test_energy_between_ticks_is_that_of_whole_steps():
    """Steps of 70 ms with 500 W for a half and 100 W for the other; a counter that ticks every 100 ms."""

    def joules(t):
        whole, rest = divmod(t, 0.07)
        return whole * 21.0 + min(rest, 0.035) * 500 + max(rest - 0.035, 0) * 100

    for phase_s in np.linspace(0, 0.09, 10):
        ticks = [(round((phase_s + 0.1 * i) * 1e9), joules(phase_s + 0.1 * i)) for i in range(21)]
        edges = [round(0.07 * i * 1e9) for i in range(31)]
        found = per_step({"GPU-1": ticks}, edges)
        assert found.seconds == approx(0.07, rel=1e-6)
        assert found.joules == approx(21.0, rel=0.002)
        assert found.steps > 15


def test_a_tick_lies_in_the_middle_between_the_looks_before_and_after_it():
    looks = iter([(100, 5.0), (200, 5.0), (300, 6.0), (500, 7.0), (600, 7.0)])
    now = []

    def read(device):
        at_ns, joules = next(looks)
        now.append(at_ns)
        return joules

    watch = TickWatch(["GPU-1"], read, lambda: now[-1])
    for _ in range(5):
        watch.look()

    assert watch.ticks == {"GPU-1": [(250, 6.0), (400, 7.0)]}


def test_too_few_ticks_and_a_counter_that_restarts_say_nothing():
    edges = [0, 10**9]
    with pytest.raises(CarbonreportError, match="changed 1 times"):
        per_step({"GPU-1": [(5, 1.0)]}, edges)
    with pytest.raises(CarbonreportError, match="restarted"):
        per_step({"GPU-1": [(i * 10**8, 100.0 - i) for i in range(1, 10)]}, edges)
    with pytest.raises(CarbonreportError, match="no energy counter"):
        per_step({}, edges)


def test_the_residual_is_what_phases_leave():
    stage = Stage(10, 0.1, 50.0, (Phase("a", 2, 0.03, 15.0), Phase("b", 1, 0.02, 12.0)))

    assert (stage.residual_joules, stage.outside_seconds) == (approx(8.0), approx(0.02))


# The commands, in real time

STEP = """
import ctypes
driver = ctypes.CDLL("libnvidia-ml.so.1")
utilise, work = driver.nvmlVirtualUtilisation, driver.nvmlVirtualWork
utilise.argtypes = [ctypes.c_uint32, ctypes.c_double, ctypes.c_double]
work.argtypes = [ctypes.c_uint32, ctypes.c_double]

def step(span):
    with span("forward"):
        utilise(0, 0.8, 0.3)
        work(0, 0.04)
    with span("optimiser"):
        utilise(0, 0.1, 1.0)
        work(0, 0.03)
    utilise(0, 0, 0)
"""


def carbonreport(driver, folder, *arguments, may_set=True, **more):
    environ = driver.environ(VIRTUAL_NVML_ROOT=str(int(may_set)), CARBONREPORT_CONTROL_DIR=str(folder / "control"), **more)
    command = [sys.executable, "-m", "carbonreport", *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def real_time(make_virtual_driver, tmp_path):
    driver = make_virtual_driver("h200", is_virtual=False)
    (tmp_path / "mine.py").write_text(STEP + "\ndef nospan(): pass\n")
    (tmp_path / "broken.py").write_text("def x(:")
    (tmp_path / "half.py").write_text("from os import nothing_here")
    (tmp_path / "needs.py").write_text("import not_installed_here")
    return driver


def test_a_profile_a_plan_and_its_validation_by_command(real_time, tmp_path):
    done = carbonreport(
        real_time, tmp_path, "plan", "profile", "mine:step", "--pairs", "1200,1500", "--repeats", "1", "--seconds", "1.2", "--settle", "0.2"
    )
    assert done.returncode == 0, done.stderr
    assert "SM 1200, memory auto: a step" in done.stdout
    assert "nothing was rescaled" in done.stdout
    assert "The energies of the phases cannot be told apart: the table has the whole step alone" in done.stdout
    assert read_table(tmp_path / "table.csv").table.names == ("iteration",)

    uuid = read_table_uuid(tmp_path / "table.csv")
    done = carbonreport(
        real_time, tmp_path, "plan", "solve", "table.csv", "--slowdown", "40%", "--latency", "1s", "--gpu", uuid, "-o", "plan.json"
    )
    assert done.returncode == 0, done.stderr
    assert read_plan(tmp_path / "plan.json").kind == "static"

    done = carbonreport(
        real_time, tmp_path, "plan", "validate", "plan.json", "mine:step", "--pairs", "2", "--seconds", "1.2", "--settle", "0.2"
    )
    assert done.returncode == 0, done.stderr
    assert "measured 2 times in turns with unlocked clocks" in done.stdout
    assert read_plan(tmp_path / "plan.json").validated.energy_ratio.value < 0.97
    truth = real_time.board(0).peek()
    assert (truth.core_lock_high_mhz, truth.memory_lock_high_mhz) == (0, 0)


def read_table_uuid(path):
    return next(line.partition(": ")[2] for line in path.read_text().splitlines() if line.startswith("# uuid"))


@pytest.mark.parametrize(("arguments", "may_set"), [(["--dry-run"], True), ([], False)])
def test_where_nothing_may_be_set_the_boards_own_clocks_are_measured_and_that_is_said(real_time, tmp_path, arguments, may_set):
    done = carbonreport(
        real_time,
        tmp_path,
        "plan",
        "profile",
        "mine:step",
        "--pairs",
        "1200",
        "--seconds",
        "1",
        "--settle",
        "0",
        *arguments,
        may_set=may_set,
    )

    assert done.returncode == 0, done.stderr
    assert "No clock was set: the board's own clocks alone were measured" in done.stdout
    assert list(read_table(tmp_path / "table.csv").table.pairs) == [UNLOCKED]
    assert [call for call in real_time.setter_calls() if call.code == 0] == []


@pytest.mark.parametrize(
    ("arguments", "more", "words"),
    [
        (["mine:nothing"], {}, "has no function nothing"),
        (["nowhere:step"], {}, "No module named 'nowhere'"),
        (["mine"], {}, "write MODULE:FUNCTION"),
        ([".mine:step"], {}, "write MODULE:FUNCTION"),
        (["mine:nospan"], {}, "is called with one argument, span, and takes ()"),
        (["broken:step"], {}, "the module broken cannot be imported (SyntaxError"),
        (["half:step"], {}, "the module half cannot be imported (ImportError: cannot import name 'nothing_here'"),
        (["needs:step"], {}, "the module needs imports not_installed_here, which is not installed"),
        (["mine:step", "--pairs", "9000"], {}, "takes core clocks of 345 to 1980 MHz, not 9000 MHz"),
        (["mine:step", "--pairs", "1200"], {"SLURM_JOB_GPU_FREQ": "high"}, "Slurm sets the clocks of this job"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_set(real_time, tmp_path, arguments, more, words):
    done = carbonreport(real_time, tmp_path, "plan", "profile", *arguments, **more)

    assert done.returncode == 1
    assert words in done.stderr
    assert len([line for line in done.stderr.splitlines() if "error" in line]) == 1 and "Traceback" not in done.stderr
    assert real_time.setter_calls() == []
    assert "SLURM_JOB_GPU_FREQ" not in os.environ


# A program with a GPU framework: its phases are where the GPU gets to them

TORCH = """
import time
from types import SimpleNamespace

class Event:
    def __init__(self, enable_timing=False): self.at_s = None
    def record(self, stream=None): self.at_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    def query(self): return True
    def synchronize(self): pass
    def elapsed_time(self, other): return 1000 * (other.at_s - self.at_s)

def Stream(device=None): return SimpleNamespace(cuda_stream=0)

cuda = SimpleNamespace(
    Event=Event, Stream=Stream, is_available=lambda: True, is_initialized=lambda: True, synchronize=lambda *_: None, current_device=lambda: 0,
    current_stream=lambda *_: Stream(), is_current_stream_capturing=lambda: False, device_count=lambda: 1,
)
"""


def test_phases_of_a_gpu_framework_are_followed_and_validated(real_time, tmp_path):
    (tmp_path / "torch.py").write_text(TORCH)
    (tmp_path / "mine.py").write_text(STEP.replace("0.04", "0.25").replace("0.03", "0.25"))
    more = {"PYTHONPATH": str(tmp_path)}
    names, ratio = ["forward", "optimiser"], Ratio(0.8, 0.8, 0.8)
    latency = UsedLatency(0.01, 0.01, 0.01, "measured on GPU-1", 100.0, "late", is_measured=True)
    bound = BoundTo(model="NVIDIA H200")
    pairs, segments, phases = [(1500, None), (1005, None)], [(0, 0), (1, 1)], {"forward": 0, "optimiser": 1}
    plan = PlanFile(bound, sequence_hash(names), 2, 0.05, latency, "pass", pairs, segments, None, ratio, ratio, 2, phases, names)
    write_plan(plan, tmp_path / "plan.json")

    arguments = ["--pairs", "2", "--seconds", "1.6", "--settle", "0.6"]
    done = carbonreport(real_time, tmp_path, "plan", "validate", "plan.json", "mine:step", *arguments, **more)
    assert done.returncode == 0, done.stderr
    seen = read_plan(tmp_path / "plan.json").validated
    assert seen.requests == approx(2, abs=0.5)
    assert seen.energy_ratio.value < 0.95

    (tmp_path / "mine.py").write_text(STEP.replace("forward", "backward"))
    done = carbonreport(real_time, tmp_path, "plan", "validate", "plan.json", "mine:step", *arguments, **more)
    assert (
        done.returncode,
        "run in another order than those that were planned for; measure again; nothing was measured" in done.stderr,
    ) == (1, True)
