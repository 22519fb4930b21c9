"""Spans of phases that are told one after another, in whatever thread: the backward pass of PyTorch runs in a thread of its own."""

import threading

from carbonreport.measure.spans import Occurrence, SpanQueue


class PhaseSpans:
    """Turns "now this phase begins" into spans; they lie in the block that is around the first of them.

    Args:
        recorder: Takes the spans.
    """

    def __init__(self, recorder: SpanQueue) -> None:
        self._recorder = recorder
        self._open: list[tuple[str, Occurrence]] = []
        self._around: Occurrence | None = None
        self._thread: int | None = None  # the program's own, whose blocks are known
        self._turn = threading.Lock()

    def enter(self, name: str) -> None:
        """A phase begins, inside the open one where its name says so ("forward/norm"), and others end.

        Where one inside it has just ended, the phase itself goes on; "" begins none.
        """
        with self._turn:
            self._enter(name)

    def end_in(self, block: Occurrence) -> None:
        """A block ends: the phases in it do, too."""
        if self._open and self._open[0][1].parent is block:
            self.enter("")

    def _enter(self, name: str) -> None:
        is_back = False
        while self._open and not name.startswith(f"{self._open[-1][0]}/"):
            if is_back and self._open[-1][0] == name:
                return
            self._open.pop()[1].close()
            is_back = True
        if name:
            self._recorder.on_exit = self.end_in
            block = self._block()
            span = Occurrence(self._recorder, name if block is None else f"{block.path}/{name}", None)
            span.open_in(self._open[-1][1] if self._open else block)
            self._open.append((name, span))

    def _block(self) -> Occurrence | None:
        """The block around a phase. A thread that has none of its own is PyTorch's: the last one counts while it is under way."""
        here, thread = self._recorder.current.get(), threading.get_ident()
        if here is None and self._thread not in (None, thread):
            return self._around if self._around is not None and self._around.is_entered else None
        self._around, self._thread = here, thread
        return here
