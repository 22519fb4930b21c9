"""Bad input through the real command line: one line on standard error, the right exit code, nothing written, nothing lost."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from carbonreport.store.writer import save
from carbonreport.testing.records import make_record
from carbonreport.workflows.charge import load_records

ESTIMATE = (
    "estimate",
    "--gpu",
    "A100",
    "--count",
    "4",
    "--hours",
    "10",
    "--start",
    "2026-01-14T18:20+01:00",
    "--zone",
    "DE",
    "--pue",
    "1.2",
)


def carbonreport(folder: Path, *arguments: str, environ: Mapping[str, str] = {}) -> "subprocess.CompletedProcess[str]":
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CARBONREPORT_")}
    return subprocess.run(
        [sys.executable, "-m", "carbonreport", *arguments],
        cwd=folder,
        env={**clean, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def refused(folder: Path, *arguments: str, code: int = 1, environ: Mapping[str, str] = {}) -> str:
    """The one line that is said; and nothing in the folder has changed."""
    before = content(folder)
    ended = carbonreport(folder, *arguments, environ=environ)
    assert ended.returncode == code, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stderr.startswith("carbonreport: error: ")
    assert ended.stdout == ""
    assert content(folder) == before
    return ended.stderr.removeprefix("carbonreport: error: ").rstrip("\n")


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a good record and a good grid."""
    save(make_record({"gpu": 500.0}, 2, name="good", zone="DE"), tmp_path / "good.jsonl")
    (tmp_path / "grid.csv").write_text("time,g_per_kwh\n2026-01-15T00:00Z,100\n2026-01-16T00:00Z,200\n", encoding="utf-8")
    return tmp_path


# Records


@pytest.mark.parametrize(
    ("name", "made_of"),
    [
        ("empty.jsonl", b""),
        ("blank.jsonl", b"\n\n"),
        ("text.jsonl", b"epoch 1: loss 0.3\n"),
        ("other.jsonl", b'{"step": 1}\n'),
        ("list.jsonl", b"[1, 2]\n"),
        ("binary.jsonl", bytes(range(256)) * 40 + b"\n"),
    ],
)
def test_a_file_that_is_no_record_is_named(folder: Path, name: str, made_of: bytes) -> None:
    (folder / name).write_bytes(made_of)

    for command in ("show", "statement"):
        assert refused(folder, command, name).startswith(f"{name} is not a carbonreport record")


def test_an_empty_file_is_called_empty(folder: Path) -> None:
    (folder / "empty.jsonl").write_bytes(b"")

    assert refused(folder, "show", "empty.jsonl").startswith("empty.jsonl is not a carbonreport record: it is empty; ")


def test_a_missing_file_and_a_folder_are_named(folder: Path) -> None:
    (folder / "runs").mkdir()

    assert refused(folder, "show", "absent.jsonl") == "cannot read absent.jsonl: No such file or directory"
    assert refused(folder, "show", "runs") == "runs is a folder; name the records in it, such as runs/*.jsonl"


def test_one_bad_record_among_good_ones_stops_the_statement_before_anything_is_written(folder: Path) -> None:
    (folder / "bad.jsonl").write_text("no record\n", encoding="utf-8")

    assert "bad.jsonl" in refused(folder, "statement", "good.jsonl", "bad.jsonl", "-o", "energy.tex", "-o", "energy.md")


