"""Every example runs, is short, and says what it promises."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_has_under_60_lines(name, tmp_path):
    path = EXAMPLES / name
    arguments = [] if name == "train.py" else [str(tmp_path)]

    done = subprocess.run([sys.executable, str(path), *arguments], capture_output=True, text=True, timeout=120, cwd=tmp_path, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert len(path.read_text().splitlines()) < 60
