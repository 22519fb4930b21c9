"""Rendered files are as they were when somebody last looked at them."""

import importlib.util
import json
import math
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


def test_the_golden_files_are_what_is_rendered(tmp_path):
    spec = importlib.util.spec_from_file_location("regenerate", GOLDEN / "regenerate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    for name, text in module.rendered(tmp_path):
        golden = (GOLDEN / name).read_text(encoding="utf-8")
        is_same = alike(json.loads(text), json.loads(golden)) if name.endswith(".json") else text == golden
        assert is_same, f"{name} changed: python tests/golden/regenerate.py, then look at it"


def alike(one: Any, other: Any) -> bool:
    """Equal JSON, but for the last digits of numbers, which differ from one machine to another."""
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)
