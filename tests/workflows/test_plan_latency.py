"""How long changes of clocks take: what the virtual board was told is what is measured, and what was not measured is not called so."""

import json
import subprocess
import sys
from dataclasses import replace

import msgspec
import pytest
from pytest import approx

from carbonreport.plan.table import ClockPair, PlanError
from carbonreport.plan_file import BoundTo, read_plan
from carbonreport.workflows.plan import make_frontier, make_plan
from carbonreport.workflows.plan_ask import PlanAsk
from carbonreport.workflows.plan_chosen import chosen
from carbonreport.workflows.plan_keep import keep_plan
from carbonreport.workflows.plan_latency import LatencyAsk, Probe, measure_latencies
from carbonreport.workflows.plan_latency_file import LatencyFile, Seen, latencies_of, read_latencies, write_latencies

TARGETS = (ClockPair(1710), ClockPair(1200), ClockPair(None, 2201))
PIECE_S = 0.0001
TABLE = "kernel,pass,count,sm_mhz,mem_mhz,seconds,joules\n" + "".join(
    f"{name},{name},1,{sm},auto,{s},{j}\n"
    for name, cells in {"a": ((0.1, 50), (0.1, 30)), "b": ((0.1, 50), (0.2, 60))}.items()
    for sm, (s, j) in zip(("auto", 1200), cells, strict=True)
)


def probe(board, turn, *, by_work):
    """A small load's speed, or the clocks that the driver tells."""
    driver, virtual, nvml = board.driver, board.driver.board(0), board.nvml
    handle = nvml.nvmlDeviceGetHandleByIndex(0)

    def read(is_memory):
        virtual.utilisation(0.1 if is_memory else 1.0, 1.0 if is_memory else 0.1)
        if not by_work:
            driver.advance(PIECE_S)
            return float(nvml.nvmlDeviceGetClockInfo(handle, 2 if is_memory else 1))
        begin_ns = driver.boot_ns()
        virtual.work(PIECE_S)
        return PIECE_S / ((driver.boot_ns() - begin_ns) / 1e9)

    return Probe(read, lambda: driver.boot_ns() / 1e9, turn)


@pytest.mark.parametrize("by_work", [True, False])
@pytest.mark.parametrize("latency_s", [0.0002, 0.006, 0.050])
def test_the_latency_that_the_board_has_is_the_latency_that_is_seen(virtual_board, latency_s, by_work):
    virtual_board.driver.board(0).set(clock_latency_s=latency_s)
    said = []
    with virtual_board.held(TARGETS) as turn:
        rows = measure_latencies(TARGETS, probe(virtual_board, turn, by_work=by_work), LatencyAsk(8, 0.1, 1.0), said.append)

    assert [row.pair for row in rows] == list(TARGETS)
    for row in rows:
        assert (row.asked, row.seen) == (8, 8)
        assert row.median_s == approx(latency_s, abs=3 * PIECE_S)
        assert row.low_s <= row.median_s <= row.p90_s <= row.high_s
    assert len(said) == 3
    assert virtual_board.driver.board(0).peek().core_lock_high_mhz == 0


def test_what_cannot_be_seen_is_not_a_latency(virtual_board):
    with virtual_board.held(TARGETS) as turn:
        (near,) = measure_latencies((ClockPair(1965),), probe(virtual_board, turn, by_work=True), LatencyAsk(4, 0.05, 0.2), print)
        virtual_board.driver.board(0).set(clock_latency_s=5.0)
        (slow,) = measure_latencies((ClockPair(1200),), probe(virtual_board, turn, by_work=True), LatencyAsk(4, 6.0, 0.2), print)

    assert (near.seen, near.median_s) == (0, None)
    assert "too little to be seen" in near.why_not
    assert (slow.asked, slow.seen, slow.why_not) == (4, 0, "no effect within 0.2 s")


def file_of(*rows):
    return LatencyFile(BoundTo("GPU-1", "NVIDIA H200", "580"), "made up", list(rows))


def test_a_plan_is_made_with_the_latency_of_each_target(tmp_path):
    rows = (
        Seen(1200, None, 8, 8, 0.006, 0.007, 0.005, 0.008),
        Seen(None, 2201, 8, 8, 0.1, 0.11, 0.09, 0.2),
        Seen(990, None, 8, 0, why_not="no effect"),
    )
    write_latencies(file_of(*rows), tmp_path / "latency.json")
    core, memory, targets = latencies_of(read_latencies(tmp_path / "latency.json"))

    assert (core.low_s, core.value_s, core.high_s) == (0.005, 0.006, 0.008)
    assert memory.value_s == 0.1
    assert [pair for pair, _ in targets] == [ClockPair(1200), ClockPair(None, 2201)]
    assert "measured on GPU-1" in core.source


