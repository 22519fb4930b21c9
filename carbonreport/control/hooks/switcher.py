"""Asks for the clocks of a phase when the GPU gets there, from a thread of its own.

The program runs ahead of its GPU, so that asking where the phase is launched would be too early, and asking in a callback of the stream would hold the
stream for the length of the call. Here the training thread only leaves a mark in its stream; the helper thread looks whether the GPU has passed it.
Whatever ends the plan, boards are unlocked, and why is kept.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from carbonreport.control.controller import ControlError
from carbonreport.control.hooks.follow import Follow, Place, parents
from carbonreport.control.hooks.order import Order
from carbonreport.plan.table import UNLOCKED, ClockPair

_EVERY_S = 0.0002
_LONGEST_CALL_S = 10.0  # a driver that hangs must not hold the end of the program back
_LONGEST_MARK_S = 60.0  # a mark that the GPU has not reached so long after the one before will not tell any more
_LONGEST_GAP_S = 0.1  # after a phase; what runs on is no part of the iteration
_AGAIN_S = 1.0
_MOST_WAITING = 10_000  # phases that the GPU has not reached; a program this far ahead waits for nothing

# Calls something, and says why it failed, or "".
Guard = Callable[[Callable[[], None]], str]


class Marks(Protocol):
    """Marks in a GPU's work. `mark` runs in the training thread, `resolve` in the helper's."""

    def mark(self) -> object | None:
        """Put a mark behind the work launched so far; None where there is no GPU work to mark."""

    def resolve(self, mark: object) -> int | None:
        """When the GPU reached a mark; None while it has not. [ns]"""


def refusals(call: Callable[[], None]) -> str:
    """A guard that knows what controllers raise, and nothing else."""
    try:
        call()
    except ControlError as error:
        return str(error)
    return ""


class Switcher:
    """Follows a plan through the phases of a program.

    Args:
        follow: The plan; its clocks of rest are set already.
        marks: Marks in the GPU's work; None where work is done when its call returns.
        request: Asks for clocks. Raises ControlError.
        every_s: How often the helper looks. [s]
        guard: Keeps what marks and requests raise from the program.
        now_s: A clock that only rises. [s]
        longest_call_s: How long the end waits for a call. [s]
    """

    def __init__(
        self,
        follow: Follow,
        marks: Marks | None,
        request: Callable[[ClockPair], None],
        every_s: float = _EVERY_S,
        *,
        guard: Guard = refusals,
        now_s: Callable[[], float] = time.monotonic,
        longest_call_s: float = _LONGEST_CALL_S,
    ) -> None:
        self._follow, self._marks, self._request, self._every_s = follow, marks, request, every_s
        self._guard, self._now_s, self._longest_call_s = guard, now_s, longest_call_s
        self._waiting: deque[tuple[str | Place, object | None]] = deque(maxlen=_MOST_WAITING)
        self._known: dict[str, str | Place] = {"": Place.AROUND}
        self._open: list[str] = []
        self._now: ClockPair | None = follow.rest
        self._phase: ClockPair | None = None
        self._gap_since_s: float | None = None
        self._head: tuple[object, float] | None = None
        self._again_s = 0.0
        self._is_free = False
        self._asking = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.order = Order(follow.sequence)
        self.entered = 0
        self.requests = 0
        self.passed_over = 0
        self.given_up = 0
        self.why_stopped = ""

    def begin(self, path: str) -> None:
        """A span begins here; phases that begin before its end are in it."""
        self._open.append(path)
        self.enter(path)

    def leave(self, path: str, around: str = "") -> None:
        """A span ends here: the one around it goes on."""
        with suppress(ValueError):  # another thread's span of that name
            self._open.remove(path)
        if self._known.get(path) is not Place.INSIDE:
            self.enter(around)

    def enter(self, path: str) -> None:
        """A phase begins here, or what a path names goes on: called in the training thread, which it never holds up."""
        if self.why_stopped or self._stop.is_set():
            return
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = self._follow.name_of(path) or self._follow.place_of(path)
            if isinstance(found, str):
                self._surround(parents(path))
        if isinstance(found, str):
            self.entered += 1
            self._surround(self._open)
        if found is not Place.INSIDE:
            self._put(found)

    def _surround(self, paths: Sequence[str]) -> None:
        """A phase begins in these: they are no work of their own."""
        for around in tuple(paths):
            if self._known.get(around, Place.OUTSIDE) is Place.OUTSIDE and self._follow.name_of(around) is None:
                self._known[around] = Place.AROUND

    def _put(self, found: str | Place) -> None:
        marks = self._marks
        if marks is None:
            self._waiting.append((found, None))
            return
        why = self._guard(lambda: self._waiting.append((found, marks.mark())))
        if why:
            self.why_stopped = why

    def poll(self) -> None:
        """Ask for the clocks of the newest phase that the GPU has reached; called by the helper."""
        why = "" if self.why_stopped else self._guard(self._look)
        if why:
            self.why_stopped = why
        if self.why_stopped and not self._is_free and self._now_s() >= self._again_s:
            self._unlock()

    def _unlock(self) -> None:
        """The plan has ended before the program: its last clocks must not go on."""
        self._waiting.clear()
        self._again_s = self._now_s() + _AGAIN_S
        with self._asking:
            self._is_free = self._stop.is_set() or not self._guard(lambda: self._request(UNLOCKED))

    def _look(self) -> None:
        wanted: ClockPair | None = None
        phases = 0
        while self._waiting and not self._stop.is_set():
            found, mark = self._waiting[0]
            if mark is not None and not self._is_reached(mark):
                break
            if self._waiting:
                self._waiting.popleft()
            phases += isinstance(found, str)
            wanted = self._at(found) or wanted
        self.passed_over += max(phases - 1, 0)
        wanted = self._after_gap() or self._after_mark() or wanted
        if wanted is not None:
            self._ask(wanted)

    def _is_reached(self, mark: object) -> bool:
        if self._marks is not None and self._marks.resolve(mark) is None:
            if self._head is None or self._head[0] is not mark:
                self._head = (mark, self._now_s())
            return False
        self._head = None
        return True

    def _at(self, found: str | Place) -> ClockPair | None:
        """Clocks that are wanted where the GPU is now; None to leave them as they are."""
        self._gap_since_s = self._now_s() if found is Place.AROUND else None
        if isinstance(found, str):
            was_followed = self.order.is_followed
            self._phase = self._follow.pairs[found] if self.order.take(found) else None
            return UNLOCKED if self._phase is None and was_followed else self._phase
        if found is Place.ON:
            return self._phase
        return UNLOCKED if found is Place.OUTSIDE and self.order.was_found else None

    def _after_gap(self) -> ClockPair | None:
        """Unlocked, where a phase has ended and none has begun for long."""
        since_s = self._gap_since_s
        if since_s is None or not self.order.was_found or self._now_s() - since_s < _LONGEST_GAP_S:
            return None
        return UNLOCKED

    def _after_mark(self) -> ClockPair | None:
        """Unlocked, where a mark does not tell any more: what was behind it is forgotten, and the order is looked for again."""
        if self._head is None or self._now_s() - self._head[1] < _LONGEST_MARK_S:
            return None
        self._head = None
        self._waiting.clear()
        self.order.lose()
        self._phase = None
        self.given_up += 1
        return UNLOCKED

    def _ask(self, pair: ClockPair) -> None:
        if pair == self._now:
            return
        with self._asking:  # the end takes it too: behind it nothing is set any more
            if self._stop.is_set():
                return
            self._now = None  # not known while a call is under way, nor after one that failed
            self._request(pair)
            self._now = pair
            self.requests += 1

    def start(self) -> None:
        """Start the helper thread."""
        self._thread = threading.Thread(target=self._run, name="carbonreport-clock-plan", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the helper thread; marks that are left are forgotten, and nothing is asked for from now on."""
        self._stop.set()
        if self._asking.acquire(timeout=self._longest_call_s):
            self._asking.release()
        if self._thread is not None:
            self._thread.join(self._every_s + 1.0)
            self._thread = None
        self._waiting.clear()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.poll()
