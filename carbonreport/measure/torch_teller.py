"""Which phase of a PyTorch step has begun, from what its hooks see."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any

from carbonreport.measure.guard import guarded
from carbonreport.measure.torch_now import TorchNow
from carbonreport.model.notes import Note

FORWARD, INFERENCE, BACKWARD, OPTIMISER = "forward", "inference", "backward", "optimiser"
BETWEEN = ""  # around all phases
_MOST_LOOKED_AT = 10_000

Enter = Callable[[str], None]


class Hook:
    """What PyTorch calls. In a model that was copied or saved it does nothing and needs nothing of this package.

    Args:
        teller: Takes what the call raises; nothing of that reaches the program.
        call: What is done.
    """

    def __init__(self, teller: "Teller", call: Callable[..., Any]) -> None:
        self._teller, self._call, self._is_compiling = teller, call, teller.now.is_compiling

    def __call__(self, *args: Any) -> Any:
        if self._is_compiling() or not self._teller.is_on:
            return None
        return guarded("following a model", lambda: self._call(*args), self._teller.give_up)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (nullcontext(), "__exit__")  # takes any arguments, gives None


class Teller:
    """Tells phases as they begin.

    Args:
        enter: Told their names.
        now: What is asked of PyTorch.
    """

    def __init__(self, enter: Enter, now: TorchNow) -> None:
        self.now = now
        self.begun: set[str] = set()  # ends of the phases of modules that were seen
        self.threads: set[int] = set()  # that ran a forward pass
        self.notes: list[Note] = []
        self.is_on = True
        self._enter, self._last, self._pass = enter, BETWEEN, ""

    def end(self) -> None:
        """Hooks of tensors that are still in a graph say nothing from now on."""
        self.is_on = False

    def give_up(self, note: Note) -> None:
        """A hook failed: what the others would tell is no step any more."""
        self.is_on = False
        self.notes.append(note)

    def begin(self, name: str) -> None:
        """A phase begins."""
        if self.is_on:
            self._last = name
            self._enter(name)

    def begin_forward(self, end: str, *, is_whole: bool) -> None:
        """A module runs. What is computed again in the backward pass is a part of that."""
        if self.now.is_in_backward():
            return
        self.begun.add(end)
        if is_whole:
            self.threads.add(threading.get_ident())
            self._pass = FORWARD if self.now.has_gradients() else INFERENCE
        self.begin((self._pass or (FORWARD if self.now.has_gradients() else INFERENCE)) + end)

    def end_forward(self, end: str, around: str | None) -> None:
        """A module has run, or raised: what is around it goes on; nothing, where it was called by itself."""
        if self.now.is_in_backward():
            return
        if around is None:
            self._pass = ""
        elif self._last in (FORWARD + end, INFERENCE + end):
            self.begin(self._pass + around if self._pass else BETWEEN)

    def end_whole(self) -> None:
        """No gradient of a forward pass will come: nothing follows it."""
        if not self.now.is_in_backward():
            self.begin(BETWEEN)

    def before_step(self, _: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """The optimiser begins, or where it is given a closure that runs the passes, as Lightning does, behind each call of that."""
        if callable(kwargs.get("closure")):
            return args, kwargs | {"closure": self._and_then_step(kwargs["closure"])}
        if len(args) > 1 and callable(args[1]):  # the first one is the optimiser itself
            return (args[0], self._and_then_step(args[1]), *args[2:]), kwargs
        self.begin(OPTIMISER)
        return None

    def _and_then_step(self, closure: Callable[[], Any]) -> Callable[[], Any]:
        def passes() -> Any:
            loss = closure()
            self.begin(OPTIMISER)
            return loss

        return passes

    def begin_backward(self, end: str) -> None:
        """A model that ran twice has one backward pass, and what a module inside it gave back can be what it gives back."""
        name = BACKWARD + end
        if self._last != name and not self._last.startswith(f"{name}/"):
            self.begin(name)

    def end_backward(self, end: str, around: str) -> None:
        """What is around a module goes on, unless another one has begun meanwhile."""
        if self._last == BACKWARD + end:
            self.begin(BACKWARD + around)

    def hook_first(self, values: Any, call: Callable[[Any], None]) -> bool:
        """Call once, when the first gradient of these tensors is there; False where none of them will have one."""
        is_called = False

        def first(gradient: Any) -> None:
            nonlocal is_called
            if not is_called:
                is_called = True
                call(gradient)

        found = _tensors(values)
        for tensor in found:
            tensor.register_hook(Hook(self, first))
        return bool(found)


def _tensors(values: Any) -> list[Any]:
    """Tensors that are results of others and need a gradient, in mappings, sequences and dataclasses. A hook of a leaf would outlive the step.

    The first ten thousand things are looked at: of longer outputs the rest is no tensor.
    """
    found: dict[int, Any] = {}
    waiting, seen = deque([values]), 0
    while waiting and seen < _MOST_LOOKED_AT:
        value, seen = waiting.popleft(), seen + 1
        if hasattr(value, "register_hook"):
            if value.requires_grad and value.grad_fn is not None:
                found[id(value)] = value
        elif isinstance(value, Mapping):
            waiting.extend(islice(value.values(), _MOST_LOOKED_AT))
        elif isinstance(value, tuple | list):
            waiting.extend(islice(value, _MOST_LOOKED_AT))
        elif is_dataclass(value) and not isinstance(value, type):
            waiting.extend(getattr(value, field.name, None) for field in fields(value))
    return list(found.values())
