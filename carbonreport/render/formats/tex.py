"""LaTeX that compiles with plain pdflatex and no package in the preamble."""

import unicodedata
from collections.abc import Iterable, Mapping

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement, Work
from carbonreport.render.engine import Raw, fill

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\(<\)",
    ">": r"\(>\)",
    "|": r"\(|\)",
    '"': "''",
    "'": "'",
    "`": r"\textquoteleft{}",
    "-": "-",
    "\u00a0": "~",
    "\u202f": r"\,",
    "\u2009": r"\,",
    "–": "--",
    "—": "---",
    "‘": "`",
    "’": "'",
    "“": "``",
    "”": "''",
    "„": ",,",
    "…": r"\ldots{}",
    "×": r"\(\times\)",
    "÷": r"\(\div\)",
    "±": r"\(\pm\)",
    "−": r"\(-\)",
    "≤": r"\(\le\)",
    "≥": r"\(\ge\)",
    "≈": r"\(\approx\)",
    "·": r"\(\cdot\)",
    "µ": r"\(\mu\)",
    "μ": r"\(\mu\)",
    "°": r"\(^\circ\)",
    "→": r"\(\to\)",
    "ß": r"\ss{}",
    "æ": r"\ae{}",
    "Æ": r"\AE{}",
    "œ": r"\oe{}",
    "Œ": r"\OE{}",
    "ø": r"\o{}",
    "Ø": r"\O{}",
    "ł": r"\l{}",
    "Ł": r"\L{}",
    "ı": r"\i{}",
    "§": r"\S{}",
    "©": r"\copyright{}",
    "£": r"\pounds{}",
    "€": "EUR",
    **{chr(0x2080 + n): rf"\(_{n}\)" for n in range(10)},
    "²": r"\(^2\)",
    "³": r"\(^3\)",
}
# Combining accents that the text font of plain LaTeX has.
_ACCENTS = {
    "\u0300": r"\`",
    "\u0301": r"\'",
    "\u0302": r"\^",
    "\u0303": r"\~",
    "\u0304": r"\=",
    "\u0306": r"\u",
    "\u0307": r"\.",
    "\u0308": r"\"",
    "\u030a": r"\r",
    "\u030b": r"\H",
    "\u030c": r"\v",
    "\u0327": r"\c",
}
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
        return fill(
            style, "statement.tex.j2", escape, {"s": statement, "prefix": Raw(_PREFIX), "has_bib": has_bib, "cite": _cite}, is_tex=True
        )


def escape(text: str) -> str:
    """Any text as LaTeX text: specials escaped, accents composed, line breaks blanks, and what no font has by its code point."""
    return "".join(_character(c) for c in text)


def _character(c: str) -> str:
    if c in _SPECIAL:
        return _SPECIAL[c]
    if c.isascii():
        return c if c.isprintable() else " "
    base, *marks = list(unicodedata.normalize("NFKD", c))
    if base.isascii() and base.isalnum() and all(m in _ACCENTS or unicodedata.combining(m) for m in marks):
        return _accented(base, marks)
    if unicodedata.combining(c) or unicodedata.category(c) in ("Cf", "Cc", "Mn", "Me"):
        return ""
    return f"(U+{ord(c):04X})"


def _accented(base: str, marks: Iterable[str]) -> str:
    """A letter under its accents; one that the font lacks is left out."""
    text = {"i": r"\i", "j": r"\j"}.get(base, base) if marks else base
    for mark in marks:
        if mark in _ACCENTS:
            text = f"{_ACCENTS[mark]}{{{text}}}"
    return text if text not in (r"\i", r"\j") else base


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
