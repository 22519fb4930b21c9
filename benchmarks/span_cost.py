"""What a span costs: time in the caller's thread, memory and the sampler's work after a million of them.

`python benchmarks/span_cost.py`, with the environments that peers.py has made, or `--envs FOLDER`. Each part runs in
a fresh process. Zeus's window stands beside it where its environment exists; it has no device to read there.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

PROBE = Path(__file__).resolve()
BATCH = 1_000
PAUSE_S = 0.02  # between batches: the sampler takes the edges meanwhile
STEP_S = 0.01  # of a paced stream


def main() -> int:
    """Run the parts in processes of their own, or one part in this one."""
    parser = argparse.ArgumentParser(description="Cost of a span.")
    parser.add_argument("--envs", default=str(PROBE.parents[1] / "build" / "bench-envs"), help="folder of the environments")
    parser.add_argument("--spans", type=int, default=100_000, help="spans that are timed")
    parser.add_argument("--many", type=int, default=1_000_000, help="spans of the memory part")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        PARTS[options.part](options.spans, options.many)
        return 0
    for tool, part in (("carbonreport", "span"), ("zeus", "window"), ("carbonreport", "many"), ("carbonreport", "paced")):
        python = Path(options.envs) / tool / "bin" / "python"
        if not python.exists():
            print(f"{tool}: no environment in the folder given by --envs; peers.py makes it", file=sys.stderr)
            continue
        command = [str(python), "-I", str(PROBE), "--part", part, "--spans", str(options.spans), "--many", str(options.many)]
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            subprocess.run(command, cwd=folder, check=False)
    return 0


# Parts: each prints its line


def span(spans: int, many: int) -> None:
    """Time of `with run.span("x"): pass` beyond that of an empty block, while the tracer runs."""
    from carbonreport import trace

    with trace("spans", zone="DE", out="runs") as run:
        time.sleep(2)  # the meters are open
        spent = batches(partial(run.span, "x"), spans)
        nested = batches_inside(run, spans // 10)
    empty = batches(nullcontext, spans)
    print(f"a span: {words(spent, empty)}")
    print(f"a span in another one: {words(nested, empty)}")
    print(f"the empty block: {words(empty, [0.0])}")


def window(spans: int, many: int) -> None:
    """The same for a window of zeus, opened and closed."""
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(gpu_indices=[])

    def one() -> None:
        monitor.begin_window("x")
        monitor.end_window("x")

    spent = [timed_calls(one) for _ in range(max(spans // BATCH, 5))]
    empty = batches(nullcontext, spans)
    print(f"a window of zeus, no device: {words(spent, empty)}")


def many_at_once(spans: int, many: int) -> None:
    """Memory after spans that come as fast as the program can make them."""
    stream(many, per_second=None)


def many_paced(spans: int, many: int) -> None:
    """Memory after spans that come at twenty thousand a second."""
    stream(many, per_second=20_000)


PARTS: dict[str, Callable[[int, int], None]] = {"span": span, "window": window, "many": many_at_once, "paced": many_paced}


def stream(many: int, per_second: int | None) -> None:
    """Run spans at a rate; peak memory, processor time and what was dropped."""
    from carbonreport import trace

    with trace("spans", zone="DE", out="runs") as run:
        time.sleep(2)
        before_mb, before_cpu_s, begin_s = peak_mb(), time.process_time(), time.perf_counter()
        due = 0.0
        step = many if per_second is None else int(per_second * STEP_S)
        for done in range(0, many, step):
            for _ in range(min(step, many - done)):
                with run.span("x"):
                    pass
            due += STEP_S
            if per_second is not None:
                time.sleep(max(0.0, due - (time.perf_counter() - begin_s)))
        lasted_s, ended_s = time.perf_counter() - begin_s, time.perf_counter()
        result = run.stop()
    stop_s, cpu_s = time.perf_counter() - ended_s, time.process_time() - before_cpu_s
    bytes_kept = sum(file.stat().st_size for file in Path("runs").rglob("*") if file.is_file())
    dropped = (
        "the run did not end in time"
        if result is None
        else next((n.text for n in result.notes if n.slug == "spans-dropped"), "no edge dropped")
    )
    pace = "as fast as possible" if per_second is None else f"at {per_second:,} a second"
    print(
        f"{many:,} spans {pace}: {lasted_s:.1f} s, peak memory {before_mb:.0f} → {peak_mb():.0f} MB, processor {cpu_s:.1f} s"
        f" ({1e6 * cpu_s / many:.1f} µs a span, sampler included), stop {1e3 * stop_s:.0f} ms, record {bytes_kept / 1e3:.1f} kB, {dropped}"
    )


# Timing


def batches(block: Callable[[], object], count: int) -> list[float]:
    """Nanoseconds of `with block(): pass`, one figure of each batch."""
    return [paused(lambda: timed_blocks(block)) for _ in range(max(count // BATCH, 5))]


def batches_inside(run: Any, count: int) -> list[float]:
    """The same in an open span."""
    with run.span("outer"):
        return batches(partial(run.span, "inner"), count)


def paused(measure: Callable[[], float]) -> float:
    time.sleep(PAUSE_S)
    return measure()


def timed_blocks(block: Callable[[], object]) -> float:
    """Nanoseconds of one `with block(): pass`, the mean of a batch."""
    turns = range(BATCH)
    begin_ns = time.perf_counter_ns()
    for _ in turns:
        with block():
            pass
    return (time.perf_counter_ns() - begin_ns) / BATCH


def timed_calls(call: Callable[[], object]) -> float:
    """Nanoseconds of one call, the mean of a batch."""
    turns = range(BATCH)
    begin_ns = time.perf_counter_ns()
    for _ in turns:
        call()
    return (time.perf_counter_ns() - begin_ns) / BATCH


def words(spent: list[float], empty: list[float]) -> str:
    """Median of the batches beyond the empty block, and their middle half. [ns]"""
    ordered, off = sorted(spent), median(empty)
    low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    return f"{median(spent) - off:.0f} ns (middle half {low - off:.0f} to {high - off:.0f})"


def peak_mb() -> float:
    """Peak resident memory of this process. [MB of 10^6 bytes]"""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
