"""Phases of a PyTorch step from hooks of its modules and its optimiser. Nothing is imported: modules come in as arguments."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

FORWARD, BACKWARD, OPTIMISER = "forward", "backward", "optimiser"
BETWEEN = ""  # around all phases

Enter = Callable[[str], None]


def follow(enter: Enter, model: Any, optimiser: Any = None, *, modules: tuple[str, ...] = ()) -> Callable[[], None]:
    """Call `enter` where forward, backward, optimiser and named modules begin, and with "" behind the optimiser; gives back what takes the hooks away.

    Args:
        enter: Told the name of the phase, in the thread that runs it: the backward pass has one of its own.
        model: A torch.nn.Module.
        optimiser: A torch.optim.Optimizer, or None.
        modules: Names of inner modules, as in `model.named_modules()`; each is a phase of its own, "forward/NAME" and "backward/NAME".

    Raises:
        ValueError: The model has no such module; no hook is left.
    """
    known = dict(model.named_modules())
    for name in modules:
        if name not in known:
            raise ValueError(f"the model has no module {name!r}; it has {', '.join(list(known)[1:9])} …")
    with ExitStack() as hooks:  # taken away where one of them cannot be put
        _put(hooks, model.register_forward_pre_hook, enter, FORWARD)
        _put(hooks, model.register_full_backward_pre_hook, enter, BACKWARD)
        if optimiser is not None:
            _put(hooks, optimiser.register_step_pre_hook, enter, OPTIMISER)
            _put(hooks, optimiser.register_step_post_hook, enter, BETWEEN)
        for name in modules:
            _put_module(hooks, enter, known[name], name)
        return hooks.pop_all().close
    raise AssertionError  # an ExitStack of handles swallows nothing


def _put(hooks: ExitStack, register: Callable[[Callable[..., None]], Any], enter: Enter, name: str) -> None:
    hooks.callback(register(lambda *_: enter(name)).remove)


def _put_module(hooks: ExitStack, enter: Enter, module: Any, name: str) -> None:
    """A module begins its own phase, and gives back to the pass around it."""
    _put(hooks, module.register_forward_pre_hook, enter, f"{FORWARD}/{name}")
    _put(hooks, module.register_forward_hook, enter, FORWARD)
    _put(hooks, module.register_full_backward_pre_hook, enter, f"{BACKWARD}/{name}")
    _put(hooks, module.register_full_backward_hook, enter, BACKWARD)