def test_a_plan_with_measured_latencies_may_be_followed_and_one_with_typed_or_assumed_ones_not(tmp_path):
    (tmp_path / "table.csv").write_text(TABLE)
    write_latencies(
        file_of(Seen(1200, None, 8, 8, 1e-4, 1e-4, 1e-4, 1e-4), Seen(None, None, 8, 8, 1e-4, 1e-4, 1e-4, 1e-4)), tmp_path / "l.json"
    )
    for more, is_measured in (({"latencies": tmp_path / "l.json"}, True), ({"latency_s": 1e-4}, False), ({"gpu": "Blackwell"}, False)):
        ask = PlanAsk(tmp_path / "table.csv", **more)
        keep_plan(make_plan(ask, 0.05), ask, tmp_path / "plan.json")
        plan = read_plan(tmp_path / "plan.json")
        assert (plan.switches, plan.latency.was_measured, chosen(plan).follow is not None) == (2, is_measured, is_measured)
        assert plan.without_switches.kind == "none"
        assert plan.phases == {"a": plan.phases["a"], "b": plan.phases["b"]}
    with pytest.raises(PlanError, match="the plan is for GPU-2"):
        make_plan(PlanAsk(tmp_path / "table.csv", latencies=tmp_path / "l.json", gpu="GPU-2"), 0.05)
    with pytest.raises(PlanError, match="give one"):
        make_plan(PlanAsk(tmp_path / "table.csv", latencies=tmp_path / "l.json", latency_s=1.0), 0.05)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format":"carbonreport-plan"}', "\xff"])
def test_what_holds_no_latencies_is_one_line(tmp_path, text):
    (tmp_path / "x.json").write_text(text, encoding="latin-1")
    with pytest.raises(PlanError, match="holds no latencies"):
        read_latencies(tmp_path / "x.json")


def test_memory_clocks_are_changed_on_a_board_only_where_that_was_measured(tmp_path):
    (tmp_path / "table.csv").write_text(
        "kernel,count,sm_mhz,mem_mhz,seconds,joules\n"
        "a,1,auto,auto,1.0,100\na,1,auto,2201,1.0,50\n"
        "b,1,auto,auto,1.0,100\nb,1,auto,2201,1.5,60\n"
    )  # fmt: skip
    core, memory = Seen(1200, None, 8, 8, 1e-4, 1e-4, 1e-4, 1e-4), Seen(None, 2201, 8, 8, 1e-3, 1e-3, 1e-3, 1e-3)
    both = Seen(1200, 2201, 8, 8, 1e-4, 1e-4, 1e-4, 1e-4)  # measured from another pair of that memory clock
    for rows, is_followed in (((core,), False), ((core, both), False), ((core, memory), True)):
        write_latencies(file_of(*rows), tmp_path / "l.json")
        ask = PlanAsk(tmp_path / "table.csv", latencies=tmp_path / "l.json")
        answer = make_plan(ask, 0.01)
        keep_plan(answer, ask, tmp_path / "plan.json")
        plan = read_plan(tmp_path / "plan.json")
        assert (plan.switches, chosen(plan).follow is not None) == (2, is_followed)
        assert any("no change of the memory clock alone was measured" in note for note in answer.notes) is not is_followed


def test_a_typed_latency_says_what_was_taken_for_the_memory_clock(tmp_path):
    (tmp_path / "table.csv").write_text(
        "kernel,count,sm_mhz,mem_mhz,seconds,joules\n"
        "a,1,auto,auto,1.0,100\na,1,auto,2201,1.0,50\n"
        "b,1,auto,auto,1.0,100\nb,1,auto,2201,1.5,60\n"
    )  # fmt: skip
    ask = PlanAsk(tmp_path / "table.csv", latency_s=1e-4)
    _, prepared = make_frontier(ask, (0.0, 0.01))
    for notes in (make_plan(ask, 0.01).notes, prepared.notes):
        assert [note for note in notes if note.startswith("nobody gave --memory-latency")]
    assert not any("memory-latency" in note for note in make_plan(replace(ask, memory_latency_s=1e-3), 0.01).notes)


def test_least_energy_times_time_says_that_noise_is_left_out(tmp_path):
    once = "kernel,count,sm_mhz,mem_mhz,seconds,joules\na,1,auto,auto,1.0,100\na,1,1200,auto,1.1,60\n"
    for text, is_said in ((once, False), (once + "a,1,auto,auto,1.02,101\na,1,1200,auto,1.11,62\n", True)):
        (tmp_path / "table.csv").write_text(text)
        notes = make_plan(PlanAsk(tmp_path / "table.csv", latency_s=1e-3, stall_watts=50.0, objective="edp"), None).notes
        assert any("nothing is kept back for the noise" in note for note in notes) is is_said


