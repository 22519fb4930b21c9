"""Fake machines on which energy trackers are known to go wrong, each with the right answer.

Two boards of 100 and 300 W; processors of 50 and 30 W with memories of 5 and 3 W, and a platform counter that holds them all.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from pytest import approx

from carbonreport.cli.main import cli
from carbonreport.errors import MeterAbsent
from carbonreport.measure.clock import RunClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.meters.rapl import RaplMeter
from carbonreport.store import load
from carbonreport.testing import FakeClock, VirtualGpu, virtual_trace
from carbonreport.testing.nvml import FakeBoard, FakeNvml

SECONDS = 60
UUIDS = ("GPU-11111111-aaaa-4000-8000-000000000001", "GPU-22222222-bbbb-4000-8000-000000000002")
MIG = "MIG-33333333-cccc-5000-8000-000000000003"
FULL = 65_712_999_613


def boards(**options):
    return [FakeBoard(uuid, lambda _s, w=watts: w, **options) for uuid, watts in zip(UUIDS, (100.0, 300.0), strict=True)]


def measured_watts(fakes, environ, *, during=lambda fakes, second: None):
    """Mean power over a minute as a run would count it."""
    clock = FakeClock()
    nvml = FakeNvml(clock, fakes)
    clock.advance(10)
    run_clock = RunClock(clock)
    meter = NvmlMeter(nvml, environ)
    meter.open(run_clock)
    points = {}
    for second in range(SECONDS):
        for _ in range(10):
            clock.advance(0.1)
            run_clock.look()
            poll = meter.poll(is_last=False)
            for reading in poll.readings:
                points.setdefault(reading.device, []).append(reading)
        during(fakes, second)
    for reading in meter.poll(is_last=True).readings:
        points[reading.device].append(reading)
    return sum((p[-1].joules - p[0].joules) / (p[-1].offset_s - p[0].offset_s) for p in points.values())


@pytest.mark.parametrize(
    ("visible", "watts"),
    [(None, 400), ("0,1", 400), ("1", 300), ("0", 100), (UUIDS[1], 300), ("GPU-2222", 300), ("0,-1,1", 100), ("1,1", 300)],
)
def test_the_boards_that_are_visible_are_counted_and_added(visible, watts):
    environ = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}

    assert measured_watts(boards(), environ) == approx(watts, rel=0.005)


@pytest.mark.parametrize("visible", ["", "-1", "GPU-9999", "nonsense"])
def test_where_no_board_is_visible_none_is_counted_and_the_reason_is_said(visible):
    with pytest.raises(MeterAbsent, match="CUDA_VISIBLE_DEVICES"):
        measured_watts(boards(), {"CUDA_VISIBLE_DEVICES": visible})


@pytest.mark.parametrize("name", [MIG, f"MIG-{UUIDS[1]}/1/0"])
def test_a_mig_instance_is_its_whole_board_once(name):
    fakes = boards()
    fakes[1].migs = (MIG,)

    assert measured_watts(fakes, {"CUDA_VISIBLE_DEVICES": name}) == approx(300, rel=0.005)


def test_eight_boards_are_added_not_averaged():
    watts = [100.0 + 29.0 * i for i in range(8)]
    fakes = [FakeBoard(f"GPU-{i}", lambda _s, w=w: w) for i, w in enumerate(watts)]

    assert sum(watts) == approx(1612)
    assert measured_watts(fakes, {}) == approx(1612, rel=0.005)


def test_a_counter_that_restarts_in_the_middle_takes_nothing_away():
    def reset(fakes, second):
        if second == 30:
            fakes[0].reset()

    assert measured_watts(boards(), {}, during=reset) == approx(400, rel=0.01)


def test_a_lone_counter_that_restarts_is_never_negative():
    def reset(fakes, second):
        if second == 30:
            fakes[0].reset()

    only_counter = frozenset({"nvmlDeviceGetSamples", "instant", "nvmlDeviceGetPowerUsage"})
    assert measured_watts(boards(missing=only_counter), {}, during=reset) == approx(400, rel=0.03)


def test_boards_without_a_counter_are_read_by_their_power():
    assert measured_watts(boards(missing=frozenset({"nvmlDeviceGetTotalEnergyConsumption"})), {}) == approx(400, rel=0.005)


def test_nothing_needs_torch(tmp_path):
    """A program in which torch cannot be imported is measured, its spans with it."""
    code = """
