"""Help, versions, and standard output that somebody stops reading."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from carbonreport import __version__
from carbonreport.store.writer import save
from carbonreport.testing.records import make_record

COMMANDS = ("run", "show", "statement", "estimate")


def carbonreport(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "carbonreport", *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("arguments", [(), ("-h",), ("--help",)])
def test_help_lists_every_command(arguments: tuple[str, ...]) -> None:
    ended = carbonreport(*arguments)

    assert (ended.returncode, ended.stderr) == (0, "")
    for command in COMMANDS:
        assert f"\n  {command} " in ended.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_that_names_the_place_options(command: str) -> None:
    ended = carbonreport(command, "-h")

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"Usage: carbonreport {command} ")
    for option in ("--zone", "--pue", "--site", "--grid"):
        assert option in ended.stdout


def test_no_help_shows_a_range_without_ends() -> None:
    assert "None" not in carbonreport("sweep", "-h").stdout


def test_the_version_is_one_line() -> None:
    assert carbonreport("--version").stdout == f"carbonreport, version {__version__}\n"


@pytest.mark.parametrize("arguments", [("show",), ("show", "--json"), ("statement",)])
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    record = save(make_record({"gpu": 500.0}, 200, zone="DE"), tmp_path / "run.jsonl")

    writer = subprocess.Popen(
        [sys.executable, "-m", "carbonreport", *arguments, str(record)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    writer.stdout.close()
    _, said = writer.communicate(timeout=120)

    assert (writer.returncode, said) == (0, "")


@pytest.mark.parametrize("arguments", [("doctor",), ("styles",), ("show", "RECORD")])
def test_a_reader_of_any_command_may_leave_early(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    record = save(make_record({"gpu": 500.0}, 200, zone="DE"), tmp_path / "run.jsonl")
    command = [str(record) if part == "RECORD" else part for part in arguments]

    writer = subprocess.Popen(
        [sys.executable, "-m", "carbonreport", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert writer.stdout is not None
    writer.stdout.close()
    _, said = writer.communicate(timeout=120)

    assert (writer.returncode, said) == (0, "")


def test_an_output_that_cannot_hold_the_characters_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    record = save(make_record({"gpu": 500.0}, 2, zone="DE"), tmp_path / "run.jsonl")
    narrow = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}

    ended = subprocess.run(
        [sys.executable, "-m", "carbonreport", "show", str(record)], capture_output=True, text=True, env=narrow, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("carbonreport: error: standard output is ascii")
    assert ended.stderr.endswith("set PYTHONIOENCODING=utf-8, or a locale such as C.UTF-8\n")
    assert ended.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full is not here: A FULL DISK IS NOT TRIED")
@pytest.mark.parametrize("arguments", [("show",), ("show", "--json"), ("statement",)])
def test_an_output_that_is_full_is_one_line(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    record = save(make_record({"gpu": 500.0}, 2, zone="DE"), tmp_path / "run.jsonl")

    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "carbonreport", *arguments, str(record)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert (ended.returncode, ended.stderr) == (1, "carbonreport: error: cannot write standard output: No space left on device\n")


def test_names_with_line_breaks_and_escapes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    record = save(make_record({"a\x1b[31m\nb": 500.0}, 2, zone="DE", spans={"s\x1b[2J\nt": 0.5}), tmp_path / "run.jsonl")

    ended = carbonreport("show", str(record))

    assert ended.returncode == 0
    assert "\x1b" not in ended.stdout
    assert "\nb" not in ended.stdout
