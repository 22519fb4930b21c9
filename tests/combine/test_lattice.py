"""Late stamps are put back on the lattice on which the sensor samples, or left out."""

import random
from itertools import pairwise

from pytest import approx

from carbonreport.combine.lattice import Lattice

PERIOD_S = 0.02


def stamped(count, *, phase_s=0.0137, late_share=0.3, seed=2, drift=0.0):
    """Slots and their stamps: most 0.1 ms after the slot, a share of them up to 19 ms late, in order."""
    rng, rows = random.Random(seed), []
    for i in range(count):
        slot_s = phase_s + i * PERIOD_S * (1 + drift)
        lateness_s = rng.uniform(0.0, 0.0002) if rng.random() > late_share else rng.uniform(0.001, 0.019)
        rows.append((slot_s, slot_s + lateness_s))
    return sorted(rows, key=lambda row: row[1])


def snapped(rows, chunk=50):
    lattice, slots = Lattice(PERIOD_S), []
    for i in range(0, len(rows), chunk):
        slots += lattice.snap([stamp_s for _, stamp_s in rows[i : i + chunk]])
    return slots


def test_stamps_that_are_a_little_late_find_their_slot():
    rows = stamped(1000)
    pairs = [(slot, true) for slot, (true, _) in zip(snapped(rows), rows, strict=True) if slot is not None]

    assert len(pairs) > 750
    assert all(slot == approx(true, abs=0.0003) for slot, true in pairs)


def test_stamps_that_are_very_late_are_left_out():
    rows = stamped(1000)
    for slot, (true, stamp) in zip(snapped(rows), rows, strict=True):
        if stamp - true > 0.009:
            assert slot is None or slot != approx(true, abs=0.0003)
        if 0.009 < stamp - true < 0.019:
            assert slot is None


def test_no_slot_is_taken_twice():
    slots = [slot for slot in snapped(stamped(1000, late_share=0.6)) if slot is not None]

    assert all(b - a > 0.9 * PERIOD_S for a, b in pairwise(slots))


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
