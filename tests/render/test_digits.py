import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbonreport.model.quantity import Quantity
from carbonreport.render.digits import counted, duration, percent, plain, scaled, shown
from carbonreport.units import JOULES_PER_KWH


def joules(kwh: float, low: float, high: float) -> Quantity:
    return Quantity(kwh * JOULES_PER_KWH, low * JOULES_PER_KWH, high * JOULES_PER_KWH, "J", "measured", "made up")


def grams(value: float, low: float, high: float) -> Quantity:
    return Quantity(value, low, high, "gCO2e", "estimated", "made up")


def ratio(value: float, low: float, high: float) -> Quantity:
    return Quantity(value, low, high, "1", "reported", "made up")


def text(quantity: Quantity) -> str:
    return shown(quantity).sentence.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (joules(15.123, 14.91, 16.31), "15.1 kWh [14.9, 16.3]"),  # half the interval is 0.7: one digit
        (joules(23.47, 22.7, 25.6), "23.5 kWh [22.7, 25.6]"),  # 1.45 begins with 1: two digits
        (joules(2.304, 2.18, 2.43), "2.30 kWh [2.18, 2.43]"),
        (joules(50.2, 36.2, 65.4), "50 kWh [36, 65]"),
        (joules(0.5, 0.45, 0.55), "500 Wh [450, 550]"),
        (joules(1234.0, 1230.0, 1240.0), "1.23 MWh [1.23, 1.24]"),  # three digits at most
        (ratio(1.35, 1.30, 1.40), "1.35 [1.30, 1.40]"),
        (ratio(1.54, 1.10, 2.00), "1.5 [1.1, 2.0]"),
    ],
)
def test_half_the_interval_to_one_digit_or_two_decides_where_the_value_ends(quantity: Quantity, expected: str) -> None:
    assert text(quantity) == expected


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (grams(8400, 5200, 15400), "5–15 kgCO₂e (central value 8)"),
        (grams(1800, 1100, 2900), "1.1–3 kgCO₂e (central value 1.8)"),  # two digits where the first is 1
        (grams(900, 500, 1800), "0.5–1.8 kgCO₂e (central value 0.9)"),  # the unit follows the upper end
        (grams(100, 50, 100.5), "50–100 gCO₂e (central value 100)"),
    ],
)
def test_beyond_a_factor_of_two_one_digit_is_left_and_the_range_stands_in_front(quantity: Quantity, expected: str) -> None:
    assert text(quantity) == expected


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        (grams(1200, 90, 3200), "0.09–3 kgCO₂e (central value about 1)"),
        (grams(0.4, 0.1, 1.2), "0.10–1.2 gCO₂e (central value about 1)"),
        (grams(50, 30, 310), "30–300 gCO₂e (central value about 100)"),
    ],
)
def test_beyond_a_factor_of_ten_only_the_order_of_magnitude_is_left(quantity: Quantity, expected: str) -> None:
    assert text(quantity) == expected


def test_an_order_of_magnitude_lies_inside_its_interval() -> None:
    # The power nearest to 400 is 1,000 on a log scale, but the interval ends before it.
    assert text(grams(400, 40, 700)) == "40–700 gCO₂e (central value about 100)"


def test_an_exact_value_has_three_digits_and_no_interval() -> None:
    quantity = joules(12.3456, 12.3456, 12.3456)

    assert text(quantity) == "12.3 kWh"
    assert shown(quantity).interval == ""


def test_zero_is_zero_without_decimals() -> None:
    assert text(joules(0, 0, 0)) == "0 kWh"
    assert text(grams(0, 0, 0)) == "0 gCO₂e"
    assert scaled(0.0, "J") == "0\u00a0kWh"
    assert plain(0.0) == "0"


def test_an_interval_may_begin_at_zero() -> None:
    assert text(grams(5, 0, 10)) == "5 gCO₂e [0, 10]"
    assert text(grams(0, 0, 10)) == "0 gCO₂e [0, 10]"


