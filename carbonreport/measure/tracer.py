"""A run while it lasts: the caller's side. Nothing here calls a driver, and nothing raises after the start."""

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from carbonreport.errors import CarbonreportError
from carbonreport.measure.clock import Clock, RunClock, SystemClock
from carbonreport.measure.edges import EdgeSource
from carbonreport.measure.knobs import Setting
from carbonreport.measure.phases import PhaseSpans
from carbonreport.measure.sampler import Ladder, Result, Sampler
from carbonreport.measure.spans import Occurrence, SpanQueue
from carbonreport.measure.variables import RUN_VARIABLE
from carbonreport.model.notes import Note
from carbonreport.model.run import Place, RunKind, RunRecord
from carbonreport.store.writer import RecordWriter, header, knobs_line, new_record_path, note_line

if TYPE_CHECKING:
    from carbonreport.measure.claim import Claim
    from carbonreport.measure.ranks import Rank
    from carbonreport.measure.torch_phases import Followed
    from carbonreport.model.knobs import KnobsHeld

_STOP_TIMEOUT_S = 10.0


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
        edges: Marks spans in the GPU's work; None where the host's stamps are their edges.
        clock: The clocks; a test brings its own.
        new_id: Makes a random run id.
        rank: Which process of a distributed job this is, or None.
        locks: Folder in which the ranks of a host agree on who measures it.
        knobs: What is set on boards while the run lasts, or None.
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
    edges: EdgeSource | None = None
    clock: Clock = field(default_factory=SystemClock)
    new_id: Callable[[], str] = lambda: os.urandom(8).hex()
    rank: "Rank | None" = None
    locks: Path | None = None
    knobs: Setting | None = None


