"""A sweep inside a loop: caps change between steps, all ranks count together, and every board is back however the loop ends."""

import csv
import json
import math
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest import approx

import carbonreport
from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import Note
from carbonreport.plan.cap_choice import CapRule
from carbonreport.store import load
from carbonreport.testing import FakeClock, VirtualGpu, virtual_trace
from carbonreport.workflows.sweep_loop import StepSweep
from carbonreport.workflows.sweep_ranks import Alone, TorchTogether

SQUAD_32 = Path(__file__).parents[1] / "data" / "dvfs" / "zeus_v100_squad_32.csv"
LIMIT_WATTS = 250.0
LOOP = """
import ctypes, json, sys
import carbonreport
driver = ctypes.CDLL("libnvidia-ml.so.1")
driver.nvmlVirtualWork.argtypes = [ctypes.c_uint32, ctypes.c_double]
with carbonreport.sweep(caps=[150, 200], steps_per_cap=6, warmup_steps=2, repeats=2, slowdown=0.3, zone="DE", meters=("nvml",)) as sweep:
    print("begun", flush=True)
    steps = 0
    while not sweep.is_done:
        with sweep.step(items=32):
            driver.nvmlVirtualWork(0, 0.1)
        steps += 1
        if sys.argv[1] == "fail" and steps == 12:
            raise RuntimeError("diverged")
        if sys.argv[1] == "long" and steps == 12:
            print("half-way", flush=True)
            import time; time.sleep(60)
curve = sweep.result.curve
print(json.dumps({"steps": steps, "per_item": curve.is_per_item, "choice": sweep.result.choice.cap_watts, "notes": [n.slug for n in sweep.result.notes],
                  "points": [[p.cap_watts, p.time.value, p.energy.value] for p in curve.points]}))
"""


class Gpu:
    """A board whose power and speed follow the cap that is set on it, in a fake clock's time."""

    def __init__(self, clock):
        self.clock, self.cap, self.log, self.notes = clock, None, [], ()
        self.changes = [(-math.inf, None)]

    def watts(self, at_s):
        cap = [cap for begin_s, cap in self.changes if begin_s <= at_s][-1]
        return 500.0 if cap is None else float(cap)

    def setting(self, cap):
        return Setting(self, cap)

    def turn(self, cap):
        self.cap = cap
        self.changes.append((self.clock.boot_ns() / 1e9 - self.zero_s, cap))

    def step(self, seconds):
        self.clock.advance(seconds * {None: 1.0, 400: 1.02, 300: 1.2}[self.cap])


class Setting:
    def __init__(self, gpu, cap):
        self.gpu, self.cap = gpu, cap

    def start(self):
        self.gpu.log.append(self.cap)
        self.gpu.turn(self.cap)
        return (), ()

    def stop(self):
        self.gpu.log.append("back")
        self.gpu.turn(None)
        return (), self.gpu.notes

    def abandon(self):
        pass


def swept(tmp_path, order, *, together=None, notes=(), stop_after=None, items=8, steps=10, warmup=5):
    clock = FakeClock()
    gpu = Gpu(clock)
    gpu.zero_s, gpu.notes = clock.boot_ns() / 1e9, notes
    run = virtual_trace(clock, VirtualGpu(gpu.watts, sensor=None), out=tmp_path)
    sweep = StepSweep(
        run,
        order,
        steps=steps,
        warmup=warmup,
        rule=CapRule(0.05),
        boards=(("GPU 0", 500.0),),
        setting=gpu.setting,
        together=together or Alone(),
        now_ns=clock.boot_ns,
        wait=lambda: None,
    )
    taken = 0
    with sweep:
        while not sweep.is_done and taken != stop_after:
            with sweep.step(items=items):
                gpu.step(1.0)
            taken += 1
    return sweep, gpu, taken


ORDER = (None, 300, 400, None, 400, 300, None)


