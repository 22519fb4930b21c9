"""LaTeX that compiles with plain pdflatex and no package in the preamble."""

from collections.abc import Iterable, Mapping

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement, Work
from carbonreport.render.engine import Raw, fill, made_as
from carbonreport.render.form_words import unanswered
from carbonreport.render.tex_text import escape
from carbonreport.render.words import listed

_PREFIX = "carbonreport"


def create(options: Mapping[str, str]) -> "Tex":
    """The LaTeX format; it has no options."""
    return Tex()


def available() -> str | None:
    """Why LaTeX cannot be written: never."""
    return None


class Tex:
    """Renders a statement as an \\input file with macros."""

    suffix = ".tex"

    def render(self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool) -> str:
        """The style's statement.tex.j2, filled; citations only where a .bib is written with it."""
        head = made_as(style, is_anonymous=statement.is_anonymous)
        values = {
            "s": statement,
            "prefix": Raw(_PREFIX),
            "has_bib": has_bib,
            "cite": _cite,
            "made_as": head,
            "unanswered": listed(unanswered(statement.details)),
        }
        return fill(style, "statement.tex.j2", escape, values, is_tex=True)


def _cite(keys: Iterable[str]) -> Raw:
    return Raw("~\\cite{" + ",".join(keys) + "}")


def bibliography(works: Iterable[Work]) -> str:
    """BibTeX entries."""
    return "\n".join(_entry(work) for work in works)


def _entry(work: Work) -> str:
    fields = ",\n".join(f"  {name} = {{{_bib_value(value)}}}" for name, value in work.fields)
    return f"@{work.kind}{{{work.key},\n{fields}\n}}\n"


def _bib_value(value: str) -> str:
    """Outer braces keep a corporate author together; the rest is text."""
    if value.startswith("{") and value.endswith("}"):
        return "{" + escape(value[1:-1]) + "}"
    return escape(value)
