"""Digits follow the interval."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from carbonreport.model.quantity import Quantity
from carbonreport.render.digits import counted, duration, plain, scaled, shown, spread_shown
from carbonreport.units import JOULES_PER_KWH


def energy(value: float, low: float, high: float) -> Quantity:
    """A quantity given in kWh."""
    return Quantity(value * JOULES_PER_KWH, low * JOULES_PER_KWH, high * JOULES_PER_KWH, "J", "measured", "test")


def ratio(value: float, low: float, high: float) -> Quantity:
    return Quantity(value, low, high, "1", "reported", "test")


@pytest.mark.parametrize(
    ("quantity", "sentence"),
    [
        (energy(15.13, 14.93, 16.32), "15.1 kWh [14.9, 16.3]"),  # half the interval 0.70: one digit
        (energy(2.301, 2.183, 2.431), "2.30 kWh [2.18, 2.43]"),  # 0.124: two digits, because it begins with 1
        (energy(23.53, 22.71, 25.61), "23.5 kWh [22.7, 25.6]"),
        (ratio(1.352, 1.301, 1.399), "1.35 [1.30, 1.40]"),
        (energy(131.4, 90.2, 170.4), "130 kWh [90, 170]"),  # 40: tens
        (energy(1289.4, 1288.9, 1290.2), "1.29 MWh"),  # three digits at most, and then no interval is left to print
        (energy(8.4, 5.2, 15.3), "5–15 kWh (central value 8)"),  # beyond a factor of two the range comes first
        (energy(14.0, 8.2, 23.4), "8–20 kWh (central value 14)"),
        (energy(3.0, 0.3, 30.0), "0.3–30 kWh (central value about 1)"),  # from a hundred on only the order of magnitude
        (energy(0.31, 0.09, 1.1), "0.09–1.1 kWh (central value about 0.3)"),  # beyond ten one digit, which stays inside the interval
        (energy(25.0, 25.0, 25.0), "25.0 kWh"),
        (energy(0.0, 0.0, 0.0), "0 kWh"),
        (energy(0.0125, 0.0124, 0.0135), "12.5 Wh [12.4, 13.5]"),
        (energy(433_196, 194_938, 433_196), "190–400 MWh (central value 400)"),
        (ratio(1.0, 1.0, 1.1), "1.00 [1.00, 1.10]"),
        (ratio(1.14, 1.04, 1.46), "1.14 [1.04, 1.46]"),  # a published datum
        (ratio(1.73, 1.0, 3.0), "1.73 [1.00, 3.00]"),
    ],
)
def test_a_quantity_reads_as_the_rule_says(quantity, sentence):
    assert shown(quantity).sentence.replace("\u00a0", " ") == sentence


@given(st.floats(1e-3, 1e15), st.floats(1e-4, 1), st.floats(1, 1e4))
def test_what_is_printed_is_what_is_known_up_to_half_of_the_last_digit(value, below, above):
    quantity = Quantity(value, value * below, value * above, "J", "measured", "test")
    text = shown(quantity)
    size = {"GWh": 3.6e12, "MWh": 3.6e9, "kWh": 3.6e6, "Wh": 3.6e3, "J": 1.0, "mJ": 1e-3}[text.unit]

    low, high = (float(t.replace(",", "")) * size for t in (text.low, text.high))
    assert low <= high
    assert math.isclose(low, quantity.low, rel_tol=0.51, abs_tol=size)
    assert math.isclose(high, quantity.high, rel_tol=0.51, abs_tol=size)
    if not text.value.startswith("about"):
        assert low - 1e-9 * size <= float(text.value.replace(",", "")) * size <= high * (1 + 1e-9)


@given(st.floats(1e-6, 1e15), st.floats(0.5001, 1), st.floats(1, 1.0))
def test_at_most_three_digits_and_at_least_one_are_printed(value, below, above):
    text = shown(Quantity(value, value * below, value * above, "J", "measured", "test")).value
    digits = text.replace(",", "").replace(".", "").lstrip("0")

    assert 1 <= len(digits.rstrip("0")) <= 3


def test_a_part_that_is_not_tiny_takes_the_unit_of_the_whole():
    whole = energy(1.2, 1.1, 1.3)

    assert shown(energy(0.9, 0.85, 0.95), beside=whole).with_unit == "0.90\u00a0kWh"
    assert shown(energy(0.01, 0.009, 0.011), beside=whole).with_unit == "10.0\u00a0Wh"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.0312, "0.031 s"),
        (7.04, "7.0 s"),
        (75.1, "75 s"),
        (600, "10 min"),
        (7100, "120 min"),
        (44_640, "12.4 h"),
        (1e9, "278,000 h"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(seconds, text):
    assert duration(seconds) == text.replace(" ", "\u00a0")


def test_numbers_without_an_interval():
    assert (plain(1234.5), plain(0.0012345), plain(999.7)) == ("1,230", "0.00123", "1,000")
    assert (counted(51_264.0), counted(0.5)) == ("51,264", "0.5")
    assert scaled(0.7331, "J") == "733\u00a0mJ"


@given(st.floats(1e-6, 1e12), st.integers(1, 6))
def test_rounding_to_significant_digits_stays_within_half_of_the_last_one(value, digits):
    assume(digits < 6)
    assert math.isclose(float(plain(value, digits).replace(",", "")), value, rel_tol=0.51 * 10 ** (1 - digits))


@pytest.mark.parametrize(
    ("quantity", "cell"),
    [
        (energy(0.3196, 0.001, 0.645), "320 (1–645) Wh"),  # the mean stays: nobody doubts it
        (energy(0.3196, 0.0003, 0.645), "320 (0.3–645) Wh"),  # something is not nothing
        (energy(2.0, 0.0, 4.0), "2.00 (0.00–4.00) kWh"),
        (energy(1.02, 1.0, 1.05), "1.02 (1.00–1.05) kWh"),
        (energy(1.0, 1.0, 1.0), "1.00 kWh"),
        (energy(0.0, 0.0, 0.0), "0 kWh"),
    ],
)
def test_a_spread_between_runs_is_a_mean_with_its_ends_and_no_interval(quantity, cell):
    assert spread_shown(quantity).compact.replace("\u00a0", " ") == cell
