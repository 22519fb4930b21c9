"""Files: LaTeX that compiles without a package, Markdown that is a table, JSON that is the numbers."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from carbonreport.errors import OutputError
from carbonreport.render.formats.json import footprint_object
from carbonreport.testing import make_record
from carbonreport.workflows.statement import write_statement

HOSTILE = "100% _$&{}<script>alert(1)</script>\\input{x} \N{GRINNING FACE} ₂\nnext | line"

needs_latex = pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="pdflatex is not installed: LATEX IS NOT COMPILED (apt-get install texlive-latex-base)"
)


def write(charged, folder: Path, *names: str, bib: str | None = None) -> list[Path]:
    return write_statement(charged, [folder / name for name in names], style="plain", bib=folder / bib if bib else None, force=False)


def pdflatex(folder: Path, document: str, *, bibtex: bool = False) -> str:
    (folder / "paper.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    for step in [command, ["bibtex", "paper"], command, command] if bibtex else [command]:
        done = subprocess.run(step, cwd=folder, capture_output=True, text=True, errors="replace", timeout=60, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    return (folder / "paper.log").read_text(errors="replace")


def document(body: str, options: str = "") -> str:
    return f"\\documentclass{options}{{article}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"


@needs_latex
@pytest.mark.parametrize("options", ["", "[twocolumn]"])
def test_latex_compiles_without_a_package_in_one_and_two_columns(charged, tmp_path, options):
    runs = [
        make_record({"GPU": 300.0}, 3, name=HOSTILE, spans={"träin/step": 0.5}, items={"träin/step": 1e6}),
        make_record({"GPU": 200.0}, 2, name="b"),
    ]
    write(charged(*runs), tmp_path, "energy.tex")

    log = pdflatex(tmp_path, document("\\input{energy}\nIn short: \\carbonreportEmissions, \\carbonreportFacilityEnergyInterval.", options))

    assert "LaTeX Warning: Reference" not in log
    overfull = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert all(points < 10 for points in overfull), overfull


@needs_latex
def test_two_statements_in_one_paper_compile(charged, tmp_path):
    write(charged(make_record({"GPU": 300.0}, 3, name="a")), tmp_path, "a.tex")
    write(charged(make_record({"GPU": 300.0}, 3, name="b")), tmp_path, "b.tex")

    pdflatex(tmp_path, document("\\input{a}\\input{b}"))


@needs_latex
def test_citations_resolve_where_a_bibliography_is_written(charged, tmp_path):
    write(charged(make_record({"GPU": 300.0}, 3), zone="DE", pue="1.2"), tmp_path, "energy.tex", bib="energy.bib")

    log = pdflatex(tmp_path, document("\\input{energy}\\bibliographystyle{plain}\\bibliography{energy}"), bibtex=True)

    assert "undefined" not in log
    assert "\\cite{electricitymaps}" in (tmp_path / "energy.tex").read_text()


def test_nothing_is_cited_without_a_bibliography(charged, tmp_path):
    (path,) = write(charged(make_record({"GPU": 300.0}, 3), zone="DE", pue="1.2"), tmp_path, "energy.tex")

    assert "\\cite" not in path.read_text()


def test_a_hostile_name_is_harmless_in_every_format(charged, tmp_path):
    tex, md, js = write(
        charged(make_record({"GPU": 300.0}, 3, name=HOSTILE), make_record({"GPU": 1.0}, 1, name="b")), tmp_path, "e.tex", "e.md", "e.json"
    )

    assert "\\input" not in tex.read_text()
    assert tex.read_text().isascii()
    assert "<script" not in md.read_text()
    assert (
        len(
            {
                len(re.findall(r"(?<!\\)\|", line))
                for line in md.read_text().splitlines()
                if line.startswith("| Name") or ("100" in line and line.startswith("| "))
            }
        )
        == 1
    )
    assert json.loads(js.read_text())["written_by"].startswith("carbonreport")


def test_macros_carry_the_prefix_and_the_rounded_figures(charged, tmp_path):
    (path,) = write(charged(make_record({"GPU": 1000.0}, 10)), tmp_path, "energy.tex")
    macros = dict(re.findall(r"\\renewcommand\{\\(\w+)\}\{(.*)\}", path.read_text()))

    assert all(name.startswith("carbonreport") for name in macros)
    assert macros["carbonreportItEnergy"] == "10.0~kWh"
    assert macros["carbonreportWallClock"] == "10.0~h"


def test_json_is_the_object_of_show_plus_sections(charged, tmp_path):
    result = charged(make_record({"GPU": 1000.0}, 10))
    (path,) = write(result, tmp_path, "energy.json")
    written = json.loads(path.read_text())
    shown = footprint_object(result.footprint)

    assert {key: written[key] for key in shown} == json.loads(json.dumps(shown))
    assert set(written) - set(shown) == {"written_by", "sections", "inputs"}
    for name in ("it_joules", "facility_joules", "grams"):
        assert set(written[name]) == {"value", "low", "high", "unit", "origin", "source"}
    assert set(written["hours"][0]) == {"start", "it_joules", "facility_joules", "grams", "grams_per_kwh", "pue", "quality"}


def test_markdown_is_one_paragraph_tables_and_notes(charged, tmp_path):
    (path,) = write(charged(make_record({"GPU": 1000.0}, 10), make_record({"GPU": 1.0}, 1, name="b")), tmp_path, "energy.md")
    lines = path.read_text().splitlines()

    assert lines[0].startswith("<!-- written by carbonreport")
    assert lines[1].startswith("**Energy and carbon.** ")
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")}) == 2  # two tables


@pytest.mark.parametrize("name", ["energy.doc", "energy", "energy.tex.bak"])
def test_an_unknown_suffix_names_the_known_ones(charged, tmp_path, name):
    with pytest.raises(OutputError, match=r"must be one of \.html, \.json, \.md, \.pdf, \.tex"):
        write(charged(make_record({"GPU": 1.0}, 1)), tmp_path, name)


def test_a_file_of_somebody_else_is_not_overwritten_and_then_nothing_is_written(charged, tmp_path):
    (tmp_path / "paper.tex").write_text("my paper\n")

    with pytest.raises(OutputError, match="was not written by carbonreport; choose another name, or --force"):
        write(charged(make_record({"GPU": 1.0}, 1)), tmp_path, "energy.md", "paper.tex")

    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".csv") == ["paper.tex"]
    assert (tmp_path / "paper.tex").read_text() == "my paper\n"


def test_its_own_files_are_replaced(charged, tmp_path):
    for name in ("e.tex", "e.md", "e.json"):
        for watts in (100.0, 200.0):
            (path,) = write(charged(make_record({"GPU": watts}, 1)), tmp_path, name)
    assert "200" in path.read_text()


def test_an_unknown_style_names_the_known_ones(charged, tmp_path):
    with pytest.raises(OutputError, match="unknown style 'fancy': there is .*plain"):
        write_statement(charged(make_record({"GPU": 1.0}, 1)), [tmp_path / "e.md"], style="fancy", bib=None, force=False)