def test_each_cap_is_charged_the_energy_of_its_own_steps(tmp_path):
    sweep, _, taken = swept(tmp_path, ORDER)
    curve = sweep.result.curve

    assert taken == 7 * 15
    assert curve.is_per_item
    assert (curve.seconds, curve.joules) == approx((1 / 8, 500 / 8), rel=0.01)
    assert [p.time.value for p in curve.points] == approx([1.2, 1.02], rel=0.005)
    assert [p.energy.value for p in curve.points] == approx([0.6 * 1.2, 0.8 * 1.02], rel=0.01)
    assert sweep.result.choice.cap_watts == 400
    assert {"sweep-unconfirmed"} == {note.slug for note in sweep.result.notes}


def test_the_record_says_that_caps_were_tried_inside_the_run(tmp_path):
    swept(tmp_path, ORDER)
    (path,) = tmp_path.glob("*.jsonl")
    notes = {note.slug: note.text for note in load(path).notes}

    assert notes["sweep-inside"].startswith("boards were held at 300, 400 W and at none")


def test_boards_are_put_back_between_caps_and_at_the_end(tmp_path):
    _, gpu, _ = swept(tmp_path, ORDER)

    assert gpu.log == [300, "back", 400, "back", 400, "back", 300, "back"]
    assert gpu.cap is None


def test_a_loop_that_ends_early_has_no_result_and_its_board_is_back(tmp_path):
    sweep, gpu, _ = swept(tmp_path, ORDER, stop_after=20)

    assert not sweep.is_done
    assert sweep.result is None
    assert gpu.cap is None


def test_steps_after_the_last_stage_change_nothing(tmp_path):
    sweep, _, _ = swept(tmp_path, ORDER)

    with pytest.raises(RuntimeError, match="inside its block"):
        sweep.step()


def test_without_items_the_steps_are_taken_as_equal_work(tmp_path):
    sweep, _, _ = swept(tmp_path, ORDER, items=None)

    assert not sweep.result.curve.is_per_item
    assert "work-assumed-equal" in {note.slug for note in sweep.result.notes}


def test_a_stage_whose_cap_was_not_held_is_left_out(tmp_path):
    sweep, _, _ = swept(tmp_path, (None, 300, None), notes=(Note("cap-not-held", "GPU 0 did not keep it"),))

    assert sweep.result.curve.points == ()
    assert {"sweep-stages-lost", "cap-not-held"} <= {note.slug for note in sweep.result.notes}


def test_short_stages_are_said(tmp_path):
    sweep, _, _ = swept(tmp_path, ORDER, steps=2, warmup=0)

    assert "7 of 7 stages" in next(note.text for note in sweep.result.notes if note.slug == "sweep-stages-short")


class TwoRanks:
    """Another rank that used twice the energy in half the time."""

    def __init__(self):
        self.calls = []

    def reduce(self, joules, seconds, items):
        self.calls.append((joules, seconds, items))
        return 3 * joules, seconds, 2 * items


def test_all_ranks_count_together_and_wait_for_each_other(tmp_path):
    together = TwoRanks()
    alone, _, _ = swept(tmp_path / "alone", ORDER)
    sweep, _, _ = swept(tmp_path / "two", ORDER, together=together)

    assert sweep.result.curve.joules == approx(1.5 * alone.result.curve.joules, rel=0.01)
    assert together.calls.count((0.0, 0.0, 0.0)) == 2 * len(ORDER)  # before and after each change
    assert len(together.calls) == 3 * len(ORDER)


def test_ranks_of_torch_add_energy_and_items_and_take_the_longest_time():
    """A stand-in for torch with two equal ranks."""

    class Tensor(list):
        pass

    def all_reduce(tensor, op):
        tensor[:] = [2 * v if op == "sum" else max(v, 7.0) for v in tensor]

    made = []
    distributed = SimpleNamespace(get_backend=lambda: "nccl", all_reduce=all_reduce, ReduceOp=SimpleNamespace(SUM="sum", MAX="max"))
    torch = SimpleNamespace(
        distributed=distributed, float64="f64", tensor=lambda values, dtype, device: made.append(device) or Tensor(values)
    )

    joules, seconds, items = TorchTogether(torch).reduce(10.0, 5.0, math.nan)

    assert (joules, seconds) == (20.0, 7.0)
    assert math.isnan(items)
    assert set(made) == {"cuda"}


