"""What hooks ask of PyTorch while they run. It is asked where the program has imported it, and never imported here."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


def _no() -> bool:
    return False


def _yes() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class TorchNow:
    """Questions to PyTorch.

    Attributes:
        is_compiling: Whether the caller is being compiled; what runs then is not run again later.
        has_gradients: Whether results will have gradients.
        is_in_backward: Whether the caller runs inside a backward pass, as a module does that is computed again there.
        tensor: The type of tensors; none where there is no PyTorch.
    """

    is_compiling: Callable[[], bool] = _no
    has_gradients: Callable[[], bool] = _yes
    is_in_backward: Callable[[], bool] = _no
    tensor: type | tuple[()] = ()


def torch_now() -> TorchNow:
    """The program's own PyTorch, or answers for a program without one."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return TorchNow()
    compiling: Callable[[], bool] = getattr(getattr(torch, "compiler", None), "is_compiling", _no)
    task: Callable[[], int] | None = getattr(torch._C, "_current_graph_task_id", None)
    return TorchNow(compiling, torch.is_grad_enabled, _no if task is None else lambda: task() != -1, torch.Tensor)
