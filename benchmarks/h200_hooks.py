"""Phases by the hooks of PyTorch on a real GPU, and a clock plan that is followed through them, with requests that are written down and set nothing.

    python benchmarks/h200_hooks.py [spans] [plan] [slowdown] [kinds] [--seconds 20] [--out build/h200-hooks]

Needs a GPU, torch and nvidia-ml-py; transformers and lightning for some kinds. Sets nothing: no clock, no limit.
"""

import argparse
import os
import statistics
import sys
import threading
import time
import traceback
from contextlib import nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from h200_plan import Transformer

PHASES = ("forward", "backward", "optimiser")
REQUEST_S = 0.001  # a call to a driver that sets clocks


class Written:
    """Requests for clocks, written down with the time of the call. Calls no driver.

    As the knobs of a run: `RunKnobs` without a board.
    """

    def __init__(self):
        self.asked = []

    def start(self):
        return (), ()

    def turn(self, knobs):
        self.asked.append((time.clock_gettime_ns(time.CLOCK_BOOTTIME), knobs))
        time.sleep(REQUEST_S)

    def stop(self):
        return (), ()

    def abandon(self):
        pass


def made_up_plan(name, driver):
    """A plan of three pairs of clocks for this board, as `plan solve` writes it."""
    from carbonreport.plan.identity import sequence_hash
    from carbonreport.plan_file import BoundTo, PlanFile, Ratio, UsedLatency

    one = Ratio(1.0, 1.0, 1.0)
    return PlanFile(
        board=BoundTo(model=name, driver=driver),
        sequence_hash=sequence_hash(PHASES),
        invocations=3,
        slowdown=0.01,
        latency=UsedLatency(1e-3, 1e-3, 1e-3, "measured nowhere, made up", 100.0, "late", is_measured=True),
        kind="pass",
        pairs=[(1830, None), (1500, None), (1110, None)],
        segments=[(0, 0), (1, 1), (2, 2)],
        cap_watts=None,
        time_ratio=one,
        energy_ratio=one,
        switches=3,
        phases=dict(zip(PHASES, range(3), strict=True)),
        sequence=list(PHASES),
    )


def planned_run(options, plan, written):
    """A run that follows a plan and sets nothing."""
    from carbonreport.workflows.begin import plan_run
    from carbonreport.workflows.place import PlaceOptions
    from carbonreport.workflows.plan_apply import PlanKnobs
    from carbonreport.workflows.plan_run import PlannedRun, gpu_marks

    marks, why_not = gpu_marks()
    knobs = PlanKnobs(plan, os.environ, why_not_followed=why_not, marks=marks, make_knobs=lambda _: written)
    place = PlaceOptions(zone=None, pue=None, site=None)
    run = plan_run(
        "hooks",
        kind="training",
        folder=options.out,
        options=place,
        interval_s=1.0,
        meters=("nvml",),
        environ=os.environ,
        edges="gpu",
        clock_plan=knobs,
    )
    return PlannedRun(run, knobs), knobs


def silent(_):
    return nullcontext()


def steps_for(work, seconds, span):
    begin, count = time.perf_counter(), 0
    while time.perf_counter() - begin < seconds:
        work.step(span)
        count += 1
        if count % 4 == 0:
            work.torch.cuda.synchronize()
    work.torch.cuda.synchronize()
    return count, (time.perf_counter() - begin) / count


def spans(options):
    """The same step with spans by hand and by hooks: time and energy of its passes."""
    from carbonreport import trace
    from carbonreport.combine.span_power import span_power

    work = Transformer()
    work.run(6)
    for how in ("by hand", "by hooks", "by hand", "by hooks"):
        with trace("spans", out=options.out, edges="gpu", meters=("nvml",)) as run:
            remove = run.follow(work.model, work.optimiser) if how == "by hooks" else nullcontext
            count, step_s = steps_for(work, options.seconds, silent if how == "by hooks" else run.span)
            remove()
        record = run.record
        power = span_power(record, [d for d in record.devices if d.kind == "gpu" and d.id not in record.unused])
        print(f"    {how}: {count} steps of {1000 * step_s:.2f} ms; notes {sorted({note.slug for note in record.notes})}")
        for one in sorted(record.spans, key=lambda one: one.path):
            joules = sum(j * power.factors.get((device, one.path), 1.0) for device, j in one.joules.items())
            print(f"        {one.path}: {one.count} × {1000 * one.seconds / one.count:.3f} ms, {joules / one.count:.2f} J")


