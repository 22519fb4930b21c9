"""The picture of a sweep says in words what it shows, and draws no interval that is not known."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from carbonreport.render.plots_sweep import SweepNumbers, sweep_in_words, sweep_picture

NAN = float("nan")


def numbers(*, has_errors=True):
    times = np.array([[2.07, 2.0, 2.1], [1.28, 1.25, 1.31], [1.06, 1.05, 1.08]])
    energies = np.array([[0.9, 0.88, 0.92], [0.82, 0.81, 0.84], [0.89, 0.88, 0.9]])
    if not has_errors:
        times[:, 1:], energies[:, 1:] = NAN, NAN
    return SweepNumbers(
        caps_watts=np.array([100.0, 150.0, 200.0]),
        times=times,
        energies=energies,
        is_dominated=np.array([True, False, False]),
        fitted=np.column_stack([times[:, 0], energies[:, 0]]),
        chosen_watts=200.0,
        limit_watts=250.0,
        most_time=1.1,
    )


def test_the_words_name_every_cap_the_dominated_one_and_the_choice():
    assert sweep_in_words(numbers()) == (
        "Relative to no cap. 100 W: time 207 %, energy 90 %, dominated; 150 W: time 128 %, energy 82 %; 200 W: time 106 %, energy 89 %; 200 W is chosen."
    )


def test_the_picture_labels_every_cap_and_stands_alone():
    svg = str(sweep_picture(numbers()).svg)

    assert all(f">{label}<" in svg for label in ("100 W", "150 W", "200 W", "no cap"))
    assert "dominated; 150 W" in svg
    assert "<style" not in svg


def test_unknown_errors_draw_no_bars():
    with_bars, without = (str(sweep_picture(numbers(has_errors=known)).svg).count("<path") for known in (True, False))

    assert without < with_bars


def test_the_same_numbers_draw_the_same_bytes():
    assert str(sweep_picture(numbers()).svg) == str(sweep_picture(numbers()).svg)
