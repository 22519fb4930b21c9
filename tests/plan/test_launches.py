"""Profilers' traces: which kernels are the same, where an iteration ends, and what no kernel covers."""

import gzip
import json
import os
from pathlib import Path

import pytest
from pytest import approx

from carbonreport.plan.launches import Launch, iteration_of, period_of
from carbonreport.plan.table import PlanError
from carbonreport.plan_files.trace import read_trace

RECORDED = Path(os.environ.get("CARBONREPORT_RAW", Path(__file__).resolve().parents[3] / "shared" / "data")) / "h200" / "trace.json.gz"
STEP = ["embed", "norm", "mm", "gelu", "mm", "norm", "mm", "gelu", "mm", "loss", "dmm", "dgelu", "dmm", "dmm", "dgelu", "dmm", "adam"]


def launches(names, *, begin_s=0.0, each_s=1e-3, gap_s=1e-4):
    return [Launch(name, (1, 1, 1), (32, 1, 1), 0, 7, begin_s + i * (each_s + gap_s), each_s) for i, name in enumerate(names)]


def event(name, ts, dur, *, cat="kernel", grid=(4, 1, 1), **more):
    args = {"device": 0, "stream": 7, "grid": list(grid), "block": [32, 1, 1], "shared memory": 0, "correlation": ts} | more
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args}


def trace_file(folder, events, name="trace.json"):
    path = folder / name
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def test_an_iteration_is_longer_than_the_loops_inside_it():
    assert period_of(STEP * 3) == (0, len(STEP), 3)
    assert period_of(["warm", "up", *STEP * 4, "end"]) == (2, len(STEP), 4)
    assert period_of((["a"] + ["b", "c"] * 12 + ["d"]) * 2) == (0, 26, 2)


def test_what_does_not_repeat_is_refused():
    for names in (["a", "b", "c", "d"], ["a"], [*STEP, "x", *reversed(STEP)]):
        with pytest.raises(PlanError, match="no iteration repeats"):
            period_of(names)
    with pytest.raises(PlanError, match="no kernels"):
        iteration_of([])


def test_same_name_with_another_launch_is_another_kernel():
    one = Launch("mm", (8, 1, 1), (32, 1, 1), 0, 7, 0.0, 1e-3)
    other = Launch("mm", (16, 1, 1), (32, 1, 1), 0, 7, 2e-3, 2e-3)
    again = [Launch(a.name, a.grid, a.block, 0, 7, a.start_s + 5e-3, a.seconds * 1.1) for a in (one, other)]
    iteration = iteration_of([one, other, *again])

    assert [(row.count, row.launch.grid) for row in iteration.rows] == [(1, (8, 1, 1)), (1, (16, 1, 1))]
    assert [row.seconds for row in iteration.rows] == [approx(1.05e-3), approx(2.1e-3)]
    assert iteration.rows[0].seconds_sd == approx(1e-4 / 2**0.5)


def test_uncovered_time_is_that_of_no_kernel_and_overlap_is_not_counted_twice():
    iteration = iteration_of(launches(["a", "b"] * 3, each_s=3e-3, gap_s=1e-3))
    assert (iteration.seconds, iteration.uncovered_seconds) == (approx(8e-3), approx(2e-3))
    assert iteration.uncovered_share == approx(0.25)

    both = [
        Launch(name, (1, 1, 1), (1, 1, 1), 0, stream, begin + step * 10e-3, 4e-3)
        for step in range(3)
        for name, stream, begin in (("a", 7, 0.0), ("b", 8, 2e-3))
    ]
    overlapping = iteration_of(both)
    assert overlapping.uncovered_seconds == approx(4e-3)
    assert overlapping.overlap_seconds == approx(2e-3)


def test_steps_of_the_profiler_are_taken_where_they_are(tmp_path):
    events = []
    for step in range(3):
        begin = 1000.0 * step
        events += [event("a", begin + 110, 50), event("b", begin + 300, 90), event("cudaLaunchKernel", begin + 110, 1, cat="cuda_runtime")]
        events += [event("cudaLaunchKernel", begin + 300, 1, cat="cuda_runtime")]
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin + 100, "dur": 900})
    iteration = iteration_of(read_trace(trace_file(tmp_path, events)))

    assert (iteration.repeats, [row.launch.name for row in iteration.rows]) == (3, ["a", "b"])
    assert "3 of 3 steps" in iteration.found_by
    assert iteration.seconds == approx(1e-3)


