"""Counters and powers of one device: restarts, bad reads, leaps."""

from pytest import approx

from carbonreport.importers.counters import curve_of_counter
from carbonreport.importers.curves import curve_of_powers

LIMIT = 400.0


def counter(*values, step_s=10.0):
    return curve_of_counter([(i + 1, step_s * i, float(v)) for i, v in enumerate(values)], LIMIT)


def test_a_counter_is_differenced():
    read = counter(1e9, 1e9 + 1000, 1e9 + 3000)

    assert read.curve.joules == (0.0, 1000.0, 3000.0) and not read.rejected


def test_a_counter_that_begins_again_adds_what_it_shows_after():
    read = counter(1e9, 1e9 + 1000, 500, 2500)

    assert read.curve.total_joules == 1000 + 500 + 2000 and read.curve.resets == 1


def test_a_zero_between_two_good_readings_books_no_lifetime():
    read = counter(1e9, 1e9 + 1000, 0, 1e9 + 3000)

    assert read.curve.total_joules == 3000
    assert [line for line, _ in read.rejected] == [3]


def test_a_leap_beyond_what_the_board_may_draw_is_rejected_and_told():
    read = counter(0, 1000, 1e9, 1e9 + 1000)

    assert read.curve.total_joules == 2000
    assert read.rejected[0][0] == 3 and "400 W allow" in read.rejected[0][1]
    assert read.curve.gaps == ((10.0, 20.0),)


def test_a_difference_up_to_a_fifth_above_the_limit_is_a_late_reading():
    assert counter(0, 1.19 * LIMIT * 10).curve.total_joules == approx(1.19 * LIMIT * 10)
    assert counter(0, 1.21 * LIMIT * 10).rejected


def test_a_fall_to_a_value_that_no_restart_reaches_is_no_energy():
    read = counter(1e9, 9e8, 9e8 + 1000)

    assert read.curve.total_joules == 1000 and len(read.rejected) == 1


def test_one_reading_of_a_counter_is_not_the_energy_of_a_run():
    assert "since its start" in counter(1e9).why_not


def test_twins_count_once_and_contradictions_are_refused():
    twins = [(i, float(i // 2), 100.0) for i in range(20)]
    rivals = [(i, float(i // 2), 100.0 + i % 2) for i in range(20)]

    assert curve_of_powers(twins, LIMIT).curve.total_joules == approx(900) and curve_of_powers(twins, LIMIT).curve.twins == 10
    assert "two values" in curve_of_powers(rivals, LIMIT).why_not


def test_a_long_log_keeps_its_total_in_fewer_points():
    read = curve_of_powers([(i, float(i), 100.0 + i % 7) for i in range(100_001)], LIMIT)

    assert len(read.curve.seconds) <= 20_001
    assert read.curve.total_joules == approx(sum((100 + i % 7 + 100 + (i + 1) % 7) / 2 for i in range(100_000)))
