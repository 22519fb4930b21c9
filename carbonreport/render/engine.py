"""Fills templates of a style. Every string is escaped by the format's environment; templates compute nothing."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2

from carbonreport.errors import OutputError

_PACKAGE = Path(__file__).resolve().parent.parent
_ABOUT = "about.txt"
_BEGIN, _END = "statement.", ".j2"
PLAIN = "plain"
OWN_STYLE = " in a style of one's own"
BLIND = " for a blind review"


def template_folders() -> list[Path]:
    """In a wheel the templates lie in the package, in a checkout beside it."""
    return [folder for folder in (_PACKAGE / "templates", _PACKAGE.parent / "templates") if folder.is_dir()]


def styles() -> tuple[str, ...]:
    """Names of the built-in styles."""
    return tuple(sorted({style.name for folder in template_folders() for style in folder.iterdir() if style.is_dir() and suffixes(style)}))


def style_folder(style: str) -> Path:
    """The folder of a built-in style, or a folder of one's own where a path is given: "./mine".

    Raises:
        OutputError: No such style, or the folder holds no template of a statement.
    """
    if style in styles():
        return next(folder / style for folder in template_folders() if (folder / style).is_dir())
    if os.sep not in style and not style.startswith("."):
        raise OutputError(f"unknown style {style!r}: there is {', '.join(styles())}, or a folder of your own such as ./mine")
    folder = Path(style)
    if not folder.is_dir():
        raise OutputError(f"style {style!r} is not a folder; the built-in styles are {', '.join(styles())}")
    if not suffixes(folder):
        raise OutputError(f"style {style!r} has no template of a statement; it needs a file such as {folder / 'statement.md.j2'}")
    return folder


def suffixes(folder: Path) -> tuple[str, ...]:
    """Suffixes that a style has a template for: .md, .tex."""
    names = [path.name for path in folder.glob(f"{_BEGIN}*{_END}")]
    return tuple(sorted(f".{name[len(_BEGIN) : -len(_END)]}" for name in names if len(name) > len(_BEGIN) + len(_END)))


def writes(folder: Path) -> tuple[str, ...]:
    """Suffixes of the files that a style can be written to: those of its templates, a PDF of its HTML, and the numbers, which need none."""
    own = suffixes(folder)
    return tuple(sorted({*own, ".json", *([".pdf"] if ".html" in own else [])}))


def about(folder: Path) -> str:
    """What a style is for, in one line; "" where it does not say."""
    path = folder / _ABOUT
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def fill(style: str, template: str, escape: Callable[[str], str], values: dict[str, Any], *, is_tex: bool) -> str:
    """A filled template of a style.

    Raises:
        OutputError: No such style, the style has no such template, or the template is wrong.
    """
    folder = style_folder(style)
    if not (folder / template).is_file():
        suffix = f".{template.removeprefix(_BEGIN).removesuffix(_END)}"
        raise OutputError(f"style {style!r} has no {suffix}: it has {', '.join(writes(folder))}")
    try:
        return _environment(folder, escape, is_tex).get_template(template).render(**values)
    except jinja2.TemplateNotFound as error:
        raise OutputError(f"style {style!r} has no template {error.name!r}, which {template} includes") from error
    except jinja2.TemplateSyntaxError as error:
        raise OutputError(f"style {style!r}: {error.name or template}, line {error.lineno}: {error.message}") from error
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise OutputError(f"style {style!r}: {template}: {error}") from error


def made_as(style: str, *, is_anonymous: bool) -> "Raw":
    """What the head of a file says of its making beside the tool: nothing of the plain style, the name of a built-in one, no folder."""
    named = "" if style == PLAIN else f" in style {style}" if style in styles() else OWN_STYLE
    return Raw(f"{named}{BLIND if is_anonymous else ''}")


def _environment(folder: Path, escape: Callable[[str], str], is_tex: bool) -> jinja2.Environment:
    """Templates of a style, and after them those of all built-in styles for `include`."""
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
        loader=jinja2.FileSystemLoader([folder, *template_folders()]),
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
