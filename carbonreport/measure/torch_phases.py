"""Phases of a PyTorch step from hooks of its modules, of the tensors that they give back, and of its optimiser. Nothing is imported: modules come in.

Module.register_full_backward_hook is not used: it puts a view around what a module takes and gives back, so that a program that changes one of them in
place ends with an error, and it knows no outputs but tensors, while models of Hugging Face give back mappings.
"""

import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

FORWARD, BACKWARD, OPTIMISER = "forward", "backward", "optimiser"
BETWEEN = ""  # around all phases

Enter = Callable[[str], None]


def never() -> bool:
    """No hook is being compiled."""
    return False


def is_compiling_here() -> Callable[[], bool]:
    """torch.compiler.is_compiling, where this program has imported torch."""
    found: Callable[[], bool] = getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", never)
    return found


def follow(
    enter: Enter,
    model: Any,
    optimiser: Any = None,
    *,
    modules: tuple[str, ...] = (),
    is_compiling: Callable[[], bool] = never,
) -> Callable[[], None]:
    """Call `enter` where forward, backward, optimiser and named modules begin, and with "" where none follows.

    None follows behind the optimiser, and behind a forward pass that needs no gradient.

    Args:
        enter: Told the name of the phase, in the thread that runs it: the backward pass has one of its own.
        model: A torch.nn.Module.
        optimiser: A torch.optim.Optimizer, or None: the backward pass lasts until the next forward pass then.
        modules: Names of inner modules, as in `model.named_modules()`; each is a phase of its own, "forward/NAME" and "backward/NAME".
            One whose inputs need no gradient, such as an embedding, is left with the next phase in the backward pass.
        is_compiling: torch.compiler.is_compiling, where torch is there: a hook that is compiled does nothing.

    Returns:
        What takes the hooks away.

    Raises:
        ValueError: The model has no such module, or the optimiser takes no hooks; no hook is left.
    """
    known = dict(model.named_modules())
    for name in modules:
        if name not in known:
            raise ValueError(f"the model has no module {name!r}; it has {', '.join(list(known)[1:9])} …")
    phases = _Phases(enter, is_compiling)
    with ExitStack() as hooks:  # taken away where one of them cannot be put
        hooks.callback(phases.end)
        if optimiser is not None:
            _follow_optimiser(hooks, phases, optimiser)
        _follow_module(hooks, phases, model, "", None)
        for name in modules:
            _follow_module(hooks, phases, known[name], f"/{name}", _around(name, modules))
        return hooks.pop_all().close
    raise AssertionError  # an ExitStack of handles swallows nothing


def _follow_optimiser(hooks: ExitStack, phases: "_Phases", optimiser: Any) -> None:
    try:
        register_before, register_after = optimiser.register_step_pre_hook, optimiser.register_step_post_hook
        hooks.callback(register_before(_Hook(phases.before_step)).remove)
        hooks.callback(register_after(_Hook(lambda *_: phases.begin(BETWEEN))).remove)
    except AttributeError as error:  # a wrapper that has the names of an optimiser and not what is behind them
        kind = type(optimiser).__name__
        raise ValueError(f"{kind} takes no hooks; give the torch.optim.Optimizer inside it, or mark phases by run.span") from error


def _around(name: str, modules: tuple[str, ...]) -> str:
    """The innermost module of these that one is inside of, as the end of a phase's name; "" where that is the whole pass."""
    return max((f"/{other}" for other in modules if name.startswith(f"{other}.")), key=len, default="")


def _follow_module(hooks: ExitStack, phases: "_Phases", module: Any, end: str, around: str | None) -> None:
    """A module begins its own phases, named by an end, and gives back to those around it where there are any."""
    forward, backward = FORWARD + end, BACKWARD + end

    def after(_: Any, args: Any, kwargs: Any, output: Any) -> None:
        if around is not None:
            phases.begin(FORWARD + around)
            phases.hook_first((args, kwargs), lambda: phases.end_backward(backward, BACKWARD + around))
        if not phases.hook_first(output, lambda: phases.begin_backward(backward)) and around is None:
            phases.begin(BETWEEN)

    hooks.callback(module.register_forward_pre_hook(_Hook(lambda *_: phases.begin(forward), phases.is_off)).remove)
    hooks.callback(module.register_forward_hook(_Hook(after, phases.is_off), with_kwargs=True).remove)


class _Hook:
    """What PyTorch calls. In a model that was copied or saved it does nothing and needs nothing of this package."""

    def __init__(self, call: Callable[..., Any], is_off: Callable[[], bool] = never) -> None:
        self._call, self._is_off = call, is_off

    def __call__(self, *args: Any) -> Any:
        return None if self._is_off() else self._call(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (nullcontext(), "__exit__")  # takes any arguments, gives None


class _Phases:
    """Which phase was begun last."""

    def __init__(self, enter: Enter, is_compiling: Callable[[], bool]) -> None:
        self.is_off = is_compiling
        self._enter, self._last = enter, BETWEEN
        self._is_on = True

    def end(self) -> None:
        """Hooks of tensors that are still in a graph say nothing from now on."""
        self._is_on = False

    def begin(self, name: str) -> None:
        """See Enter."""
        if self._is_on:
            self._last = name
            self._enter(name)

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

    def begin_backward(self, name: str) -> None:
        """A model that ran twice has one backward pass, and what a module inside it gave back can be what it gives back."""
        inner = f"{name}/" if name == BACKWARD else f"{name}."
        if self._last != name and not self._last.startswith(inner):
            self.begin(name)

    def end_backward(self, name: str, around: str) -> None:
        """What is around a module goes on, unless another one has begun meanwhile."""
        if self._last == name:
            self.begin(around)

    def hook_first(self, values: Any, call: Callable[[], None]) -> bool:
        """Call once, when the first gradient of these tensors is there; False where none of them will have one."""
        is_called = False

        def first(_: Any) -> None:
            nonlocal is_called
            if not is_called:
                is_called = True
                call()

        found: dict[int, Any] = {}
        _collect(values, found)
        for tensor in found.values():
            tensor.register_hook(first)
        return bool(found)


def _collect(value: Any, found: dict[int, Any]) -> None:
    """Tensors that are results of others and need a gradient, in mappings, sequences and dataclasses. A hook of a leaf would outlive the step."""
    if hasattr(value, "register_hook"):
        if value.requires_grad and value.grad_fn is not None:
            found[id(value)] = value
    elif isinstance(value, Mapping):
        for inner in value.values():
            _collect(inner, found)
    elif isinstance(value, tuple | list):
        for inner in value:
            _collect(inner, found)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            _collect(getattr(value, field.name), found)
