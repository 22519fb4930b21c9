"""A load whose times are known: matrix multiplications and waiting, of random lengths, on one GPU. `torch` comes in as an argument."""

import random
from collections.abc import Iterator
from typing import Any

from carbonreport.measure.torch_edges import TorchEdges

SIDE = 2048  # of the matrices: 17 GFLOP a product, some tenths of a millisecond on a data-centre board
SHORTEST_S, LONGEST_S = 0.004, 0.070
CHUNK_S = 1.0
BUSY, WAITING, BETWEEN = 0, 1, 2

Stretch = tuple[int, float, float, float]


class KnownLoad:
    """Random telegraph load: the GPU multiplies, then spins, each for 4 to 70 ms.

    Args:
        torch: The module.
        edges: Marks the GPU's work.
        device: CUDA's number of the GPU.
        seed: Of the lengths.
    """

    def __init__(self, torch: Any, edges: TorchEdges, device: int, seed: int = 1) -> None:
        self._torch, self._edges, self._device = torch, edges, device
        self._random = random.Random(seed)
        self._a = torch.randn(SIDE, SIDE, device=device)
        self._b = torch.randn(SIDE, SIDE, device=device)
        self._c = torch.empty_like(self._a)
        self._busy_s = self._time(self._multiply)
        self._spin_s = self._time(self._spin)

    def run(self, seconds: float) -> Iterator[list[tuple[int, int]]]:
        """Second by second: (what began, when on the boot clock [ns]); the last entry ends the chunk."""
        done_s = 0.0
        while done_s < seconds:
            marks = []
            chunk_s = 0.0
            while chunk_s < CHUNK_S:
                for part, one, step_s in ((BUSY, self._multiply, self._busy_s), (WAITING, self._spin, self._spin_s)):
                    length_s = self._random.uniform(SHORTEST_S, LONGEST_S)
                    marks.append((part, self._edges.mark()))
                    for _ in range(max(1, round(length_s / step_s))):
                        one()
                    chunk_s += length_s
            marks.append((BETWEEN, self._edges.mark()))
            self._torch.cuda.synchronize(self._device)
            self._edges.align()
            done_s += chunk_s
            yield [(part, at_ns) for part, mark in marks if mark is not None and (at_ns := self._edges.resolve(mark)) is not None]

    def _multiply(self) -> None:
        self._torch.matmul(self._a, self._b, out=self._c)

    def _spin(self) -> None:
        self._torch.cuda._sleep(1_000_000)  # clock cycles: about half a millisecond; the GPU is busy and draws little

    def _time(self, one: Any) -> float:
        """Length of one step. [s]"""
        torch = self._torch
        for _ in range(20):
            one()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(20):
            one()
        end.record()
        torch.cuda.synchronize(self._device)
        milliseconds: float = begin.elapsed_time(end)
        return milliseconds / 20 / 1000
