"""What a power sensor still sees of each part of a run, event by event. Pure, stdlib only: it runs beside the user's program.

A key is a part (here a path and a piece of it); its occupancy is 1 while it is open, or a share where several are.
The response is the occupancy seen through the sensor, with its derivatives by width and delay: one pass gives the
normal equations and how they move when the sensor is a little other than believed.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Protocol, TypeVar

from carbonreport.model.sensor import Sensor

K = TypeVar("K")
_GONE = 1e-9

Response = tuple[float, float, float]
"""Occupancy as seen by the sensor, and its derivatives by width and by delay. (1, 1/s, 1/s)"""


class Seen(Protocol[K]):
    """The state of a sensor while a run goes on."""

    def advance(self, seconds: float, open_now: Mapping[K, float]) -> None:
        """Let time pass with these keys open."""

    def responses(self, open_now: Mapping[K, float]) -> list[tuple[K, Response]]:
        """What a reading sees now."""


def seen_by(sensor: Sensor) -> "Seen[K]":
    """The state of a sensor that has seen nothing yet."""
    return _LowPass(sensor.width_s) if sensor.kernel == "low-pass" else _Boxcar(sensor.width_s)


class _LowPass(Seen[K]):
    """s' = (a - s) / tau, solved exactly between events, with u = ds / dtau."""

    def __init__(self, tau_s: float) -> None:
        self._tau_s = tau_s
        self._state: dict[K, tuple[float, float]] = {}

    def advance(self, seconds: float, open_now: Mapping[K, float]) -> None:
        if seconds <= 0:
            return
        decay = math.exp(-seconds / self._tau_s)
        slope = seconds / (self._tau_s * self._tau_s)
        gone = []
        for key, (s, u) in self._state.items():
            occupancy = open_now.get(key, 0.0)
            distance = (s - occupancy) * decay
            self._state[key] = (occupancy + distance, u * decay + distance * slope)
            if not occupancy and abs(distance) < _GONE:
                gone.append(key)
        for key, occupancy in open_now.items():
            if key not in self._state:
                distance = -occupancy * decay
                self._state[key] = (occupancy + distance, distance * slope)
        for key in gone:
            del self._state[key]

    def responses(self, open_now: Mapping[K, float]) -> list[tuple[K, Response]]:
        tau_s = self._tau_s
        return [(key, (s, u, (s - open_now.get(key, 0.0)) / tau_s)) for key, (s, u) in self._state.items()]


class _Boxcar(Seen[K]):
    """Mean occupancy over the last window."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._recent: deque[tuple[float, dict[K, float]]] = deque()  # seconds, what was open
        self._held_s = 0.0

    def advance(self, seconds: float, open_now: Mapping[K, float]) -> None:
        if seconds <= 0:
            return
        self._recent.append((seconds, dict(open_now)))
        self._held_s += seconds
        while self._held_s - self._recent[0][0] >= self._window_s:
            self._held_s -= self._recent.popleft()[0]

    def responses(self, open_now: Mapping[K, float]) -> list[tuple[K, Response]]:
        sums: dict[K, float] = {}
        skip_s = max(0.0, self._held_s - self._window_s)
        at_begin: dict[K, float] = self._recent[0][1] if self._recent and self._held_s >= self._window_s else {}
        for i, (seconds, was_open) in enumerate(self._recent):
            counted_s = seconds - skip_s if i == 0 else seconds
            for key, occupancy in was_open.items():
                sums[key] = sums.get(key, 0.0) + occupancy * counted_s
        window_s = self._window_s
        return [
            (
                key,
                (
                    area / window_s,
                    (at_begin.get(key, 0.0) - area / window_s) / window_s,
                    (at_begin.get(key, 0.0) - open_now.get(key, 0.0)) / window_s,
                ),
            )
            for key, area in sums.items()
        ]
