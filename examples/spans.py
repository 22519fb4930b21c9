"""Training and inference in one run, told apart by spans: python examples/spans.py [FOLDER]."""

import sys

import numpy as np

from carbonreport import statement, trace


def main(folder: str = "runs") -> None:
    """Trace a run with spans and print its statement."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((512, 512)) / 23
    with trace("spans-example", out=folder, zone="FR", pue=1.2) as run:
        for _ in range(200):
            with run.span("train/step", items=512):
                weights += 1e-3 * np.tanh(rng.standard_normal((512, 512)) @ weights)
        with run.span("inference") as span:
            span.items = 2048
            np.tanh(rng.standard_normal((2048, 512)) @ weights)

    (path,) = statement([run.path], [f"{folder}/energy.md"])
    print(path.read_text())


if __name__ == "__main__":
    main(*sys.argv[1:])
