"""Clocks that are turned while boards are held: only what differs is set, and only what the journal knows."""

from collections.abc import Mapping
from dataclasses import replace

from carbonreport.control.controller import ControlError, Controller
from carbonreport.model.knobs import Knobs

_CLOCKS = ("sm_clock_mhz", "mem_clock_mhz")


class TurnedClocks:
    """Clocks of boards as they are turned.

    Args:
        controller: Sets boards.
        held: What is set on each board at the start, and is in the journal.
    """

    def __init__(self, controller: Controller, held: Mapping[str, Knobs]) -> None:
        self._controller, self._held = controller, held
        self._now = dict(held)

    def turn(self, clocks: Knobs) -> None:
        """Ask for other clocks; one of None is unlocked.

        Raises:
            ControlError: A board does not take them, or they are not within the journal's; every board was tried.
        """
        wanted = {device: _within(clocks, held, device) for device, held in self._held.items()}
        failed: list[ControlError] = []
        for device, knobs in wanted.items():
            try:
                self._turn_one(device, knobs)
            except ControlError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _turn_one(self, device: str, wanted: Knobs) -> None:
        """What differs from now; everything after a call that failed: nobody knows what it left."""
        before = self._now.pop(device, None)
        free, lock = {}, {}
        for name in _CLOCKS:
            now, new = getattr(before or self._held[device], name), getattr(wanted, name)
            if new is None and now is not None:
                free[name] = now
            if new is not None and (before is None or new != now):
                lock[name] = new
        if free:
            self._controller.restore(device, None, Knobs(**free))
        if lock:
            self._controller.set(device, Knobs(**lock))
        self._now[device] = wanted


def _within(clocks: Knobs, held: Knobs, device: str) -> Knobs:
    for name in _CLOCKS:
        most = getattr(held, name)
        if getattr(clocks, name) is not None and (most is None or getattr(clocks, name) > most):
            raise ControlError(f"{device} is held with {held.in_words()}: {clocks.in_words()} would not be taken back after a crash")
    return replace(clocks, power_cap_watts=None)
