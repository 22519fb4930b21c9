"""When late samples were taken is found from their stamps, or they are left out."""

import random
from itertools import pairwise

from pytest import approx

from carbonreport.combine.lattice import LATE_S, LATEST_S, STAMPED_LATE_S, Lattice

PERIOD_S = 0.02


def stamped(count, *, phase_s=0.0137, late_share=0.3, seed=2, drift=0.0):
    """Times at which samples were taken and their stamps: most 0.1 ms after the slot, a share up to 19 ms late, in order.

    Up to 3.5 ms only the stamp is late; beyond it the sample is late too.
    """
    rng, rows = random.Random(seed), []
    for i in range(count):
        slot_s = phase_s + i * PERIOD_S * (1 + drift)
        lateness_s = rng.uniform(0.0, 0.0002) if rng.random() > late_share else rng.uniform(0.001, 0.019)
        rows.append((slot_s + max(0.0, lateness_s - STAMPED_LATE_S), slot_s + lateness_s))
    return rows


def snapped(rows, chunk=50):
    lattice, taken = Lattice(PERIOD_S), []
    for i in range(0, len(rows), chunk):
        taken += lattice.snap([stamp_s for _, stamp_s in rows[i : i + chunk]])
    return taken


def on_time(*lateness_s, before=30):
    """When the lattice says that samples were taken which follow timely ones, less their slot."""
    lateness = [0.0] * before + list(lateness_s)
    stamps = [i * PERIOD_S + late_s for i, late_s in enumerate(lateness)]
    taken = Lattice(PERIOD_S).snap(stamps)
    return [None if t is None else t - i * PERIOD_S for i, t in enumerate(taken)][before:]


def test_a_stamp_that_is_a_little_late_belongs_to_its_slot():
    (taken_s,) = on_time(0.003)

    assert taken_s == approx(0.0, abs=1e-6)


def test_a_later_sample_was_taken_3_5_ms_before_its_stamp():
    for lateness_s in (0.004, 0.006, 0.0078, 0.0137):
        (taken_s,) = on_time(lateness_s)
        assert taken_s == approx(lateness_s - 0.0035, abs=1e-6)


def test_of_two_very_late_samples_in_a_row_nobody_knows_when_the_second_was_taken():
    first_s, second_s, third_s = on_time(0.0135, 0.0139, 0.003)

    assert first_s == approx(0.0100, abs=1e-6)
    assert second_s is None
    assert third_s == approx(0.0, abs=1e-6)


def test_a_sample_that_is_later_than_any_that_was_understood_is_left_out():
    assert on_time(0.0150) == [None]
    assert on_time(0.0190) == [None]


def test_stamps_are_put_back_to_when_their_samples_were_taken():
    rows = stamped(1000)
    pairs = [(taken_s, true_s) for taken_s, (true_s, _) in zip(snapped(rows), rows, strict=True) if taken_s is not None]

    assert len(pairs) > 850
    assert all(taken_s == approx(true_s, abs=0.0003) for taken_s, true_s in pairs)


def test_stamps_whose_time_is_not_known_are_left_out():
    rows = stamped(1000)
    slots = [0.0137 + i * PERIOD_S for i in range(1000)]
    late = [stamp_s - slot_s for (_, stamp_s), slot_s in zip(rows, slots, strict=True)]
    for (before_s, late_s), taken_s in zip(pairwise(late), snapped(rows)[1:], strict=True):
        if late_s > LATEST_S + 0.0005 or min(before_s, late_s) > LATE_S + 0.0005:
            assert taken_s is None


def test_no_slot_is_taken_twice():
    rows = stamped(1000, late_share=0.6)
    again = sorted([*rows, *((true_s, stamp_s + 0.0004) for true_s, stamp_s in rows[::3])], key=lambda row: row[1])
    slots = [(taken_s - 0.0137 + 0.001) // PERIOD_S for taken_s in snapped(again) if taken_s is not None]

    assert len(slots) > 600
    assert all(b > a for a, b in pairwise(slots))


def test_a_lattice_that_drifts_is_followed():
    rows = stamped(20_000, drift=20e-6)
    pairs = [(slot, true) for slot, (true, _) in zip(snapped(rows), rows, strict=True) if slot is not None]

    assert len(pairs) > 15_000
    assert all(slot == approx(true, abs=0.0005) for slot, true in pairs)


def test_a_phase_at_the_edge_of_the_period_is_found():
    for phase_s in (0.0, 0.00005, 0.01995):
        rows = stamped(300, phase_s=phase_s)
        pairs = [(slot, true) for slot, (true, _) in zip(snapped(rows), rows, strict=True) if slot is not None]
        assert len(pairs) > 200
        assert all(slot == approx(true, abs=0.0003) for slot, true in pairs)


def test_a_handful_of_stamps_says_nothing_yet():
    assert Lattice(PERIOD_S).snap([0.0, 0.02, 0.04]) == [None, None, None]
