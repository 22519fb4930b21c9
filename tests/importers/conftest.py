"""The logs of samples.py, and reading a text as a file."""

import importlib.util
import sys
from pathlib import Path

import pytest

from carbonreport.importers.log_file import LogFile
from carbonreport.workflows.imports import Asked, import_file

_SPEC = importlib.util.spec_from_file_location("carbonreport_samples", Path(__file__).parent / "samples.py")
samples = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = samples
_SPEC.loader.exec_module(samples)


def pytest_generate_tests(metafunc):
    if "sample" in metafunc.fixturenames:
        metafunc.parametrize("sample", samples.SAMPLES, ids=[s.file for s in samples.SAMPLES])


@pytest.fixture
def logs():
    """The module of samples."""
    return samples


@pytest.fixture
def read(tmp_path):
    """Import a text or bytes under a file name: read("log.csv", text, unit="mW")."""

    def read_text(name, content, *, start=None, **options):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return import_file(path, Asked(options=options, start=start))

    return read_text


@pytest.fixture
def log_file():
    return lambda name, text: LogFile(name, text.encode())
