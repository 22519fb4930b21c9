"""Energy of a step by the ticks of a board's counter: it is taken where changes were seen, so that a few seconds are enough."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from carbonreport.errors import CarbonreportError
from carbonreport.plan.table import Array

EVERY_S = 0.0015
NANOSECONDS_PER_SECOND = 1e9
_MILLI = 1000
_LEAST_TICKS = 3
_MOST_WAVES, _TICKS_A_WAVE = 4, 4  # of power inside a step; more than the ticks bear would only add noise

ReadJoules = Callable[[str], float]


@dataclass(slots=True)
class TickWatch:
    """When the counters of boards were seen to change.

    Attributes:
        devices: Boards.
        read: Reads a counter. [J]
        now_ns: The clock of the ticks, that of the steps too.
        ticks: (ns, joules) at each change, by board.
    """

    devices: Sequence[str]
    read: ReadJoules
    now_ns: Callable[[], int]
    ticks: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    _last: dict[str, tuple[int, float]] = field(default_factory=dict)

    def look(self) -> None:
        """Read every counter once; a change lies in the middle between the look before and this one."""
        for device in self.devices:
            joules, now_ns = self.read(device), self.now_ns()
            before = self._last.get(device)
            if before is not None and joules != before[1]:
                self.ticks.setdefault(device, []).append(((before[0] + now_ns) // 2, joules))
            self._last[device] = (now_ns, joules)


@dataclass(frozen=True, slots=True)
class PerStep:
    """One step between ticks.

    Attributes:
        steps: How many lay between the first tick and the last, parts of steps counted.
        seconds: Of one step. [s]
        joules: Of one step, all boards. [J]
    """

    steps: float
    seconds: float
    joules: float


def per_step(ticks: Mapping[str, Sequence[tuple[int, float]]], edges_ns: Sequence[int]) -> PerStep:
    """Time of one step by all of them, and its energy by the ticks inside them.

    Args:
        ticks: By board, as `TickWatch` saw them.
        edges_ns: Begins of the steps, and the end of the last one, rising.

    Raises:
        CarbonreportError: A board ticked too rarely in the steps, or its counter fell.
    """
    edges = np.asarray(edges_ns, dtype=np.float64)
    if edges.size < 2:
        raise CarbonreportError("no whole step was measured: give more seconds a stage")
    counted, joules = [], 0.0
    for device, seen in ticks.items():
        inside = [(at_ns, value) for at_ns, value in seen if edges[0] <= at_ns <= edges[-1]]
        if len(inside) < _LEAST_TICKS:
            raise CarbonreportError(
                f"the energy counter of {device} changed {len(inside)} times in the steps of a stage: give more seconds a stage"
            )
        values = np.array([value for _, value in inside])
        if np.any(np.diff(values) <= 0):
            raise CarbonreportError(f"the energy counter of {device} restarted in a stage; run it again")
        places = np.interp([at_ns for at_ns, _ in inside], edges, np.arange(edges.size))
        counted.append(float(places[-1] - places[0]))
        joules += _joules_a_step(places, values)
    if not counted:
        raise CarbonreportError("no energy counter of a GPU could be read: there is nothing to compare")
    seconds = float(edges[-1] - edges[0]) / NANOSECONDS_PER_SECOND / (edges.size - 1)
    return PerStep(float(np.mean(counted)), seconds, joules)


def _joules_a_step(places: Array, joules: Array) -> float:
    """Energy of one step from a counter's ticks. [J]

    Parts of a step draw different powers, so that a window that ends inside a step is not its share of steps. What a counter shows is a straight line
    over steps, and something that repeats with each of them: its slope is the energy of a step, wherever the ticks fall.

    Args:
        places: How many steps had been done at each tick, rising. Shape (ticks,).
        joules: What the counter showed. [J] Shape (ticks,).
    """
    waves = min(_MOST_WAVES, (places.size - 2) // _TICKS_A_WAVE)
    turns = 2 * np.pi * np.outer(places, np.arange(1, waves + 1))
    design = np.column_stack([places - places.mean(), np.ones_like(places), np.cos(turns), np.sin(turns)])
    return float(np.linalg.lstsq(design, joules - joules.mean(), rcond=1e-6)[0][0])


@contextlib.contextmanager
def beside_in_a_thread(look: Callable[[], None]) -> Iterator[None]:
    """Look every 1.5 ms in a thread of its own; what it raises is raised at the end of the block."""
    stop = threading.Event()
    failed: list[CarbonreportError] = []

    def run() -> None:
        try:
            while not stop.wait(EVERY_S):
                look()
        except CarbonreportError as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="carbonreport-ticks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


def nvml_joules(binding: Any) -> ReadJoules:
    """Reads the energy counter through a started module `pynvml`, or what behaves like it."""
    handles: dict[str, Any] = {}

    def read(device: str) -> float:
        try:
            if device not in handles:
                handles[device] = binding.nvmlDeviceGetHandleByUUID(device)
            return float(binding.nvmlDeviceGetTotalEnergyConsumption(handles[device])) / _MILLI
        except binding.NVMLError as error:
            raise CarbonreportError(f"the energy counter of {device} cannot be read: {error}") from error

    return read
