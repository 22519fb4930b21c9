"""A CUDA graph that is captured while the tracer looks at its marks: does the capture hold? Sets nothing.

    python benchmarks/h200_captures.py [seconds]

Needs a GPU, torch and nvidia-ml-py.
"""

import contextlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))


def captured(seconds, run, follow):
    """Capture products for some seconds beside marks that wait, then replay them; what happened."""
    import torch

    x = torch.randn(2048, 2048, device="cuda")
    model = torch.nn.Linear(2048, 2048).cuda()
    if follow:
        run.follow(model)
    span = run.span if run is not None else lambda _: contextlib.nullcontext()
    for _ in range(200):
        with span("before"), torch.no_grad():
            model(x)
    torch.cuda.synchronize()
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                x @ x
            for _ in range(200):
                with span("before"):
                    x @ x
            with torch.cuda.graph(graph, stream=stream):
                begin = time.perf_counter()
                while time.perf_counter() - begin < seconds:
                    x @ x
                    time.sleep(0.01)
        graph.replay()
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 - what is looked for
        return f"BROKEN: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
    return "held"


def main():
    import torch

    from carbonreport import trace

    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    print(torch.cuda.get_device_name(), f"torch {torch.__version__}", f"a capture of {seconds:g} s")
    print("    without a tracer:", captured(seconds, None, False))
    for edges in ("host", "gpu"):
        for follow in (False, True):
            with tempfile.TemporaryDirectory() as folder, trace("capture", out=folder, edges=edges, meters=("nvml",)) as run:
                print(f"    edges={edges!r}{', followed' if follow else ''}:", captured(seconds, run, follow))
    print("no clock and no limit was set")


if __name__ == "__main__":
    main()