def test_a_record_cut_in_its_middle_is_refused_with_the_line(folder: Path) -> None:
    lines = (folder / "good.jsonl").read_text(encoding="utf-8").splitlines()
    lines[1] = lines[1][: len(lines[1]) // 2]
    (folder / "torn.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert refused(folder, "show", "torn.jsonl").startswith("torn.jsonl, line 2: ")


def test_a_record_cut_in_its_first_line_says_where(folder: Path) -> None:
    (folder / "cut.jsonl").write_bytes((folder / "good.jsonl").read_bytes()[:60])

    assert refused(folder, "show", "cut.jsonl").startswith("cut.jsonl: its first line is cut off after 60 bytes; ")


def test_what_lies_beside_a_record_is_no_record_itself(folder: Path) -> None:
    (folder / "good.tail").write_bytes(b"")

    assert carbonreport(folder, "show", "good.jsonl", "good.tail").stdout == carbonreport(folder, "show", "good.jsonl").stdout != ""
    assert len(load_records([folder / "good.grid.json", folder / "good.jsonl"])) == 1
    assert refused(folder, "show", "good.tail").startswith("good.tail")


def test_a_record_cut_in_its_last_line_is_used_with_a_note(folder: Path) -> None:
    whole = (folder / "good.jsonl").read_bytes()
    (folder / "torn.jsonl").write_bytes(whole[:-9])

    ended = carbonreport(folder, "statement", "torn.jsonl")

    assert ended.returncode == 0
    assert ended.stderr == ""
    assert "*record-torn*" in ended.stdout


def test_a_record_of_a_newer_format_asks_for_an_upgrade(folder: Path) -> None:
    first, *rest = (folder / "good.jsonl").read_text(encoding="utf-8").splitlines()
    newer = json.dumps({**json.loads(first), "carbonreport": 99})
    (folder / "newer.jsonl").write_text("\n".join([newer, *rest]) + "\n", encoding="utf-8")

    message = refused(folder, "show", "newer.jsonl")

    assert "record format 99" in message
    assert "pip install --upgrade carbonreport" in message


# The place


def test_an_unknown_zone_names_the_nearest(folder: Path) -> None:
    assert "nearest: DE (Germany)" in refused(folder, "show", "good.jsonl", "--zone", "Germny")
    assert "unknown grid zone 'Germny'" in refused(folder, *ESTIMATE, "--zone", "Germny")


@pytest.mark.parametrize(
    "pue", ["0.9", "0", "-1", "nan", "inf", "text", "1.5:1.1", "nan:1.5", "1.1:nan", "1:2:3:4", "1,2", "50", ":", "1.4:1.2:1.5"]
)
def test_a_pue_that_no_facility_has_is_refused(folder: Path, pue: str) -> None:
    assert "PUE" in refused(folder, "show", "good.jsonl", "--pue", pue)
    assert "PUE" in refused(folder, "statement", "good.jsonl", "--pue", pue, "-o", "energy.md")


def test_a_variable_of_the_environment_is_named_where_it_is_wrong(folder: Path) -> None:
    save(make_record({"gpu": 500.0}, 2), folder / "placeless.jsonl")

    assert "CARBONREPORT_ZONE: unknown grid zone 'XQ'" in refused(folder, "show", "placeless.jsonl", environ={"CARBONREPORT_ZONE": "XQ"})
    assert "CARBONREPORT_PUE: PUE 0.5" in refused(folder, "show", "placeless.jsonl", environ={"CARBONREPORT_PUE": "0.5"})
    assert "no.toml" in refused(folder, "show", "placeless.jsonl", environ={"CARBONREPORT_SITE": "no.toml"})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[place\n", "site.toml"),
        ('[place]\nzone = "DE"\nzones = 3\n', "zones"),
        ('[place]\nzoen = "DE"\n', "site.toml: place.zoen: unknown field; nearest: zone"),
        ('[palce]\nzone = "DE"\n', "site.toml: palce: unknown field; nearest: place"),
        ("[place]\npue = { valeu = 1.2 }\n", "site.toml: place.pue.valeu: unknown field; nearest: value"),
        ("[place]\nzone = 3\n", "site.toml: place.zone: must be text, not a whole number"),
        ('[facts]\nparameters = "many"\n', "site.toml: facts.parameters: must be a number, not text"),
        ("[contract]\ngrams_per_kwh = 4\n", "site.toml: contract.instrument is missing"),
        ('[place]\nzone = "Atlantis"\n', "place.zone: unknown grid zone 'Atlantis'"),
        ('[place]\ntime_zone = "Mars/Olympus"\n', "place.time_zone: unknown time zone 'Mars/Olympus'"),
        ("[place]\npue = 0.8\n", "PUE 0.8"),
        ('[contract]\ngrams_per_kwh = -4\ninstrument = "x"\n', "grams_per_kwh"),
        ('[contract]\ngrams_per_kwh = 4\nshare = 7\ninstrument = "x"\n', "share"),
        ('[embodied.devices.gpu]\nkg = 1\nlifetime_years = 0\nutilisation = 1\nsource = "x"\n', "lifetime_years"),
        ("\0\xff", "site.toml: it is not UTF-8 text"),
    ],
)
def test_a_wrong_site_file_is_named_with_its_field(folder: Path, text: str, says: str) -> None:
    save(make_record({"gpu": 500.0}, 2), folder / "placeless.jsonl")
    (folder / "site.toml").write_text(text, encoding="latin-1")

    message = refused(folder, "show", "placeless.jsonl", "--site", "site.toml")

    assert message.startswith("site.toml: ")
    assert says in message


def test_a_missing_site_file_is_named(folder: Path) -> None:
    assert "cannot read the site file none.toml" in refused(folder, "show", "good.jsonl", "--site", "none.toml")


# The grid


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("time,g_per_kwh\n2026-01-15T00:00Z,100\n2026-01-15T13:00Z,-5\n", "grid.csv:3: -5 g/kWh"),
        ("time,g_per_kwh\n2026-01-15T00:00Z,nan\n2026-01-16T00:00Z,5\n", "grid.csv:2: nan g/kWh"),
        ("time,g_per_kwh\n2026-01-15T00:00Z,many\n2026-01-16T00:00Z,5\n", "grid.csv:2: 'many'"),
        ("time,g_per_kwh\n2026-01-15T00:00,100\n2026-01-16T00:00,5\n", "has no zone"),
        ("time,watts\n2026-01-15T00:00Z,100\n2026-01-16T00:00Z,5\n", "no column of intensities"),
        ("hour,g_per_kwh\n2026-01-15T00:00Z,100\n2026-01-16T00:00Z,5\n", "no column of times"),
        ("time,g_per_kwh\n2026-01-15T00:00Z\n2026-01-16T00:00Z,5\n", "grid.csv:2: 1 cells under a header of 2"),
        ("time,g_per_kwh\n", "has no rows"),
        ("", "has no rows"),
        ("\0\0\0\n\0\0\n", "grid.csv"),
    ],
)
def test_a_wrong_file_of_intensities_is_named_with_its_line(folder: Path, rows: str, says: str) -> None:
    (folder / "grid.csv").write_text(rows, encoding="utf-8")

    assert says in refused(folder, "show", "good.jsonl", "--grid", "grid.csv")


