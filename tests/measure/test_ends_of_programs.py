"""However a program ends, starts others, or is driven, its record is whole or says what is missing, and nothing is counted twice."""

import code as interactive
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from carbonreport import trace
from carbonreport.store import load

START = """
import os, sys, time
from carbonreport import trace
run = trace("x", out=os.environ["OUT"], zone="DE", meters=("hostmodel",), interval_s=0.1)
run.start()
time.sleep(0.6)
"""


def program(code: str, folder: Path) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", START + code], env={**os.environ, "OUT": str(folder)}, stdout=subprocess.PIPE, text=True)


def record_of(folder: Path):
    (path,) = folder.glob("*.jsonl")
    return load(path)


@pytest.mark.parametrize("code", ["os._exit(3)", "os.kill(os.getpid(), 9)", "os.abort()"])
def test_an_end_without_goodbye_keeps_all_but_the_last_moments(tmp_path, code):
    program(code, tmp_path).wait(30)
    record = record_of(tmp_path)

    assert not record.is_complete
    assert record.duration_s > 0.3
    assert "interrupted" in {note.slug for note in record.notes}


def test_a_program_that_is_terminated_keeps_all_but_the_last_moments(tmp_path):
    running = program("print('ready', flush=True)\ntime.sleep(60)", tmp_path)
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGTERM)

    assert running.wait(30) == -signal.SIGTERM, "the tracer installs no handler of its own"
    assert record_of(tmp_path).duration_s > 0.3


def test_a_handler_that_exits_on_sigterm_gets_a_whole_record(tmp_path):
    code = """
import signal
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print('ready', flush=True)
time.sleep(60)
"""
    running = program(code, tmp_path)
    assert running.stdout is not None
    running.stdout.readline()
    running.send_signal(signal.SIGTERM)

    assert running.wait(30) == 0
    assert record_of(tmp_path).is_complete


def test_spawned_workers_leave_no_records_and_the_parent_s_is_whole(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(
        """
import multiprocessing, os
from carbonreport import trace

def work(i):
    return i * i

if __name__ == "__main__":
    with trace("parent", out=os.environ["OUT"], zone="DE", meters=("hostmodel",)) as run:
        for method in ("spawn", "forkserver", "fork"):
            with multiprocessing.get_context(method).Pool(2) as pool, run.span(method):
                assert pool.map(work, range(8)) == [i * i for i in range(8)]
"""
    )
    done = subprocess.run(
        [sys.executable, str(script)], env={**os.environ, "OUT": str(tmp_path)}, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    record = record_of(tmp_path)
    assert record.is_complete
    assert {span.path for span in record.spans} == {"spawn", "forkserver", "fork"}


def test_a_worker_that_traces_itself_lies_inside_its_parent(tmp_path):
    code = """
import subprocess
inner = 'import os; from carbonreport import trace\\nwith trace("inner", out=os.environ["OUT"], meters=("hostmodel",)): pass'
subprocess.run([sys.executable, "-c", inner], check=True)
run.stop()
"""
    assert program(code, tmp_path).wait(60) == 0
    records = {record.name: record for record in map(load, tmp_path.glob("*.jsonl"))}

    assert records["inner"].parent == records["x"].id


def test_cells_of_a_notebook_may_begin_and_end_a_run(tmp_path):
    """A notebook runs each cell in one namespace, a failed one in the middle; the run goes on."""
    kernel = interactive.InteractiveInterpreter({"out": tmp_path})
    kernel.write = lambda _text: None  # type: ignore[method-assign]
    cells = (
        "from carbonreport import trace\nrun = trace('cells', out=out, meters=('hostmodel',), interval_s=0.1).start()\n",
        "span = run.span('train')\nspan.__enter__()\n",
        "1 / 0\n",
        "span.__exit__(None, None, None)\nresult = run.stop()\n",
    )
    for cell in cells:
        kernel.runcode(compile(cell, "cell", "exec"))
        time.sleep(0.2)
    record = record_of(tmp_path)

    assert record.is_complete
    assert {span.path: span.count for span in record.spans} == {"train": 1}
    assert kernel.locals["result"].duration_s > 0.5


def test_a_span_may_begin_in_one_thread_and_end_in_another(tmp_path):
    with trace("threads", out=tmp_path, meters=("hostmodel",), interval_s=0.1) as run:
        span = run.span("across")
        span.__enter__()
        other = threading.Thread(target=span.__exit__, args=(None, None, None))
        other.start()
        other.join()
        with run.span("after"):
            pass

    counts = {span.path: span.count for span in run.record.spans}
    assert counts == {"across": 1, "across/after": 1}, "the beginning thread is still inside what another one ended"


def test_a_generator_that_is_left_inside_a_span_closes_it(tmp_path):
    with trace("generator", out=tmp_path, meters=("hostmodel",), interval_s=0.1) as run:

        def batches():
            for i in range(10):
                with run.span("load"):
                    yield i

        for i in batches():
            if i == 2:
                break

    assert {span.path: span.count for span in run.record.spans} == {"load": 3}


def test_a_recursive_function_is_a_span_inside_itself_and_counted_each_time(tmp_path):
    with trace("deep", out=tmp_path, meters=("hostmodel",), interval_s=0.1) as run:

        @run.span("f")
        def f(n: int) -> None:
            if n:
                f(n - 1)

        f(4)

    assert sum(span.count for span in run.record.spans) == 5
