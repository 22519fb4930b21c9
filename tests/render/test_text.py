"""Whatever characters come in, LaTeX and Markdown get text and nothing else."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonreport.render.formats import md
from carbonreport.render.tex_text import escape

HOSTILE = "100% _$&{}<script>\\input{x} \N{GRINNING FACE} CO₂ \n next #~^|`\"'"
# Everything that the escaping itself may write; what is left of a text without these must hold nothing special.
_WRITTEN = re.compile(
    r"\\\((?:_\d|\^\d|\^\\circ|\\[A-Za-z]+|[<>|\-])\\\)"
    r"|\\(?:textbackslash|textasciicircum|textasciitilde|textquoteleft|allowbreak|ldots|ss|ae|AE|oe|OE|o|O|l|L|i|j)\{\}"
    r"|\\[\{\}\$&#%_,]"
    r"|\\(?:[`'^~=.\"]|[urHvdc](?=\{))|\\[ij](?=\})"
    r"|\{\}"
)


@given(st.text())
def test_latex_gets_ascii_without_anything_special(text):
    escaped = escape(text)
    left = _WRITTEN.sub("", escaped)

    assert escaped.isascii()
    assert escaped.isprintable()
    assert not set("\\$&#%_^") & set(left), left
    assert escaped.count("\\(") == escaped.count("\\)")


@given(st.text())
def test_latex_braces_are_balanced(text):
    depth = 0
    for brace in re.findall(r"\\[{}]|[{}]", escape(text)):
        depth += {"{": 1, "}": -1}.get(brace, 0)
        assert depth >= 0
    assert depth == 0


@pytest.mark.parametrize(
    ("text", "tex"),
    [
        ("CO₂e", r"CO\(_2\)e"),
        ("100 % of A&B_C", r"100 \% of A\&B\_C"),
        ("Müller, Škoda, Łódź, naïve", r"M\"{u}ller, \v{S}koda, \L{}\'{o}d\'{z}, na\"{\i}ve"),
        ("a\nb\tc\0d", "a b c d"),
        ("模型", "(U+6A21 U+578B)"),
        ("\N{GRINNING FACE}", "(U+1F600)"),
        ("5–15", "5--15"),
        ("\\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("a\u202eb", "ab"),
        ("µs ± 3 × 2", r"\(\mu\)s \(\pm\) 3 \(\times\) 2"),
    ],
)
def test_latex_text_by_example(text, tex):
    assert escape(text) == tex


@given(st.text())
def test_markdown_gets_one_line_without_tags_or_markup(text):
    escaped = md.escape(text)

    assert "\n" not in escaped
    assert "\r" not in escaped
    assert "<" not in escaped
    assert ">" not in escaped
    without_intervals = re.sub(r"\[[\d.,]+, [\d.,]+\]", "", escaped)
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_{}\[\]#|~$]", re.sub(r"\\.", "", without_intervals))


def test_a_hostile_name_is_harmless_in_both():
    assert "<script>" not in md.escape(HOSTILE)
    assert "\\input" not in escape(HOSTILE)
