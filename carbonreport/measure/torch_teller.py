"""Which phase of a PyTorch step has begun, from what its hooks see."""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
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


@dataclass(eq=False, slots=True)
class Call:
    """One call of a module: the end of its phases' names, and of those around it at that moment; None around the whole model."""

    end: str
    around: str | None
    inputs: dict[int, Any] = field(default_factory=dict)  # what made each input, by the input's id; until the module has run


class Teller:
    """Tells phases as they begin.

    Args:
        enter: Told their names.
        now: What is asked of PyTorch.
    """

    def __init__(self, enter: Enter, now: TorchNow) -> None:
        self.now = now
        self.begun: set[str] = set()  # ends of the phases of modules that ran
        self.passes: set[str] = set()  # that were told
        self.threads: set[int] = set()  # that ran a forward pass
        self.notes: list[Note] = []
        self.is_on = True
        self._enter, self._last = enter, BETWEEN
        self._pass = ""  # the forward pass or inference under way
        self._calls: list[Call] = []  # under way, outermost first
        self._backward: Call | None = None  # whose backward pass runs
        self._hooked: dict[tuple[int, str], Any] = {}  # weak references to inputs that live on

    def end(self) -> None:
        """Hooks of tensors that are still in a graph say nothing from now on."""
        self.is_on = False

    def give_up(self, note: Note) -> None:
        """A hook failed: what the others would tell is no step any more."""
        self.notes.append(note)
        self._enter(BETWEEN)
        self.is_on = False

    def begin(self, name: str) -> None:
        """A phase begins."""
        if self.is_on:
            self._last = name
            self.passes.add(name.partition("/")[0])
            self._enter(name)

    def begin_forward(self, end: str, inputs: Any) -> None:
        """A module runs. What is computed again in the backward pass is a part of that."""
        if self.now.is_in_backward():
            return
        self.begun.add(end)
        if not end:
            self.threads.add(threading.get_ident())
            self._calls.clear()
        forward = FORWARD if self.now.has_gradients() else INFERENCE
        if not self._calls:
            self._pass = forward
        call = Call(end, self._calls[-1].end if self._calls else "" if end else None)
        self._calls.append(call)
        if end:
            self._hook_inputs(call, inputs)
        self.begin(self._pass + end)

    def end_forward(self, end: str, output: Any) -> None:
        """A module has run, or raised: what is around it goes on; nothing, where it was called by itself."""
        is_again = self.now.is_in_backward()
        call = Call(end, "")
        while not is_again and self._calls:
            call = self._calls.pop()
            if call.end == end:
                break
        found = [one for one in _tensors(output, self.now.tensor) if call.inputs.get(id(one)) is not one.grad_fn]  # not just handed through
        call.inputs.clear()  # a graph that is held so would never be freed
        has_backward = self._hook_first(found, lambda _: self.begin_backward(call))
        if is_again:
            return
        if self._calls:
            self.begin(self._pass + self._calls[-1].end)
        elif end or not has_backward:
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

    def begin_backward(self, call: Call) -> None:
        """A model that ran twice has one backward pass, and what a module inside it gave back can be what it gives back."""
        before, name = self._last, BACKWARD + call.end
        is_same = before == name and (not call.end or self._backward is call)
        if not is_same and not before.startswith(f"{name}/"):
            self._backward = call
            self.begin(name)

    def _end_backward(self, call: Call) -> None:
        """What is around a module goes on, unless another call has begun meanwhile."""
        if self._backward is call and self._last == BACKWARD + call.end:
            self.begin(BACKWARD + (call.around or ""))

    def _hook_inputs(self, call: Call, inputs: Any) -> None:
        """Taken before the module runs, which may change them in place; an input that lives on over many calls is hooked once."""
        new = []
        for tensor in _tensors(inputs, self.now.tensor):
            call.inputs[id(tensor)] = tensor.grad_fn
            key = (id(tensor), call.end)
            held = self._hooked.get(key)
            if held is None or held() is not tensor:
                self._hooked[key] = weakref.ref(tensor, partial(self._forget, key))
                new.append(tensor)
        self._hook_first(new, lambda _: self._end_backward(call))

    def _forget(self, key: tuple[int, str], _: Any) -> None:
        self._hooked.pop(key, None)

    def _hook_first(self, tensors: list[Any], call: Callable[[Any], None]) -> bool:
        """Call once, when the first gradient of these tensors is there; False where none of them will have one."""
        is_called = False

        def first(gradient: Any) -> None:
            nonlocal is_called
            if not is_called:
                is_called = True
                call(gradient)

        for tensor in tensors:
            tensor.register_hook(Hook(self, first))
        return bool(tensors)


def _tensors(values: Any, kind: Any) -> list[Any]:
    """Tensors that are results of others and need a gradient, in mappings, sequences and dataclasses. A hook of a leaf would outlive the step.

    The first ten thousand things are looked at: of longer outputs the rest is no tensor.
    """
    found: dict[int, Any] = {}
    waiting, seen = deque([values]), 0
    while waiting and seen < _MOST_LOOKED_AT:
        value: Any = waiting.popleft()
        seen += 1
        if isinstance(value, kind):
            if value.requires_grad and not value.is_leaf:
                found[id(value)] = value
        elif isinstance(value, Mapping):
            waiting.extend(islice(value.values(), _MOST_LOOKED_AT))
        elif isinstance(value, tuple | list):
            waiting.extend(islice(value, _MOST_LOOKED_AT))
        elif is_dataclass(value) and not isinstance(value, type):
            waiting.extend(getattr(value, one.name, None) for one in fields(value))
    return list(found.values())
