"""A lab's year as a page of its own, on a screen and on paper."""

from collections.abc import Sequence

import jinja2

from carbonreport.errors import OutputError
from carbonreport.render.audit_facts import Report
from carbonreport.render.engine import Raw, template_folders
from carbonreport.render.formats import pdf
from carbonreport.render.formats.html import escape
from carbonreport.render.pictures import Picture

_TEMPLATE = "audit/report.html.j2"


def as_html(report: Report, pictures: Sequence[Picture] | None) -> str:
    """One file, nothing to load; `pictures` is None where nobody could draw them."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template_folders()),
        finalize=lambda value: value if isinstance(value, Raw) else escape(str(value)),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    try:
        return environment.get_template(_TEMPLATE).render(r=report, pictures=pictures)
    except jinja2.TemplateError as error:
        raise OutputError(f"templates/{_TEMPLATE}: {error}") from error


def as_pdf(report: Report, pictures: Sequence[Picture] | None) -> bytes:
    """The page on paper, made as every other PDF.

    Raises:
        MissingExtra: WeasyPrint is not installed.
        OutputError: Pango is not installed.
    """
    described = None if pictures is None else [pdf.with_long_title(picture) for picture in pictures]
    return pdf.pdf_of(as_html(report, described))
