import html
import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from carbonreport.render.formats.md import escape as md_escape
from carbonreport.render.tex_text import escape as tex_escape

HOSTILE = r"100% _$&{}<script>\input{x}" + "\U0001f600₂\n"
anything = st.text(st.characters(exclude_categories=())) | st.text("\\{}$&#%_^~<>|\"'`-[]*()!:/@.aé\u0301β中\u202e\n\0 ")


@given(anything)
@example(HOSTILE)
@example("＼ｉｎｐｕｔ｛ｘ｝")
@example("^^M")
def test_tex_text_is_ascii_with_balanced_braces_and_no_live_special(text: str) -> None:
    result = tex_escape(text)

    assert result.isascii() and result.isprintable()
    outside_maths = re.sub(r"\\\(.*?\\\)", "", result.replace("\\textbackslash{}", ""))
    bare = re.sub(r"\\[{}$&#%_]|\\[a-zA-Z]+|\\[,^'`\"~=.]", "", outside_maths)  # escaped specials, control words, accents
    assert not set(bare) & set("\\$&#%^_")
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", result):
        depth += 1 if brace == "{" else -1
        assert depth >= 0
    assert depth == 0


@given(anything)
def test_tex_text_uses_only_words_that_plain_latex_knows_without_a_second_font(text: str) -> None:
    words = set(re.findall(r"\\([a-zA-Z]+)", tex_escape(text)))

    assert not words & {"input", "copyright", "pounds", "S", "k", "textmu", "textdegree", "def", "write"}


def test_accents_are_composed_whether_they_come_in_one_piece_or_two() -> None:
    assert tex_escape("é") == tex_escape("e\u0301") == r"\'{e}"
    assert tex_escape("Dvořák Łódź Ångström naïve") == r"Dvo\v{r}\'{a}k \L{}\'{o}d\'{z} \r{A}ngstr\"{o}m na\"{\i}ve"


def test_what_no_font_has_is_named_by_its_code_points() -> None:
    assert tex_escape("run 中文 1") == "run (U+4E2D U+6587) 1"


def test_invisible_and_control_characters_leave_no_trace() -> None:
    assert tex_escape("a\u202eb\u200fc\u2066d") == "abcd"
    assert tex_escape("a\0b\nc\x7fd") == "a b c d"


def test_two_hyphens_stay_two_hyphens() -> None:
    assert tex_escape("--pue") == "-{}-pue"


def test_letters_and_signs_of_the_field_are_printed() -> None:
    assert tex_escape("β-VAE ± 5 µs CO₂") == r"\(\beta\)-VAE \(\pm\) 5 \(\mu\)s CO\(_2\)"


def test_long_words_may_break() -> None:
    assert r"\allowbreak" in tex_escape("x" * 80)
    assert r"\allowbreak" not in tex_escape("NVIDIA A100-SXM4-80GB consumption-based")


renderer = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(anything)
@example(HOSTILE)
@example("[a](http://b) ![i](j) <img src=x onerror=y>")
@example("*emph* __u__ ~~s~~ `code` | pipe <!-- c --> &amp; \\")
@example("[1, 2](x) [1.5, 2.5]: http://x")
def test_markdown_text_shows_as_itself_without_tags_or_links(text: str) -> None:
    rendered = renderer.renderInline("a" + md_escape(text) + "a")

    assert not re.search(r"<[a-zA-Z/!]", rendered)
    shown = "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)
    assert html.unescape(rendered) == f"a{shown}a"


@given(anything)
def test_a_markdown_cell_is_one_cell(text: str) -> None:
    table = f"| h | i |\n|---|---|\n| a{md_escape(text)}a | b |\n"

    assert renderer.render(table).count("<td>") == 2


def test_intervals_stay_readable_in_the_source() -> None:
    assert md_escape("15.1 kWh [14.9, 16.3] (RAPL)") == "15.1 kWh [14.9, 16.3] (RAPL)"
    assert md_escape("[x](y)") == r"\[x\](y)"


def test_addresses_do_not_become_links() -> None:
    assert md_escape("https://a.b www.c.d e@f.g") == r"https\://a.b www\.c.d e\@f.g"


def test_a_number_and_its_sign_of_percent_stay_on_one_line_in_tex() -> None:
    assert tex_escape("under 5 % of it, and a 100% name") == r"under 5~\% of it, and a 100\% name"
