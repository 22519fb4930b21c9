"""What lies ahead: a forecast to its horizon, then typical hours, corrected by the last observed one."""

import math

import numpy as np
import pytest

from carbonreport.combine.footprint import footprint
from carbonreport.combine.forecast import ahead, corrected, last_hour, mean_share, sd_by_lead, shares
from carbonreport.combine.intervals import grid_sd
from carbonreport.combine.seasonal import expand
from carbonreport.errors import BadSeries, FamilyMix
from carbonreport.grid.sources.embedded import EmbeddedGrid, create
from carbonreport.model.pue import PueProfile
from carbonreport.model.series import QUALITIES, Array, Family, GridErrors, IntensitySeries, SeasonalProfile
from carbonreport.testing import make_record

HOUR = 3600.0
NOW = 1_780_315_200.0  # 2026-06-01 12:00 UTC
ERRORS = GridErrors(terms=((0.2, 6.0), (0.3, 48.0), (0.1, 1440.0)), level_sd=0.2)


def profile(grams: float = 400.0, terms: tuple[tuple[float, float], ...] = ERRORS.terms, level_sd: float = 0.2) -> SeasonalProfile:
    return SeasonalProfile("XX", "Nowhere", "UTC", {2025: grams}, np.ones((12, 24)), terms, level_sd, Family(), "a profile")


def series(
    start_s: float, grams: list[float], quality: str = "measured", family: Family | None = None, step_s: float = HOUR
) -> IntensitySeries:
    edges = start_s + step_s * np.arange(len(grams) + 1)
    index = np.full(len(grams), QUALITIES.index(quality), dtype=np.int8)  # type: ignore[arg-type]
    return IntensitySeries("XX", edges, np.array(grams), index, {}, family or Family(), "a provider")


def test_each_slice_says_whether_it_was_forecast_or_is_typical():
    result = ahead(profile(), NOW, NOW + 6 * HOUR, forecast=series(NOW, [300, 310, 320], "forecast"))
    assert [QUALITIES[q][0] for q in result.quality] == list("fffttt")
    assert list(result.grams_per_kwh) == [300, 310, 320, 400, 400, 400]
    assert "reaches to 2026-06-01 15:00 UTC" in dict(result.notes)["grid-forecast"]
    assert set(result.errors) == {"forecast", "typical"}


def test_a_forecast_that_ends_or_begins_inside_an_hour_is_cut_there():
    result = ahead(profile(), NOW + 600, NOW + 3 * HOUR, forecast=series(NOW + 1800, [300], "forecast"))
    assert list(result.edges_s - NOW) == [600, 1800, 3600, 5400, 7200, 10800]
    assert list(result.grams_per_kwh) == [400, 300, 300, 400, 400]


def test_without_forecast_and_observation_the_hours_are_typical():
    result = ahead(profile(), NOW, NOW + 2 * HOUR)
    assert list(result.grams_per_kwh) == [400, 400]
    assert ahead(profile(), NOW, NOW + HOUR, forecast=series(NOW - 9 * HOUR, [1], "forecast")).quality[0] == QUALITIES.index("typical")


def test_the_last_observed_hour_moves_the_next_ones_less_and_less():
    result = ahead(profile(), NOW, NOW + 200 * HOUR, observed=series(NOW - 2 * HOUR, [390, 800]))
    moved = result.grams_per_kwh / 400
    assert np.all(np.diff(moved) < 0)
    assert moved[0] == pytest.approx(2 ** float(shares(result.errors["typical"], np.array([1.0]))[0]))
    assert moved[-1] > 1.2  # the level is still wrong
    assert "800 g/kWh, observed at 2026-06-01 11:00 UTC" in dict(result.notes)["grid-corrected"]


def test_a_profile_that_was_right_is_left_as_it_is():
    result = ahead(profile(), NOW, NOW + 5 * HOUR, observed=series(NOW - HOUR, [400]))
    assert np.allclose(result.grams_per_kwh, 400)


def test_hours_before_the_observed_one_are_not_moved():
    result = corrected(expand(profile(), NOW - 3 * HOUR, NOW + HOUR), profile(), series(NOW - HOUR, [800]))
    assert list(result.grams_per_kwh[:2]) == [400, 400]
    assert result.grams_per_kwh[2] == pytest.approx(800)


def test_an_observation_of_last_season_or_of_zero_says_nothing():
    for observed in (series(NOW - 60 * 24 * HOUR, [800]), series(NOW - HOUR, [0.0])):
        assert np.allclose(ahead(profile(), NOW, NOW + HOUR, observed=observed).grams_per_kwh, 400)


def test_a_stale_value_counts_by_its_own_time_and_so_for_less():
    fresh, stale = (ahead(profile(), NOW, NOW + HOUR, observed=series(NOW - h * HOUR, [800])).grams_per_kwh[0] for h in (1, 4))
    assert fresh > stale > 400


def test_half_hours_are_joined_to_the_last_hour():
    assert last_hour(series(NOW - 2 * HOUR, [1, 2, 3, 5], step_s=1800)) == (NOW - HOUR, 4)


def test_the_share_of_a_mean_is_the_mean_of_the_shares():
    leads = np.linspace(3, 27, 24_001)
    assert mean_share(ERRORS, 3, 24) == pytest.approx(float(shares(ERRORS, leads).mean()), rel=1e-3)
    assert mean_share(ERRORS, 3, 1e-6) == pytest.approx(float(shares(ERRORS, np.array([3.0]))[0]), rel=1e-6)


