"""What the README shows is what happens."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from carbonreport.site import read_site
from carbonreport.store.writer import save
from carbonreport.testing import make_record
from carbonreport.workflows.charge import charge_records, load_records
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.statement import statement_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120, check=False)


def test_the_shell_blocks_run_as_they_stand(tmp_path):
    shutil.copy(ROOT / "examples" / "train.py", tmp_path / "train.py")
    for block in blocks("sh"):
        lines = [line for line in block.splitlines() if not line.startswith("pip install")]

        done = run(["sh", "-euc", "\n".join(lines)], tmp_path)

        assert done.returncode == 0, done.stderr
    assert {"energy.tex", "energy.md", "energy.json"} <= {path.name for path in tmp_path.iterdir()}


def test_the_python_blocks_run_as_they_stand(tmp_path):
    pytest.importorskip("pandas", reason="pandas is not installed: THE README'S PANDAS BLOCK IS NOT RUN")
    save(make_record({"GPU": 300.0}, 1, spans={"train": 0.5}), tmp_path / "example.jsonl")
    for block in blocks("python"):
        done = run([sys.executable, "-c", block], tmp_path)

        assert done.returncode == 0, done.stderr
    assert (tmp_path / "energy.tex").exists()


def test_the_statement_shown_is_what_its_record_gives_today():
    quoted = re.search(r"\n((?:> .*\n)+)", README)
    assert quoted is not None
    shown = " ".join(line.removeprefix("> ") for line in quoted.group(1).splitlines())
    charged = charge_records(load_records([ROOT / "examples" / "records" / "h200.jsonl"]), PlaceOptions(), {})
    words = " ".join(sentence.text for sentence in statement_of(charged).paragraph)

    assert f"**Energy and carbon.** {words}".replace("\u00a0", " ") == shown


def test_the_site_file_is_read_as_it_stands(tmp_path):
    (block,) = blocks("toml")
    path = tmp_path / "carbonreport.toml"
    path.write_text(block)

    site = read_site(path)

    assert (site.zone, site.host_watts, site.name) == ("DE", (90, 350), "our cluster")
    assert tomllib.loads(block)["embodied"]["devices"]["NVIDIA H200"]["kg"] == site.embodied[0].kg


def test_the_table_of_notes_is_the_one_in_the_code():
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        from readme_notes import with_table
    finally:
        sys.path.pop(0)

    assert with_table(README) == README, "run: python scripts/readme_notes.py"
