"""Asks for the clocks of a phase when the GPU gets there, from a thread of its own.

The program runs ahead of its GPU, so that asking where the phase is launched would be too early, and asking in a callback of the stream would hold the
stream for the length of the call. Here the training thread only leaves a mark in its stream; the helper thread looks whether the GPU has passed it.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from carbonreport.control.controller import ControlError
from carbonreport.plan.table import ClockPair

_EVERY_S = 0.0002
_LONGEST_CALL_S = 10.0  # a driver that hangs must not hold the end of the program back
_MOST_WAITING = 10_000  # phases that the GPU has not reached; a program this far ahead waits for nothing


class Marks(Protocol):
    """Marks in a GPU's work. `mark` runs in the training thread, `resolve` in the helper's."""

    def mark(self) -> object | None:
        """Put a mark behind the work launched so far; None where there is no GPU work to mark."""

    def resolve(self, mark: object) -> int | None:
        """When the GPU reached a mark; None while it has not. [ns]"""


@dataclass(frozen=True, slots=True)
class Follow:
    """What is followed.

    Attributes:
        pairs: Clocks by name of the phase; "backward" is also the end of "train/step/backward".
        sequence: Phases of one iteration in order, or nothing where the plan does not say; clocks are not turned until one iteration ran in that order.
    """

    pairs: Mapping[str, ClockPair]
    sequence: tuple[str, ...] = ()

    def name_of(self, path: str) -> str | None:
        """The phase of a span's path: the longest end of it that is planned."""
        parts = path.split("/")
        return next((name for i in range(len(parts)) if (name := "/".join(parts[i:])) in self.pairs), None)


class Switcher:
    """Follows a plan through the phases of a program.

    Args:
        follow: The plan.
        marks: Marks in the GPU's work; None where work is done when its call returns.
        request: Asks for clocks. Raises ControlError.
        every_s: How often the helper looks. [s]
    """

    def __init__(self, follow: Follow, marks: Marks | None, request: Callable[[ClockPair], None], every_s: float = _EVERY_S) -> None:
        self._follow, self._marks, self._request, self._every_s = follow, marks, request, every_s
        self._waiting: deque[tuple[str, object | None]] = deque(maxlen=_MOST_WAITING)
        self._names: dict[str, str | None] = {}
        self._seen: list[str] = []
        self._is_checked = not follow.sequence
        self._now: ClockPair | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.entered = 0
        self.requests = 0
        self.passed_over = 0
        self.why_stopped = ""

    def enter(self, path: str) -> None:
        """A phase begins here: called in the training thread, which it never holds up."""
        if self.why_stopped:
            return
        name = self._names.get(path, "")
        if name == "":
            name = self._names[path] = self._follow.name_of(path)
        if name is not None:
            self.entered += 1
            self._waiting.append((name, None if self._marks is None else self._marks.mark()))

    def poll(self) -> None:
        """Ask for the clocks of the newest phase that the GPU has reached; called by the helper."""
        reached: str | None = None
        while self._waiting and not self.why_stopped:
            name, mark = self._waiting[0]
            if mark is not None and self._marks is not None and self._marks.resolve(mark) is None:
                break
            self._waiting.popleft()
            self._check(name)
            self.passed_over += reached is not None
            reached = name
        if reached is not None and self._is_checked and not self.why_stopped:
            self._ask(self._follow.pairs[reached])

    def _ask(self, pair: ClockPair) -> None:
        if pair == self._now:
            return
        try:
            self._request(pair)
        except ControlError as error:
            self.why_stopped = str(error)
            return
        self._now = pair
        self.requests += 1

    def _check(self, name: str) -> None:
        """Whether the first iteration runs in the order that was planned for."""
        if self._is_checked:
            return
        wanted: Sequence[str] = self._follow.sequence
        if name != wanted[len(self._seen)]:
            self.why_stopped = f"phase {len(self._seen) + 1} of the first iteration is {name}, planned was {wanted[len(self._seen)]}"
            return
        self._seen.append(name)
        self._is_checked = len(self._seen) == len(wanted)

    def start(self) -> None:
        """Start the helper thread."""
        self._thread = threading.Thread(target=self._run, name="carbonreport-clock-plan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the helper thread; marks that are left are forgotten."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_CALL_S)
            self._thread = None
        self._waiting.clear()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.poll()
