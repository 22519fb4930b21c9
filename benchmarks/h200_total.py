"""The tracer's total against another process that reads the same GPU, while PyTorch trains.

    python benchmarks/h200_total.py [--seconds 75] [--out FOLDER]

The other process reads the energy counter and field 186 (instant power) ten times a second. Both are compared with
the record over the run's own window: the counter interpolated at the window's ends, the power integrated. Needs a GPU,
torch and nvidia-ml-py; reads only, sets nothing.
"""

import argparse
import csv
import subprocess
import sys
import time
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path

import carbonreport

FIELD_POWER_INSTANT = 186


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--out", type=Path, default=Path("build/h200"))
    parser.add_argument("--reader", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        read_for_ever(options.reader)
    options.out.mkdir(parents=True, exist_ok=True)
    readings = options.out / "reader.csv"
    reader = subprocess.Popen([sys.executable, __file__, "--reader", str(readings)])
    time.sleep(3)
    try:
        record = train(options.seconds, options.out)
        time.sleep(2)
    finally:
        reader.kill()
        reader.wait()
    compare(record, readings)


def read_for_ever(path: Path) -> None:
    """One line a tenth of a second: time before and after the counter's call, its joules, instant watts."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    with path.open("w", buffering=1) as file:
        while True:
            before_s = time.time()
            joules = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000
            after_s = time.time()
            field = pynvml.nvmlDeviceGetFieldValues(handle, [FIELD_POWER_INSTANT])[0]
            file.write(f"{before_s!r},{after_s!r},{joules!r},{field.value.uiVal / 1000!r}\n")
            time.sleep(max(0.0, 0.1 - (time.time() - before_s)))


def train(seconds: float, out: Path) -> Path:
    """A small transformer on random tokens, steps of varying size, with a pause: the power moves."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True)
    model = nn.Sequential(nn.Embedding(32_000, 1024), nn.TransformerEncoder(layer, 6), nn.Linear(1024, 32_000)).cuda().bfloat16()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4)
    with carbonreport.trace("h200 training", out=out, zone="DE", pue=1.2) as run:
        until = time.monotonic() + seconds
        step = 0
        while time.monotonic() < until:
            batch = (8, 16, 32)[step // 40 % 3]
            tokens = torch.randint(0, 32_000, (batch, 512), device="cuda")
            with run.span("train/step", items=batch):
                loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
                optimiser.zero_grad(set_to_none=True)
                loss.backward()
                optimiser.step()
            step += 1
            if step % 40 == 0:
                torch.cuda.synchronize()
            if step % 400 == 0:
                time.sleep(1.5)
        torch.cuda.synchronize()
    assert run.path is not None
    print(f"trained {step} steps, loss {loss.item():.2f}")
    return run.path


def compare(record: Path, readings: Path) -> None:
    """Print the record's total beside the other process's."""
    run = carbonreport.load(record)
    (device,) = [d for d in run.devices if d.kind == "gpu"]
    trace = next(t for t in run.traces if t.device == device.id)
    ours = trace.joules[-1]
    rows = [[float(x) for x in row] for row in csv.reader(readings.open()) if len(row) == 4]
    begin, end = run.started_s + trace.offsets_s[0], run.started_s + trace.offsets_s[-1]
    counter = _at(rows, end) - _at(rows, begin)
    power = _integral(rows, begin, end)
    print(f"device   {device.name}, method {device.method}: {device.source}")
    print(
        f"window   {end - begin:.2f} s of {run.duration_s:.2f} s, mean power {ours / (end - begin):.1f} W, {len(rows)} readings by the other process"
    )
    print(f"record   {ours:.1f} J")
    print(f"counter  {counter:.1f} J   record / counter - 1 = {(ours / counter - 1) * 100:+.3f} %")
    print(f"186      {power:.1f} J   record / field 186 - 1 = {(ours / power - 1) * 100:+.3f} %")
    spans = sum(sum(s.joules.get(device.id, 0.0) for s in [span]) for span in run.spans)
    print(
        f"spans    {sum(s.count for s in run.spans)} of train/step hold {spans / ours:.1%} of it; notes: {', '.join(n.slug for n in run.notes) or 'none'}"
    )
    print(f"goal     within 1 % of the counter: {'reached' if abs(ours / counter - 1) < 0.01 else 'missed'}")


def _at(rows: list[list[float]], unix_s: float) -> float:
    """The counter at a moment: each reading belongs to the last 0.1 s tick, so half a tick before its call."""
    times = [(before + after) / 2 - 0.05 for before, after, _, _ in rows]
    i = bisect_left(times, unix_s)
    t0, t1, e0, e1 = times[i - 1], times[i], rows[i - 1][2], rows[i][2]
    return e0 + (e1 - e0) * (unix_s - t0) / (t1 - t0)


def _integral(rows: list[list[float]], begin_s: float, end_s: float) -> float:
    """Trapezoids of instant power between two moments. [J]"""
    inside = [(after, watts) for _, after, _, watts in rows if begin_s <= after <= end_s]
    middle = sum((t1 - t0) * (w0 + w1) / 2 for (t0, w0), (t1, w1) in pairwise(inside))
    (first_s, first_watts), (last_s, last_watts) = inside[0], inside[-1]
    return middle + (first_s - begin_s) * first_watts + (end_s - last_s) * last_watts


if __name__ == "__main__":
    main()
