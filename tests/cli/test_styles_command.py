"""`carbonreport styles`, and the options of `statement` that go with them."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carbonreport.cli.main import cli
from carbonreport.store.writer import save
from carbonreport.testing import make_record


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return save(make_record({"NVIDIA H200": 500.0}, 2, zone="US-CAL-CISO", name="final"), tmp_path / "run.jsonl")


def carbonreport(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(a) for a in arguments], catch_exceptions=True)


def test_styles_are_listed_with_their_suffixes_and_a_line_each():
    text = carbonreport("styles").output

    for name in ("acl", "gpai", "icml", "modelcard", "neurips", "plain", "sci"):
        assert sum(line.startswith(f"{name} ") for line in text.splitlines()) == 1
    assert ".html .json .md .pdf .tex .yaml" in text
    assert "item 8" in text


def test_a_statement_takes_a_style_facts_and_anonymity(record, tmp_path):
    (tmp_path / "facts.toml").write_text("parameters = 7e9\n")

    done = carbonreport("statement", record, "--style", "acl", "--facts", tmp_path / "facts.toml", "--anonymous")

    assert done.exit_code == 0, done.output
    assert "Number of parameters: 7 billion." in done.output.replace("\u00a0", " ")
    assert "in the United States" in done.output
    assert "CISO" not in done.output


@pytest.mark.parametrize(("name", "style", "said"), [("x.yaml", "plain", "has no .yaml: it has "), ("x.docx", "plain", "must be one of ")])
def test_a_file_that_a_style_cannot_be_written_to_is_told_what_it_can(record, tmp_path, name, style, said):
    done = carbonreport("statement", record, "--style", style, "-o", tmp_path / name)

    assert str(done.exception).endswith(f"{said}.html, .json, .md, .pdf, .tex")


def test_a_wrong_fact_is_an_error_that_names_the_key(record, tmp_path):
    (tmp_path / "facts.toml").write_text("paramters = 7e9\n")

    done = carbonreport("statement", record, "--facts", tmp_path / "facts.toml")

    assert "paramters: unknown fact; nearest: parameters" in str(done.exception)
