"""Caps and clocks of a run: which boards, set before the first step, proven and put back at its end."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import partial

from carbonreport.control.applied import Applied, Terms, applied
from carbonreport.control.controller import ControlDenied, ControlError, Controller
from carbonreport.control.guardian import guarded_by_a_process
from carbonreport.control.holder import this_process
from carbonreport.control.leases import Leases, boot_id, control_folder, foreign_lease
from carbonreport.control.means import opened
from carbonreport.control.rights import advice
from carbonreport.errors import CarbonreportError
from carbonreport.measure.ranks import rank_of
from carbonreport.model.knobs import Knobs, KnobsHeld
from carbonreport.model.notes import Note
from carbonreport.workflows.knobs_asked import boards_here, wanted
from carbonreport.workflows.knobs_denied import KnowsDenied
from carbonreport.workflows.knobs_told import held_to_the_end, notes_of_board, notes_of_giving_back, read_at_end
from carbonreport.workflows.knobs_turned import TurnedClocks
from carbonreport.workflows.plan_clocks import Achieved, watched_by_nvml

ABANDONED: list[ExitStack] = []
_LONGEST_CALL_S = 2.0  # a driver that hangs must not hold the end of the program back
# Opens the controller and finds the boards of the run: (controller, UUIDs with their numbers).
Opened = AbstractContextManager[Controller]


class RunKnobs:
    """The knobs of one run (`carbonreport.measure.knobs.Setting`).

    Args:
        asked: Knobs for every board of the run, or by board: its number as nvidia-smi counts, or its UUID.
        is_optional: Whether the run goes on without them where they are refused.
        environ: Environment of the run.
        open_controller: Opens the controller.
        find_boards: (number, UUID) of each board of the run; called while the controller is open.
        guarded: Starts the guardian.
        clock_s: Seconds for the time that is counted. [s]
        watched: Looks at the clocks of boards once a second while the block lasts.
        is_turned: Whether clocks are turned while the boards are held: nobody else may hold them then.
        longest_call_s: How long the end waits for a call of another thread. [s]
    """

    def __init__(
        self,
        asked: Knobs | Mapping[str, Knobs],
        *,
        is_optional: bool,
        environ: Mapping[str, str],
        open_controller: Callable[[Mapping[str, str]], Opened] = opened,
        find_boards: Callable[[Mapping[str, str]], list[tuple[int, str]]] | None = None,
        guarded: Callable[..., AbstractContextManager[None]] = guarded_by_a_process,
        clock_s: Callable[[], float] = time.monotonic,
        watched: Callable[[Sequence[str]], AbstractContextManager[Achieved]] | None = None,
        is_turned: bool = False,
        longest_call_s: float = _LONGEST_CALL_S,
    ) -> None:
        self._asked, self._is_optional, self._environ = asked, is_optional, environ
        self._watched = watched or watched_by_nvml
        self._open, self._find, self._clock_s = open_controller, find_boards or boards_here, clock_s
        self._guarded, self._is_turned, self._longest_call_s = guarded, is_turned, longest_call_s
        self._turning = threading.Lock()  # one thread at a time calls the driver; the end waits for it
        self._is_left = False
        self._undo = ExitStack()
        self._controller: Controller | None = None
        self._applied: Applied | None = None
        self._wanted: dict[str, Knobs] = {}
        self._clocks: TurnedClocks | None = None
        self._achieved: Achieved | None = None
        self._switches: int | None = None
        self._began_s = 0.0

    def start(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """See Setting."""
        try:
            return self._start(), ()
        except CarbonreportError as error:
            self._undo.close()
            if not self._is_optional:
                if isinstance(error, ControlError) and "nothing was set" not in str(error):
                    raise type(error)(f"{error}; nothing was set") from error
                raise
            return (), (Note("cap-refused", f"the run went on without {self._in_words()}: {error}"),)

    def _start(self) -> tuple[KnobsHeld, ...]:
        controller = KnowsDenied(self._undo.enter_context(self._open(self._environ)))
        self._wanted = wanted(self._asked, self._find(self._environ))
        leases = Leases(control_folder(os.getuid(), self._environ), os.getuid())
        owner = this_process()
        foreign = partial(foreign_lease, uid=os.getuid(), environ=self._environ)
        guard = partial(self._guarded, owner=owner, devices=tuple(self._wanted), leases=leases, environ=self._environ)
        rank = rank_of(self._environ, os.getppid())
        terms = Terms(self._is_turned, "" if rank is None else rank.job)
        try:
            here = self._undo.enter_context(applied(controller, self._wanted, leases, owner, boot_id(), guard, foreign, terms))
        except ControlDenied as error:
            raise ControlDenied(f"{error}; {advice(os.getuid(), self._environ)}") from error
        self._controller, self._applied, self._began_s = controller, here, self._clock_s()
        self._clocks = TurnedClocks(controller, self._wanted)
        clocked = [device for device, knobs in self._wanted.items() if knobs.has_clocks]
        self._achieved = self._undo.enter_context(self._watched(clocked)) if clocked else None
        return tuple(
            KnobsHeld(device, knobs, here.before[device].limit_watts, here.after[device].enforced_watts)
            for device, knobs in self._wanted.items()
        )

    @property
    def devices(self) -> tuple[str, ...]:
        """Boards that are held."""
        return tuple(self._wanted)

    def turn(self, clocks: Knobs) -> None:
        """Ask for other clocks while the run holds the boards; a clock of None is unlocked.

        Only clocks that were asked for at the start can be turned, and up to those: they alone are in the journal, and are taken back after a crash.

        Raises:
            ControlError: A board does not take them, or nothing is held; every board was tried.
        """
        try:
            with self._turning:
                if self._applied is None or self._clocks is None:
                    raise ControlError("no board is held: clocks are turned between start and stop")
                self._clocks.turn(clocks)
                self._switches = 1 if self._switches is None else self._switches + 1
        finally:
            if self._is_left and self._turning.acquire(blocking=False):
                try:
                    self._stop()  # the run has ended while this call was under way
                finally:
                    self._turning.release()

    def stop(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """See Setting."""
        if self._applied is None:
            return (), ()
        if not self._turning.acquire(timeout=self._longest_call_s):
            self._is_left = True
            if not self._turning.acquire(blocking=False):
                return self._left()
        try:
            return self._stop()
        finally:
            self._turning.release()

    def _left(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        """A call has not returned: it takes back when it does, and the guardian does where this process ends first."""
        here = self._applied
        if here is None:
            return (), ()
        held = tuple(
            KnobsHeld(device, knobs, here.before[device].limit_watts, here.after[device].enforced_watts)
            for device, knobs in self._wanted.items()
        )
        text = f"a call to the driver had not returned {self._longest_call_s:g} s after the end: {', '.join(self._wanted)} "
        return held, (Note("knobs-not-restored", f"{text}are put back when it does, or when this process has ended"),)

    def _stop(self) -> tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]:
        here, controller = self._applied, self._controller
        if here is None or controller is None:
            return (), ()
        seconds = self._clock_s() - self._began_s
        held, notes = [], []
        for device, knobs in self._wanted.items():
            now = read_at_end(controller, device)
            one = held_to_the_end(device, knobs, here.before[device], here.after[device], now, seconds)
            sm_mhz, mem_mhz = (None, None) if self._achieved is None else self._achieved.median_mhz(device)
            one = replace(one, switches=self._switches, sm_clock_mhz=sm_mhz, mem_clock_mhz=mem_mhz)
            held.append(one)
            notes += notes_of_board(one, here.before[device].label, now)
        self._applied = None
        self._undo.close()
        return tuple(held), (*notes, *notes_of_giving_back(here.given_back))

    def abandon(self) -> None:
        """See Setting."""
        ABANDONED.append(self._undo)  # collected, it would end as if the run did
        self._applied, self._undo = None, ExitStack()

    def _in_words(self) -> str:
        asked = [self._asked] if isinstance(self._asked, Knobs) else list(self._asked.values())
        return " and ".join(dict.fromkeys(knobs.in_words() for knobs in asked))
