"""PDF: two pages at most, every font inside, tagged, and no trouble for the other files where it cannot be made."""

import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from carbonreport.errors import OutputError
from carbonreport.render.formats import pdf as pdf_format
from carbonreport.testing import make_record
from carbonreport.workflows.statement import statement_of, write_statement

needs_weasyprint = pytest.mark.skipif(
    pdf_format.available() is not None, reason=f"NO PDF IS MADE: {pdf_format.available()} (pip install 'carbonreport[pdf]')"
)
needs_poppler = pytest.mark.skipif(
    shutil.which("pdftotext") is None, reason="poppler is not installed: NO PDF IS LOOKED AT (apt-get install poppler-utils)"
)
RENDER = """
import sys
from pathlib import Path
from carbonreport.errors import CarbonreportError
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import write_statement
charged = charge_records([make_record({'GPU': 300.0}, 5)], PlaceOptions(zone='DE', pue='1.2'), {})
try:
    write_statement(charged, [Path('energy.pdf'), Path('energy.md'), Path('energy.html')], style='plain', bib=None, force=False)
except CarbonreportError as error:
    print(type(error).__name__, error)
"""


def write(charged, folder: Path, *, style: str = "plain") -> Path:
    (path,) = write_statement(charged, [folder / "energy.pdf"], style=style, bib=None, force=False)
    return path


def poppler(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def render_where(folder: Path, first_lines: str, weasyprint: str | None = None) -> subprocess.CompletedProcess[str]:
    """Three files from a process of its own, with another package in the place of weasyprint where one is given."""
    if weasyprint is not None:
        (folder / "weasyprint.py").write_text(weasyprint)
    return subprocess.run([sys.executable, "-c", first_lines + RENDER], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def ordinary(charged):
    """A training on two boards with its host, and a search before it."""
    final = make_record(
        {"NVIDIA H200": 600.0, "host": 80.0},
        12,
        kinds={"host": "cpu"},
        name="final",
        spans={"train": 0.8, "eval": 0.1},
        items={"train": 1e6},
    )
    search = make_record(
        {"NVIDIA H200": 500.0, "host": 80.0}, 3, kinds={"host": "cpu"}, name="search", kind="search", start="2026-01-12T08:00Z"
    )
    return charged(search, final)


@needs_weasyprint
@needs_poppler
def test_a_pdf_holds_the_statement_on_two_pages_at_most(ordinary, tmp_path):
    path = write(ordinary, tmp_path)
    words, text = statement_of(ordinary), " ".join(poppler("pdftotext", str(path), "-").split())
    about = dict(line.split(":", 1) for line in poppler("pdfinfo", str(path)).splitlines() if ":" in line)

    assert int(about["Pages"]) <= 2
    assert about["Tagged"].strip() == "yes"
    assert about["Title"].strip() == "Energy and carbon"
    for row in words.rows:
        assert " ".join(row.value.split()) in text
    assert "kgCO₂e" in text


@needs_weasyprint
@needs_poppler
def test_every_font_is_inside_and_is_the_one_that_comes_with_the_package(ordinary, tmp_path):
    fonts = poppler("pdffonts", str(write(ordinary, tmp_path))).splitlines()[2:]

    assert fonts
    for font in fonts:
        assert "+DejaVu-Sans" in font.split()[0]
        assert font.split()[-5:-2] == ["yes", "yes", "yes"]  # embedded, subset, with its characters


@needs_weasyprint
def test_a_pdf_says_that_it_is_accessible_and_who_wrote_it_and_is_the_same_each_time(ordinary, tmp_path):
    first = write(ordinary, tmp_path).read_bytes()
    second = write(ordinary, tmp_path).read_bytes()  # replaced, since its metadata name carbonreport

    assert first == second
    assert b'pdfuaid:part="1"' in first
    assert b"<xmp:CreatorTool>carbonreport " in first


@needs_weasyprint
@pytest.mark.parametrize("content", [b"%PDF-1.7\nmy paper", b"% written by carbonreport, a text that is no PDF\n"])
def test_a_pdf_of_somebody_else_is_not_replaced(ordinary, tmp_path, content):
    (tmp_path / "energy.pdf").write_bytes(content)

    with pytest.raises(OutputError, match="was not written by carbonreport"):
        write(ordinary, tmp_path)
    assert (tmp_path / "energy.pdf").read_bytes() == content


@needs_weasyprint
@needs_poppler
def test_a_style_cannot_bring_files_of_this_machine_into_a_pdf(ordinary, tmp_path):
    (tmp_path / "secret.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 99 9"><text y="9">SECRET</text></svg>')
    (tmp_path / "mine").mkdir()
    address = (tmp_path / "secret.svg").as_uri()
    (tmp_path / "mine" / "statement.html.j2").write_text(f'<html lang="en"><title>t</title><p>before</p><img alt="x" src="{address}">')

    text = poppler("pdftotext", str(write(ordinary, tmp_path, style=str(tmp_path / "mine"))), "-")

    assert "before" in text
    assert "SECRET" not in text


def test_without_weasyprint_the_other_files_are_written_and_the_extra_is_named(tmp_path):
    done = render_where(tmp_path, "import sys; sys.modules['weasyprint'] = None\n")

    assert done.stdout == "MissingExtra PDF needs packages that are not installed: pip install 'carbonreport[pdf]'\n"
    assert done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["energy.html", "energy.md"]


def test_without_pango_the_other_files_are_written_and_the_command_that_brings_it_is_named(tmp_path):
    done = render_where(
        tmp_path,
        "import sys; sys.path.insert(0, '.')\n",
        weasyprint="print('a long text')\nraise OSError('cannot load library libpango')\n",
    )

    assert done.stdout.startswith("OutputError PDF needs the library Pango: apt-get install libpango-1.0-0 libpangoft2-1.0-0")
    assert done.stdout.count("\n") == 1
    assert {"energy.html", "energy.md"} <= {path.name for path in tmp_path.iterdir()}
    assert not (tmp_path / "energy.pdf").exists()


def test_any_other_error_leaves_nothing_half_done_even_where_a_pdf_cannot_be_made(tmp_path):
    (tmp_path / "energy.md").write_text("mine\n")

    done = render_where(tmp_path, "import sys; sys.modules['weasyprint'] = None\n")

    assert "was not written by carbonreport" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["energy.md"]


def test_the_fonts_have_their_licence_beside_them_and_are_small():
    folder = files("carbonreport") / "data" / "fonts"

    assert "Bitstream Vera Fonts Copyright" in (folder / "LICENSE").read_text()
    assert sum(len(path.read_bytes()) for path in folder.iterdir()) < 400_000
