"""The processes of a distributed job as one: what each used is added, the slowest counts. torch is touched only where the program itself uses it."""

import sys
from typing import Any, Protocol


class Together(Protocol):
    """All ranks of a job."""

    def reduce(self, joules: float, seconds: float, items: float) -> tuple[float, float, float]:
        """Sum of joules, longest time, sum of items, once every rank has called; NaN items stay NaN."""


class Alone:
    """A job of one process."""

    def reduce(self, joules: float, seconds: float, items: float) -> tuple[float, float, float]:
        """See Together."""
        return joules, seconds, items


class TorchTogether:
    """The ranks of torch.distributed's default group.

    Args:
        torch: The module, its default group initialised.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def reduce(self, joules: float, seconds: float, items: float) -> tuple[float, float, float]:
        """See Together."""
        torch, distributed = self._torch, self._torch.distributed
        device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
        sums = torch.tensor([joules, items], dtype=torch.float64, device=device)
        longest = torch.tensor([seconds], dtype=torch.float64, device=device)
        distributed.all_reduce(sums, op=distributed.ReduceOp.SUM)
        distributed.all_reduce(longest, op=distributed.ReduceOp.MAX)
        return float(sums[0]), float(longest[0]), float(sums[1])


def together_here() -> Together:
    """The ranks of this process's job."""
    torch = sys.modules.get("torch")
    distributed = getattr(torch, "distributed", None)
    if torch is None or distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return Alone()
    return TorchTogether(torch)


def wait_for_gpu() -> None:
    """Let the work that was launched so far end, so that a stage's energy is its own; nothing where torch is not at work on a GPU."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
