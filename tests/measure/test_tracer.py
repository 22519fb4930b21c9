"""The tracer: what it records, and that it never gets in the way."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.errors import BadPue, CarbonreportError, OutputError, UnknownZone
from carbonreport.measure.meter import Meter
from carbonreport.measure.tracer import RUN_VARIABLE, Run, RunPlan
from carbonreport.model.run import Place, RunRecord
from carbonreport.store import load
from carbonreport.testing import FakeMeter
from carbonreport.workflows.trace import trace, traced


def plan(folder: Path, *meters: Meter, name: str = "run", interval_s: float = 0.1) -> RunPlan:
    ladders = [[("fake", lambda m=meter: m)] for meter in meters]
    return RunPlan(name, "training", folder, Place("DE", "option", "UTC"), "host", ladders, interval_s, {"python": "3"}, load)


def slugs(run: RunRecord) -> set[str]:
    return {note.slug for note in run.notes}


def test_energy_is_power_times_time(tmp_path):
    with Run(plan(tmp_path, FakeMeter(250.0))) as run:
        time.sleep(0.5)

    record = run.record
    assert record.is_complete
    assert record.duration_s == approx(0.5, abs=0.2)
    assert record.traces[0].joules[-1] == approx(250 * record.duration_s, rel=0.01)


def test_a_span_gets_the_energy_of_its_own_time(tmp_path):
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    with Run(plan(tmp_path, FakeMeter(lambda t: 100.0 if t < 0.6 else 700.0))) as run:
        with run.span("quiet"):
            while time.clock_gettime(time.CLOCK_BOOTTIME) - began < 0.4:
                time.sleep(0.01)
        time.sleep(0.4)
        with run.span("busy", items=32):
            time.sleep(0.3)

    spans = {span.path: span for span in run.record.spans}
    quiet, busy = spans["quiet"], spans["busy"]
    assert quiet.joules["GPU-fake"] == approx(100 * quiet.seconds, rel=0.05)
    assert busy.joules["GPU-fake"] == approx(700 * busy.seconds, rel=0.05)
    assert (busy.count, busy.items, quiet.items) == (1, 32, None)


def test_nested_spans_lie_below_their_parents_and_share_nothing(tmp_path):
    with Run(plan(tmp_path, FakeMeter(100.0))) as run, run.span("train"):
        for _ in range(3):
            with run.span("step"), run.span("forward"):
                time.sleep(0.03)
        with run.span("train/eval"):
            time.sleep(0.03)

    spans = {span.path: span for span in _by_path(run.record).values()}
    assert set(spans) == {"train", "train/step", "train/step/forward", "train/eval"}
    assert spans["train/step/forward"].count == 3
    own = sum(span.seconds for span in spans.values())
    assert own == approx(0.12, abs=0.1)
    assert sum(sum(span.joules.values()) for span in spans.values()) == approx(100 * own, rel=0.02)


def _by_path(record):
    return {span.path: span for span in record.spans}


def test_items_may_be_known_only_at_the_end_of_a_span(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as run, run.span("eval") as span:
        span.items = 512

    assert _by_path(run.record)["eval"].items == 512


def test_a_span_decorates_a_function(tmp_path):
    run = Run(plan(tmp_path, FakeMeter(1.0)))

    @run.span("step", items=8)
    def step(x: int) -> int:
        return x + 1

    with run:
        assert [step(i) for i in range(3)] == [1, 2, 3]

    span = _by_path(run.record)["step"]
    assert (span.count, span.items) == (3, 24)


def test_threads_and_tasks_that_overlap_share_the_energy(tmp_path):
    async def task(run: Run, name: str) -> None:
        with run.span(name):
            await asyncio.sleep(0.2)

    async def both(run: Run) -> None:
        with run.span("async"):
            await asyncio.gather(task(run, "a"), task(run, "b"))

    def thread(run: Run) -> None:
        with run.span("thread"):
            time.sleep(0.2)

    with Run(plan(tmp_path, FakeMeter(100.0))) as run:
        threads = [threading.Thread(target=thread, args=(run,)) for _ in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        asyncio.run(both(run))

    record, spans = run.record, _by_path(run.record)
    assert spans["thread"].count == 2
    assert spans["thread"].seconds == approx(2 * 0.2, abs=0.15)
    assert {"async/a", "async/b"} <= set(spans)
    assert sum(sum(s.joules.values()) for s in record.spans) <= record.traces[0].joules[-1] * 1.001


def test_span_energies_and_the_rest_are_the_total_even_for_ten_thousand_spans(tmp_path):
    with Run(plan(tmp_path, FakeMeter(300.0))) as run:
        for _ in range(10_000):
            with run.span("step"):
                pass
        time.sleep(0.2)

    span = _by_path(run.record)["step"]
    assert span.count == 10_000
    assert sum(span.joules.values()) == approx(300 * span.seconds, rel=0.02)


def test_spans_that_come_faster_than_they_can_be_kept_are_left_out_whole_and_counted(tmp_path):
    with Run(plan(tmp_path, FakeMeter(300.0), interval_s=2.0)) as run, run.span("train"):
        time.sleep(0.3)
        for _ in range(120_000):
            with run.span("step"):
                pass

    record = run.record
    spans = _by_path(record)
    assert 10_000 < sum(s.count for s in record.spans if s.path == "train/step") < 120_000
    assert spans["train"].count == 1
    assert "spans-dropped" in slugs(record)


def test_paths_beyond_the_first_64_are_added_to_their_parents_and_said(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as run, run.span("steps"):
        for i in range(100):
            with run.span(f"step {i}"):
                pass

    record = run.record
    assert len({span.path for span in record.spans}) <= 64
    assert sum(span.count for span in record.spans) == 101
    assert "spans-folded" in slugs(record)


def test_a_meter_that_fails_is_a_note_and_the_program_goes_on(tmp_path):
    with Run(plan(tmp_path, FakeMeter(100.0, fail_at_s=0.2), FakeMeter(50.0, device="GPU-other"))) as run:
        time.sleep(0.5)

    record = run.record
    assert "tracer-degraded" in slugs(record)
    other = next(trace for trace in record.traces if trace.device == "GPU-other")
    assert other.joules[-1] == approx(50 * record.duration_s, rel=0.02)


def test_an_exception_of_the_program_passes_through_and_the_record_is_whole(tmp_path):
    with pytest.raises(ZeroDivisionError), Run(plan(tmp_path, FakeMeter(1.0))) as run, run.span("train"):
        1 / 0  # noqa: B018

    assert run.record.is_complete
    assert _by_path(run.record)["train"].count == 1


def test_a_span_that_is_entered_twice_or_left_elsewhere_never_raises(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as run:
        again = run.span("again")
        with again, again:
            pass
        elsewhere = run.span("elsewhere")
        elsewhere.__enter__()
        thread = threading.Thread(target=elsewhere.__exit__)
        thread.start()
        thread.join()

    assert _by_path(run.record)["elsewhere"].count == 1


def test_spans_on_a_gpu_carry_the_note_that_they_are_host_stamps(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as run, run.span("step"):
        pass
    with Run(plan(tmp_path, FakeMeter(1.0, kind="cpu"))) as host_only, host_only.span("step"):
        pass

    assert "host-edges" in slugs(run.record)
    assert "host-edges" not in slugs(host_only.record)


def test_spans_after_the_end_do_nothing(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as run:
        pass

    with run.span("late"):
        pass
    assert run.record.spans == ()


def test_two_runs_in_one_second_of_one_name_have_two_files(tmp_path):
    with Run(plan(tmp_path, FakeMeter(1.0))) as first, Run(plan(tmp_path, FakeMeter(1.0))) as second:
        pass

    assert first.path != second.path
    assert second.record.parent == first.record.id
    assert RUN_VARIABLE not in os.environ


def test_a_hostile_name_stays_inside_its_folder(tmp_path):
    with Run(plan(tmp_path / "runs", FakeMeter(1.0), name="../../etc/pa\nss \N{GRINNING FACE}")) as run:
        pass

    assert run.path is not None
    assert run.path.parent == tmp_path / "runs"
    assert run.record.name == "../../etc/pa\nss \N{GRINNING FACE}"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"zone": "DEE"}, UnknownZone, "unknown grid zone 'DEE'; nearest"),
        ({"pue": 0.9}, BadPue, "below 1"),
        ({"pue": "office"}, BadPue, "unknown PUE 'office'"),
        ({"kind": "trainig"}, CarbonreportError, "unknown kind"),
        ({"interval_s": 10}, CarbonreportError, r"interval 10 s is outside 0\.1 to 2 s"),
        ({"site": "/nowhere/site.toml"}, CarbonreportError, "cannot read the site file"),
    ],
)
def test_what_the_caller_got_wrong_raises_before_the_first_step(tmp_path, options, error, words):
    with pytest.raises(error, match=words):
        trace("run", out=tmp_path, **options)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [None, "", "  ", "\n"])
def test_a_run_without_a_name_is_refused_before_the_first_step(tmp_path, name):
    with pytest.raises(CarbonreportError, match="a run needs a name, such as 'train-resnet'; got"):
        trace(name, out=tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_raises_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(OutputError, match="choose another folder"):
        trace("run", out=tmp_path / "file" / "runs").start()


def test_without_any_sensor_it_works_and_says_what_was_estimated(tmp_path):
    with trace("cpu", out=tmp_path, zone="DE", meters=("hostmodel",)) as run:
        time.sleep(0.3)

    assert [device.method for device in run.record.devices] == ["model"]
    assert "host-modelled" in slugs(run.record)


def test_a_function_is_traced_by_decorating_it(tmp_path):
    @traced("answer", out=tmp_path, meters=("hostmodel",))
    def answer() -> int:
        return 42

    assert answer() == 42
    assert [load(path).name for path in tmp_path.glob("*.jsonl")] == ["answer"]


def in_python(code: str, folder: Path, **kwargs) -> subprocess.CompletedProcess:
    environment = {**os.environ, "OUT": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, check=False, **kwargs)


def test_importing_and_starting_loads_no_numpy_msgspec_or_click(tmp_path):
    code = """
