"""Train a small net on made-up data in numpy: `carbonreport run -- python examples/train.py`."""

import numpy as np


def main(epochs: int = 40, batch: int = 256) -> None:
    """Two layers, softmax, plain gradient descent."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((16_384, 64))
    labels = (inputs @ rng.standard_normal((64, 10))).argmax(1)
    first, second = rng.standard_normal((64, 256)) / 8, rng.standard_normal((256, 10)) / 16
    for epoch in range(epochs):
        for i in range(0, len(inputs), batch):
            x, y = inputs[i : i + batch], labels[i : i + batch]
            hidden = np.maximum(x @ first, 0)
            scores = np.exp(hidden @ second)
            slope = scores / scores.sum(1, keepdims=True)
            slope[np.arange(len(y)), y] -= 1
            back = (slope @ second.T) * (hidden > 0)
            second -= 0.3 / batch * hidden.T @ slope
            first -= 0.3 / batch * x.T @ back
        if epoch % 10 == 9:
            right = (np.maximum(inputs @ first, 0) @ second).argmax(1) == labels
            print(f"epoch {epoch + 1}: {right.mean():.1%} right")


if __name__ == "__main__":
    main()
