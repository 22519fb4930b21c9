"""The order of phases is looked for, followed, lost and looked for again."""

import pytest

from carbonreport.control.hooks.order import Order

PLANNED = ("forward", "backward", "optimiser")


def followed(order, names):
    return [order.take(name) for name in names]


@pytest.mark.parametrize(
    "odd",
    [
        ("forward", "forward"),  # sanity checks before training
        ("forward", "backward"),  # a first step whose optimiser was skipped
        ("backward", "optimiser"),
    ],
)
def test_an_odd_first_iteration_only_puts_the_plan_off(odd):
    order = Order(PLANNED)
    followed(order, odd)
    assert not order.was_found

    assert followed(order, PLANNED * 2)[2:] == [True] * 4
    assert (order.lost, order.outside) == (0, len(odd) + 2)
    assert order.first_other.startswith("phase ")


def test_another_order_later_is_noticed_and_looked_for_again():
    order = Order(PLANNED)
    followed(order, PLANNED * 20)
    assert followed(order, ("forward", "forward", "forward")) == [True, False, False]
    assert followed(order, PLANNED) == [False, False, True]
    assert (order.lost, order.outside) == (1, 2 + 4)


def test_what_only_looks_like_the_order_now_and_then_is_soon_left_alone():
    order = Order(PLANNED)
    followed(order, ("forward", "backward", "forward", "backward", "optimiser") * 50)

    assert order.lost == 1
    assert order.outside > 240


def test_where_the_plan_has_no_order_each_is_right():
    assert followed(Order(()), ("b", "a")) == [True, True]
