"""A simulated week of eight GPUs at a span a second: size of the record, time to load it, error of the total.

    python benchmarks/week.py [--days 7] [--boards 8]

Time is virtual; powers jump at random between 400 and 700 W every second, the worst case for merging samples.
Goals: under 5 MB, loaded in under 0.5 s, total within 0.1 %.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from carbonreport.measure.clock import RunClock
from carbonreport.measure.sampler import Sampler
from carbonreport.measure.spans import Occurrence, SpanQueue
from carbonreport.model.run import Place
from carbonreport.store import load
from carbonreport.store.writer import RecordWriter, header
from carbonreport.testing import FakeClock, FakeMeter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--boards", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report(Path(folder) / "week.jsonl", options.days, options.boards)


def report(path: Path, days: float, boards: int) -> None:
    seconds = round(days * 86400)
    dice = random.Random(1)
    clock = FakeClock()
    run_clock = RunClock(clock)
    meters = [FakeMeter(lambda _: dice.choice((400.0, 700.0)), device=f"GPU-{i}", step_s=1.0) for i in range(boards)]
    queue = SpanQueue(clock.boot_ns)
    writer = RecordWriter(path)
    writer.append(header("id", "week", "training", "host", None, run_clock.started_s, Place(), {}))
    sampler = Sampler(run_clock, [[("fake", lambda m=m: m)] for m in meters], writer, queue, 1.0)
    sampler.open()
    cpu_s = time.process_time()
    for _ in range(seconds):
        with Occurrence(queue, "train/step", 64):
            clock.advance(0.8)
        clock.advance(0.2)
        sampler.tick()
    cpu_s = time.process_time() - cpu_s
    sampler.finish()
    truth = sum(meter.joules for meter in meters)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        run = load(path)
        took.append(time.perf_counter() - began)
    total = sum(trace.joules[-1] for trace in run.traces)
    print(f"{boards} boards, {days:g} days, {sum(s.count for s in run.spans):,} spans")
    print(f"record   {path.stat().st_size / 1e6:.2f} MB (goal 5)")
    print(f"load     {sorted(took)[2]:.3f} s, median of 5 (goal 0.5)")
    print(f"total    {(total / truth - 1) * 100:+.5f} % (goal 0.1)")
    print(f"sampler  {cpu_s / seconds * 1e3:.2f} ms of CPU a second, fake meters included")


if __name__ == "__main__":
    main()
