"""`carbonreport sweep` with the real binding on a virtual driver: bad input is one line and sets nothing; every board is back; a kill costs one trial."""

import csv
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.errors import CarbonreportError
from carbonreport.store import load
from carbonreport.testing import make_record
from carbonreport.workflows.sweep_counted import counted_by

SQUAD_32 = Path(__file__).parents[1] / "data" / "dvfs" / "zeus_v100_squad_32.csv"
LIMIT_WATTS = 250.0
PROGRAM = """
import ctypes, sys
driver = ctypes.CDLL("libnvidia-ml.so.1")
driver.nvmlVirtualWork.argtypes = [ctypes.c_uint32, ctypes.c_double]
driver.nvmlVirtualWork(0, float(sys.argv[1]))
print("step 1 loss 0.25")
"""
TRACED = """
import ctypes, sys
from carbonreport import trace
driver = ctypes.CDLL("libnvidia-ml.so.1")
driver.nvmlVirtualWork.argtypes = [ctypes.c_uint32, ctypes.c_double]
with trace("train", zone="DE", meters=("nvml",)) as run, run.span("step", items=20):
    driver.nvmlVirtualWork(0, float(sys.argv[1]))
print("step 1 loss 0.25")
"""


class Machine:
    """A host with one virtual V100 that is always busy and obeys a published curve."""

    def __init__(self, driver, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.board = driver.board(0).set(min_limit_watts=100)
        self.board.set_limit(LIMIT_WATTS)
        with SQUAD_32.open() as file:
            rows = [[float(cell) for cell in row] for row in csv.reader(line for line in file if line[0].isdigit())]
        fastest = min(seconds for _, seconds, _ in rows)
        self.board.curve([(cap, fastest / seconds, watts) for cap, seconds, watts in rows])
        self.board.utilisation(1, 1)
        self.truth = {cap: (seconds / fastest, seconds / fastest * watts / rows[-1][2]) for cap, seconds, watts in rows}

    def start(self, *arguments: str, program=PROGRAM, work_s=0.2, root="1") -> subprocess.Popen:
        environ = self.driver.environ(VIRTUAL_NVML_ROOT=root, CARBONREPORT_CONTROL_DIR=str(self.folder / "control"))
        command = [
            sys.executable,
            "-m",
            "carbonreport",
            "sweep",
            "--zone",
            "DE",
            "--settle",
            "0",
            *arguments,
            "--",
            sys.executable,
            "-c",
            program,
            str(work_s),
        ]
        return subprocess.Popen(command, env=environ, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def sweep(self, *arguments: str, **options) -> subprocess.CompletedProcess:
        process = self.start(*arguments, **options)
        out, err = process.communicate(timeout=90)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def trials(self) -> list[dict]:
        path = self.folder / "sweep" / "sweep.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [line for line in lines if line["type"] == "trial"]

    @property
    def limit(self) -> float:
        return self.board.peek().requested_watts

    def caps_set(self) -> list[float]:
        return [call.first for call in self.driver.setter_calls() if call.function.endswith("PowerManagementLimit") and call.code == 0]


@pytest.fixture
def machine(make_virtual_driver, tmp_path):
    return Machine(make_virtual_driver("v100", is_virtual=False), tmp_path)


def test_a_program_that_traces_itself_is_compared_by_item(machine):
    done = machine.sweep(
        "--caps",
        "200,150",
        "--repeats",
        "2",
        "--slowdown",
        "30%",
        "--confirm",
        "1",
        "--json",
        "s.json",
        "--same-lines",
        "loss",
        program=TRACED,
        work_s=0.7,
    )
    assert done.returncode == 0, done.stderr
    held = json.loads((machine.folder / "s.json").read_text())

    assert held["baseline"]["per"] == "item"
    assert {trial["items"] for trial in machine.trials()} == {20}
    for point in held["points"]:
        time_ratio, energy_ratio = machine.truth[point["cap_watts"]]
        assert point["time_ratio"] == approx(time_ratio, rel=0.03)
        assert point["energy_ratio"] == approx(energy_ratio, rel=0.03)
    assert held["choice"]["cap_watts"] == 150
    assert held["choice"]["confirmed"]["energy_high"] < 1
    assert held["same_lines"] == 1
    assert machine.limit == LIMIT_WATTS
    assert done.stdout.count("step 1 loss 0.25") == len(machine.trials()) == 9
    records = [load(machine.folder / "sweep" / trial["record"]) for trial in machine.trials()]
    assert [None if not r.knobs else r.knobs[0].requested.power_cap_watts for r in records] == [t["cap_watts"] for t in machine.trials()]
    assert "150 W" in done.stdout
    assert "a result" in done.stdout


def test_a_sweep_that_was_killed_goes_on_and_its_board_is_back(machine):
    process = machine.start("--caps", "150", "--repeats", "2", "--confirm", "0", "--slowdown", "30%", work_s=0.3)
    wait_until(lambda: len(machine.trials()) >= 1 and machine.limit == 150)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    wait_until(lambda: machine.limit == LIMIT_WATTS)
    before = machine.trials()

    done = machine.sweep("--caps", "150", "--repeats", "2", "--confirm", "0", "--slowdown", "30%", work_s=0.3)

    assert done.returncode == 0, done.stderr
    assert machine.trials()[: len(before)] == before
    assert [trial["key"] for trial in machine.trials()] == [f"sweep:{i}" for i in range(5)]
    assert "4 more after it" not in done.stderr


def test_an_interrupt_leaves_the_board_as_it_was_and_says_how_to_go_on(machine):
    process = machine.start("--caps", "150", "--repeats", "2", work_s=0.7)
    wait_until(lambda: machine.trials() and machine.limit == 150)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)

    assert process.returncode != 0
    assert "the same command line goes on" in err
    assert machine.limit == LIMIT_WATTS
    assert [trial["cap_watts"] for trial in machine.trials()] == [None]


def test_a_failing_command_ends_the_sweep_with_its_code(machine):
    done = machine.sweep("--caps", "150", program="import sys; sys.exit(7)")

    assert done.returncode == 7
    assert done.stderr.splitlines()[-1] == "carbonreport: error: the command ended with exit code 7"  # no trial is finished


def refused(machine, *arguments, **options) -> str:
    done = machine.sweep(*arguments, **options)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert machine.trials() == []
    assert machine.limit == LIMIT_WATTS
    return done.stderr


def test_a_cap_outside_the_range_is_named_with_it_and_nothing_is_set(machine):
    assert "takes power caps of 100 to 300 W, not 90 W; nothing was set" in refused(machine, "--caps", "150,90")
    assert "260 W would raise that limit" in refused(machine, "--caps", "150,260")
    assert machine.caps_set() == []


def test_without_permission_a_line_says_what_would_allow_it(machine):
    said = refused(machine, "--caps", "150", root="0")

    assert "may not set the power limit" in said
    assert "SYS_ADMIN" in said or "sudoers" in said


def test_a_cap_that_the_driver_ignores_is_seen_before_anything_runs(machine):
    machine.board.set(ignores_limit=1)

    assert "the driver ignores it" in refused(machine, "--caps", "150")


def test_a_laptop_without_a_limit_is_told_so(machine):
    machine.board.fail("nvmlDeviceGetPowerManagementLimit", "NotSupported")
    machine.board.fail("field:192", "NotSupported")

    assert "has no power limit that can be set" in refused(machine, "--caps", "150")


def test_a_board_whose_setter_does_not_exist_is_told_so(machine):
    machine.board.fail("nvmlDeviceSetPowerManagementLimit", "NotSupported")

    assert "has no power limit that can be set" in refused(machine, "--caps", "150")


def test_a_command_that_does_not_exist_is_one_line(machine):
    environ = machine.driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(machine.folder / "control"))
    command = [sys.executable, "-m", "carbonreport", "sweep", "--zone", "DE", "--out", "other", "--caps", "150", "--", "no-such-program"]

    done = subprocess.run(command, env=environ, cwd=machine.folder, capture_output=True, text=True, check=False)

    assert done.returncode == 127
    assert "command not found: no-such-program" in done.stderr.splitlines()[-1]
    assert list((machine.folder / "other").glob("2*.jsonl")) == []


