"""Mirrors are found by their steps."""

import random

from carbonreport.measure.mirrored import mirrors


def counters(*steps_of_each):
    """Counters that take a step at each wait."""
    state = {"at": 0}

    def wait(_seconds):
        state["at"] += 1

    def reader(steps):
        return lambda: None if steps is None else sum(steps[: state["at"]])

    return {str(i): reader(steps) for i, steps in enumerate(steps_of_each)}, wait


def test_three_dies_that_show_one_socket_repeat_the_first():
    chance = random.Random(1)
    socket, other = [chance.randrange(10**5, 10**6) for _ in range(20)], [chance.randrange(10**5, 10**6) for _ in range(20)]

    found = mirrors(*counters(socket, socket, other, socket, other))

    assert found == {"1": "0", "3": "0", "4": "2"}


def test_counters_of_their_own_that_agree_now_and_then_are_no_mirrors():
    steps = [1000 + i for i in range(20)]
    sometimes = [step if i % 4 == 0 else step + 1 for i, step in enumerate(steps)]

    assert mirrors(*counters(steps, sometimes)) == {}


def test_nothing_is_said_of_counters_that_stand_still_or_cannot_be_read():
    assert mirrors(*counters([0] * 20, [0] * 20, None)) == {}
    assert mirrors(*counters([5] * 20)) == {}
