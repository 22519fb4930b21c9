"""Fills templates of a style. Every string is escaped by the format's environment; templates compute nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from carbonreport.errors import OutputError

_PACKAGE = Path(__file__).resolve().parent.parent


def template_folders() -> list[Path]:
    """In a wheel the templates lie in the package, in a checkout beside it."""
    return [folder for folder in (_PACKAGE / "templates", _PACKAGE.parent / "templates") if folder.is_dir()]


def styles() -> tuple[str, ...]:
    """Names of the built-in styles."""
    return tuple(sorted({style.name for folder in template_folders() for style in folder.iterdir() if style.is_dir()}))


def fill(style: str, template: str, escape: Callable[[str], str], values: dict[str, Any], *, is_tex: bool) -> str:
    """A filled template of a style.

    Raises:
        OutputError: No such style, or the style has no such template.
    """
    if style not in styles():
        raise OutputError(f"unknown style {style!r}: there is {', '.join(styles())}")
    environment = _environment(escape, is_tex)
    try:
        return environment.get_template(f"{style}/{template}").render(**values)
    except jinja2.TemplateNotFound as error:
        raise OutputError(f"style {style!r} has no template {error.name!r}") from error


def _environment(escape: Callable[[str], str], is_tex: bool) -> jinja2.Environment:
    marks: dict[str, Any] = {}
    if is_tex:  # braces belong to TeX
        marks = {
            "block_start_string": "<%",
            "block_end_string": "%>",
            "variable_start_string": "<<",
            "variable_end_string": ">>",
            "comment_start_string": "<#",
            "comment_end_string": "#>",
        }
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folders()),
        finalize=lambda value: value if isinstance(value, Raw) else escape(str(value)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
        **marks,
    )


class Raw(str):
    """Text that is markup already."""

    __slots__ = ()