def plan(options):
    """When requests come, beside when the GPU got to the phases."""
    import pynvml
    import torch

    from carbonreport.measure.clock import boot_ns
    from carbonreport.measure.torch_edges import TorchEdges

    work, written = Transformer(), Written()
    work.run(6)
    made = made_up_plan(torch.cuda.get_device_name(), pynvml.nvmlSystemGetDriverVersion())
    run, knobs = planned_run(options, made, written)
    edges, marks = TorchEdges(torch, boot_ns), []
    with run:
        follow_run = run.enter
        run.enter = lambda name: (
            marks.append((name, edges.mark(), threading.current_thread() is threading.main_thread())),
            follow_run(name),
        )
        remove = run.follow(work.model, work.optimiser)
        reached, begin, count = [], time.perf_counter(), 0
        while time.perf_counter() - begin < options.seconds:
            work.step(silent)
            count += 1
            if count % 4 == 0:  # two clocks that are compared once drift apart by more than what is looked for
                torch.cuda.synchronize()
                edges.align()
                reached += [(name, edges.resolve(mark)) for name, mark, _ in marks[len(reached) :]]
        step_s = (time.perf_counter() - begin) / count
        remove()
        reached = [one for one in reached if one[0]]
    switcher = knobs.switcher
    print(
        f"    {count} steps of {1000 * step_s:.2f} ms; requests a step {switcher.requests / count:.3f}, phases {switcher.entered}, passed over {switcher.passed_over}"
    )
    print(
        f"    backward began in PyTorch's own thread {sum(not here for name, _, here in marks if name == 'backward')} of {count} times; order lost {switcher.order.lost} times, why stopped {switcher.why_stopped!r}"
    )
    by_clock = {pair[0]: name for name, pair in zip(PHASES, made.pairs, strict=True)}
    asked = [(by_clock[k.sm_clock_mhz], at) for at, k in written.asked if k.sm_clock_mhz in by_clock]
    late = {name: [] for name in PHASES}
    for name, at in asked:
        begun = [ns for other, ns in reached if other == name and ns <= at]
        if begun:
            late[name].append((at - begun[-1]) / 1e6)
    early = sum(1 for name, at in asked if not any(other == name and 0 <= at - ns < step_s * 1e9 for other, ns in reached))
    for name, values in late.items():
        values.sort()
        print(
            f"        {name}: {len(values)} requests, {statistics.median(values):.3f} ms after the GPU got there (90 % within {values[int(0.9 * len(values))]:.3f} ms)"
        )
    print(f"    requests before the GPU was there: {early}; notes {sorted({note.slug for note in run.record.notes})}")


def slowdown(options):
    """Blocks of steps with hooks and a plan in turns with blocks without."""
    import pynvml
    import torch

    work = Transformer()
    work.run(6)
    ratios, same = [], []
    run, _ = planned_run(options, made_up_plan(torch.cuda.get_device_name(), pynvml.nvmlSystemGetDriverVersion()), Written())
    with run:
        for _ in range(24):
            _, plain_s = work.run(options.seconds / 24)
            remove = run.follow(work.model, work.optimiser)
            _, hooked_s = work.run(options.seconds / 24)
            remove()
            _, again_s = work.run(options.seconds / 24)
            ratios.append(2 * hooked_s / (plain_s + again_s) - 1)
            same.append(again_s / plain_s - 1)
    for name, values in (("hooks and a plan", ratios), ("nothing", same)):
        middle, sd = statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5
        print(f"    {name}: {100 * middle:+.3f} % ± {196 * sd:.3f} (95 %) of {len(values)} blocks")


def phases_of(model, optimiser, steps):
    """What hooks tell of some steps, and whether the backward pass had a thread of its own."""
    import torch

    from carbonreport.measure.torch_phases import follow

    seen, threads = [], set()

    def enter(name):
        seen.append(name)
        if name == "backward":
            threads.add(threading.current_thread() is threading.main_thread())

    remove = follow(enter, model, optimiser)
    steps()
    torch.cuda.synchronize()
    remove()
    words = "the program's" if threads == {True} else "PyTorch's" if threads == {False} else "both" if threads else "no"
    return f"{' '.join(name or '·' for name in seen)} (backward in {words} thread)"


