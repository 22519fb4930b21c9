"""Markdown that a repository page shows as it is."""

import html
import re
from collections.abc import Iterator, Mapping

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.engine import fill, made_as
from carbonreport.render.form_words import unanswered
from carbonreport.render.words import listed

_MARKUP = set("\\`*_{}[]#|~$")
_INTERVALS = re.compile(r"\[[\d.,]+, [\d.,]+\](?![\[(:])")  # brackets that are no link stay readable
_LINKS = re.compile(r"(?::(?=//)|\.(?<=www\.)|@)", re.IGNORECASE)  # what GitHub would make a link or a mention of


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
        return fill(
            style,
            "statement.md.j2",
            escape,
            {
                "s": statement,
                "made_as": made_as(style, is_anonymous=statement.is_anonymous),
                "unanswered": listed(unanswered(statement.details)),
            },
            is_tex=False,
        )


def escape(text: str) -> str:
    """Any text as Markdown text: no markup, no HTML, no links, one line."""
    one_line = "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)
    return _LINKS.sub(r"\\\g<0>", "".join(_pieces(one_line)))


def _pieces(line: str) -> Iterator[str]:
    at = 0
    for interval in _INTERVALS.finditer(line):
        yield "".join(_character(c) for c in line[at : interval.start()])
        yield interval.group()
        at = interval.end()
    yield "".join(_character(c) for c in line[at:])


def _character(c: str) -> str:
    return f"\\{c}" if c in _MARKUP else html.escape(c, quote=False)
