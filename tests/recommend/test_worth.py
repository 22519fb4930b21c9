"""What an observed hour changes of a typical day: its size and the limit of length, not how far the shape of the day drifts."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pytest import approx

from carbonreport.model.series import QUALITIES, Family, GridErrors, IntensitySeries
from carbonreport.recommend.worth import has_typical_shape, is_typical, reason_against, saving_of

ERRORS = GridErrors(((0.1, 6.0), (0.2, 48.0)), 0.1)


def series(*qualities, observed_s=None):
    quality = np.array([QUALITIES.index(q) for q in qualities], dtype=np.int8)
    errors = dict.fromkeys(qualities, replace(ERRORS, observed_s=observed_s))
    return IntensitySeries("DE", 3600.0 * np.arange(quality.size + 1), np.full(quality.size, 300.0), quality, errors, Family(), "a test")


@pytest.mark.parametrize(
    ("grid", "has_shape", "alone"),
    [
        (series("typical", "typical"), True, True),
        (series("annual", "annual"), True, True),
        (series("typical", "typical", observed_s=-3600.0), True, False),
        (series("forecast", "typical"), False, False),
        (series("measured", "measured"), False, False),
    ],
    ids=["typical", "annual", "corrected by an observed hour", "forecast, then typical", "measured"],
)
def test_an_observed_hour_does_not_change_that_the_day_is_a_typical_one(grid, has_shape, alone):
    assert has_typical_shape(grid) is has_shape
    assert is_typical(grid) is alone


def test_the_drift_of_a_typical_day_widens_the_interval_and_shrinks_the_saving():
    typical = saving_of(300.0, 240.0, 0.1, is_typical=True)
    known = saving_of(300.0, 240.0, 0.1, is_typical=False)

    assert typical.value == approx(1 - 0.8**0.8)
    assert known.value == approx(0.2)
    assert math.log((1 - typical.low) / (1 - typical.high)) > 1.2 * math.log((1 - known.low) / (1 - known.high))
    assert 0.5 < typical.chance < known.chance


def test_a_long_run_is_advised_where_an_hour_was_observed():
    saving = saving_of(300.0, 240.0, 0.1, is_typical=True)

    assert "typical profile alone" in reason_against(saving, length_h=24.0, rests_on_typical=True)
    assert reason_against(saving, length_h=24.0, rests_on_typical=False) == ""
