"""Time and energy of the passes of a PyTorch model, with no change to its training loop.

python examples/torch_passes.py [FOLDER]
cd examples && carbonreport plan profile torch_passes:step      # on a GPU: the same passes under pairs of clocks
"""

import sys

try:
    import torch
except ModuleNotFoundError:
    print("this example needs PyTorch: pip install 'carbonreport[torch]'")
    sys.exit()

from carbonreport import trace

device = "cuda" if torch.cuda.is_available() else "cpu"
width, blocks, tokens = (2048, 8, 1024) if device == "cuda" else (64, 2, 16)
layers = [torch.nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True) for _ in range(blocks)]
model = torch.nn.Sequential(*layers).to(device)
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
batch = torch.randn(8, tokens, width, device=device)


def train() -> None:
    optimiser.zero_grad()
    model(batch).pow(2).mean().backward()
    optimiser.step()


def step(span) -> None:
    """One step for `carbonreport plan profile`."""
    span.follow(model, optimiser)
    train()


def main(folder: str = "runs") -> None:
    with trace("passes", out=folder, zone="DE", edges="gpu" if device == "cuda" else "host") as run:
        run.follow(model, optimiser, modules=("1",))
        for _ in range(50):
            train()
    for span in sorted(run.record.spans, key=lambda span: span.path):
        joules = sum(span.joules.values())
        print(f"{span.path:12} {span.count:4} times  {1000 * span.seconds / span.count:8.2f} ms  {joules / span.count:8.3f} J each")


if __name__ == "__main__":
    main(*sys.argv[1:])
