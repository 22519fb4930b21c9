"""A small load of PyTorch whose speed follows one clock. `torch` comes in as an argument."""

from typing import Any

_CYCLES = 200_000  # of the core clock: a tenth of a millisecond
_BYTES = 1 << 28  # more than any cache holds
_WARM_UP = 20


class TorchSpeed:
    """Spins for a number of core cycles, or copies memory, and says how fast that went.

    Args:
        torch: The module.
        device: CUDA's number of the GPU.
    """

    def __init__(self, torch: Any, device: int) -> None:
        self._torch, self._device = torch, device
        with torch.cuda.device(device):
            self._from = torch.zeros(_BYTES, dtype=torch.uint8, device="cuda")
            self._to = torch.empty_like(self._from)
            self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for is_memory in (False, True):
            for _ in range(_WARM_UP):
                self.read(is_memory)

    def read(self, is_memory: bool) -> float:
        """Pieces of work a second, by events of the GPU itself; takes as long as one piece. [1/s]"""
        torch = self._torch
        with torch.cuda.device(self._device):
            self._begin.record()
            if is_memory:
                self._to.copy_(self._from)
            else:
                torch.cuda._sleep(_CYCLES)
            self._end.record()
            self._end.synchronize()
        return 1000.0 / float(self._begin.elapsed_time(self._end))
