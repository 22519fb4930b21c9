"""What a clock plan is made from, on a real GPU, reading alone: two profiles of one step beside each other, and the energy of its phases.

    python benchmarks/h200_plan.py [profiles] [phases] [latency] [--seconds 18] [--out build/h200-plan]

Needs a GPU, torch and nvidia-ml-py. Sets nothing: no clock, no limit.
"""

import argparse
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

LONG_S = 50e-6
AGREES = 0.10


class Transformer:
    """Eight transformer blocks of 50 million parameters each, bf16 by autocast, AdamW in fp32: forward, backward, optimiser."""

    def __init__(self, width=2048, blocks=8, tokens=(8, 1024)):
        import torch

        torch.manual_seed(1)
        self.torch = torch
        layers = [torch.nn.TransformerEncoderLayer(width, 16, 4 * width, batch_first=True, dropout=0.0) for _ in range(blocks)]
        self.model = torch.nn.Sequential(*layers).cuda()
        self.x = torch.randn(*tokens, width, device="cuda")
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)

    def step(self, span):
        torch = self.torch
        with span("forward"), torch.autocast("cuda", torch.bfloat16):
            loss = self.model(self.x).float().pow(2).mean()
        with span("backward"):
            loss.backward()
        with span("optimiser"):
            self.optimiser.step()
            self.optimiser.zero_grad(set_to_none=False)

    def run(self, seconds):
        """Steps for some time; how many, and how long one took. [s]"""
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            self.step(lambda _: nullcontext())
            count += 1
            if count % 4 == 0:
                self.torch.cuda.synchronize()
        self.torch.cuda.synchronize()
        return count, (time.perf_counter() - begin) / count


