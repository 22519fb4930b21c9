"""An SVG file becomes an element of a page: own ids, the page's text colour, no style sheet, nothing that loads. Pure."""

import html
import re

from carbonreport.render.engine import Raw

INK = "#000000"  # becomes the colour of the page's text


def cleaned(text: str, prefix: str, title: str, description: str) -> Raw:
    """The drawing of an SVG file as an element that can stand in a page beside others.

    Args:
        text: The file.
        prefix: Begins all its ids, so that no two pictures of a page share one.
        title: Its title, for screen readers.
        description: What it shows, for screen readers.
    """
    size = re.search(r'viewBox="([^"]*)"', text)
    body = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    body = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: _own(tag.group(), prefix), body)
    body = re.sub(r"\n\s*", "\n", body).strip()
    return Raw(
        f'<svg viewBox="{size.group(1) if size else ""}" role="img" aria-labelledby="{prefix}-title {prefix}-desc" '
        'style="fill:currentColor;stroke-linejoin:round;stroke-linecap:butt">\n'
        f'<title id="{prefix}-title">{html.escape(title)}</title>\n<desc id="{prefix}-desc">{html.escape(description)}</desc>\n{body}\n</svg>'
    )


def _own(tag: str, prefix: str) -> str:
    """A tag with ids of this picture, the page's ink and no more digits than can be seen."""
    if tag.startswith("<g "):
        tag = re.sub(r' id="[^"]*"', "", tag)
    tag = re.sub(r"(\d\.\d\d)\d+", r"\1", tag.replace("xlink:href=", "href=").replace(INK, "currentColor"))
    return re.sub(r'\b(id="|href="#|url\(#)', rf"\g<1>{prefix}-", tag)