@pytest.mark.parametrize(
    ("row", "more", "words"),
    [
        ({}, {"version": 99}, "of version 99, this carbonreport reads version 1"),
        ({"sm_mhz": -4}, {}, "sm_mhz is -4"),
        ({"seen": 9}, {}, "9 of 8 changes cannot have been seen"),
        ({"seen": 0}, {}, "0 changes were seen, and 4 of 4 figures are there"),
        ({"median_s": None}, {}, "8 changes were seen, and 3 of 4 figures are there"),
        ({"low_s": 5.0}, {}, "must be above 0 and rise"),
        ({"low_s": -1.0}, {}, "must be above 0 and rise"),
    ],
)
def test_figures_that_cannot_be_are_one_line(tmp_path, row, more, words):
    good = msgspec.to_builtins(file_of(Seen(1200, None, 8, 8, 0.006, 0.007, 0.005, 0.008)))
    (tmp_path / "x.json").write_text(json.dumps(good | more | {"rows": [good["rows"][0] | row]}))

    with pytest.raises(PlanError, match=words):
        read_latencies(tmp_path / "x.json")


def test_changes_that_were_hardly_seen_make_no_plan():
    with pytest.raises(PlanError, match="to SM 1200, memory auto: 1 of 20 changes were seen, fewer than 5"):
        latencies_of(file_of(Seen(1200, None, 20, 1, 0.006, 0.006, 0.006, 0.006)))


def test_a_speed_counts_only_after_three_readings_in_a_row():
    """One reading near the new speed, one far, and three near: the wait ends at the first of the three."""
    now, asked = [0.0], []
    after = iter([10.0, 20.0, 10.0, 10.0, 10.0])

    def read(is_memory):
        now[0] += 1.0
        return next(after) if asked[-1] == ClockPair(1200) and len(asked) == 4 else {None: 20.0, 1200: 10.0}[asked[-1].sm_mhz]

    (row,) = measure_latencies((ClockPair(1200),), Probe(read, lambda: now[0], asked.append), LatencyAsk(1, 5.0, 50.0), [].append)

    assert (row.seen, row.median_s) == (1, 3.0)


def test_a_file_without_any_measured_one_is_refused_for_a_plan():
    with pytest.raises(PlanError, match="no latency that was measured"):
        latencies_of(file_of(Seen(1200, None, 8, 0, why_not="no effect")))


# The command, in real time


def carbonreport(driver, folder, *arguments, may_set=True):
    environ = driver.environ(VIRTUAL_NVML_ROOT=str(int(may_set)), CARBONREPORT_CONTROL_DIR=str(folder / "control"))
    command = [sys.executable, "-m", "carbonreport", "plan", "latency", *arguments]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def driver(make_virtual_driver):
    driver = make_virtual_driver("h200", is_virtual=False)
    driver.board(0).set(clock_latency_s=0.03)
    return driver


def test_under_somebodys_load_the_boards_own_word_is_taken(driver, tmp_path):
    driver.board(0).utilisation(0.6, 0.3)
    done = carbonreport(driver, tmp_path, "--targets", "1200", "--repeats", "6", "-o", "latency.json")

    assert done.returncode == 0, done.stderr
    (row,) = read_latencies(tmp_path / "latency.json").rows
    assert (row.asked, row.seen) == (6, 6)
    assert 0.029 < row.low_s <= row.median_s < 0.2
    assert "clocks that the board tells under load" in read_latencies(tmp_path / "latency.json").method
    assert driver.board(0).peek().core_lock_high_mhz == 0


@pytest.mark.parametrize(("may_set", "is_busy", "words"), [(False, True, "may not set"), (True, False, "nothing else runs on GPU 0")])
def test_what_is_assumed_is_marked_so(driver, tmp_path, may_set, is_busy, words):
    driver.board(0).utilisation(0.6 * is_busy, 0.3 * is_busy)
    done = carbonreport(driver, tmp_path, "--targets", "1200", "--json", may_set=may_set)

    assert done.returncode == 0, done.stderr
    assert words in done.stderr
    found = json.loads(done.stdout)
    assert found["rows"] == []
    assert found["assumed"]["core"][:3] == [0.006, 0.05, 0.1]
    assert driver.board(0).peek().core_lock_high_mhz == 0
    assert "Nothing was measured" in carbonreport(driver, tmp_path, "--targets", "1200", may_set=may_set).stdout


def test_clocks_that_a_board_does_not_have_are_refused(driver, tmp_path):
    done = carbonreport(driver, tmp_path, "--targets", "5000")

    assert (done.returncode, "takes core clocks of 345 to 1980 MHz" in done.stderr) == (1, True)
    assert driver.setter_calls() == []
