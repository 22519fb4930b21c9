"""Start a command when the window opens: the hours are read again every hour, and the last start is kept whatever happens.

At first it is the rule of `when` that decides: where waiting is not worth it, the command starts at once. Later the best start that the newest
hours name is followed. A reading that fails or takes too long changes nothing but what is known.
"""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from carbonreport.errors import CarbonreportError, FetchError, KeyRefused
from carbonreport.model.option import Option
from carbonreport.units import QUARTER_HOUR_S, SECONDS_PER_HOUR
from carbonreport.workflows.run import spawn_and_wait, watched_signals

if TYPE_CHECKING:  # what they import has threads of its own, and those must begin after signals are blocked
    from carbonreport.workflows.when import Answer

PATIENCE_S = 100.0  # of one reading: a provider's longest answer, and a little
_LONGEST_NAP_S = 60.0  # a clock that is set, or a machine that slept, is noticed so soon
_LOOK_S = 0.05
_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_SIGNAL_BASE = 128

Read = Callable[[float], "Answer"]
"""Prices the starts from a moment on. [POSIX s] Raises FetchError, or TimeoutError where it took too long."""


class Stopped(Exception):
    """A signal came while waiting."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number


@dataclass(frozen=True, slots=True)
class Watch:
    """Time, and how to let it pass.

    Attributes:
        wall: POSIX seconds.
        steady: Seconds that only rise.
        nap: Waits so many seconds, or shorter.
    """

    wall: Callable[[], float]
    steady: Callable[[], float]
    nap: Callable[[float], None]


def wait_for_window(read: Read, typical: Read, *, longest_s: float, watch: Watch, say: Callable[[str], None]) -> None:
    """Return when the command should start.

    Args:
        read: Prices the starts from now on. A first time that fails otherwise than by the network is the caller's.
        typical: The same from a typical day, which needs no network: asked where the first reading fails.
        longest_s: After so long it starts whatever is known. [s]
        watch: Clocks and sleep.
        say: Takes one line for the user.

    Raises:
        CarbonreportError: The first reading found that place or job make no sense.
        Stopped: A signal ended the waiting.
    """
    begin_wall_s, begin_s = watch.wall(), watch.steady()
    last_s = begin_wall_s + longest_s

    def left_s() -> float:
        """Until the last start, by the clock that is further on: one may be set back, the other stands while the machine sleeps."""
        return longest_s - max(watch.wall() - begin_wall_s, watch.steady() - begin_s)

    planned_s = _first(read, typical, watch, last_s, say)
    due_s = watch.steady() + SECONDS_PER_HOUR
    if planned_s <= watch.wall():
        return
    while left_s() > 0 and watch.wall() < planned_s:
        if watch.steady() >= due_s:
            due_s = watch.steady() + SECONDS_PER_HOUR
            planned_s = _again(read, watch, planned_s, last_s, say)
            continue
        watch.nap(max(0.0, min(_LONGEST_NAP_S, left_s(), planned_s - watch.wall(), due_s - watch.steady())))
    say("starting: the time is up" if left_s() <= 0 else "starting: the window is open")


def _first(read: Read, typical: Read, watch: Watch, last_s: float, say: Callable[[str], None]) -> float:
    """The first planned start; now where waiting is not worth it."""
    now_s = watch.wall()
    try:
        answer = read(now_s)
    except KeyRefused:
        raise  # no later hour will mend that
    except (FetchError, TimeoutError) as error:
        say(f"the hours could not be read ({error}); a typical day is taken until they can")
        answer = typical(now_s)
    best = answer.shift
    if best is None or not best.is_advised:
        say(f"starting now: {best.because if best else answer.because}")
        return now_s
    say(f"waiting for {in_words(best)}; it starts by {clock(last_s, best.time_zone)} whatever happens")
    return best.start_s


def _again(read: Read, watch: Watch, planned_s: float, last_s: float, say: Callable[[str], None]) -> float:
    """The planned start by the newest hours; the old one where they cannot be had."""
    now_s = watch.wall()
    try:
        answer = read(now_s)
    except (CarbonreportError, TimeoutError) as error:
        say(f"the hours could not be read again ({error}); still waiting for {clock(planned_s, None)}")
        return planned_s
    best = answer.shift
    new_s = min(best.start_s if best is not None else now_s, last_s)
    if new_s <= now_s or abs(new_s - planned_s) > QUARTER_HOUR_S:
        say(
            f"the window is now {clock(new_s, answer.now.time_zone)}, by the newest hours"
            if new_s > now_s
            else "now is the best start that is left"
        )
    return new_s


def in_words(option: Option) -> str:
    """A start and what it is expected to save."""
    percent = f"{100 * option.saving:.0f} % [{100 * option.low:.0f}, {100 * option.high:.0f}]"
    return f"{clock(option.start_s, option.time_zone)} ({option.zone}: {percent} less by average intensity, chance of a gain {option.chance:.2f})"


def clock(at_s: float, time_zone: str | None) -> str:
    """A moment by the zone's clock, or by this machine's."""
    return f"{datetime.fromtimestamp(at_s, UTC).astimezone(ZoneInfo(time_zone) if time_zone else None):%a %d %b %H:%M %Z}"


def in_time(read: Read, longest_s: Callable[[], float], nap: Callable[[float], None]) -> Read:
    """A reading that gives up: it runs beside, and is left alone when it takes too long or a signal comes.

    Args:
        read: What may hang in the network.
        longest_s: How long it may take from now on.
        nap: Waits a moment, and raises Stopped at a signal.
    """

    def bounded(now_s: float) -> "Answer":
        patience_s = min(PATIENCE_S, longest_s())
        if patience_s <= 0:  # a reading that nobody waits for would still be at work when the process ends, which may abort it
            raise TimeoutError("no time is left for it")
        found: list[Answer | CarbonreportError] = []

        def work() -> None:
            try:
                found.append(read(now_s))
            except CarbonreportError as error:  # raised again where it is waited for
                found.append(error)

        thread = threading.Thread(target=work, daemon=True, name="carbonreport-wait")
        thread.start()
        until_s = time.monotonic() + patience_s
        while thread.is_alive() and time.monotonic() < until_s:
            nap(_LOOK_S)
        if not found:
            raise TimeoutError("no answer in time" if thread.is_alive() else "the reading broke off")
        if isinstance(found[0], CarbonreportError):
            raise found[0]
        return found[0]

    return bounded


def nap_until_signal(seconds: float) -> None:
    """Wait with the stopping signals blocked.

    Raises:
        Stopped: One of them came.
    """
    stopping = {getattr(signal, name) for name in _STOPPING if hasattr(signal, name)}
    came = signal.sigtimedwait(stopping, max(seconds, 0.0))
    if came is not None:
        raise Stopped(came.si_signo)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Signals that are held back, and the mask that was there before."""

    signals: set[signal.Signals]
    old_mask: set[signal.Signals] | set[int]


@contextmanager
def signals_blocked() -> Iterator[Blocked]:
    """Hold back signals; begin it before anything starts a thread (numpy does), or that thread would get them."""
    signals = watched_signals()
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield Blocked(signals, old_mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def run_at_window(
    command: Sequence[str], read: Read, typical: Read, *, longest_s: float, blocked: Blocked, say: Callable[[str], None]
) -> tuple[int, str]:
    """Wait, then run a command to its end: exit code, and why it could not start or "".

    While waiting SIGINT and SIGTERM end it before the command starts; afterwards they are passed on, and none is lost between the two.

    Raises:
        CarbonreportError: Place or job make no sense; the command was not started.
    """
    begin_s = time.monotonic()
    bounded = in_time(read, lambda: longest_s - (time.monotonic() - begin_s), nap_until_signal)
    watch = Watch(time.time, time.monotonic, nap_until_signal)
    try:
        wait_for_window(bounded, typical, longest_s=longest_s, watch=watch, say=say)
    except Stopped as stopped:
        return _SIGNAL_BASE + stopped.number, f"stopped while waiting; {command[0]} was not started"
    sys.stderr.flush()
    return spawn_and_wait(command, blocked.signals, blocked.old_mask)