def profile_once(work, path, steps=8):
    """One trace of the PyTorch profiler, as it writes it."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(steps):
            work.step(lambda _: nullcontext())
            profiler.step()
        work.torch.cuda.synchronize()
    profiler.export_chrome_trace(str(path))


def kernel_seconds(path):
    """Mean time of each kernel of a trace by what makes it the same kernel, and the iteration. [s]"""
    from carbonreport.plan.launches import iteration_of
    from carbonreport.plan_files.trace import read_trace

    iteration = iteration_of(read_trace(path))
    return {row.launch.key: (row.seconds, row.count) for row in iteration.rows}, iteration


def compared(first, second, least_s=LONG_S):
    """(relative difference, name, seconds, seconds) of kernels of both that last at least so long, the largest first; and those of one alone."""
    both, alone = [], []
    for key in first.keys() | second.keys():
        a, b = first.get(key), second.get(key)
        if max(one[0] for one in (a, b) if one) < least_s:
            continue
        if a is None or b is None:
            alone.append(key[0])
        else:
            both.append((abs(b[0] / a[0] - 1), key[0], a[0], b[0]))
    return sorted(both, reverse=True), alone


def profiles(options):
    work = Transformer()
    count, step_s = work.run(10)
    print(f"    {count} steps to warm up, {1000 * step_s:.2f} ms each without a profiler")
    found = []
    for name in ("first", "second"):
        path = options.out / f"{name}.json"
        profile_once(work, path)
        print(f"    {name} trace: {path.stat().st_size / 1e6:.1f} MB")
        seconds, iteration = kernel_seconds(path)
        found.append(seconds)
        print(
            f"    {name}: {iteration.sequence.size} kernels a step, {len(iteration.rows)} different ones, {iteration.repeats} steps by {iteration.found_by}; "
            f"step {1000 * iteration.seconds:.2f} ms, kernels {1000 * iteration.kernel_seconds:.2f} ms, uncovered {100 * iteration.uncovered_share:.1f} %"
        )
        path.unlink()
        work.run(1)
    both, alone = compared(*found)
    if not both:
        print("    NO kernel of 50 µs or more in both traces")
        return
    share = sum(s * found[0][k][1] for k, (s, _) in found[0].items() if s >= LONG_S) / sum(s * c for s, c in found[0].values())
    print(
        f"    {len(both)} kernels of 50 µs or more in both traces ({100 * share:.1f} % of kernel time); in one alone: {len(alone)} {alone[:3]}"
    )
    for off, name, a, b in both[:5]:
        print(f"        {100 * off:5.2f} %  {1e6 * a:9.1f} µs  {1e6 * b:9.1f} µs  {name[:90]}")
    print(
        f"    largest deviation {100 * both[0][0]:.2f} %, goal within {100 * AGREES:.0f} %: {'yes' if both[0][0] <= AGREES and not alone else 'NO'}"
    )


def phases(options):
    from carbonreport.workflows.plan_measure import NOTHING_SET, ProfileAsk, plan_profile

    work = Transformer()
    work.run(6)
    table = options.out / "table.csv"
    folder = options.out / f"stages-{time.time_ns()}"
    ask = ProfileAsk(repeats=1, seconds=options.seconds, settle_s=2.0, is_dry=True)
    answer = plan_profile(work.step, table, ask, folder=folder, say=lambda line: print(f"    {line}"))
    for _, stage in answer.profiled.stages:
        print(
            f"    {stage.steps:.2f} steps between ticks: {1000 * stage.seconds:.3f} ms, {stage.joules:.3f} J, {stage.joules / stage.seconds:.0f} W a step; "
            f"cores {stage.sm_mhz} MHz, memory {stage.mem_mhz} MHz"
        )
        for phase in stage.phases:
            print(
                f"        {phase.name}: {phase.count} × {1000 * phase.seconds:.3f} ms, {phase.joules:.3f} J ± {1.645 * phase.joules_sd:.3f} (90 %), "
                f"{phase.joules / phase.seconds:.0f} W{', told with ' + phase.told_within if phase.told_within else ''}"
            )
        residual = stage.residual_joules
        print(
            f"        residual {residual:+.3f} J ({100 * residual / stage.joules:+.2f} % of the step), {1000 * stage.outside_seconds:.3f} ms outside phases; nothing was rescaled"
        )
        for slug, text in stage.notes:
            print(f"        {slug}: {text}")
    first, last = (answer.profiled.stages[i][1] for i in (0, -1))
    print(
        f"    the two stages differ by {100 * (last.seconds / first.seconds - 1):+.2f} % of time and {100 * (last.joules / first.joules - 1):+.2f} % of energy"
    )
    print(f"    clocks were set: {answer.is_set}; {NOTHING_SET}")
    print("    the table that `plan solve` reads:", *table.read_text().splitlines()[:8], sep="\n        ")


def latency(options):
    """What can be known without setting: the resolution of the small load by which a change would be seen."""
    import statistics

    import torch

    from carbonreport.control.hooks.torch_speed import TorchSpeed

    speed = TorchSpeed(torch, 0)
    for is_memory in (False, True):
        begin = time.perf_counter()
        readings = [speed.read(is_memory) for _ in range(2000)]
        each_s = (time.perf_counter() - begin) / len(readings)
        middle = statistics.median(readings[500:])
        spread = 1.4826 * statistics.median(abs(r - middle) for r in readings[500:])
        print(
            f"    {'memory' if is_memory else 'cores'}: a reading each {1000 * each_s:.3f} ms, its speed scatters by {100 * spread / middle:.3f} %; no clock was set"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("build/h200-plan"))
    parser.add_argument("--seconds", type=float, default=18.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    import pynvml
    import torch

    pynvml.nvmlInit()
    driver = pynvml.nvmlSystemGetDriverVersion()
    print(torch.cuda.get_device_name(), f"driver {driver}", f"torch {torch.__version__}", sys.version.split()[0])
    for name in options.sections or ["profiles", "phases", "latency"]:
        print(f"{name}:", flush=True)
        begin = time.perf_counter()
        try:
            {"profiles": profiles, "phases": phases, "latency": latency}[name](options)
        except Exception:  # noqa: BLE001 - the other sections are worth having
            traceback.print_exc(file=sys.stdout)
        print(f"    [{time.perf_counter() - begin:.0f} s]", flush=True)
    print("no clock and no limit was set")


if __name__ == "__main__":
    main()
