"""What a lab's scripts call: exit codes and what is said before anything is computed."""

import subprocess
import sys

import pytest

SACCT = "JobIDRaw|Start|End|ElapsedRaw|State|AllocTRES\n1|1772359200|1772366400|7200|COMPLETED|gres/gpu:h200=2\n"


@pytest.fixture
def carbonreport(tmp_path):
    """Runs the command in a folder of its own, after some Python."""

    def run(*arguments, first=""):
        code = f"{first}\nfrom carbonreport.cli.main import main\nmain()"
        return subprocess.run(
            [sys.executable, "-c", code, *arguments], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
        )

    return run


def test_jobs_without_an_energy_are_kept_and_that_is_no_failure(carbonreport, tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT)

    kept, alone = carbonreport("import", "sacct.txt", "--ledger", "lab"), carbonreport("import", "sacct.txt")

    assert (kept.returncode, alone.returncode) == (0, 1)
    assert "1 row kept in lab" in kept.stderr and "no job has energy" in kept.stderr
    assert alone.stderr.count("no job has energy") == 1


def test_a_pdf_that_cannot_be_made_is_said_before_anything_is_read(carbonreport, tmp_path):
    (tmp_path / "sacct.txt").write_text(SACCT)
    command = ("audit", "--year", "2026", "--sacct", "sacct.txt", "--zone", "DE", "--pue", "1.2", "-o", "year.json", "-o", "year.pdf")

    done = carbonreport(*command, first="import sys; sys.modules['weasyprint'] = None")

    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'carbonreport[pdf]'" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sacct.txt"]
