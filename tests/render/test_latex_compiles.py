"""The .tex files go through plain pdflatex: no package in the preamble, whatever the names contain."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from carbonreport.model.run import RunRecord
from carbonreport.testing.records import make_record
from carbonreport.workflows.charge import charge_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import write_statement

HAS_LATEX = shutil.which("pdflatex") is not None and shutil.which("bibtex") is not None
pytestmark = pytest.mark.skipif(not HAS_LATEX, reason="NO LATEX: pdflatex or bibtex is missing, so that no .tex file was compiled")

HOSTILE = [
    r"100% _$&{}<script>\input{x}" + "\U0001f600₂\nnew",
    "机器学习 Обучение модели",
    "Crème brûlée Ångström Łódź naïve Dvořák Việt ẍ\u0302\u0323",
    "e\u0301x\u0302\u0334 \u202eabc\u200fdef\u2066",
    "back\\slash\\\\end\\",
    "nul\0here\x07^^M%%",
    "[10pt] * star",
    "a--b---c ?` !` << >> '' © £ § € ° µ ½ ™",
    "β-VAE λ=0.1 Ω ＼ｉｎｐｕｔ｛ｘ｝",
    "x" * 200,
    "",
]
ONE_COLUMN, TWO_COLUMNS = r"\documentclass{article}", r"\documentclass[twocolumn]{article}"


def hostile_runs() -> list[RunRecord]:
    runs = []
    for i, name in enumerate(HOSTILE):
        path = name.replace("/", "|") or "nameless"
        run = make_record(
            {f"{name}{i}": 300.0},
            2,
            name=name,
            start=f"2026-01-{i + 1:02d}T08:00Z",
            zone="DE",
            spans={path: 0.5},
            items={path: 100.0},
        )
        runs.append(replace(run, devices=tuple(replace(d, source=name) for d in run.devices)))
    return runs


def ordinary_runs() -> list[RunRecord]:
    kinds = (("pretrain", "training"), ("grid-search-over-learning-rates", "search"), ("out-of-memory", "failed"))
    runs = []
    for i, (name, kind) in enumerate(kinds):
        run = make_record(
            {f"GPU-{j}": 400.0 for j in range(4)},
            20,
            name=name,
            kind=kind,  # type: ignore[arg-type]
            zone=("DE", "FR", "US-CAL-CISO")[i],
            start=f"2026-01-1{i}T08:00Z",
        )
        runs.append(
            replace(run, devices=tuple(replace(d, name="NVIDIA A100-SXM4-80GB", source="NVML energy counter") for d in run.devices))
        )
    return runs


def compiled(folder: Path, runs: list[RunRecord], *, head: str = ONE_COLUMN, inputs: int = 1, bib: bool = False) -> str:
    """The log of the last of two runs of pdflatex, with bibtex's in front."""
    charged = charge_records(runs, PlaceOptions(pue="1.1:1.2:1.3"), environ={})
    write_statement(charged, [folder / "energy.tex"], style="plain", bib=folder / "energy.bib" if bib else None, force=False)
    references = r"\bibliographystyle{plain}\bibliography{energy}" if bib else ""
    body = "\\input{energy}\nIt emitted \\carbonreportEmissions{} (\\carbonreportEmissionsInterval).\n" * inputs
    (folder / "paper.tex").write_text(f"{head}\n\\begin{{document}}\nBefore.\n{body}{references}\n\\end{{document}}\n", encoding="ascii")
    said = ""
    for i in range(3 if bib else 1):
        ended = subprocess.run(
            ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper"],
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=120,
        )
        assert ended.returncode == 0, ended.stdout[-3000:]
        if bib and i == 0:
            said = subprocess.run(["bibtex", "paper"], cwd=folder, capture_output=True, text=True, check=True, timeout=120).stdout
    return said + (folder / "paper.log").read_text(encoding="latin-1")


def overfull(log: str) -> list[float]:
    return [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]


@pytest.mark.parametrize("head", [ONE_COLUMN, TWO_COLUMNS])
def test_an_ordinary_statement_fits_the_page_in_one_column_and_in_two(tmp_path: Path, head: str) -> None:
    log = compiled(tmp_path, ordinary_runs(), head=head)

    assert [points for points in overfull(log) if points > 10] == []
    assert "too large for page" not in log


def test_hostile_names_compile_and_run_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.tex").write_text(r"\errmessage{the name of a run was executed}", encoding="ascii")

    log = compiled(tmp_path, hostile_runs())

    assert "x.tex" not in log
    assert "tcrm" not in log  # symbols of a font that a small TeX does not have


def test_a_statement_may_be_read_in_twice(tmp_path: Path) -> None:
    log = compiled(tmp_path, ordinary_runs(), inputs=2)

    assert "Output written on paper.pdf" in log


def test_citations_are_found_in_the_bib_file(tmp_path: Path) -> None:
    log = compiled(tmp_path, ordinary_runs(), bib=True)

    assert "Warning--" not in log
    assert "undefined" not in log
