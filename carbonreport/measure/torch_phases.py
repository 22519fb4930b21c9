"""Phases of a PyTorch step from hooks of its modules, of the tensors that they give back, and of its optimiser. Modules come in as arguments.

Module.register_full_backward_hook is not used: it puts a view around what a module takes and gives back, so that a program that changes one of them in
place ends with an error, and it knows no outputs but tensors, while models of Hugging Face give back mappings.
"""

import re
import weakref
from contextlib import ExitStack
from typing import Any

from carbonreport.measure.torch_now import TorchNow, torch_now
from carbonreport.measure.torch_teller import BACKWARD, BETWEEN, FORWARD, INFERENCE, OPTIMISER, Enter, Hook, Teller
from carbonreport.model.notes import Note

__all__ = ["BACKWARD", "BETWEEN", "FORWARD", "INFERENCE", "OPTIMISER", "Followed", "follow"]

_WRAPPED = re.compile(r"(?:^|(?<=\.))(?:_orig_mod|module)(?:\.|$)")  # torch.compile and DistributedDataParallel put a module around


class Followed:
    """A model that is followed. Called, it is followed no more."""

    def __init__(
        self, model: Any, hooks: ExitStack, teller: Teller, names: dict[str, str], *, has_optimiser: bool, slowed: list[str]
    ) -> None:
        self.model = weakref.ref(model)
        self._hooks, self._teller, self._names = hooks, teller, names
        self._has_optimiser, self._slowed = has_optimiser, slowed

    def __call__(self) -> None:
        """Take the hooks away."""
        self._hooks.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader of its spans must know."""
        notes = [*self._teller.notes]
        unseen = [name or "the model" for end, name in self._names.items() if end not in self._teller.begun]
        passes = self._teller.passes
        if FORWARD in passes and self._has_optimiser:
            unseen += [f"its {name}" for name in (BACKWARD, OPTIMISER) if name not in passes]
        if unseen:
            text = (
                f"{', '.join(unseen)}: followed and never seen to run; what is compiled hides its hooks: follow torch.compile(model) itself"
            )
            notes.append(Note("phases-unseen", text))
        if len(self._teller.threads) > 1:
            text = f"a followed model ran in {len(self._teller.threads)} threads; times and counts of its passes are mixed"
            notes.append(Note("phases-in-threads", text))
        if self._slowed and INFERENCE in passes:
            text = (
                f"{', '.join(self._slowed)}: with a hook in it PyTorch leaves out the fast path of a TransformerEncoderLayer in evaluation"
            )
            notes.append(Note("phases-slowed", f"{text}; inference took longer than without, and differs in rounding"))
        return tuple(notes)


def follow(enter: Enter, model: Any, optimiser: Any = None, *, modules: tuple[str, ...] = (), now: TorchNow | None = None) -> Followed:
    """Call `enter` where forward, backward, optimiser and named modules begin, and with "" where none follows.

    None follows behind the optimiser, and behind a forward pass that needs no gradient, which is called "inference".

    Args:
        enter: Told the name of the phase, in the thread that runs it: the backward pass has one of its own.
        model: A torch.nn.Module.
        optimiser: A torch.optim.Optimizer, or None: the backward pass lasts until the next forward pass then.
        modules: Names of inner modules, as in `model.named_modules()`; each is a phase of its own, "forward/NAME" and "backward/NAME", and one inside
            another lies below it: "forward/layers.3/norm". One whose inputs need no gradient, such as an embedding, is left with the next phase in the
            backward pass.
        now: What is asked of PyTorch; the program's own by default.

    Raises:
        ValueError: This is no model, it has no such module, or the optimiser takes no hooks; no hook is left.
    """
    if not hasattr(model, "named_modules"):
        raise ValueError(f"what is followed must be a torch.nn.Module, not {type(model).__name__}")
    if isinstance(modules, str):
        raise ValueError(f"modules takes a tuple of names: modules=({modules!r},)")
    found = _found(model, modules)
    ends = _ends(tuple(found))
    teller = Teller(enter, now or torch_now())
    with ExitStack() as hooks:  # taken away where one of them cannot be put
        hooks.callback(teller.end)
        if optimiser is not None:
            _follow_optimiser(hooks, teller, optimiser)
        _follow_module(hooks, teller, model, "")
        for name, module in found.items():
            _follow_module(hooks, teller, module, ends[name])
        names = {"": ""} | {end: name for name, end in ends.items()}
        slowed = _slowed(model, [model, *found.values()])
        return Followed(model, hooks.pop_all(), teller, names, has_optimiser=optimiser is not None, slowed=slowed)
    raise AssertionError  # an ExitStack of handles swallows nothing


def _found(model: Any, modules: tuple[str, ...]) -> dict[str, Any]:
    """Modules by the names that were asked for; those of a wrapped model by the names that they have inside it, too."""
    known = dict(model.named_modules())
    inside = {_WRAPPED.sub("", name): module for name, module in known.items()}
    for name in modules:
        if not name or (name not in known and name not in inside):
            raise ValueError(f"the model has no module {name!r}; it has {', '.join([one for one in inside if one][:8])} …")
    return {name: known[name] if name in known else inside[name] for name in dict.fromkeys(modules)}


def _below(name: str, modules: tuple[str, ...]) -> tuple[str, str]:
    """The innermost module of these that one is inside of, or "", and its name below that."""
    around = max((other for other in modules if name.startswith(f"{other}.")), key=len, default="")
    return around, name[len(around) :].removeprefix(".") if around else name


def _ends(modules: tuple[str, ...]) -> dict[str, str]:
    """How the phases of modules end: "/layers.3", and "/layers.3/norm" for one inside it."""
    ends: dict[str, str] = {}
    for name in sorted(modules, key=len):
        around, below = _below(name, modules)
        ends[name] = f"{ends.get(around, '')}/{below}"
    return {name: ends[name] for name in modules}


def _follow_optimiser(hooks: ExitStack, teller: Teller, optimiser: Any) -> None:
    try:
        register_before, register_after = optimiser.register_step_pre_hook, optimiser.register_step_post_hook
        hooks.callback(register_before(Hook(teller, teller.before_step)).remove)
        hooks.callback(register_after(Hook(teller, lambda *_: teller.begin(BETWEEN))).remove)
    except AttributeError as error:  # a wrapper that has the names of an optimiser and not what is behind them
        kind = type(optimiser).__name__
        raise ValueError(f"{kind} takes no hooks; give the torch.optim.Optimizer inside it, or mark phases by run.span") from error


def _follow_module(hooks: ExitStack, teller: Teller, module: Any, end: str) -> None:
    """A module begins its own phases, and gives back to those around it; also where it raises."""

    def before(_: Any, args: Any, kwargs: Any) -> None:
        teller.begin_forward(end, (args, kwargs))

    def after(_: Any, args: Any, kwargs: Any, output: Any) -> None:
        teller.end_forward(end, output)

    hooks.callback(module.register_forward_pre_hook(Hook(teller, before), with_kwargs=True).remove)
    hooks.callback(module.register_forward_hook(Hook(teller, after), with_kwargs=True, always_call=True).remove)


def _slowed(model: Any, followed: list[Any]) -> list[str]:
    """Layers of PyTorch that leave out their fast path in evaluation where a hook is in them."""
    ids = {id(module) for module in followed}
    layers = [(name, one) for name, one in model.named_modules() if type(one).__name__ == "TransformerEncoderLayer"]
    return [name or "the model" for name, layer in layers if any(id(module) in ids for module in layer.modules())]