def test_a_grid_that_does_not_exist_is_named(folder: Path) -> None:
    assert "none.csv" in refused(folder, "show", "good.jsonl", "--grid", "none.csv")
    assert "cannot" in refused(folder, "show", "good.jsonl", "--grid", ".") or "neither" in refused(
        folder, "show", "good.jsonl", "--grid", "."
    )


# Estimates


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (("--gpu", "A1000-SXM9"), "one of: "),
        (("--gpu", "\u4e2d\u6587"), "give --mean-watts"),
        (("--gpu", ""), "give --mean-watts"),
        (("--count", "0"), "--count 0"),
        (("--count", "-3"), "--count -3"),
        (("--hours", "-1"), "--hours -1"),
        (("--hours", "nan"), "--hours nan"),
        (("--hours", "inf"), "--hours inf"),
        (("--hours", "1e9"), "--hours 1e+09"),
        (("--mean-watts", "0"), "--mean-watts 0"),
        (("--mean-watts", "-300"), "--mean-watts -300"),
        (("--mean-watts", "nan"), "--mean-watts nan"),
        (("--mean-watts", "5000"), "--mean-watts 5000 is far above the rated 400 W of "),
        (("--name", ""), "--name is empty"),
        (("--pue", ""), "--pue is empty"),
        (("--zone", ""), "--zone is empty"),
        (("--start", "yesterday"), "cannot read the time 'yesterday'"),
        (("--start", ""), "cannot read the time ''"),
        (("--start", "0001-01-01T00:00Z"), "is not in the years 2000 to 2100"),
        (("--start", "9999-12-31T23:00Z"), "is not in the years 2000 to 2100"),
        (("--start", "2026-10-25T02:30"), "exists twice in Europe/Berlin"),
        (("--start", "2026-03-29T02:30"), "does not exist in Europe/Berlin"),
        (("--pue", "0.5"), "PUE 0.5"),
        (("--zone", "XQ"), "unknown grid zone 'XQ'"),
        (("--grid", "none.csv"), "none.csv"),
    ],
)
def test_an_estimate_of_what_nothing_can_be_is_refused_before_it_is_written(folder: Path, changed: tuple[str, str], says: str) -> None:
    assert says in refused(folder, *ESTIMATE, *changed)


def test_a_local_start_without_a_zone_is_refused(folder: Path) -> None:
    message = refused(folder, "estimate", "--gpu", "A100", "--count", "1", "--hours", "1", "--start", "2026-01-14T18:20")

    assert "has no time zone" in message


def test_both_readings_of_a_double_hour_are_offered(folder: Path) -> None:
    message = refused(folder, *ESTIMATE, "--start", "2026-10-25T02:30")

    assert message.endswith("write 2026-10-25T02:30+02:00 or 2026-10-25T02:30+01:00")


# Outputs