import sys, time
sys.modules["torch"] = None
from carbonreport import trace
with trace("x", out=sys.argv[1], zone="DE", meters=("hostmodel",), interval_s=0.1) as run:
    with run.span("a"):
        end_s = time.monotonic() + 1.5
        while time.monotonic() < end_s:
            sum(range(10_000))
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    record = load(next(tmp_path.glob("*.jsonl")))

    assert [span.path for span in record.spans] == ["a"]
    assert record.traces[0].joules[-1] > 0


def powercap(root: Path, second: float, *, wraps_at_s: float | None = None) -> None:
    """The tree at a moment; the first package's counter may run over its end on the way."""
    for path, name, watts in (
        ("intel-rapl:0", "package-0", 50),
        ("intel-rapl:0/intel-rapl:0:0", "dram", 5),
        ("intel-rapl:1", "package-1", 30),
        ("intel-rapl:1/intel-rapl:1:0", "dram", 3),
        ("intel-rapl:2", "psys", 120),
    ):
        folder = root / path
        folder.mkdir(parents=True, exist_ok=True)
        start = FULL - 50_000_000 * (wraps_at_s or 0) if path == "intel-rapl:0" and wraps_at_s else 1_000_000
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text(f"{FULL}\n")
        (folder / "energy_uj").write_text(f"{int(start + watts * 1e6 * second) % (FULL + 1)}\n")


@pytest.mark.parametrize("wraps_at_s", [None, 1, 30])
def test_packages_and_memories_are_added_once_and_the_platform_not_at_all(tmp_path, wraps_at_s):
    clock, joules = FakeClock(), {}
    powercap(tmp_path, 0, wraps_at_s=wraps_at_s)
    meter = RaplMeter(tmp_path, None, lambda _seconds: None)
    meter.open(RunClock(clock))
    for second in range(1, SECONDS + 1):
        clock.advance(1)
        powercap(tmp_path, second, wraps_at_s=wraps_at_s)
        for reading in meter.poll(is_last=False).readings:
            joules[reading.device] = reading.joules

    assert sum(joules.values()) / SECONDS == approx(88.0)
    assert all(j > 0 for j in joules.values())


def test_a_wall_clock_that_is_set_by_an_hour_changes_neither_time_nor_energy(tmp_path):
    clock, gpu = FakeClock(), VirtualGpu(66.0)
    with virtual_trace(clock, gpu, out=tmp_path) as run:
        clock.advance(1)
        clock.step_wall(3600)
        clock.advance(1)

    assert run.record.duration_s == approx(2.0)
    assert run.record.traces[0].joules[-1] == approx(132, rel=0.03)


def test_a_run_killed_after_35_seconds_keeps_all_but_the_last_two(tmp_path):
    """What lies on the disk while the run goes on is what a kill leaves."""
    clock, gpu = FakeClock(), VirtualGpu(300.0)
    run = virtual_trace(clock, gpu, out=tmp_path / "run").start()
    clock.advance(35)
    record = killed(tmp_path)
    give_up_s = time.monotonic() + 20
    while (record.duration_s < 33 or not record.traces or record.traces[0].joules[-1] < 300 * 30) and time.monotonic() < give_up_s:
        time.sleep(0.05)
        record = killed(tmp_path)
    run.stop()

    assert not record.is_complete
    assert record.duration_s >= 33
    assert record.traces[0].joules[-1] == approx(300 * 35, rel=0.06)


def killed(folder):
    for path in (folder / "run").iterdir():
        shutil.copy(path, folder / path.name)
    return load(next(folder.glob("*.jsonl")))


def test_the_command_s_exit_code_is_ours(tmp_path):
    command = [sys.executable, "-m", "carbonreport", "run", "--out", str(tmp_path), "--zone", "DE", "--quiet", "--", "sh", "-c", "exit 3"]

    assert subprocess.run(command, check=False).returncode == 3


def test_a_run_inside_another_is_counted_once(tmp_path):
    clock, gpu, other = FakeClock(), VirtualGpu(300.0), VirtualGpu(300.0)
    with virtual_trace(clock, gpu, out=tmp_path, name="outer") as outer:
        clock.advance(1)
        with virtual_trace(clock, other, out=tmp_path, name="inner") as inner:
            clock.advance(60)
    paths = [str(outer.path), str(inner.path)]
    shown = CliRunner().invoke(cli, ["show", *paths, "--json"])

    assert shown.exit_code == 0
    assert outer.record.traces[0].joules[-1] == approx(300 * 61, rel=0.01)
    told = json.loads(shown.stdout)
    assert told["it_joules"]["value"] == approx(outer.record.traces[0].joules[-1])
    assert "nested-run" in {note["slug"] for note in told["notes"]}
