"""A run while it lasts: the caller's side. Nothing here calls a driver, and nothing raises after the start."""

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from carbonreport.measure.clock import Clock, RunClock, SystemClock
from carbonreport.measure.sampler import Ladder, Result, Sampler
from carbonreport.measure.spans import Occurrence, SpanQueue
from carbonreport.model.run import Place, RunKind, RunRecord
from carbonreport.store.writer import RecordWriter, header, new_record_path

_STOP_TIMEOUT_S = 10.0
RUN_VARIABLE = "CARBONREPORT_RUN"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything a run needs, decided before it starts.

    Attributes:
        name: What the author calls it.
        kind: training, inference, …
        folder: Where the record goes.
        place: Zone, PUE and site of this host.
        host: Salted id of the host.
        ladders: Meters to try.
        interval_s: How often to poll. [s]
        environment: Versions and hardware in words.
        load: Reads a finished record.
        clock: The clocks; a test brings its own.
        new_id: Makes a random run id.
    """

    name: str
    kind: RunKind
    folder: Path
    place: Place
    host: str
    ladders: Sequence[Ladder]
    interval_s: float
    environment: Mapping[str, str]
    load: Callable[[Path], RunRecord]
    clock: Clock = field(default_factory=SystemClock)
    new_id: Callable[[], str] = lambda: os.urandom(8).hex()


class Run:
    """Measures between `start` and `stop`, or in a `with` block."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._queue = SpanQueue(plan.clock.boot_ns)
        self._sampler: Sampler | None = None
        self._pid = 0
        self._parent: str | None = None
        self.id = plan.new_id()
        self.path: Path | None = None

    def start(self) -> "Run":
        """Begin. The record exists on return; the meters open in the background.

        Raises:
            OutputError: The folder cannot be written.
            RuntimeError: The run was started before.
        """
        if self.path is not None:
            raise RuntimeError(f"run {self._plan.name!r} was started before: make another one with trace(…)")
        plan, clock = self._plan, RunClock(self._plan.clock)
        self._parent = os.environ.get(RUN_VARIABLE)
        path = new_record_path(plan.folder, plan.name, clock.started_s, self.id)
        writer = RecordWriter(path)
        writer.append(header(self.id, plan.name, plan.kind, plan.host, self._parent, clock.started_s, plan.place, plan.environment))
        self.path, self._pid = path, os.getpid()
        self._sampler = Sampler(clock, plan.ladders, writer, self._queue, plan.interval_s)
        os.environ[RUN_VARIABLE] = self.id
        _ACTIVE.add(self)
        self._sampler.start()
        return self

    def stop(self) -> Result | None:
        """End the run; its numbers, or None in a forked child, a second time, or where a driver hangs."""
        sampler, self._sampler = self._sampler, None
        if sampler is None or self._pid != os.getpid():
            return None
        _ACTIVE.discard(self)
        self._restore_variable()
        is_finished = sampler.stop(_STOP_TIMEOUT_S)
        self._queue.close()
        return sampler.result if is_finished else None

    def _restore_variable(self) -> None:
        if os.environ.get(RUN_VARIABLE) != self.id:
            return
        if self._parent is None:
            del os.environ[RUN_VARIABLE]
        else:
            os.environ[RUN_VARIABLE] = self._parent

    def span(self, path: str, *, items: float | None = None) -> Occurrence:
        """A named part of the run, as a `with` block or a decorator.

        Args:
            path: Name such as "train/step"; a span inside another one lies below it.
            items: Samples, tokens or queries that it handles; may also be set later: `with run.span("eval") as s: s.items = 512`.
        """
        return Occurrence(self._queue, path, items)

    @property
    def record(self) -> RunRecord:
        """The finished record, read back from its file.

        Raises:
            RuntimeError: The run has not ended.
        """
        if self.path is None or self._sampler is not None:
            raise RuntimeError(f"run {self._plan.name!r} has not ended: read its record after the block")
        return self._plan.load(self.path)

    def __enter__(self) -> "Run":
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()

    def forget(self) -> None:
        """Drop sampler and queue: this process is a fork, the parent goes on measuring."""
        self._queue.close()
        if self._sampler is not None:
            self._sampler.abandon()
            self._sampler = None


_ACTIVE: set[Run] = set()


def _forget_all() -> None:
    for run in list(_ACTIVE):
        run.forget()
    _ACTIVE.clear()


def _stop_all() -> None:
    for run in list(_ACTIVE):
        run.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
atexit.register(_stop_all)
