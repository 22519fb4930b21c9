"""Every style, in Markdown and LaTeX, for one run, many, none worth telling, and hostile ones."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace

import pytest

from carbonreport.errors import OutputError
from carbonreport.model.notes import Note
from carbonreport.model.run import Place, RunRecord
from carbonreport.model.statement import Facts
from carbonreport.render.engine import about, style_folder, styles, suffixes
from carbonreport.render.formats.yaml import escape as yaml_scalar
from carbonreport.testing import make_record
from carbonreport.workflows.charge import Charged
from carbonreport.workflows.statement import statement_text, write_statement
from carbonreport.workflows.statement_words import Telling

NORMS = ("acl", "gpai", "icml", "modelcard", "neurips", "sci")
HOSTILE = "100% _$&{}<script>alert(1)</script>\\input{x} \N{GRINNING FACE} ₂\nnext | \"quoted\" 'it' #: - *[x](http://y)"
FACTS = Facts(
    model="tiny",
    parameters=1.3e9,
    training_type="pre-training",
    flop=2.4e21,
    memory_gb=141,
    storage="2 TB NVMe",
    functional_unit="answer",
    uses_per_year=1e8,
    runs=19,
    project_gpu_hours=1310,
)

FORBIDDEN = (
    "neutral",
    "net zero",
    "friendly",
    "measured emissions",
    "exactly",
    "actual",
    "negligible",
    "avoided",
    "saved",
    "green",
    "offset",
)

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed: NO STYLE IS COMPILED (apt-get install texlive-latex-base)"
)


def one() -> list[RunRecord]:
    return [
        make_record(
            {"NVIDIA H200": 600.0, "cpu": 80.0}, 9, kinds={"cpu": "cpu"}, name="final", zone="DE", items={"a": 9.0}, spans={"a": 0.5}
        )
    ]


def many() -> list[RunRecord]:
    kinds = ("training", "search", "search", "preliminary", "failed", "inference", "evaluation", "other")
    return [
        make_record(
            {f"GPU-{i}": 300.0 + i, f"GPU-{i}-b": 310.0},
            2,
            name=kind,
            kind=kind,
            start=f"2026-01-1{i}T08:00Z",
            zone=("DE", "US-CAL-CISO")[i % 2],
        )  # type: ignore[arg-type]
        for i, kind in enumerate(kinds)
    ]


def no_gpu() -> list[RunRecord]:
    return [make_record({"cpu": 80.0}, 9, kinds={"cpu": "cpu"}, method="model", gain=(0.5, 2.0))]


def nothing_known() -> list[RunRecord]:
    return [replace(make_record({}, 2, time_zone=None), place=Place())]


def no_length() -> list[RunRecord]:
    return [make_record({"GPU": 300.0}, 0)]


def hostile() -> list[RunRecord]:
    run = make_record({HOSTILE: 300.0}, 2, name=HOSTILE, spans={HOSTILE.replace("/", "|"): 0.5}, items={HOSTILE.replace("/", "|"): 3.0})
    place = Place("DE", "option", "UTC", site=HOSTILE)
    return [
        replace(
            run,
            place=place,
            devices=tuple(replace(d, source=HOSTILE) for d in run.devices),
            environment={"driver": HOSTILE, "cpu": HOSTILE},
        )
    ]


def interrupted() -> list[RunRecord]:
    run = make_record({"GPU": 300.0}, 2, zone="FR")
    return [replace(run, is_complete=False, notes=(Note("interrupted", "run has no clean end"),))]


CASES: dict[str, tuple[Callable[[], list[RunRecord]], Facts]] = {
    "one": (one, Facts()),
    "one-with-facts": (one, FACTS),
    "many": (many, Facts()),
    "many-with-facts": (many, FACTS),
    "no-gpu": (no_gpu, FACTS),
    "nothing-known": (nothing_known, Facts()),
    "no-length": (no_length, Facts()),
    "hostile": (
        hostile,
        Facts(model=HOSTILE, storage=HOSTILE, training_type=HOSTILE, functional_unit=HOSTILE, geographical_location=HOSTILE),
    ),
    "interrupted": (interrupted, Facts()),
}
every_case = pytest.mark.parametrize("case", CASES)


def charge(charged: Callable[..., Charged], case: str) -> tuple[Charged, Facts]:
    make, facts = CASES[case]
    return charged(*make(), pue="1.1:1.2:1.3"), facts


def text_of(charged: Callable[..., Charged], case: str, suffix: str, style: str, *, anonymous: bool = False) -> str:
    result, facts = charge(charged, case)
    return statement_text(result, suffix, style=style, telling=Telling(facts, anonymous))


def test_every_norm_is_a_style_with_a_line_of_its_own():
    assert set(NORMS) | {"plain"} == set(styles())
    for name in styles():
        assert {".md", ".tex"} <= set(suffixes(style_folder(name)))
        assert len(about(style_folder(name)).splitlines()) == 1


@every_case
@pytest.mark.parametrize("style", [*NORMS, "plain"])
@pytest.mark.parametrize("suffix", ["md", "tex"])
def test_a_style_says_something_everywhere_and_leaves_nothing_to_fill_in(charged, case, style, suffix):
    text = text_of(charged, case, suffix, style)

    assert "written by carbonreport" in text.splitlines()[0]
    assert not re.search(r"\b(None|TODO|nan|inf)\b", text)
    assert "()" not in text
    assert "[]" not in text.replace("[1][]", "")
    assert ".." not in text.replace(r"\ldots", "").replace("…", "")
    assert " ." not in text
    assert " ," not in text.replace(",,", "")
    for line in text.splitlines():
        assert not re.fullmatch(r"\s*[-*]\s*(\*\*[^*]+\*\*)?\s*", line), f"empty bullet: {line}"
    if style in ("gpai", "sci") and suffix == "md":
        rows = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("| ")]
        assert rows
        assert all(cell.strip() for row in rows for cell in row[1:-1])


@every_case
@pytest.mark.parametrize("style", [*NORMS, "plain"])
def test_every_style_is_a_page_too_that_says_the_same_and_runs_nothing(charged, case, style):
    page = text_of(charged, case, "html", style)
    body = re.sub(r"<svg.*?</svg>|<style.*?</style>|<head.*?</head>", "", page, flags=re.DOTALL)
    text = re.sub(r"<[^>]+>", " ", body)

    assert "written by carbonreport" in page.splitlines()[1]
    assert "<script" not in page
    assert not re.search(r"\b(None|TODO|nan|inf)\b", text)
    assert "()" not in text
    assert not re.search(r"<(td|li)[^>]*>\s*</li>|<p>\s*</p>", body)
    in_markdown = set(re.findall(r"\d[\d,.]*\d", text_of(charged, case, "md", style).split("\n", 1)[1]))
    assert in_markdown <= set(re.findall(r"\d[\d,.]*\d", text))


@every_case
@pytest.mark.parametrize("style", NORMS)
def test_markdown_and_latex_say_the_same(charged, case, style):
    if case == "hostile":
        pytest.skip("names that TeX cannot set are left out of it")
    words = [set(re.findall(r"[A-Za-z]{4,}", text_of(charged, case, suffix, style))) for suffix in ("md", "tex")]
    markup = {
        "html",
        "Environmental",
        "Impact",
        "Experiments",
        "compute",
        "resources",
        "Software",
        "carbon",
        "intensity",
        "Model",
        "documentation",
        "form",
    }

    assert words[0] - words[1] <= markup


@needs_latex
@every_case
def test_every_style_compiles_in_one_column_and_in_two(charged, tmp_path, case):
    (tmp_path / "x.tex").write_text(r"\errmessage{a name was executed}", encoding="ascii")
    result, facts = charge(charged, case)
    for style in NORMS:
        write_statement(result, [tmp_path / f"{style}.tex"], style=style, bib=None, force=False, telling=Telling(facts))
    body = "\n".join(f"\\input{{{style}}}" for style in NORMS)
    for options in ("", "[twocolumn]"):
        (tmp_path / "paper.tex").write_text(f"\\documentclass{options}{{article}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n")
        done = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:]
        if case != "hostile":
            log = (tmp_path / "paper.log").read_text(errors="replace")
            assert [points for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log) if float(points) > 10] == []


def test_a_hostile_name_is_harmless_in_every_style(charged):
    for style in NORMS:
        tex, md = (text_of(charged, "hostile", suffix, style) for suffix in ("tex", "md"))
        assert tex.isascii()
        assert "\\input" not in tex
        assert "<script" not in md
        assert not re.search(r"(?<!\\)\]\(", md)


@every_case
def test_the_metadata_of_a_model_card_is_yaml_whatever_the_names(charged, case):
    text = text_of(charged, case, "yaml", "modelcard")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]

    assert lines[0] == "co2_eq_emissions:"
    for line in lines[1:]:
        key, _, value = line.strip().partition(": ")
        assert key in {"emissions", "source", "training_type", "geographical_location", "hardware_used"}
        if key == "emissions":
            assert re.fullmatch(r"\d+(\.\d+)?", value)
        else:
            assert json.loads(value)  # a double-quoted scalar of printable characters is JSON too


@pytest.mark.parametrize(
    ("text", "scalar"),
    [
        ('say "x" \\ y', r'"say \"x\" \\ y"'),
        ("a\nb\0", r'"a\u000ab\u0000"'),
        ("\u2028\x85", r'"\u2028\u0085"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("é: #", '"é: #"'),
    ],
)
def test_yaml_scalars_are_quoted_and_stay_on_one_line(text, scalar):
    assert yaml_scalar(text) == scalar


def test_yaml_of_ours_is_replaced_and_that_of_others_is_not(charged, tmp_path):
    result, _ = charge(charged, "one")
    for _ in range(2):
        write_statement(result, [tmp_path / "card.yaml"], style="modelcard", bib=None, force=False)
    (tmp_path / "mine.yaml").write_text("a: 1\n")

    with pytest.raises(OutputError, match="was not written by carbonreport"):
        write_statement(result, [tmp_path / "mine.yaml"], style="modelcard", bib=None, force=False)


def test_a_style_without_a_suffix_says_which_it_has(charged, tmp_path):
    result, _ = charge(charged, "one")

    with pytest.raises(OutputError, match=r"style 'neurips' has no \.yaml: it has \.html, \.json, \.md, \.pdf, \.tex"):
        write_statement(result, [tmp_path / "e.yaml"], style="neurips", bib=None, force=False)


@pytest.mark.parametrize("name", ["e.md", "e.json"])
def test_an_unknown_style_names_the_built_in_ones(charged, tmp_path, name):
    result, _ = charge(charged, "one")

    with pytest.raises(OutputError, match=r"unknown style 'fancy': there is acl, gpai, .*sci, or a folder of your own such as \./mine"):
        write_statement(result, [tmp_path / name], style="fancy", bib=None, force=False)
    assert not (tmp_path / name).exists()


def test_a_folder_of_ones_own_is_a_style_and_may_include_shared_parts(charged, tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "part.md.j2").write_text("{{ s.details.parameters }}")
    (mine / "statement.md.j2").write_text('{% include "shared/head.md.j2" %}\n# Ours\n{% include "part.md.j2" %}\n')

    text = text_of(charged, "one", "md", str(mine))

    assert text.splitlines()[0].startswith("<!-- written by carbonreport")
    assert text.endswith("# Ours\nNumber of parameters: not given.")


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{{ s.unknown }}", "statement.md.j2: .*has no attribute 'unknown'"),
        ("a\n{% if %}", "statement.md.j2, line 2"),
        ('{% include "none.md.j2" %}', "has no template 'none.md.j2', which statement.md.j2 includes"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
def test_a_wrong_template_of_ones_own_is_refused_in_one_line(charged, tmp_path, template, says):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "statement.md.j2").write_text(template)

    with pytest.raises(OutputError, match=says):
        text_of(charged, "one", "md", str(tmp_path / "mine"))


def test_a_folder_without_a_template_and_one_that_is_none_are_refused(charged, tmp_path):
    (tmp_path / "empty").mkdir()

    with pytest.raises(OutputError, match="has no template of a statement; it needs a file such as .*statement.md.j2"):
        text_of(charged, "one", "md", str(tmp_path / "empty"))
    with pytest.raises(OutputError, match="is not a folder; the built-in styles are acl"):
        text_of(charged, "one", "md", "./no-such-folder")


@pytest.mark.parametrize("style", NORMS)
@pytest.mark.parametrize("suffix", ["md", "tex"])
def test_a_contract_leaves_no_trace_in_a_form_that_asks_for_the_place(charged, tmp_path, style, suffix):
    (tmp_path / "site.toml").write_text('[contract]\ngrams_per_kwh = 0\nshare = 0.5\ninstrument = "wind"\n')
    result = charged(*one(), site=str(tmp_path / "site.toml"), pue="1.2")
    text = statement_text(result, suffix, style=style).replace("No market-based measure is in it", "")

    assert "market" not in text
    assert "contract" not in text
    assert "Notes:" in text


@every_case
@pytest.mark.parametrize("style", NORMS)
def test_no_style_says_what_a_statement_must_not_say(charged, case, style):
    text = text_of(charged, case, "md", style).casefold()

    for words in FORBIDDEN:
        assert words not in text


@pytest.mark.parametrize("suffix", ["md", "tex", "html"])
def test_the_checklist_answers_no_and_says_what_is_missing_until_the_facts_are_given(charged, tmp_path, suffix):
    site = tmp_path / "lab.toml"
    site.write_text('[place]\nsite = "our cluster"\n')
    run = make_record({"GPU": 500.0}, 2, zone="DE")
    some, whole = Facts(memory_gb=80.0), Facts(memory_gb=80.0, storage="2 TB NVMe", project_gpu_hours=100.0)
    result = charged(run, site=str(site), pue="1.2")

    def answer(facts: Facts) -> str:
        return statement_text(result, suffix, style="neurips", telling=Telling(facts))

    assert "storage (storage) and the compute of the whole project (project" in answer(some)
    assert "memory of a worker (" not in answer(some)
    assert ("[Yes]" if suffix != "tex" else r"\noindent Answer: \answerYes{}") in answer(whole)
    assert "Not given:" not in answer(whole)


@pytest.mark.parametrize("suffix", ["md", "tex", "html"])
def test_the_column_of_each_run_stands_only_where_a_name_has_several_runs(charged, suffix):
    once = [make_record({"GPU": 500.0}, 2, name=name, start=f"2026-01-1{n}T08:00Z", zone="DE") for n, name in enumerate("ab")]
    twice = [*once, make_record({"GPU": 510.0}, 2, name="a", start="2026-01-20T08:00Z", zone="DE")]

    assert "ach run" not in statement_text(charged(*once), suffix, style="plain")
    assert "ach run" in statement_text(charged(*twice), suffix, style="plain")


@pytest.mark.parametrize("style", ["plain", "acl"])
def test_runs_that_differ_much_still_show_the_mean_of_their_energies(charged, style: str) -> None:
    runs = [make_record({"GPU": watts}, 1, name="tune", start=f"2026-01-1{i}T08:00Z", zone="DE") for i, watts in enumerate((312.8, 645, 1))]

    text = statement_text(charged(*runs), "md", style=style).replace("\u00a0", " ")

    assert ("320 (1–645) Wh" if style == "plain" else "mean 320 Wh, least 1, most 645") in text
