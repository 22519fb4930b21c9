"""HTML: one file that loads nothing, says what the Markdown says, and can be read on a phone and by a screen reader."""

import html
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carbonreport.errors import OutputError
from carbonreport.render.formats.html import escape
from carbonreport.testing import make_record
from carbonreport.workflows.statement import statement_of, write_statement
from carbonreport.workflows.statement_words import Telling

HOSTILE = "{{ 7 * 7 }}<script>alert(1)</script>\"' $x^2$ % _&{} onload=x --> \N{GRINNING FACE} ₂\nnext"
VOID = {"meta", "link", "img", "br", "hr", "input", "path", "use", "rect"}

needs_matplotlib = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="matplotlib is not installed: NO PICTURE IS DRAWN (pip install 'carbonreport[plots]')"
)


class Page(HTMLParser):
    """Tags with their attributes and those around them, and the text outside of style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self._open)))
        if tag not in VOID:
            self._open.append(f"{tag}.{dict(attrs).get('class', '')}")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs), tuple(self._open)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop().partition(".")[0] == tag

    def handle_data(self, data):
        if not self._open or self._open[-1] != "style.":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes, _ in self.tags if tag == name]


def write(charged, folder: Path, name: str = "energy.html", *, style: str = "plain", force: bool = False) -> str:
    (path,) = write_statement(charged, [folder / name], style=style, bib=None, force=force)
    return path.read_text(encoding="utf-8")


@pytest.fixture
def several(charged):
    """Two names of runs over two days, with spans, items and a host."""
    first = make_record(
        {"NVIDIA H200": 600.0, "host": 80.0}, 5, kinds={"host": "cpu"}, spans={"train/step": 0.8, "eval": 0.1}, items={"eval": 1e4}
    )
    return charged(first, make_record({"NVIDIA H200": 300.0}, 2, name="b", start="2026-01-17T08:00Z"), zone="DE", pue="1.2")


def test_html_loads_nothing_and_runs_nothing(several, tmp_path):
    text = write(several, tmp_path)
    page = Page(text)

    assert not {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a"} & {tag for tag, _, _ in page.tags}
    for _, attributes, _ in page.tags:
        assert not {"src", "srcset", "action", "data", "xlink:href"} & set(attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    assert "://" not in text
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "default-src 'none'" in text


def test_the_browser_is_told_to_load_nothing_before_anything_could_be_loaded(several, tmp_path):
    first, second, third = Page(write(several, tmp_path)).all("meta")[:3]

    assert first == {"charset": "utf-8"}
    assert second["name"] == "viewport"
    assert third["http-equiv"] == "Content-Security-Policy"


def test_a_hostile_name_shows_as_itself_and_does_nothing(charged, tmp_path):
    runs = [
        make_record({HOSTILE: 300.0}, 3, name=HOSTILE, spans={HOSTILE.replace("/", ""): 0.5}),
        make_record({"GPU": 1.0}, 1, name="b"),
    ]
    text = write(charged(*runs), tmp_path)
    page = Page(text)

    assert "<script" not in text
    assert not page.all("script")
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert not [name for _, attributes, _ in page.tags for name in attributes if name.startswith("on")]


@given(st.text(st.characters(exclude_categories=())) | st.text("<>&\"'/=`{}\n\0\u202e é中"))
@example(HOSTILE)
@example("</style></title><!-- -->")
def test_any_text_is_text_and_nothing_invisible_is_left(text: str) -> None:
    result = escape(text)

    assert not set(result) & set("<>\"'")
    shown = "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)
    assert html.unescape(result) == shown
    assert "\u202e" not in result


def test_html_says_what_the_statement_says(several, tmp_path):
    words, text = statement_of(several), Page(write(several, tmp_path)).text
    said = [s.text for s in words.paragraph]
    said += [part for row in words.rows for part in (row.label, row.value, row.interval, row.known, row.source)]
    said += [part for run in words.runs for part in (run.name, run.kind, run.time, run.energy, run.each, run.emissions)]
    said += [part for note in words.notes for part in note]

    assert words.runs and words.notes
    for part in said:
        assert " ".join(part.split()) in text


def test_html_is_a_page_for_screen_readers(several, tmp_path):
    page = Page(write(several, tmp_path))

    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("title")) == 1 + len(page.all("svg"))
    assert len(page.all("main")) == len(page.all("h1")) == 1
    assert len(page.all("caption")) == len(page.all("table")) == 2
    assert {th.get("scope") for th in page.all("th")} == {"col", "row"}
    assert len([th for th in page.all("th") if th["scope"] == "row"]) == len(statement_of(several).rows) + len(statement_of(several).runs)


def test_what_is_wider_than_a_phone_scrolls_by_itself(several, tmp_path):
    text = write(several, tmp_path)
    page = Page(text)

    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all("meta")
    wide = [around for tag, _, around in page.tags if tag in ("table", "svg")]
    assert wide and all("div.wide" in around for around in wide)
    assert re.search(r"\.wide \{[^}]*overflow-x: auto", text)
    assert re.search(r"body \{[^}]*overflow-wrap: anywhere", text)
    assert all(attributes["tabindex"] == "0" for attributes in page.all("div"))  # a keyboard can scroll it


def test_html_says_in_its_second_line_who_wrote_it_and_is_replaced(several, tmp_path):
    first, second = write(several, tmp_path).splitlines()[:2]

    assert first == "<!doctype html>"
    assert second.startswith("<!-- written by carbonreport")
    assert write(several, tmp_path).splitlines()[1] == second


def test_html_of_somebody_else_is_not_replaced(several, tmp_path):
    (tmp_path / "energy.html").write_text("<!doctype html>\n<title>mine</title>\n")

    with pytest.raises(OutputError, match="was not written by carbonreport"):
        write(several, tmp_path)


def test_the_same_records_give_the_same_bytes(several, tmp_path):
    assert write(several, tmp_path, "a.html") == write(several, tmp_path, "b.html")


@needs_matplotlib
def test_html_holds_its_pictures_with_ids_of_their_own(several, tmp_path):
    page = Page(write(several, tmp_path))
    ids = [attributes["id"] for _, attributes, _ in page.tags if "id" in attributes]

    assert len(page.all("figure")) == len(page.all("svg")) == len(page.all("figcaption")) == 3
    assert len(ids) == len(set(ids))
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        assert set((svg["aria-labelledby"] or "").split()) <= set(ids)
    assert {href.removeprefix("#") for _, a, _ in page.tags if (href := a.get("href"))} <= set(ids)


def test_a_blind_review_gets_no_pictures_since_they_show_names_and_dates(charged, tmp_path):
    result = charged(make_record({"NVIDIA H200": 300.0}, 5, name="secret", spans={"secret": 0.9}))
    telling = Telling(is_anonymous=True)
    (path,) = write_statement(result, [tmp_path / "energy.html"], style="plain", bib=None, force=False, telling=telling)

    assert not Page(path.read_text()).all("svg")
    assert "secret" not in path.read_text()


def test_without_matplotlib_html_has_no_pictures_and_says_in_a_comment_what_brings_them(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from pathlib import Path\n"
        "from carbonreport.testing import make_record\n"
        "from carbonreport.workflows.charge import charge_records\n"
        "from carbonreport.workflows.place import PlaceOptions\n"
        "from carbonreport.workflows.statement import write_statement\n"
        "charged = charge_records([make_record({'GPU': 300.0}, 5)], PlaceOptions(zone='DE', pue='1.2'), {})\n"
        "write_statement(charged, [Path('energy.html')], style='plain', bib=None, force=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    text = (tmp_path / "energy.html").read_text()

    assert (done.returncode, done.stderr) == (0, "")
    assert not Page(text).all("svg")
    assert "<!-- no pictures: they need the extra \"plots\" (pip install 'carbonreport[plots]') -->" in text


def test_every_cell_of_a_table_of_figures_names_its_column_for_a_narrow_page(charged, tmp_path):
    page = tmp_path / "energy.html"
    write_statement(charged(make_record({"GPU": 500.0}, 2, zone="DE")), [page], style="plain", bib=None, force=False)
    text = page.read_text(encoding="utf-8")

    assert "@media screen and (max-width: 42rem)" in text
    labels = [attributes.get("data-label") for attributes in Page(text).all("td")]
    assert {"90 % interval", "How known", "Source"} <= set(labels)


@needs_matplotlib
def test_what_each_start_costs_stands_beside_the_advice_on_running_again(several, tmp_path):
    text = write(several, tmp_path)

    advice, notes = text.index("<h2>When to run again</h2>"), text.index("<h2>Notes</h2>")
    assert advice < text.index('<title id="starts-title">What each start would cost, and what a delay saves</title>') < notes
    assert notes < text.index('<title id="power-title">')
