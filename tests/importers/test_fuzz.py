"""A few hundred mutants of the small logs: the same energy, or a named rejection; no crash. Thousands more: benchmarks/fuzz_imports.py."""

import importlib.util
import random
import sys
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("carbonreport_fuzz", Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz_imports.py")
fuzz = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = fuzz
_SPEC.loader.exec_module(fuzz)


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_log_gives_the_same_energy_or_a_named_rejection(sample, seed):
    rng = random.Random(f"{sample.file} {seed}")

    for mutation in fuzz.mutations_of(sample):
        wrong, _ = fuzz.judge(sample, mutation, rng)
        assert not wrong, mutation.__name__


def test_most_mutations_that_change_only_the_form_leave_the_energy(sample):
    rng = random.Random(sample.file)
    form = [m for m in fuzz.mutations_of(sample) if m(sample.text.encode(), random.Random(0))[1]]

    assert [fuzz.judge(sample, mutation, rng)[1] for mutation in form] == ["same"] * len(form)
