"""What a step is given to mark its phases: spans by name, or the passes of a PyTorch model by its hooks."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from carbonreport.measure.torch_phases import follow
from carbonreport.workflows.plan_step import SpanOf

Enter = Callable[[str], None]


@contextlib.contextmanager
def silent(_: str, **more: object) -> Iterator[None]:
    """A span that nobody records."""
    yield


def nobody(_: str) -> None:
    """Told a phase that nobody records."""


@dataclass(slots=True)
class Recorded:
    """Phases of a step in their order, nested ones between the parts of those around them."""

    names: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def span(self, name: str, **_: object) -> Iterator[None]:
        """See SpanOf."""
        self._open.append(name.strip("/"))
        self.names.append("/".join(self._open))
        try:
            yield
        finally:
            self._open.pop()
            if self._open:
                self.names.append("/".join(self._open))

    def enter(self, name: str) -> None:
        """A phase that a hook tells; "" is between phases."""
        if name:
            self.names.append(name)


class StepSpans:
    """The `span` of a step: `with span("forward"): …`, or `span.follow(model, optimiser)` as its first line. Whoever measures the step listens."""

    def __init__(self) -> None:
        self._span: SpanOf = silent
        self._enter: Enter = nobody
        self._hooked: dict[int, tuple[Any, Callable[[], None]]] = {}

    def __call__(self, name: str, **more: Any) -> Any:
        return self._span(name, **more)

    def follow(self, model: Any, optimiser: Any = None, *, modules: tuple[str, ...] = ()) -> None:
        """Let forward, backward, optimiser and named modules of a PyTorch model be the phases; from the second step on nothing is left to do.

        Raises:
            ValueError: The model has no such module, or the optimiser takes no hooks.
        """
        if id(model) not in self._hooked:
            remove = follow(lambda name: self._enter(name), model, optimiser, modules=modules)
            self._hooked[id(model)] = (model, remove)

    @contextlib.contextmanager
    def heard(self, span: SpanOf, enter: Enter, plan: Enter | None = None) -> Iterator["StepSpans"]:
        """While the block lasts, phases go here, and to a plan that follows them.

        Args:
            span: Records a span.
            enter: Records what hooks tell.
            plan: Told each phase as it begins.
        """
        before = self._span, self._enter
        self._span = span if plan is None else telling(span, plan)
        self._enter = enter if plan is None else both(enter, plan)
        try:
            yield self
        finally:
            self._span, self._enter = before

    def end_step(self) -> None:
        """No phase goes on behind a step."""
        if self._hooked:
            self._enter("")

    def close(self) -> None:
        """Take the hooks away."""
        for _, remove in self._hooked.values():
            remove()
        self._hooked.clear()


def both(first: Enter, second: Enter) -> Enter:
    """Tell two."""

    def enter(name: str) -> None:
        first(name)
        second(name)

    return enter


def telling(span: SpanOf, enter: Enter) -> SpanOf:
    """Spans that tell a plan their phases, too."""
    open_names: list[str] = []

    @contextlib.contextmanager
    def told(name: str, **more: Any) -> Iterator[Any]:
        open_names.append(name.strip("/"))
        with span(name, **more):
            enter("/".join(open_names))
            try:
                yield
            finally:
                open_names.pop()
                enter("/".join(open_names))

    return told