def test_mig_instances_are_left_alone(make_virtual_driver, tmp_path):
    driver = make_virtual_driver("a100", is_virtual=False)
    driver.board(0).set(mig_instances=2)
    environ = driver.environ(VIRTUAL_NVML_ROOT="1", CARBONREPORT_CONTROL_DIR=str(tmp_path / "control"))

    done = subprocess.run(
        [sys.executable, "-m", "carbonreport", "sweep", "--caps", "250", "--", "true"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "cut into MIG instances" in done.stderr
    assert driver.setter_calls() == []


def test_a_board_that_is_lost_half_way_ends_the_sweep_in_one_line(machine):
    process = machine.start("--caps", "150", "--repeats", "2", work_s=0.5)
    wait_until(lambda: len(machine.trials()) >= 2)
    machine.board.fail("*", "GpuIsLost")
    _, err = process.communicate(timeout=60)
    last = err.splitlines()[-1]

    assert process.returncode == 1
    assert last.startswith("carbonreport: error: ")
    assert "Traceback" not in err
    assert "the same command line goes on" in last


def test_another_command_in_the_same_folder_is_refused(machine):
    assert machine.sweep("--caps", "150", "--repeats", "1", "--confirm", "0").returncode == 0

    done = machine.sweep("--caps", "150,200", "--repeats", "1", "--confirm", "0")

    assert done.returncode == 1
    assert done.stderr == "carbonreport: error: sweep/sweep.jsonl holds trials of other caps (150 W): give another --out, or remove it\n"


def test_a_dry_run_sets_nothing_and_measures_without_a_cap(machine):
    done = machine.sweep("--caps", "150,200", "--repeats", "2", "--dry-run", "--json", "s.json", root="0")
    held = json.loads((machine.folder / "s.json").read_text())

    assert done.returncode == 0, done.stderr
    assert machine.driver.setter_calls() == []
    assert "would set a power cap of 150 W on GPU 0" in done.stderr
    assert (held["points"], held["choice"], held["baseline"]["trials"]) == ([], None, 3)
    assert [note["slug"] for note in held["notes"]][-1] == "sweep-dry-run" or "sweep-dry-run" in str(held["notes"])


def test_output_that_changes_under_a_cap_is_said(machine):
    program = """
import ctypes
driver = ctypes.CDLL("libnvidia-ml.so.1")
driver.nvmlVirtualWork.argtypes = [ctypes.c_uint32, ctypes.c_double]
driver.nvmlVirtualWork(0, 0.2)
watts = ctypes.c_uint32()
driver.nvmlInit_v2(); handle = ctypes.c_void_p()
driver.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
driver.nvmlDeviceGetPowerManagementLimit(handle, ctypes.byref(watts))
print("loss", watts.value)
"""
    done = machine.sweep("--caps", "150", "--repeats", "1", "--confirm", "0", "--same-lines", "^loss", program=program)

    assert done.returncode == 0, done.stderr
    assert "sweep-results-differ: results under 150 W differ from those without a cap" in done.stdout


def test_a_pattern_that_matches_nothing_is_said_after_the_first_trial(machine):
    done = machine.sweep("--caps", "150", "--same-lines", "accuracy")

    assert done.returncode == 1
    assert "'accuracy' matches no line" in done.stderr
    assert len(list((machine.folder / "sweep").glob("*.out"))) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "missing/s.json"], "cannot write missing/s.json: there is no folder missing"),
        (["--json", "."], "cannot write ."),
        (["--plot", "file/s.svg"], "cannot write file/s.svg"),
        (["--zone", "Atlantis"], "unknown grid zone"),
        (["--site", "missing.toml"], "missing.toml"),
    ],
)
def test_what_only_the_end_or_the_first_trial_would_refuse_is_said_before_anything_is_set(machine, arguments, words):
    (machine.folder / "file").write_text("")

    assert words in refused(machine, "--caps", "150", *arguments)
    assert machine.driver.setter_calls() == []
    assert not (machine.folder / "sweep").exists()


