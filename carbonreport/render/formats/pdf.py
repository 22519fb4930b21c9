"""PDF: the HTML form on paper, tagged for screen readers (PDF/UA-1), with a font of its own. The one file that imports WeasyPrint."""

import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from importlib import import_module
from importlib.resources import files
from io import StringIO
from typing import Any

from carbonreport.errors import CarbonreportError, MissingExtra, OutputError
from carbonreport.model.footprint import Footprint
from carbonreport.model.statement import Statement
from carbonreport.render.engine import Raw
from carbonreport.render.formats.html import Html
from carbonreport.render.pictures import Picture

_FACES = (("normal", "DejaVuSans.ttf"), ("bold", "DejaVuSans-Bold.ttf"))
_DATE_VARIABLE = "SOURCE_DATE_EPOCH"  # reproducible-builds.org: the time that tools write instead of now
_PAPER = """
body, svg text { font-family: "DejaVu Sans"; }
@page { @bottom-right { content: counter(page) " / " counter(pages); font: 7pt "DejaVu Sans"; color: #555; } }
"""


def create(options: Mapping[str, str]) -> "Pdf":
    """The PDF format; it has no options."""
    return Pdf()


def available() -> str | None:
    """Why PDF cannot be written, or None."""
    try:
        Pdf().require()
    except CarbonreportError as error:
        return str(error)
    return None


class Pdf:
    """Renders a statement as a PDF file."""

    suffix = ".pdf"
    wants_pictures = True

    def require(self) -> None:
        """Find out whether a PDF can be made here.

        Raises:
            MissingExtra: WeasyPrint is not installed.
            OutputError: Pango is not installed.
        """
        _weasyprint()

    def render(
        self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool, pictures: Sequence[Picture] | None = None
    ) -> bytes:
        """The HTML form as a PDF. Raises as `require` does."""
        described = None if pictures is None else [with_long_title(picture) for picture in pictures]
        return pdf_of(Html().render(statement, footprint, style, has_bib=has_bib, pictures=described))


def pdf_of(html: str) -> bytes:
    """A page of HTML on paper.

    Raises:
        MissingExtra: WeasyPrint is not installed.
        OutputError: Pango is not installed.
    """
    weasyprint = _weasyprint()
    fonts = weasyprint.text.fonts.FontConfiguration()
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols=("data",))  # the fonts below; nothing else is ever loaded
    paper = weasyprint.CSS(string=_font_faces() + _PAPER, url_fetcher=fetcher, font_config=fonts)
    page = weasyprint.HTML(string=html, url_fetcher=fetcher)
    with _undated_fonts():
        pdf: bytes = page.write_pdf(stylesheets=[paper], font_config=fonts, pdf_variant="pdf/ua-1", finisher=_with_plain_metadata)
    return pdf


def _weasyprint() -> Any:
    try:
        with redirect_stdout(StringIO()):  # where it says at length that a library is missing
            return import_module("weasyprint")
    except ImportError as error:
        raise MissingExtra("PDF", "pdf") from error
    except OSError as error:
        raise OutputError(
            "PDF needs the library Pango: apt-get install libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 (or the like)"
        ) from error


@contextmanager
def _undated_fonts() -> Iterator[None]:
    """Fonts without the time of writing: where HarfBuzz's subsetter is missing, fontTools would write it into each of them, and no two files were the same."""
    before = os.environ.get(_DATE_VARIABLE)
    os.environ.setdefault(_DATE_VARIABLE, "0")
    try:
        yield
    finally:
        if before is None:
            del os.environ[_DATE_VARIABLE]


def _with_plain_metadata(document: Any, pdf: Any) -> None:
    """Leave the metadata uncompressed, so that whoever looks finds in them which program wrote the file."""
    for part in pdf.objects:
        if getattr(part, "extra", {}).get("Type") == "/Metadata":
            part.compress = False


def _font_faces() -> str:
    """The fonts inside the style sheet."""
    folder = files("carbonreport") / "data" / "fonts"
    return "".join(
        f'@font-face {{ font-family: "DejaVu Sans"; font-weight: {weight}; '
        f"src: url(data:font/ttf;base64,{b64encode((folder / name).read_bytes()).decode('ascii')}); }}\n"
        for weight, name in _FACES
    )


def with_long_title(picture: Picture) -> Picture:
    """A picture whose description stands in its title, the one that WeasyPrint makes the text for screen readers of."""
    svg = re.sub(r"</title>\n<desc[^>]*>(.*?)</desc>", r". \1</title>", picture.svg, count=1, flags=re.DOTALL)
    return replace(picture, svg=Raw(svg))