def test_nothing_of_a_pure_level_error_is_forgotten():
    level = GridErrors(level_sd=0.3)
    assert list(shares(level, np.array([0.0, 1000.0]))) == [1, 1]
    assert grid_sd(NOW + HOUR * np.arange(24), np.full(24, 1 / 24), GridErrors(level_sd=0.3, observed_s=NOW - HOUR)) == pytest.approx(
        0, abs=1e-9
    )


def test_the_error_that_is_left_grows_with_the_lead_up_to_that_of_the_profile():
    left = sd_by_lead(ERRORS, np.array([0.0, 1.0, 7.0, 25.0, 1e6]))
    whole = math.sqrt(0.2**2 + 0.3**2 + 0.1**2 + 0.2**2)
    assert left[0] == pytest.approx(0)
    assert np.all(np.diff(left) > 0)
    assert left[-1] < whole  # the level is known better for good


def gaussian_errors(errors: GridErrors, hours: int, draws: int, seed: int) -> Array:
    """Errors of consecutive hours, drawn from the covariance itself. Shape (draws, hours)."""
    distance = np.abs(np.subtract.outer(np.arange(hours), np.arange(hours)))
    covariance = sum((sd**2 * np.exp(-distance / tau) for sd, tau in errors.terms), np.full(distance.shape, errors.level_sd**2))
    return np.random.default_rng(seed).multivariate_normal(np.zeros(hours), covariance, size=draws, method="cholesky")


def test_the_closed_form_agrees_with_draws_of_every_hour():
    drawn = gaussian_errors(ERRORS, 49, 40_000, 1)
    weights = np.random.default_rng(2).uniform(size=48)
    weights /= weights.sum()
    lead = np.arange(1.0, 49.0)
    left = (drawn[:, 1:] - shares(ERRORS, lead) * drawn[:, :1]) @ weights
    starts = NOW + HOUR * lead
    anchored = GridErrors(ERRORS.terms, ERRORS.level_sd, observed_s=NOW)
    assert grid_sd(starts, weights, anchored) == pytest.approx(float(left.std()), rel=0.02)
    assert grid_sd(starts, weights, ERRORS) > grid_sd(starts, weights, anchored)


def test_a_footprint_of_corrected_hours_has_the_width_that_draws_of_every_hour_have():
    drawn = gaussian_errors(ERRORS, 25, 60_000, 3)
    run = make_record({"gpu": 1000.0}, 24, start="2026-06-01T12:00Z", gain=(1 - 1e-9, 1 + 1e-9))
    typical, observed = profile(), series(NOW - HOUR, [400.0])
    grid = ahead(typical, NOW, NOW + 24 * HOUR, observed=observed)

    result = footprint(run, grid=grid, pue=PueProfile(1.0, 1.0, 1.0, "reported", "none"))
    alone = footprint(run, grid=ahead(typical, NOW, NOW + 24 * HOUR), pue=PueProfile(1.0, 1.0, 1.0, "reported", "none"))

    left = (drawn[:, 1:] - shares(ERRORS, np.arange(1.0, 25.0)) * drawn[:, :1]).mean(axis=1)
    half = math.log(result.grams.high / result.grams.low) / 2
    errors = grid.errors["typical"]
    exact = grid_sd(NOW + HOUR * np.arange(24), np.full(24, 1 / 24), errors)
    assert half == pytest.approx(1.6449 * exact, rel=1e-3)
    if math.isclose(errors.level_sd, ERRORS.level_sd):
        assert exact == pytest.approx(float(left.std()), rel=0.02)
    assert half < 0.95 * math.log(alone.grams.high / alone.grams.low) / 2


@pytest.mark.parametrize("other", [Family("direct"), Family(accounting="production"), Family(signal="marginal"), Family(gas="CO2")])
def test_families_never_meet_and_the_error_names_both(other):
    for given in ({"observed": series(NOW - HOUR, [1.0], family=other)}, {"forecast": series(NOW, [1.0], family=other)}):
        with pytest.raises(FamilyMix) as caught:
            ahead(profile(), NOW, NOW + HOUR, **given)
        assert str(Family()) in str(caught.value) and str(other) in str(caught.value)
    with pytest.raises(FamilyMix):
        corrected(expand(profile(), NOW, NOW + HOUR), profile(), series(NOW - HOUR, [1.0], family=other))


# Direct rows


def test_direct_hours_are_the_same_shape_at_the_direct_level_with_a_wider_error():
    lifecycle, direct = EmbeddedGrid().series("DE", NOW, NOW + 24 * HOUR), create({"factor": "direct"}).series("DE", NOW, NOW + 24 * HOUR)
    share = EmbeddedGrid().direct_share("DE")
    assert share == pytest.approx(0.83, abs=0.03)
    assert np.allclose(direct.grams_per_kwh, share * lifecycle.grams_per_kwh)
    assert direct.family == Family("direct", "consumption", "average")
    weights, starts = np.ones(1), np.array([NOW])
    assert grid_sd(starts, weights, direct.errors["typical"]) > grid_sd(starts, weights, lifecycle.errors["typical"])


@pytest.mark.parametrize(
    ("zone", "message"), [("NO", "26 % of its life-cycle"), ("FR", "under 65 %"), ("GB-ORK", "not known"), ("PR", "not known")]
)
def test_direct_hours_are_refused_where_the_ratio_is_low_or_a_defect(zone, message):
    with pytest.raises(BadSeries, match=message):
        EmbeddedGrid(factor="direct").series(zone, NOW, NOW + HOUR)


def test_only_the_two_factors_can_be_asked_for():
    with pytest.raises(BadSeries, match="neither lifecycle nor direct"):
        create({"factor": "marginal"})