def test_one_step_alone_is_enough_where_the_profiler_marks_it(tmp_path):
    events = [event("a", 10, 5), event("b", 20, 5), {"ph": "X", "cat": "gpu_user_annotation", "name": "ProfilerStep#7", "ts": 5, "dur": 30}]

    assert iteration_of(read_trace(trace_file(tmp_path, events))).repeats == 1


def test_the_gpu_with_most_kernels_is_taken(tmp_path):
    events = [event(name, 10 * i, 5) for i, name in enumerate("abab")] + [event("c", 3, 1, device=1)]

    assert {launch.name for launch in read_trace(trace_file(tmp_path, events, "t.json.gz"))} == {"a", "b"}


NSYS = """Processing [report.sqlite] with [cuda_gpu_trace.py]...

Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name
1000,400,1,,,,,,,,,,4.0,100,Pageable,Device,NVIDIA H200 (0),1,,7,[CUDA memcpy Host-to-Device]
2000,500,2,8,1,1,128,1,1,32,0.001,0.0,,,,,NVIDIA H200 (0),1,,7,"void gemm<float, int>(float*)"
3000,700,3,16,1,1,128,1,1,32,0.0,0.0,,,,,NVIDIA H200 (0),1,,7,relu
4000,500,4,8,1,1,128,1,1,32,0.001,0.0,,,,,NVIDIA H200 (0),1,,7,"void gemm<float, int>(float*)"
5000,900,5,16,1,1,128,1,1,32,0.0,0.0,,,,,NVIDIA H200 (0),1,,7,relu
"""


def test_nsight_systems_is_read_by_its_titles_and_units(tmp_path):
    path = tmp_path / "nsys.csv"
    path.write_text(NSYS)
    iteration = iteration_of(read_trace(path))

    gemm, relu = iteration.rows
    assert (gemm.launch.name, gemm.launch.grid, gemm.launch.block, gemm.launch.shared_bytes) == (
        "void gemm<float, int>(float*)",
        (8, 1, 1),
        (128, 1, 1),
        1000,
    )
    assert (gemm.seconds, relu.seconds) == (approx(500e-9), approx(800e-9))
    path.write_text(NSYS.replace("(ns)", "(us)"))
    assert iteration_of(read_trace(path)).rows[0].seconds == approx(500e-6)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.json", b"", "no profiler trace"),
        ("text.json", b"hello", "no profiler trace"),
        ("other.json", b'{"a": 1}', "traceEvents"),
        ("none.json", b'{"traceEvents": []}', "no kernels"),
        ("cut.json.gz", gzip.compress(b'{"traceEvents": []}' * 99)[:30], "cut off|cannot read"),
        ("binary.json", bytes(range(256)), "no profiler trace"),
        ("bad.json", b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "x", "dur": 1, "args": {}}]}', "no usable time"),
        ("empty.csv", b"", "titles Start"),
        ("titles.csv", NSYS.splitlines()[2].encode(), "no kernels"),
        ("bad.csv", NSYS.replace("2000,500", "2000,long").encode(), r"bad\.csv:5"),
    ],
)
def test_bad_traces_are_one_clear_line(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)

    with pytest.raises(PlanError, match=words) as caught:
        read_trace(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(not RECORDED.is_file(), reason="the recordings are not here")
def test_three_recorded_training_steps_are_found():
    iteration = iteration_of(read_trace(RECORDED))

    assert (iteration.repeats, iteration.sequence.size, iteration.left_out) == (3, 63, 0)
    assert iteration.seconds == approx(0.010, rel=0.01)
    assert 0.03 < iteration.uncovered_share < 0.05
    assert iteration.kernel_seconds + iteration.uncovered_seconds == approx(iteration.seconds, rel=0.005)