import os, sys
import carbonreport
assert not {"numpy", "pynvml", "msgspec", "click", "jinja2"} & set(sys.modules)
with carbonreport.trace("x", out=os.environ["OUT"], zone="DE", pue=1.2) as run:
    with run.span("a"):
        pass
heavy = {"numpy", "msgspec", "click", "jinja2", "pandas", "torch", "requests"} & set(sys.modules)
assert not heavy, heavy
"""
    done = in_python(code, tmp_path)

    assert done.returncode == 0, done.stderr


def test_a_fork_neither_writes_nor_hangs_and_the_parent_goes_on(tmp_path):
    code = """
import os, time
from carbonreport import trace
with trace("parent", out=os.environ["OUT"], zone="DE", meters=("hostmodel",), interval_s=0.1) as run:
    for _ in range(20):
        with run.span("step"):
            pid = os.fork()
            if pid == 0:
                with run.span("child"):
                    pass
                run.stop()
                os._exit(0)
            os.waitpid(pid, 0)
    pid = os.fork()
    if pid == 0:
        raise SystemExit(7)  # leaves the block and runs exit handlers in the child
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
"""
    done = in_python(code, tmp_path)

    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    record = load(path)
    assert record.is_complete
    assert {span.path: span.count for span in record.spans} == {"step": 20}


def test_a_program_that_forgets_to_stop_gets_a_whole_record(tmp_path):
    done = in_python(
        'import os\nfrom carbonreport import trace\ntrace("x", out=os.environ["OUT"], meters=("hostmodel",)).start()', tmp_path
    )

    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("*.jsonl")
    assert load(path).is_complete


def test_nothing_is_sent_anywhere(tmp_path):
    code = """
