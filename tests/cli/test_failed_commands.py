"""Commands that fail under `carbonreport run`: no run is made of what never started, and an exit code is said."""

import subprocess
import sys
from pathlib import Path

import pytest

from carbonreport.store import load


def run(folder: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    options = ("--out", str(folder / "runs"), "--zone", "DE", "--pue", "1.2")
    return subprocess.run(
        [sys.executable, "-m", "carbonreport", "run", *options, "--", *command], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize(("command", "code"), [("no-such-command-anywhere", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started_leaves_no_record(tmp_path: Path, command: str, code: int) -> None:
    done = run(tmp_path, command)

    assert done.returncode == code
    assert done.stderr.startswith("carbonreport: error: ")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_command_that_fails_keeps_its_record_and_kind_and_the_summary_says_the_code(tmp_path: Path) -> None:
    done = run(tmp_path, sys.executable, "-c", "raise SystemExit(3)")

    (record,) = (tmp_path / "runs").glob("*.jsonl")
    assert done.returncode == 3
    assert "carbonreport: the command ended with exit code 3; its record counts as training, --kind failed would say more\n" in done.stderr
    assert load(record).kind == "training"


def test_a_command_that_succeeds_has_no_line_on_its_exit_code(tmp_path: Path) -> None:
    assert "exit code" not in run(tmp_path, sys.executable, "-c", "pass").stderr


def test_an_empty_name_is_refused_before_the_command_starts(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "carbonreport", "run", "--name", "", "--", "touch", "started"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (
        1,
        "carbonreport: error: --name is empty; give a name, or leave it out for that of the script\n",
    )
    assert list(tmp_path.iterdir()) == []
