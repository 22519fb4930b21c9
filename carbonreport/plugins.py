"""Plug-ins by kind: the folder is the registry, and "package.module:create" loads one from outside."""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from carbonreport.errors import CarbonreportError

_FOLDERS = {
    "meter": "carbonreport.measure.meters",
    "source": "carbonreport.grid.sources",
    "format": "carbonreport.render.formats",
    "importer": "carbonreport.importers.formats",
}


def names(kind: str) -> tuple[str, ...]:
    """Names of the built-in plug-ins of a kind, such as meter, source, format, importer."""
    folder = import_module(_FOLDERS[kind])
    return tuple(sorted(module.name for module in iter_modules(folder.__path__)))


def module(kind: str, name: str) -> Any:
    """The module of a plug-in.

    Raises:
        CarbonreportError: No such plug-in.
    """
    if ":" in name:
        return import_module(name.partition(":")[0])
    if name not in names(kind):
        raise CarbonreportError(f"unknown {kind} {name!r}: there are {', '.join(names(kind))}, or give package.module:create")
    return import_module(f"{_FOLDERS[kind]}.{name}")


def load(kind: str, name: str, options: Mapping[str, str] | None = None) -> Any:
    """Create a plug-in: `create(options)` of the folder's file of that name, or of "package.module:create".

    Raises:
        CarbonreportError: No such plug-in.
    """
    creator = name.partition(":")[2] or "create"
    return getattr(module(kind, name), creator)(options or {})
