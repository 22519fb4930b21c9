"""Find how a board's power samples follow its power, from a load whose times are known, and keep it for later runs."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from carbonreport.combine.calibrate import Fit, fit_response
from carbonreport.combine.lattice import Lattice
from carbonreport.errors import MeterError
from carbonreport.measure import torch_edges
from carbonreport.measure.clock import RunClock, SystemClock
from carbonreport.measure.meters.nvml import NvmlMeter
from carbonreport.measure.nvml_power import BufferedPower, Calls
from carbonreport.measure.torch_load import KnownLoad, Stretch
from carbonreport.measure.visible import Board
from carbonreport.nvml import binding
from carbonreport.sensors import calibrations_path, keep

SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was found on one board.

    Attributes:
        board: The board's model.
        fit: The response and how well it explains the load.
        kept: The file it was written to, or None where it does not explain the load.
    """

    board: str
    fit: Fit
    kept: Path | None


@dataclass(frozen=True, slots=True)
class Bench:
    """What a calibration works with: PyTorch, the driver's binding and a clock."""

    edges: torch_edges.TorchEdges
    nvml: Any
    clock: RunClock


def this_machine() -> Bench:
    """The bench of this machine.

    Raises:
        CarbonreportError: PyTorch has no GPU.
        MeterError: There is no NVIDIA driver, or no binding.
    """
    why, way_out = "doctor --calibrate makes its load with PyTorch", "without it the shipped table of sensors is used"
    return Bench(torch_edges.create(why, way_out), binding(), RunClock(SystemClock()))


def calibrate(
    bench: Bench, *, seconds: float = SECONDS, environ: Mapping[str, str] = os.environ, say: Callable[[str], None] = lambda _: None
) -> list[Calibration]:
    """Load every visible NVIDIA GPU in turn and find its sensor's response. Nothing is set on a board.

    Args:
        bench: What to work with.
        seconds: Length of the load on each board. [s]
        environ: Which boards are visible, and where calibrations are kept.
        say: Told what goes on.

    Raises:
        MeterError: A board has no buffered samples.
    """
    meter = NvmlMeter(bench.nvml, environ)
    meter.open(bench.clock)
    try:
        return [_one(bench, i, board, calls, seconds, environ, say) for i, (board, calls) in enumerate(meter.boards())]
    finally:
        meter.close()


def _one(
    bench: Bench, device: int, board: Board, calls: Calls, seconds: float, environ: Mapping[str, str], say: Callable[[str], None]
) -> Calibration:
    say(f"{board.name}: a known load for {seconds:.0f} s")
    with bench.edges.torch.cuda.device(device):
        samples, stretches, period_s = _record(bench, device, calls, seconds)
    fit = fit_response(samples, stretches, period_s=period_s, source=f"found on this {board.name} by doctor --calibrate")
    path = calibrations_path(environ) if fit.is_good else None
    if path is not None:
        keep(path, board.uuid, fit.sensor)
    return Calibration(board.name, fit, path)


def _record(bench: Bench, device: int, calls: Calls, seconds: float) -> tuple[list[tuple[float, float]], list[Stretch], float]:
    """Samples on their lattice, and what was running when."""
    clock, source = bench.clock, BufferedPower(calls)
    source.read(clock)
    load = KnownLoad(bench.edges.torch, bench.edges, device)
    raw: list[tuple[float, float]] = []
    turns: list[tuple[int, float]] = []
    for chunk in load.run(seconds):
        turns += [(part, clock.offset_of_boot_s(at_ns)) for part, at_ns in chunk]
        clock.look()
        raw += source.read(clock)
    if len(raw) < 100:
        raise MeterError(f"{calls.label} has no buffer of power samples; its sensor cannot be calibrated")
    stamps = [offset_s for offset_s, _ in raw]
    period_s = _period(stamps)
    lattice, samples = Lattice(period_s), []
    for i in range(0, len(raw), 50):
        slots = lattice.snap(stamps[i : i + 50])
        samples += [(slot, watts) for slot, (_, watts) in zip(slots, raw[i : i + 50], strict=True) if slot is not None]
    stretches = [(part, from_s, to_s, 1.0) for (part, from_s), (_, to_s) in pairwise(turns)]
    return samples, stretches, period_s


def _period(stamps_s: list[float]) -> float:
    """The sensor's period: the middle distance of two stamps, to a millisecond. [s]"""
    distances = sorted(b - a for a, b in pairwise(stamps_s))
    return max(0.001, round(distances[len(distances) // 2], 3))
