"""The tracer's own calls to CUDA leave the captures of other threads alone."""

from types import SimpleNamespace

import pytest

from carbonreport.measure.captures import beside_captures, exchange_of


class Mode:
    """A thread's capture mode, as CUDA exchanges it."""

    def __init__(self):
        self.held = 0

    def __call__(self, mode):
        before, self.held = self.held, mode
        return before


def test_the_mode_is_relaxed_inside_the_block_and_as_it_was_behind_it():
    mode = Mode()
    with beside_captures(mode):
        assert mode.held == 2
        with beside_captures(mode):
            assert mode.held == 2
    assert mode.held == 0

    with pytest.raises(RuntimeError, match="an illegal memory access"), beside_captures(mode):
        raise RuntimeError("an illegal memory access")
    assert mode.held == 0


@pytest.mark.parametrize(
    "torch", [SimpleNamespace(), SimpleNamespace(version=SimpleNamespace(cuda=None)), SimpleNamespace(version=SimpleNamespace(cuda="99.9"))]
)
def test_without_a_runtime_that_can_be_called_nothing_is_exchanged(torch):
    assert exchange_of(torch) is None
    with beside_captures(None):
        pass