def kinds(options):
    """Models as people have them: two steps each."""
    import torch

    def plain():
        model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(inplace=True), torch.nn.Linear(256, 1)).cuda()
        return model, torch.optim.AdamW(model.parameters(), fused=True), torch.randn(64, 256, device="cuda")

    def twice(step):
        def steps():
            for _ in range(2):
                step()

        return steps

    def eager():
        model, optimiser, x = plain()
        return phases_of(model, optimiser, twice(lambda: (model(x).mean().backward(), optimiser.step())))

    def compiled():
        model, optimiser, x = plain()
        fast = torch.compile(model)
        return phases_of(fast, optimiser, twice(lambda: (fast(x).mean().backward(), optimiser.step())))

    def scaler():
        model, optimiser, x = plain()
        scale = torch.amp.GradScaler("cuda")

        def step():
            with torch.autocast("cuda", torch.float16):
                loss = model(x).mean()
            scale.scale(loss).backward()
            scale.step(optimiser)
            scale.update()

        return phases_of(model, optimiser, twice(step))

    def streams():
        model, optimiser, x = plain()
        side = torch.cuda.Stream()

        def step():
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                model(x).mean().backward()
            torch.cuda.current_stream().wait_stream(side)
            optimiser.step()

        return phases_of(model, optimiser, twice(step))

    def ddp():
        import torch.distributed as dist

        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1"}
        dist.init_process_group("nccl")
        try:
            model, optimiser, x = plain()
            wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])
            return phases_of(wrapped, optimiser, twice(lambda: (wrapped(x).mean().backward(), optimiser.step())))
        finally:
            dist.destroy_process_group()

    def transformers():
        from transformers import GPT2Config, GPT2LMHeadModel

        model = GPT2LMHeadModel(GPT2Config(n_embd=128, n_layer=2, n_head=2, vocab_size=512)).cuda()
        model.gradient_checkpointing_enable()
        optimiser = torch.optim.AdamW(model.parameters())
        tokens = torch.randint(0, 512, (4, 64), device="cuda")
        return phases_of(model, optimiser, twice(lambda: (model(input_ids=tokens, labels=tokens).loss.backward(), optimiser.step())))

    def lightning():
        import lightning

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = plain()[0]

            def training_step(self, batch, _):
                return self.net(batch).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

            def on_train_start(self):
                from carbonreport.measure.torch_phases import follow

                self.seen = []
                self.remove = follow(self.seen.append, self.net, self.optimizers())

            def on_train_end(self):
                self.remove()

        module = Module()
        trainer = lightning.Trainer(
            max_steps=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="gpu", devices=1
        )
        trainer.fit(module, torch.utils.data.DataLoader(torch.randn(128, 256), batch_size=64))
        return " ".join(name or "·" for name in module.seen)

    for one in (eager, compiled, scaler, streams, ddp, transformers, lightning):
        try:
            print(f"    {one.__name__}: {one()}", flush=True)
        except Exception:  # noqa: BLE001 - the other kinds are worth having
            print(f"    {one.__name__}: FAILED")
            traceback.print_exc(file=sys.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path("build/h200-hooks"))
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    import pynvml
    import torch

    pynvml.nvmlInit()
    print(
        torch.cuda.get_device_name(), f"driver {pynvml.nvmlSystemGetDriverVersion()}", f"torch {torch.__version__}", sys.version.split()[0]
    )
    sections = {"spans": spans, "plan": plan, "slowdown": slowdown, "kinds": kinds}
    for name in options.sections or sections:
        print(f"{name}:", flush=True)
        begin = time.perf_counter()
        try:
            sections[name](options)
        except Exception:  # noqa: BLE001 - the other sections are worth having
            traceback.print_exc(file=sys.stdout)
        print(f"    [{time.perf_counter() - begin:.0f} s]", flush=True)
    print("no clock and no limit was set")


if __name__ == "__main__":
    main()
