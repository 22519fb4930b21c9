"""The public surface: names, laziness, plug-ins, notes, documents."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import carbonreport
from carbonreport import plugins
from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import SLUGS, Note

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "carbonreport"


def test_every_public_name_exists():
    for name in carbonreport.__all__:
        assert getattr(carbonreport, name) is not None
    assert dir(carbonreport) == carbonreport.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'tracer'"):
        _ = carbonreport.tracer


def test_importing_the_package_loads_nothing_heavy():
    heavy = ("numpy", "pandas", "torch", "pynvml", "msgspec", "click", "jinja2", "rich", "requests")
    code = f"import sys, carbonreport; print([m for m in {heavy!r} if m in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("kind", ["meter", "source", "format"])
def test_every_plug_in_has_create_and_says_why_it_is_not_available(kind):
    assert plugins.names(kind)
    for name in plugins.names(kind):
        module = plugins.module(kind, name)
        assert callable(module.create), name
        reason = module.available()
        assert reason is None or (isinstance(reason, str) and "\n" not in reason), name


def test_an_unknown_plug_in_names_those_that_exist():
    with pytest.raises(CarbonreportError, match="unknown meter 'geiger': there are amd, hostmodel, nvml, perf, rapl, replay"):
        plugins.load("meter", "geiger")


def test_a_plug_in_from_outside_is_loaded_by_its_path():
    assert plugins.load("format", "carbonreport.render.formats.md:create").suffix == ".md"


def test_an_unknown_note_is_refused():
    with pytest.raises(ValueError, match="unknown note slug 'oops'"):
        Note("oops", "text")


def test_every_note_is_used_and_every_used_one_is_known():
    source = "\n".join(path.read_text() for path in PACKAGE.rglob("*.py") if path.name != "notes.py")
    unused = {slug for slug in SLUGS if f'"{slug}"' not in source}

    assert unused == set()


def test_there_is_one_broad_except_and_it_is_in_the_guard():
    found = [path.name for path in PACKAGE.rglob("*.py") if re.search(r"except( Exception| BaseException)?\s*(as \w+)?:", path.read_text())]

    assert found == ["guard.py"]


def test_the_versions_agree():
    assert f"version: {carbonreport.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {carbonreport.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_odbl_data_have_their_licence_and_attribution_beside_them():
    folder = PACKAGE / "data" / "odbl"
    assert "Open Database License" in (folder / "LICENSE").read_text()
    assert "Electricity Maps" in (folder / "README.md").read_text()