def test_a_file_that_is_there_is_left_as_it_was_by_the_look_at_it(machine):
    (machine.folder / "s.json").write_text("old")

    refused(machine, "--caps", "90", "--json", "s.json", "--plot", "s.svg")

    assert (machine.folder / "s.json").read_text() == "old"
    assert not (machine.folder / "s.svg").exists()


def test_a_board_with_another_limit_is_not_mixed_into_a_sweep_that_goes_on(machine):
    assert machine.sweep("--caps", "150", "--repeats", "1", "--confirm", "0").returncode == 0
    before = machine.trials()
    machine.board.set_limit(225)

    done = machine.sweep("--caps", "150", "--repeats", "1", "--confirm", "0")

    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "holds trials of other power limits (GPU-" in done.stderr and "had 250 W, and has 225 W" in done.stderr
    assert machine.trials() == before
    assert machine.sweep("--caps", "150", "--repeats", "1", "--interval", "0.5").returncode == 1


def test_a_cap_that_somebody_changed_during_a_trial_spoils_it_and_stops_the_sweep(machine):
    program = """
import ctypes
driver = ctypes.CDLL("libnvidia-ml.so.1")
driver.nvmlVirtualWork.argtypes = [ctypes.c_uint32, ctypes.c_double]
driver.nvmlVirtualWork(0, 0.2)
watts = ctypes.c_uint32()
driver.nvmlInit_v2(); handle = ctypes.c_void_p()
driver.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
driver.nvmlDeviceGetPowerManagementLimit(handle, ctypes.byref(watts))
if watts.value == 150000:
    driver.nvmlDeviceSetPowerManagementLimit(handle, 200000)
"""
    done = machine.sweep("--caps", "150", "--repeats", "1", "--confirm", "0", program=program)
    last = done.stderr.splitlines()[-1]

    assert done.returncode == 1
    assert "the trial says nothing of its cap (" in last and "finished trials are kept" in last
    assert [trial["cap_watts"] for trial in machine.trials()] == [None]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.004, "over after 4 ms, too short for the meter"), (1.5, "over after 1.5 s, too short"), (60.0, "no energy of a GPU could be read")],
)
def test_a_command_without_energy_is_told_whether_it_was_too_short_for_the_meter(seconds, words):
    run = replace(make_record({"NVIDIA H200": 300.0}, 1), duration_s=seconds, devices=(), traces=())

    with pytest.raises(CarbonreportError, match=words):
        counted_by(run, ())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--eta", "nan"],
        ["--settle", "nan"],
        ["--settle", "inf"],
        ["--slowdown", "nan"],
        ["--slowdown", "-1%"],
        ["--interval", "nan"],
        ["--interval", "0"],
    ],
)
def test_numbers_that_are_none_are_usage_errors(tmp_path, arguments):
    command = [sys.executable, "-m", "carbonreport", "sweep", "--caps", "150", *arguments, "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert arguments[0] in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--caps", "150,x"], "'x' is no power cap"),
        (["--caps", "150,150"], "each once"),
        (["--caps", "-5"], "above 0 W"),
        (["--caps", "150", "--repeats", "0"], "--repeats"),
        (["--caps", "150", "--eta", "2"], "--eta"),
        (["--caps", "150", "--slowdown", "fast"], "no percentage"),
        (["--caps", "150", "--same-lines", "("], "no regular expression"),
        ([], "--caps"),
    ],
)
def test_bad_arguments_are_one_line(tmp_path, arguments, words):
    done = subprocess.run(
        [sys.executable, "-m", "carbonreport", "sweep", *arguments, "--", "true"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def wait_until(is_so, longest_s: float = 20.0) -> None:
    until = time.monotonic() + longest_s
    while not is_so():
        assert time.monotonic() < until, "not so in time"
        time.sleep(0.02)
