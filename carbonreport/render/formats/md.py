"""Markdown that a repository page shows as it is."""

import html
from collections.abc import Mapping

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.engine import fill

_MARKUP = set("\\`*_{}[]#|~$")


def create(options: Mapping[str, str]) -> "Markdown":
    """The Markdown format; it has no options."""
    return Markdown()


def available() -> str | None:
    """Why Markdown cannot be written: never."""
    return None


class Markdown:
    """Renders a statement as GitHub Markdown."""

    suffix = ".md"

    def render(self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool) -> str:
        """The style's statement.md.j2, filled."""
        return fill(style, "statement.md.j2", escape, {"s": statement}, is_tex=False)


def escape(text: str) -> str:
    """Any text as Markdown text: no markup, no HTML, one line."""
    one_line = "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)
    return "".join(f"\\{c}" if c in _MARKUP else html.escape(c, quote=False) for c in one_line)
