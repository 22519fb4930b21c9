"""Phases of a PyTorch step from hooks of its modules and its optimiser. Nothing is imported: modules come in as arguments."""

from collections.abc import Callable
from typing import Any

FORWARD, BACKWARD, OPTIMISER = "forward", "backward", "optimiser"

Enter = Callable[[str], None]


def follow(enter: Enter, model: Any, optimiser: Any = None, *, modules: tuple[str, ...] = ()) -> Callable[[], None]:
    """Call `enter` where forward, backward, optimiser and named modules begin; gives back what takes the hooks away.

    Args:
        enter: Told the name of the phase, in the thread that runs it: the backward pass has one of its own.
        model: A torch.nn.Module.
        optimiser: A torch.optim.Optimizer, or None.
        modules: Names of inner modules, as in `model.named_modules()`; each is a phase of its own, "forward/NAME" and "backward/NAME".

    Raises:
        ValueError: The model has no such module.
    """
    handles = [
        model.register_forward_pre_hook(lambda *_: enter(FORWARD)),
        model.register_full_backward_pre_hook(lambda *_: enter(BACKWARD)),
    ]
    if optimiser is not None:
        handles.append(optimiser.register_step_pre_hook(lambda *_: enter(OPTIMISER)))
    known = dict(model.named_modules())
    for name in modules:
        if name not in known:
            raise ValueError(f"the model has no module {name!r}; it has {', '.join(list(known)[1:9])} …")
        handles += _of_module(enter, known[name], name)

    def remove() -> None:
        for handle in handles:
            handle.remove()

    return remove


def _of_module(enter: Enter, module: Any, name: str) -> list[Any]:
    """A module begins its own phase, and gives back to the pass around it."""
    return [
        module.register_forward_pre_hook(lambda *_: enter(f"{FORWARD}/{name}")),
        module.register_forward_hook(lambda *_: enter(FORWARD)),
        module.register_full_backward_pre_hook(lambda *_: enter(f"{BACKWARD}/{name}")),
        module.register_full_backward_hook(lambda *_: enter(BACKWARD)),
    ]
