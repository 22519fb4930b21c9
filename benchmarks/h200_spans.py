"""The power of short spans on a real GPU, against each load alone, and what it costs.

    python benchmarks/h200_spans.py calibrate|mixes|single|step|edges|slowdown|zeus|cpu [… more sections] [--out FOLDER]

Needs a GPU, torch and nvidia-ml-py; `zeus` needs zeus 0.16. Reads only, sets nothing. `mixes` puts short spans C (spinning) and
D (bf16 products) between A (fp32 products) and B (copies), as README.md beside this file says.
"""

import argparse
import gc
import os
import random
import statistics
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

import numpy as np
import pynvml
import torch

import carbonreport
from carbonreport.combine.attribute import attribute
from carbonreport.combine.single import seen, single_spans
from carbonreport.sensors import find_sensor

QUANTILE = 1.645


def candidates():
    """Loads of many kinds, in steps of some tenths of a millisecond."""
    loads = {}
    for kind, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        for rows, inner, columns in (
            (512, 2048, 2048),
            (1024, 1024, 1024),
            (1536, 1536, 1536),
            (4096, 4096, 4096),
            (256, 4096, 8192),
            (1024, 512, 8192),
        ):
            a, b = torch.randn(rows, inner, device="cuda", dtype=dtype), torch.randn(inner, columns, device="cuda", dtype=dtype)
            c = torch.empty(rows, columns, device="cuda", dtype=dtype)
            loads[f"{kind} {rows}x{inner}x{columns}"] = lambda a=a, b=b, c=c: torch.matmul(a, b, out=c)
    for count in (2**25, 2**28):
        x, y = torch.randn(count, device="cuda"), torch.empty(count, device="cuda")
        loads[f"copy {count}"] = lambda x=x, y=y: y.copy_(x)
        loads[f"sine {count}"] = lambda x=x, y=y: torch.sin(x, out=y)
        loads[f"fill {count}"] = lambda y=y: y.fill_(1.0)
        loads[f"sum {count}"] = lambda x=x: x.sum()
    a64, c64 = torch.randn(1024, 1024, device="cuda", dtype=torch.float64), torch.empty(1024, 1024, device="cuda", dtype=torch.float64)
    loads["fp64 1024x1024x1024"] = lambda: torch.matmul(a64, a64, out=c64)
    for name in (
        "fp32 1536x1536x1536",
        "fp32 4096x4096x4096",
        "copy 268435456",
    ):  # with pauses too short for the sensor, for boards that draw more
        for cycles in (50_000, 150_000):
            loads[f"{name}, spin {cycles}"] = lambda one=loads[name], cycles=cycles: (one(), torch.cuda._sleep(cycles))
    return loads


LAUNCH_BOUND_S = 5e-5


class Loads:
    """A, B and D draw different powers under the most that is asked for; C spins."""

    chosen: ClassVar[dict[str, str]] = {}

    def __init__(self, most_watts=600.0):
        found = candidates()
        if not Loads.chosen:
            counter, watts = Counter(), {}
            for name, one in found.items():
                step_s = self.time(one)
                count = max(1, round(0.02 / step_s))
                if LAUNCH_BOUND_S < step_s < 0.003:  # shorter ones wait for their launches alone, but not in a mix
                    watts[name] = counter.watts_of(lambda one=one, count=count: [one() for _ in range(count)], 1.5)
            fitting = sorted((w, name) for name, w in watts.items() if w < most_watts)
            print("    candidates [W]:", {name: round(w) for w, name in sorted((w, n) for n, w in watts.items())})
            a, b = fitting[-1][1], fitting[-2][1]
            d = next((n for w, n in fitting if w > 450), fitting[-3][1])
            Loads.chosen = {"A": a, "B": b, "D": d}
            print("    chosen:", {k: (v, round(watts[v])) for k, v in Loads.chosen.items()})
        self.one = {k: found[v] for k, v in Loads.chosen.items()} | {"C": lambda: torch.cuda._sleep(400_000)}
        self.step_s = {name: self.time(one) for name, one in self.one.items()}

    @staticmethod
    def time(one, count=60):
        for _ in range(20):
            one()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(count):
            one()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / count / 1000

    def run(self, name, seconds):
        for _ in range(max(1, round(seconds / self.step_s[name]))):
            self.one[name]()


