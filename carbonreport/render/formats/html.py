"""HTML: one file that opens without a network, prints well, and runs no script."""

import html
from collections.abc import Mapping, Sequence

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.engine import fill, made_as
from carbonreport.render.form_words import unanswered
from carbonreport.render.pictures import Picture
from carbonreport.render.words import listed


def create(options: Mapping[str, str]) -> "Html":
    """The HTML format; it has no options."""
    return Html()


def available() -> str | None:
    """Why HTML cannot be written: never; without matplotlib it has no pictures."""
    return None


class Html:
    """Renders a statement as one HTML file."""

    suffix = ".html"
    wants_pictures = True

    def render(
        self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool, pictures: Sequence[Picture] | None = None
    ) -> str:
        """The style's statement.html.j2, filled; `pictures` is None where nobody could draw them."""
        values = {
            "s": statement,
            "pictures": pictures,
            "made_as": made_as(style, is_anonymous=statement.is_anonymous),
            "unanswered": listed(unanswered(statement.details)),
        }
        return fill(style, "statement.html.j2", escape, values, is_tex=False)


def escape(text: str) -> str:
    """Any text as HTML text or attribute: no tags, no entities, one line, nothing invisible."""
    return html.escape("".join(c if c.isprintable() or c == "\u00a0" else " " for c in text))