import os, socket
def refuse(*a, **k): raise AssertionError("a socket was opened")
socket.socket = socket.create_connection = socket.getaddrinfo = refuse
from carbonreport import trace, statement
with trace("x", out=os.environ["OUT"]) as run:
    pass
statement([run.path], [os.environ["OUT"] + "/energy.md"])
"""
    done = in_python(code, tmp_path)

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "energy.md").exists()


def test_a_record_holds_no_user_host_or_command(tmp_path):
    import getpass
    import platform

    with trace("x", out=tmp_path, meters=("hostmodel",)) as run:
        pass

    text = run.path.read_text() if run.path else ""
    assert platform.node() not in text
    assert str(Path.home()) not in text
    assert f'"{getpass.getuser()}"' not in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_program_leaves_a_readable_record(tmp_path, number):
    code = 'import os, time\nfrom carbonreport import trace\nwith trace("x", out=os.environ["OUT"], meters=("hostmodel",)) as run:\n    print("up", flush=True)\n    time.sleep(60)'
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "OUT": str(tmp_path)}, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(1.5)
    process.send_signal(number)
    process.wait()
    process.stdout.close()

    (path,) = tmp_path.glob("*.jsonl")
    record = load(path)
    assert not record.is_complete
    assert "interrupted" in slugs(record)
    assert record.duration_s > 0.4