class Counter:
    """Mean power by the energy counter between two ticks."""

    def __init__(self):
        pynvml.nvmlInit()
        self.handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def tick(self):
        before = pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle)
        while True:
            now = pynvml.nvmlDeviceGetTotalEnergyConsumption(self.handle)
            if now != before:
                return time.perf_counter(), now / 1000

    def watts_of(self, work, seconds=5.0):
        """Power of work that goes on and on; the first second is left out."""
        end_s = time.perf_counter() + seconds + 1
        first = None
        while time.perf_counter() < end_s:
            for _ in range(4):
                work()
            torch.cuda.synchronize()
            if first is None and time.perf_counter() > end_s - seconds:
                first = self.tick_while(work)
        last = self.tick_while(work)
        return (last[1] - first[1]) / (last[0] - first[0])

    def tick_while(self, work):
        """A tick that falls into the work: enough of it is queued before."""
        for _ in range(40):
            work()
        found = self.tick()
        torch.cuda.synchronize()
        return found


def show(found, truth=None):
    for path in found.how:
        if path and path in found.told:
            print(f"    {path}: told with {found.told[path].within} ({found.told[path].because})")
            continue
        line = f"    {path or 'outside'}: {found.mean_watts(path):.0f} W ± {QUANTILE * found.sd_watts(path):.0f} ({found.how[path]})"
        if truth and path in truth:
            error = found.mean_watts(path) - truth[path]
            bound = QUANTILE * found.sd_watts(path) + 0.03 * truth[path]
            line += f"; alone {truth[path]:.0f} W, off by {error:+.0f}, bound {bound:.0f}: {'inside' if abs(error) <= bound else 'OUTSIDE'}"
        print(line)
    print(f"    residual {found.residual_watts:.1f} W, free total / counter {1 / found.free_gain:.4f}, limited {found.limited_share}")


def attributed(run):
    sums = next(s for s in run.record.sums)
    seconds, joules = {}, {}
    for span in run.record.spans:
        seconds[span.path] = seconds.get(span.path, 0) + span.seconds
        joules[span.path] = joules.get(span.path, 0) + span.joules.get(sums.device, 0)
    return sums, attribute(sums, {p: joules[p] / seconds[p] for p in seconds if seconds[p] > 0})


def calibrate(options):
    from carbonreport.workflows.calibrate import calibrate as run
    from carbonreport.workflows.calibrate import this_machine

    for found in run(this_machine(), say=print):
        s, f = found.fit.sensor, found.fit
        print(
            f"    {s.kernel} {s.width_s * 1000:.2f} ± {s.width_sd_s * 1000:.2f} ms, delay {s.delay_s * 1000:.2f} ms, residual {f.residual_watts:.1f} of {f.swing_watts:.0f} W, kept {found.kept}"
        )


def mixes(options):
    loads, counter = Loads(), Counter()
    print("    steps [ms]:", {k: round(1000 * v, 3) for k, v in loads.step_s.items()})
    truth = {name: counter.watts_of(lambda n=name: loads.run(n, 0.024)) for name in "ABCD"}
    print("    alone [W]:", {k: round(v) for k, v in truth.items()})
    rng = random.Random(4)
    for short_ms in (16, 8, 4):
        with carbonreport.trace(f"mix{short_ms}", out=options.out, edges="gpu", meters=("nvml",)) as run:
            time.sleep(0.5)
            end_s = time.perf_counter() + 20
            while time.perf_counter() < end_s:
                for name, length_s in (("A", 0.024), ("D", short_ms / 1000), ("B", 0.024), ("C", short_ms / 1000)):
                    with run.span(name):
                        loads.run(name, length_s * rng.uniform(0.85, 1.15))
                torch.cuda.synchronize()
        sums, found = attributed(run)
        counts = {p: t.stretches for p, t in zip(sums.paths, sums.times, strict=True)}
        lengths = {p: round(1000 * t.stretch_s, 2) for p, t in zip(sums.paths, sums.times, strict=True)}
        print(f"  mix {short_ms} ms: repeats {counts}, lengths [ms] {lengths}")
        show(found, truth)
        sensor = find_sensor("NVIDIA H200", "", "samples")
        print("    sensor used:", sums.sensor.kernel, sums.sensor.width_s, sums.sensor.delay_s, sums.sensor.source, "; shipped:", sensor)
        boxcar_of(run, options, truth["C"], short_ms, loads)


