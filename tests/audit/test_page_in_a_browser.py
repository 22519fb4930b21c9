"""The report in headless Chromium: no console errors, nothing wider than the screen, at phone and desktop width."""

import re
import shutil
import subprocess

import pytest

from carbonreport.audit.database import connect
from carbonreport.audit.ledger import Ledger
from carbonreport.testing.ledger import a_job, a_reading, us
from carbonreport.units import HOUR_US
from carbonreport.workflows.audit import Asked, audit
from carbonreport.workflows.audit_report import write_audit
from carbonreport.workflows.place import PlaceOptions

CHROMIUM = shutil.which("chromium")
NOW_S = us("2027-06-01T00:00Z") / 1e6
HOSTILE = "100% <script>document.title='owned'</script><img src=x onerror=alert(1)> \N{GRINNING FACE}"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--enable-logging=stderr",
    "--v=0",
]
# A frame of a given width says whether anything sticks out; headless windows are never narrower than 500 px.
FRAME = """<!doctype html><title>wait</title><iframe id=f src="{page}" style="width:{width}px;height:900px;border:0"></iframe>
<script>f.onload = () => {{ const d = f.contentDocument.documentElement; document.title = d.scrollWidth + " of " + d.clientWidth + ", silent: " +
[...f.contentDocument.querySelectorAll("figure")].filter(e => (e.firstElementChild.scrollWidth > e.firstElementChild.clientWidth)
!= f.contentWindow.getComputedStyle(e.querySelector("figcaption"), "::before").content.includes("scroll")).length; }}</script>"""

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: PAGES ARE NOT OPENED IN A BROWSER (apt-get install chromium)"
)


@pytest.fixture(params=["vision", HOSTILE])
def page(request, tmp_path):
    pytest.importorskip("matplotlib")
    ledger, con = Ledger(str(tmp_path / "ledger")), connect(threads=1)
    begin = us("2025-11-02T00:00Z")
    jobs = [
        a_job(
            str(i),
            begin + 40 * i * HOUR_US,
            20,
            project=request.param if i % 3 else f"project {i}",
            gpu_model="h200",
            hosts=f"n{i % 2}",
            state="FAILED" if i % 5 == 0 else "COMPLETED",
        )
        for i in range(200)
    ]
    readings = [a_reading(f"GPU-{i % 2}", begin + i * HOUR_US, 1, 10**9 + i * 10**5, host="n0") for i in range(4000)]
    ledger.add(jobs, "jobs", con)
    ledger.add(readings, "meters", con)
    found = audit(Asked(2026, ledger.url), PlaceOptions(zone="DE", pue="1.3"), environ={}, now_s=NOW_S)
    (path,) = write_audit(found, [tmp_path / "audit.html"])
    return path


def opened(page, folder, *flags):
    return subprocess.run(
        [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("width", [390, 600, 1280])
def test_the_page_opens_without_a_console_error_runs_nothing_and_fits_or_says_that_a_picture_scrolls(page, tmp_path, width):
    done = opened(page, tmp_path, f"--window-size={width},900", "--dump-dom")

    assert "CONSOLE" not in done.stderr
    assert "owned" not in done.stdout.split("<title>")[1].split("</title>")[0]
    assert "<script" not in done.stdout
    assert done.stdout.count("<svg") == 4

    frame = tmp_path / f"frame{width}.html"
    frame.write_text(FRAME.format(page=page.name, width=width))
    title = opened(frame, tmp_path, "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom").stdout
    (scroll, client, silent) = re.search(r"<title>(\d+) of (\d+), silent: (\d+)</title>", title).groups()
    assert int(scroll) <= int(client) <= width
    assert silent == "0"
