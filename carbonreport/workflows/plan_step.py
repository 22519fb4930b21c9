"""The caller's step: found by its name, and told from another step of that name by its code and what it was bound to."""

import functools
import hashlib
import inspect
import os
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from carbonreport.plan.table import PlanError

SpanOf = Callable[[str], AbstractContextManager[Any]]
# One step of the program; it marks its phases: `with span("forward"): …`.
Step = Callable[[SpanOf], object]
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def step_of(text: str) -> Step:
    """The function of "module:function"; the working folder is looked into first.

    Raises:
        PlanError: There is none, or its module cannot be imported.
    """
    name, _, function = text.partition(":")
    if not name or not function or name.startswith("."):
        raise PlanError(
            f"{text!r} names no step: write MODULE:FUNCTION, such as train:step, a function that takes `span` and runs one step"
        )
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(name), function, None)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise PlanError(f"{text!r}: {error}; give a module of the working folder or an installed one") from error
        raise PlanError(f"{text!r}: the module {name} imports {missing}, which is not installed") from error
    except (ImportError, SyntaxError) as error:
        raise PlanError(f"{text!r}: the module {name} cannot be imported ({type(error).__name__}: {error})") from error
    if not callable(found):
        raise PlanError(f"{text!r}: the module {name} has no function {function}")
    step: Step = found
    refuse_no_span(step, text)
    return step


def refuse_no_span(step: Step, name: str) -> None:
    """Refuse a function that cannot be called with `span` alone. Raises PlanError."""
    try:
        signature = inspect.signature(step)
    except (ValueError, TypeError):  # of a builtin, whose arguments nobody knows
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise PlanError(f"{name!r} cannot run a step: it is called with one argument, span, and takes {signature}") from error


def source_of(step: Step) -> str:
    """Hash of the code of the module of a step; "" where it cannot be read."""
    function = _function(step)
    for what in (inspect.getmodule(function), function):
        try:
            if what is not None:
                return _hash(inspect.getsource(what))
        except (OSError, TypeError):
            continue
    return ""


def arguments_of(step: Step) -> str:
    """Hash of what a step was bound to: arguments of a `partial`, defaults, variables around the function."""
    bound: list[object] = []
    while isinstance(step, functools.partial):
        bound += [step.args, sorted(step.keywords.items())]
        step = step.func
    bound += [getattr(step, name, None) for name in ("__defaults__", "__kwdefaults__")]
    bound += [cell.cell_contents for cell in getattr(step, "__closure__", None) or ()]
    return _hash(_ADDRESS.sub("", repr(bound)))


def _function(step: Any) -> Any:
    while isinstance(step, functools.partial):
        step = step.func
    return step if hasattr(step, "__code__") or inspect.ismethod(step) else type(step)


def _hash(words: str) -> str:
    return hashlib.sha256(words.encode()).hexdigest()[:12]