def boxcar_of(run, options, true_watts, short_ms, loads):
    """The same mix again with samples taken for means of 20 ms."""
    from carbonreport.measure.meters.nvml import NvmlMeter
    from carbonreport.model.sensor import Sensor

    wrong = Sensor("boxcar", 0.02, 0.0, 0.02, 0.0003, 0.0003, "as means")
    module = sys.modules[NvmlMeter.__module__]
    kept = module.find_sensor
    module.find_sensor = lambda *a, **k: wrong
    rng = random.Random(5)
    try:
        with carbonreport.trace(f"boxcar{short_ms}", out=options.out, edges="gpu", meters=("nvml",)) as other:
            time.sleep(0.5)
            end_s = time.perf_counter() + 18
            while time.perf_counter() < end_s:
                for name, length_s in (("A", 0.024), ("D", short_ms / 1000), ("B", 0.024), ("C", short_ms / 1000)):
                    with other.span(name):
                        loads.run(name, length_s * rng.uniform(0.85, 1.15))
                torch.cuda.synchronize()
    finally:
        module.find_sensor = kept
    _, found = attributed(other)
    watts = float(found.watts[found.paths.index("C")])
    print(f"    samples read as 20 ms means: C {watts:.0f} W, off by {watts - true_watts:+.0f}, residual {found.residual_watts:.0f} W")


LENGTHS_MS = ((24, 32), (32, 48), (48, 72))


def single(options):
    loads, counter = Loads(), Counter()
    truth = {name: counter.watts_of(lambda n=name: loads.run(n, 0.024)) for name in "AC"}
    print("    alone [W]:", {k: round(v) for k, v in truth.items()}, "contrast", round(truth["A"] - truth["C"]))
    rng = random.Random(6)
    found = []
    for part in range(10):
        with carbonreport.trace(f"single{part}", out=options.out, edges="gpu", meters=("nvml",)) as run:
            time.sleep(0.5)
            for i in range(29):
                for name, low, high in (("A", 0.024, 0.072), ("C", 0.024, 0.072)):
                    with run.span(f"{name}{i}"):
                        loads.run(name, rng.uniform(low, high))
                torch.cuda.synchronize()
            time.sleep(0.5)
        sums = run.record.sums[0]
        mean_watts = sums.joules / sums.seconds
        truth = pooled(sums) or truth
        missing = sum(left_out(e, sums.sensor.period_s) for e in sums.excerpts)
        print(f"    in place [W]: { {k: round(v) for k, v in truth.items()} }, samples missing: {missing}")
        for excerpt in sums.excerpts:
            for column, seconds, watts, sd in single_spans(excerpt, sums.sensor, mean_watts):
                name = sums.paths[column][:1]
                if name in truth:
                    found.append((1000 * seconds, watts - truth[name], sd))
    tell_singles(found)


def left_out(excerpt, period_s):
    """Slots of the sensor's lattice without a sample; a late sample is up to 0.56 of a period after its slot."""
    slots = np.array([t for t, _ in excerpt.samples]) / period_s
    slots -= slots[0]
    phase = np.median((slots + 0.5) % 1) - 0.5
    return int((np.diff(np.floor(slots - phase + 0.1)) - 1).clip(0).sum())


def tell_singles(found):
    """Error percentiles and coverage of (length [ms], error [W], sd [W]) by length."""
    rows = np.array(found)
    for low_ms, high_ms in (*LENGTHS_MS, (0, 1000)):
        length_ms, errors, sds = rows[(rows[:, 0] >= low_ms) & (rows[:, 0] < high_ms)].T
        if not length_ms.size:
            continue
        p50, p90, most = np.percentile(np.abs(errors), [50, 90, 100])
        name = f"{low_ms}-{high_ms} ms" if low_ms else "all"
        print(
            f"    {name}: {length_ms.size} spans, errors 50 % within {p50:.1f} W, 90 % within {p90:.1f} W, largest {most:.1f} W, "
            f"median {np.median(errors):+.1f} W; inside their printed 90 %: {np.mean(np.abs(errors) < QUANTILE * sds):.3f}, "
            f"median half-width {QUANTILE * np.median(sds):.1f} W"
        )