class Run:
    """Measures between `start` and `stop`, or in a `with` block."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan = plan
        self._queue = SpanQueue(plan.clock.boot_ns, None if plan.edges is None else plan.edges.mark)
        self._phases = PhaseSpans(self._queue)
        self._sampler: Sampler | None = None
        self._pid = 0
        self._parent: str | None = None
        self._claim: Claim | None = None
        self._own_notes: list[Note] = []
        self._followed: list[Followed] = []
        self.id = plan.new_id()
        self.path: Path | None = None

    def start(self) -> "Run":
        """Begin. The record exists on return; the meters open in the background.

        A rank of a job whose devices another rank measures writes no record: its `path` stays None.

        Raises:
            OutputError: The folder cannot be written.
            CarbonreportError: A cap or clock is refused; nothing was set.
            RuntimeError: The run was started before.
        """
        if self._claim is not None:
            raise RuntimeError(f"run {self._plan.name!r} was started before: make another one with trace(…)")
        from carbonreport.measure.claim import Claim, claim  # here: the tracer's own import is kept short

        plan, clock = self._plan, RunClock(self._plan.clock)
        self._claim = claim(plan.rank, plan.locks) if plan.rank and plan.locks else Claim()
        ladders = [ladder for ladder in plan.ladders if self._claim.covers(ladder[0][0])]
        self._pid = os.getpid()
        try:
            held, notes = ((), ()) if plan.knobs is None else plan.knobs.start()
            if plan.ladders and not ladders:
                self._claim.release()
                self._queue.close()
                _ACTIVE.add(self)
                return self
            writer = self._record_of(clock)
        except CarbonreportError:
            self._take_back()
            self._claim.release()
            self._claim = None
            raise
        for line in (*map(knobs_line, held), *map(note_line, notes)):
            writer.append(line)
        self.path = writer.path
        self._sampler = Sampler(clock, ladders, writer, self._queue, plan.interval_s, plan.edges)
        os.environ[RUN_VARIABLE] = self.id
        _ACTIVE.add(self)
        self._sampler.start()
        return self

    def _record_of(self, clock: RunClock) -> RecordWriter:
        """The record with its first line."""
        plan, rank = self._plan, self._plan.rank
        self._parent = os.environ.get(RUN_VARIABLE)
        path = new_record_path(plan.folder, plan.name, clock.started_s, self.id)
        writer = RecordWriter(path)
        first = (self.id, plan.name, plan.kind, plan.host, self._parent, clock.started_s, plan.place, plan.environment)
        if rank is None:
            writer.append(header(*first))
        else:
            writer.append(header(*first, job=rank.job, rank=rank.rank, world_size=rank.world_size))
        return writer

    def stop(self) -> Result | None:
        """End the run; its numbers, or None in a forked child, a second time, or where a driver hangs."""
        sampler, self._sampler = self._sampler, None
        if self._pid != os.getpid():
            return None
        _ACTIVE.discard(self)
        if sampler is None:
            self._take_back()
            return None
        self._phases.enter("")
        followed_notes = self._unfollow()
        sampler.end()
        held, notes = self._take_back()
        sampler.say_last([knobs_line(one) for one in held], [*self._own_notes, *followed_notes, *notes])
        self._restore_variable()
        is_finished = sampler.stop(_STOP_TIMEOUT_S)
        self._queue.close()
        if self._claim is not None:
            self._claim.release()
        return sampler.result if is_finished else None

    def _take_back(self) -> "tuple[tuple[KnobsHeld, ...], tuple[Note, ...]]":
        """Put the boards back as they were; nothing where nothing was set, or a second time."""
        return ((), ()) if self._plan.knobs is None else self._plan.knobs.stop()

    def _unfollow(self) -> list[Note]:
        """Take the hooks of models away; what a reader of their spans must know."""
        followed, self._followed = self._followed, []
        notes = [note for one in followed for note in one.notes]
        for one in followed:
            one()
        return notes

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

    def enter(self, path: str) -> None:
        """A phase begins here and is a span until the next one begins; "" ends the last one. `follow` tells those of PyTorch."""
        self._phases.enter(path)

    def follow(self, model: Any, optimiser: Any = None, *, modules: tuple[str, ...] = (), name: str = "") -> Callable[[], None]:
        """Let the passes of a PyTorch model be spans: "forward", "backward", "optimiser", and "inference" of what needs no gradient.

        With `edges="gpu"` they begin where the GPU gets to them. A model that is followed again is followed in the new way alone.

        Args:
            model: A torch.nn.Module; `torch.compile(model)`, if it is compiled.
            optimiser: Its torch.optim.Optimizer; without, the backward pass lasts until the next forward pass.
            modules: Names of inner modules, as in `model.named_modules()`: "forward/NAME" and "backward/NAME" are spans inside the passes.
            name: Before the names of its spans, where several models are followed: "generator/forward".

        Returns:
            What takes the hooks away, which the end of the run does, too. TorchScript and graphed callables take no model with hooks.

        Raises:
            ValueError: This is no model, it has no such module, or the optimiser takes no hooks.
        """
        from carbonreport.measure.torch_phases import follow

        for before in [one for one in self._followed if one.model() is model]:
            before()
            self._followed.remove(before)
        enter = (lambda phase: self.enter(phase and f"{name}/{phase}")) if name else self.enter
        followed = follow(enter, model, optimiser, modules=modules)
        self._followed.append(followed)
        return followed

    def note(self, note: Note) -> None:
        """Keep a note that the reader of the record must know; written when the run ends."""
        self._own_notes.append(note)

    @property
    def record(self) -> RunRecord:
        """The finished record, read back from its file.

        Raises:
            RuntimeError: The run has not ended, or another rank of the job measures this host.
        """
        if self.path is None and self._claim is not None:
            raise RuntimeError(
                f"run {self._plan.name!r} has no record of its own: rank {self._claim.holder} of the job measures this host, its record holds the energy"
            )
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
        self._unfollow()
        if self._plan.knobs is not None:
            self._plan.knobs.abandon()
        if self._claim is not None:
            self._claim.abandon()
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