def test_a_part_takes_the_unit_of_the_whole_unless_it_is_tiny() -> None:
    whole = joules(25, 24, 26)

    assert shown(joules(0.5, 0.45, 0.55), beside=whole).with_unit == "0.50\u00a0kWh"
    assert shown(joules(0.005, 0.0045, 0.0055), beside=whole).with_unit == "5.0\u00a0Wh"


def test_a_remark_goes_into_the_brackets_that_are_there() -> None:
    assert shown(grams(8400, 5200, 15400)).with_aside("so it was").endswith("(central value 8; so it was)")
    assert shown(joules(15.1, 14.9, 16.3)).with_aside("RAPL").endswith("[14.9, 16.3] (RAPL)")


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.00073, "J", "0.73 mJ"),
        (0.73, "J", "730 mJ"),
        (3599.0, "J", "3,600 J"),
        (3600.0, "J", "1.00 Wh"),
        (3.5995e6, "J", "1.00 kWh"),  # 999.86 Wh would be printed as 1,000 Wh
        (7.2e12, "J", "2.00 GWh"),
        (7.2e15, "J", "2,000 GWh"),
        (12.34, "gCO2e", "12.3 gCO₂e"),
        (1.234e6, "gCO2e", "1.23 tCO₂e"),
        (-1.2e6, "J", "-333 Wh"),
    ],
)
def test_the_unit_suits_the_size(value: float, unit: str, expected: str) -> None:
    assert scaled(value, unit).replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (0.42, "0.42 s"), (35.2, "35 s"), (119.6, "120 s"), (120, "2.0 min"), (3600, "60 min"), (7200, "2.00 h"), (7.2e6, "2,000 h")],
)
def test_a_duration_is_in_the_unit_that_people_say(seconds: float, expected: str) -> None:
    assert duration(seconds).replace("\u00a0", " ") == expected


def test_thousands_are_separated_and_items_are_whole() -> None:
    assert plain(1234567, 7) == "1,234,567"
    assert counted(5_000_000.0) == "5,000,000"
    assert counted(0.5) == "0.5"


def test_percent_has_a_space_that_does_not_break() -> None:
    assert percent(0.643) == "64\u00a0%"


def test_rounding_up_to_the_next_power_of_ten_keeps_the_number_of_digits() -> None:
    assert plain(9.996) == "10.0"
    assert plain(0.09996) == "0.100"


amounts = st.floats(1e-4, 1e15)
factors = st.floats(1.0, 1e4)


@given(amounts, factors, factors)
def test_printed_ends_enclose_the_printed_value_and_lie_near_the_true_ones(value: float, below: float, above: float) -> None:
    quantity = Quantity(value, value / below, value * above, "J", "measured", "made up")

    result = shown(quantity)

    low, central, high = (_number(t) for t in (result.low, result.value, result.high))
    assert low <= central <= high
    if not result.value.startswith("about"):
        size = value / central if central else math.inf
        assert abs(low * size - quantity.low) <= 0.6 * max(quantity.high - quantity.low, value * 0.01)
    assert len(re.sub(r"\D", "", result.value).strip("0")) <= 3


@given(amounts, st.floats(1.0, 1.99))
def test_the_printed_value_differs_from_the_true_one_by_half_a_unit_of_its_last_place(value: float, width: float) -> None:
    result = shown(Quantity(value, value / math.sqrt(width), value * math.sqrt(width), "gCO2e", "measured", "made up"))

    size = {"tCO₂e": 1e6, "kgCO₂e": 1e3, "gCO₂e": 1.0, "mgCO₂e": 1e-3}[result.unit]
    assert abs(_number(result.value) - value / size) <= 0.5000001 * max(_last_place(result.value), value / size * (width - 1) / 10)


def _number(text: str) -> float:
    return float(text.removeprefix("about ").replace(",", ""))


def _last_place(text: str) -> float:
    return 10.0 ** -len(text.partition(".")[2])