def pooled(sums):
    """Power of A and C in the same run, from all their occurrences together."""
    samples = [s for e in sums.excerpts for s in e.samples]
    stretches = [t for e in sums.excerpts for t in e.stretches]
    names = ["A", "C", ""]
    of = np.array([[sums.paths[c][:1] == n for n in names] for c, *_ in stretches], float)
    design = seen(stretches, np.array([t for t, _ in samples]), sums.sensor) @ of
    watts = np.linalg.lstsq(design, np.array([w for _, w in samples]), rcond=None)[0]
    return dict(zip(names[:2], watts[:2].tolist(), strict=True))


class Training:
    """Four transformer blocks of 200 million parameters each, bf16 by autocast, AdamW in fp32: forward, backward, optimiser."""

    def __init__(self, width=4096, blocks=4, tokens=(8, 1024)):
        layers = [torch.nn.TransformerEncoderLayer(width, 32, 4 * width, batch_first=True, dropout=0.0) for _ in range(blocks)]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.x = torch.randn(*tokens, width, device="cuda")
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)
        for _ in range(10):
            self.step(lambda _: nullcontext())
        torch.cuda.synchronize()

    def step(self, span):
        with span("forward"), torch.autocast("cuda", torch.bfloat16):
            loss = self.model(self.x).float().pow(2).mean()
        with span("backward"):
            loss.backward()
        with span("optimiser"):
            self.only_optimiser()

    def only_optimiser(self):
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)