@pytest.mark.parametrize(
    ("wishes", "words"),
    [
        ({"caps": ["300"]}, r"caps=\['300'\]: give power caps in watts as numbers"),
        ({"caps": "300"}, "caps='300'"),
        ({"caps": 300}, "caps=300"),
        ({"caps": []}, "caps="),
        ({"caps": [300, 300]}, "each once"),
        ({"caps": [math.nan]}, "caps="),
        ({"caps": [True]}, "caps="),
        ({"slowdown": math.nan}, "slowdown=nan"),
        ({"slowdown": -0.1}, "slowdown=-0.1"),
        ({"eta": math.nan}, "eta=nan"),
        ({"repeats": 0}, "repeats=0"),
        ({"steps_per_cap": 1.5}, "steps_per_cap=1.5"),
        ({"warmup_steps": -1}, "warmup_steps=-1"),
    ],
)
def test_what_no_sweep_can_be_made_of_is_one_clear_line(wishes, words):
    with pytest.raises(CarbonreportError, match=words) as refused:
        carbonreport.sweep(**{"caps": [300], "steps_per_cap": 10} | wishes)
    assert "\n" not in str(refused.value)


# On the virtual driver, by the public name


@pytest.fixture
def machine(make_virtual_driver):
    driver = make_virtual_driver("v100", is_virtual=False)
    board = driver.board(0).set(min_limit_watts=100)
    board.set_limit(LIMIT_WATTS)
    with SQUAD_32.open() as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(line for line in file if line[0].isdigit())]
    fastest = min(seconds for _, seconds, _ in rows)
    board.curve([(cap, fastest / seconds, watts) for cap, seconds, watts in rows])
    board.utilisation(1, 1)
    return SimpleNamespace(driver=driver, board=board, truth={c: (s / fastest, s / fastest * w / rows[-1][2]) for c, s, w in rows})


def loop(machine, folder, way, root="1"):
    environ = machine.driver.environ(VIRTUAL_NVML_ROOT=root, CARBONREPORT_CONTROL_DIR=str(folder / "control"))
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", LOOP, way], env=environ, cwd=folder, stdout=pipe, stderr=pipe, text=True)


def test_a_loop_finds_the_curve_that_its_board_obeys(machine, tmp_path):
    out, err = loop(machine, tmp_path, "end").communicate(timeout=60)
    assert out.startswith("begun\n{"), err
    found = json.loads(out.splitlines()[1])

    assert found["steps"] == 7 * 8
    assert found["per_item"]
    assert found["choice"] == 150
    for cap, time_ratio, energy_ratio in found["points"]:
        assert (time_ratio, energy_ratio) == approx(machine.truth[cap], rel=0.03)
    assert "sweep-stages-short" in found["notes"]
    assert machine.board.peek().requested_watts == LIMIT_WATTS


@pytest.mark.parametrize("way", ["fail", "SIGINT", "SIGKILL"])
def test_however_the_loop_ends_the_board_is_back(machine, tmp_path, way):
    process = loop(machine, tmp_path, "fail" if way == "fail" else "long")
    assert process.stdout.readline() == "begun\n"
    if way != "fail":
        assert process.stdout.readline() == "half-way\n"
        assert machine.board.peek().requested_watts < LIMIT_WATTS
        process.send_signal(signal.Signals[way])
    process.communicate(timeout=30)

    assert process.returncode != 0
    until = time.monotonic() + 15
    while machine.board.peek().requested_watts != LIMIT_WATTS:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_without_permission_the_loop_does_not_begin(machine, tmp_path):
    out, err = loop(machine, tmp_path, "end", root="0").communicate(timeout=30)

    assert out == ""
    assert "ControlDenied" in err
    assert machine.board.peek().requested_watts == LIMIT_WATTS


def test_the_public_name_is_the_loop_form():
    assert carbonreport.sweep.__module__ == "carbonreport.workflows.sweep_steps"
