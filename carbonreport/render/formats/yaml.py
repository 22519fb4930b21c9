"""YAML: metadata for the head of a model card. Every text is a double-quoted scalar, valid whatever it contains."""

from collections.abc import Mapping

from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.engine import Raw, fill, made_as


def create(options: Mapping[str, str]) -> "Yaml":
    """The YAML format; it has no options."""
    return Yaml()


def available() -> str | None:
    """Why YAML cannot be written: never."""
    return None


class Yaml:
    """Renders a statement as YAML."""

    suffix = ".yaml"

    def render(self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool) -> str:
        """The style's statement.yaml.j2, filled; the number of grams goes in without quotes."""
        values = {"s": statement, "made_by": Raw(statement.made_by), "grams": Raw(statement.details.card.grams)}
        values["gas"] = Raw(statement.details.card.gas)
        values["made_as"] = made_as(style, is_anonymous=statement.is_anonymous)
        return fill(style, "statement.yaml.j2", escape, values, is_tex=False)


def escape(text: str) -> str:
    """Any text as a YAML double-quoted scalar on one line."""
    return f'"{"".join(_character(c) for c in text)}"'


def _character(c: str) -> str:
    if c in '"\\':
        return f"\\{c}"
    if c.isprintable():
        return c
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"