def test_a_folder_that_cannot_be_written_is_named(folder: Path) -> None:
    assert "good.jsonl" in refused(folder, "statement", "good.jsonl", "-o", "good.jsonl/energy.tex")
    assert "cannot write the record" in refused(folder, *ESTIMATE, "--out", "good.jsonl/runs")


def test_the_second_output_failing_leaves_the_first_unwritten(folder: Path) -> None:
    refused(folder, "statement", "good.jsonl", "-o", "energy.tex", "-o", "good.jsonl/energy.md")


@pytest.mark.parametrize("name", ["energy.docx", "energy", "energy.tex.bak"])
def test_an_unknown_suffix_names_those_that_are_known(folder: Path, name: str) -> None:
    assert "must be one of .html, .json, .md, .pdf, .tex" in refused(folder, "statement", "good.jsonl", "-o", name)


def test_an_unknown_style_names_those_that_exist(folder: Path) -> None:
    assert "plain" in refused(folder, "statement", "good.jsonl", "-o", "energy.tex", "--style", "baroque")
    assert "plain" in refused(folder, "statement", "good.jsonl", "--style", "../plain")


def test_an_output_that_is_a_folder_is_refused(folder: Path) -> None:
    (folder / "energy.tex").mkdir()

    assert "energy.tex is a folder" in refused(folder, "statement", "good.jsonl", "-o", "energy.tex", "--force")


def test_references_need_the_suffix_that_bibtex_wants(folder: Path) -> None:
    assert ".bib" in refused(folder, "statement", "good.jsonl", "-o", "energy.tex", "--bib", "energy.txt")


def test_a_file_of_somebody_else_is_kept_unless_force_is_given(folder: Path) -> None:
    paper = folder / "paper.tex"
    paper.write_text("\\documentclass{article}\n% energy statement written by carbonreport\n", encoding="utf-8")

    assert "was not written by carbonreport" in refused(folder, "statement", "good.jsonl", "-o", "energy.md", "-o", "paper.tex")

    assert carbonreport(folder, "statement", "good.jsonl", "-o", "paper.tex", "--force").returncode == 0
    assert paper.read_text(encoding="utf-8").startswith("% written by carbonreport")


@pytest.mark.parametrize("name", ["energy.tex", "energy.md", "energy.json"])
def test_its_own_file_is_replaced_without_asking(folder: Path, name: str) -> None:
    for pue in ("1.2", "1.4"):
        ended = carbonreport(folder, "statement", "good.jsonl", "-o", name, "--bib", "energy.bib", "--pue", pue)
        assert (ended.returncode, ended.stderr) == (0, f"wrote {name}\nwrote energy.bib\n")
    assert "1.40" in (folder / name).read_text(encoding="utf-8")
    assert not list(folder.glob(".*"))


def test_a_link_to_a_file_stays_a_link(folder: Path) -> None:
    (folder / "paper").mkdir()
    (folder / "energy.tex").symlink_to(folder / "paper" / "energy.tex")

    assert carbonreport(folder, "statement", "good.jsonl", "-o", "energy.tex").returncode == 0
    assert (folder / "energy.tex").is_symlink()
    assert (folder / "paper" / "energy.tex").is_file()


# Usage


@pytest.mark.parametrize(
    "arguments",
    [
        ("bogus",),
        ("show",),
        ("statement",),
        ("run",),
        ("estimate",),
        ("estimate", "--gpu", "A100"),
        ("estimate", "--count", "many"),
        ("show", "good.jsonl", "--colour"),
        ("show", "good.jsonl", "--zone"),
        (*ESTIMATE, "--kind", "holiday"),
        (*ESTIMATE, "surplus"),
    ],
)
def test_wrong_usage_is_one_line_that_points_to_the_help_and_exits_with_2(folder: Path, arguments: tuple[str, ...]) -> None:
    assert refused(folder, *arguments, code=2).endswith(" -h")


def test_an_option_of_the_command_that_stands_before_the_dashes_is_told_where_to_go(folder: Path) -> None:
    line = refused(folder, "run", "sh", "-c", "exit 3", code=2)

    assert line.startswith("No such option '-c'; options of the command go behind --: carbonreport run … -- COMMAND -c …")
    assert "--" not in refused(folder, "show", "-c", "good.jsonl", code=2)


def test_all_options_that_are_missing_are_named_at_once(folder: Path) -> None:
    assert refused(folder, "estimate", "--count", "4", code=2).startswith("Missing options --gpu, --hours, --start; ")
    assert refused(folder, *ESTIMATE[:7], code=2).startswith("Missing option '--start'")
