"""Pages in headless Chromium: no console errors, at phone and desktop width, for an ordinary and a hostile run."""

import shutil
import subprocess

import pytest

from carbonreport.testing import make_record
from carbonreport.workflows.statement import write_statement

CHROMIUM = shutil.which("chromium")
HOSTILE = "100% <script>document.title='owned'</script><img src=x onerror=alert(1)> \N{GRINNING FACE}"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: PAGES ARE NOT OPENED IN A BROWSER (apt-get install chromium)"
)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["ordinary", HOSTILE])
@pytest.mark.parametrize("style", ["plain", "sci"])
def test_a_page_opens_without_a_console_error_and_runs_nothing(charged, tmp_path, width, name, style):
    page = tmp_path / "energy.html"
    run = make_record({"GPU": 400.0, "host": 60.0}, 7, name=name, kinds={"host": "cpu"}, spans={"train": 0.7})
    write_statement(charged(run), [page], style=style, bib=None, force=False)
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        "--enable-logging=stderr",
        "--v=0",
    ]

    done = subprocess.run(
        [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={width},900", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )

    assert "CONSOLE" not in done.stderr
    assert "owned" not in done.stdout.split("<title>")[1].split("</title>")[0]
    assert "<script" not in done.stdout
    assert "kWh" in done.stdout
