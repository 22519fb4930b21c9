"""Advice on the season: only where the PUE follows it, and the air gains."""

from pytest import approx

from carbonreport.audit.season import season_advice
from carbonreport.model.audit import Energy


def month(pue, grams_per_kwh=400.0, kwh=1000):
    return Energy(measured_mj=kwh * 3_600_000_000, facility_joules=kwh * 3.6e6 * pue, grams=kwh * pue * grams_per_kwh)


def test_warm_months_are_held_against_the_cold_ones():
    advice = season_advice([("2026-01", month(1.2)), ("2026-02", month(1.2)), ("2026-07", month(1.5))])

    assert advice is not None and advice.is_upper_bound
    assert (advice.joules, advice.grams) == (approx(0.3 * 3.6e9), approx(0.3 * 400_000))
    assert "in July the PUE" in advice.because and "33 %" in advice.because and "lower emissions" in advice.because


def test_warm_months_that_follow_each_other_are_one_span():
    warm = [(f"2026-{number:02d}", month(1.5)) for number in (4, 6, 7, 8)]

    advice = season_advice([("2026-01", month(1.2)), ("2026-02", month(1.2)), ("2026-05", month(1.2)), *warm])

    assert advice is not None and "in April and June to August the PUE" in advice.because


def test_one_pue_for_all_months_gives_no_advice():
    assert season_advice([("2026-01", month(1.3, 300)), ("2026-07", month(1.3, 500))]) is None
    assert season_advice([]) is None


def test_a_cold_season_whose_grid_is_dirtier_gives_no_advice():
    assert season_advice([("2026-01", month(1.2, 600)), ("2026-07", month(1.5, 300))]) is None
