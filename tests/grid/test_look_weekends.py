"""What `grid show` says of weekends, and that an observed Saturday is compared with a typical Saturday."""

from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from carbonreport.combine.forecast import ahead
from carbonreport.combine.seasonal import expand
from carbonreport.grid.look import Look, look, trust_in_words
from carbonreport.model.series import QUALITIES, Array, IntensitySeries


def said(ratio: Array | None) -> str:
    shown = look("DE", 2026)
    return " ".join(trust_in_words(replace(shown, profile=replace(shown.profile, weekend_ratio=ratio))))


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (np.linspace(0.8, 1.03, 24), "differ from workdays by −20 % (0:00) to +3 % (23:00). Holidays are not known."),
        (np.full(24, 1.002), "differ from workdays by under 1 %. Holidays are not known."),
    ],
)
def test_a_zone_with_weekends_says_how_they_differ_and_when(ratio, words):
    assert words in said(ratio)
    assert "mean day" in said(ratio)


def test_a_zone_without_weekends_says_nothing_of_them():
    assert "Saturdays" not in said(None)


def test_the_curves_are_those_of_the_mean_day_whatever_weekends_do():
    shown: Look = look("DE", 2026)
    assert shown.curves is not None and shown.profile.shape is not None
    assert np.allclose(shown.curves, shown.level * shown.profile.shape)


def test_an_ordinary_saturday_corrects_nothing_on_the_monday_after_it():
    profile = look("DE", 2026).profile
    saturday_s, monday_s = (datetime.fromisoformat(text).timestamp() for text in ("2026-06-06T10:00Z", "2026-06-08T10:00Z"))
    seen: IntensitySeries = expand(profile, saturday_s, saturday_s + 3600)
    observed = replace(seen, quality=np.full(seen.quality.shape, QUALITIES.index("measured"), dtype=np.int8), errors={})
    corrected, typical = (ahead(profile, monday_s, monday_s + 3600, observed=given) for given in (observed, None))

    assert corrected.grams_per_kwh == pytest.approx(typical.grams_per_kwh)
    assert corrected.grams_per_kwh[0] > 1.2 * seen.grams_per_kwh[0]