def step(options):
    training, counter = Training(), Counter()
    alone = counter.watts_of(training.only_optimiser, 6.0)
    print(f"    optimiser alone: {alone:.0f} W, {1000 * Loads.time(training.only_optimiser):.2f} ms a step")
    training.step(lambda _: nullcontext())
    with carbonreport.trace("training", out=options.out, edges="gpu", meters=("nvml",)) as run:
        steps, end_s = 0, time.perf_counter() + options.seconds
        while time.perf_counter() < end_s:
            with run.span("step"):
                training.step(run.span)
            steps += 1
            if steps % 4 == 0:
                torch.cuda.synchronize()
    sums, found = attributed(run)
    print(
        f"    {steps} steps in {options.seconds:.0f} s; lengths [ms]",
        {p: round(1000 * t.stretch_s, 2) for p, t in zip(sums.paths, sums.times, strict=True)},
    )
    print(
        "    rhythms:",
        {p: (round(1000 * t.rhythm.period_s, 2), round(1000 * t.rhythm.jitter_s, 2)) for p, t in zip(sums.paths, sums.times, strict=True)},
        found.aliased,
    )
    show(found, {"step/optimiser": alone})
    import subprocess

    print(
        subprocess.run(
            [sys.executable, "-m", "carbonreport", "show", str(run.path), "--zone", "DE", "--pue", "1.2"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    )


def edges(options):
    torch.zeros(1, device="cuda")
    for kind in ("host", "gpu"):
        with carbonreport.trace(f"edges-{kind}", out=options.out, edges=kind, meters=("nvml",)) as run:
            time.sleep(1.5)
            times, empty = [], []
            for i in range(60):
                gc.disable()
                begin = time.perf_counter_ns()
                for _ in range(200):
                    with run.span("x"):
                        pass
                middle = time.perf_counter_ns()
                for _ in range(200):
                    with nullcontext():
                        pass
                end = time.perf_counter_ns()
                gc.enable()
                torch.cuda.synchronize()
                time.sleep(0.25)
                if i >= 20:  # by then the pool has its events
                    times.append((middle - begin) / 400)
                    empty.append((end - middle) / 400)
        low, high = np.percentile(times, [25, 75]) / 1000
        print(
            f"    {kind} edges: {statistics.median(times) / 1000:.2f} µs an edge (quartiles {low:.2f}–{high:.2f}), empty block {statistics.median(empty) / 1000:.2f}"
        )


def slowdown(options):
    training = Training()
    count = max(4, round(1.1 / Loads.time(lambda: training.step(lambda _: nullcontext()), 10)))

    def window(span, steps=count):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            training.step(span)
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    def plain(_):
        return nullcontext()

    rng, ratios, same = random.Random(7), [], []
    for i in range(options.pairs):
        order = [0, 1]
        rng.shuffle(order)
        seconds = {}
        for which in order:
            if which:
                with carbonreport.trace(f"slow{i}", out=options.out, edges="gpu", meters=("nvml",)) as run:
                    time.sleep(0.3)
                    window(run.span, 4)
                    seconds[1] = window(run.span)
            else:
                time.sleep(0.3)
                window(plain, 4)
                seconds[0] = window(plain)
        ratios.append(seconds[1] / seconds[0] - 1)
        a, b = window(plain), window(plain)
        same.append((b / a if rng.random() < 0.5 else a / b) - 1)
    for name, values in (("with three spans", ratios), ("A/A", same)):
        v = np.array(values)
        boot = np.random.default_rng(8)
        medians = [np.median(boot.choice(v, v.size)) for _ in range(4000)]
        means = [np.mean(boot.choice(v, v.size)) for _ in range(4000)]
        print(
            f"    {name}: {v.size} pairs of {count} steps, median {100 * np.median(v):+.3f} % [{100 * np.percentile(medians, 2.5):+.3f}, {100 * np.percentile(medians, 97.5):+.3f}], mean {100 * v.mean():+.3f} % [{100 * np.percentile(means, 2.5):+.3f}, {100 * np.percentile(means, 97.5):+.3f}], a window {1000 * seconds[0]:.0f} ms"
        )


def zeus(options):
    from zeus.monitor import ZeusMonitor

    loads, counter = Loads(), Counter()
    truth = counter.watts_of(lambda: loads.run("D", 0.024))
    monitor = ZeusMonitor(gpu_indices=[0])
    for length_s, count in ((0.02, 60), (0.1, 20), (1.0, 5)):
        watts = []
        for _ in range(count):
            for _ in range(4):
                loads.run("D", 0.02)
            monitor.begin_window("w", sync_execution=True)
            loads.run("D", length_s)
            found = monitor.end_window("w", sync_execution=True)
            watts.append(found.total_energy / found.time)
        print(f"    zeus, windows of {1000 * length_s:.0f} ms: {min(watts):.0f} to {max(watts):.0f} W, true {truth:.0f}")
    with carbonreport.trace("beside-zeus", out=options.out, edges="gpu", meters=("nvml",)) as run:
        for _ in range(700):
            with run.span("D"):
                loads.run("D", 0.02)
            with run.span("C"):
                loads.run("C", random.uniform(0.008, 0.012))
            torch.cuda.synchronize()
    show(attributed(run)[1], {"D": truth})
    training = Training()
    plain = Loads.time(lambda: training.step(lambda _: nullcontext()), 40)

    def windowed():
        monitor.begin_window("s", sync_execution=True)
        training.step(lambda _: nullcontext())
        monitor.end_window("s", sync_execution=True)

    print(f"    a zeus window around each step: {100 * (Loads.time(windowed, 40) / plain - 1):+.1f} %")


def cpu(options):
    training = Training()
    for kind in (None, "gpu"):
        with carbonreport.trace("cpu", out=options.out, edges="gpu", meters=("nvml",)) as run:
            time.sleep(3)
            span = run.span if kind else (lambda _: nullcontext())
            before, begin = thread_seconds(), time.perf_counter()
            end_s = begin + 20
            while time.perf_counter() < end_s:
                training.step(span)
                torch.cuda.synchronize()
            share = (thread_seconds() - before) / (time.perf_counter() - begin)
        print(f"    sampler's processor time, {'three spans a step' if kind else 'no spans'}: {100 * share:.2f} % of a core for one board")


def thread_seconds():
    """Processor time of the sampler's thread."""
    sampler = next(t for t in threading.enumerate() if t.name == "carbonreport-sampler")
    fields = Path(f"/proc/self/task/{sampler.native_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="+")
    parser.add_argument("--out", default="build/h200")
    parser.add_argument("--seconds", type=float, default=370)
    parser.add_argument("--pairs", type=int, default=60)
    options = parser.parse_args()
    print(torch.cuda.get_device_name(), pynvml.__name__, torch.__version__, sys.version.split()[0])
    for name in options.sections:
        print(f"{name}:", flush=True)
        begin = time.perf_counter()
        try:
            globals()[name](options)
        except Exception:  # noqa: BLE001 - the other sections are worth having
            traceback.print_exc(file=sys.stdout)
        print(f"    [{time.perf_counter() - begin:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
