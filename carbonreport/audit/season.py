"""What the warm months' jobs would have used at the cold months' PUE: a bound for work that can wait. Pure."""

from calendar import month_name
from collections.abc import Sequence
from itertools import groupby

from carbonreport.model.audit import Advice, Energy

# Judgements: a PUE that differs less does not follow the season, and what is smaller than this does not come first.
LEAST_PUE_STEP, LEAST_SEASON = 0.02, 0.01


def season_advice(months: Sequence[tuple[str, Energy]]) -> Advice | None:
    """What the warm months would save at the PUE and intensity of the cold ones; nothing where the PUE hardly differs, or emissions would rise.

    Args:
        months: Energy of jobs by month, such as "2026-07".
    """
    used = [(month, energy) for month, energy in months if energy.it_mj > 0]
    pues = {month: energy.facility_joules / energy.it_joules for month, energy in used}
    if not pues or max(pues.values()) - min(pues.values()) < LEAST_PUE_STEP:
        return None
    middle = (max(pues.values()) + min(pues.values())) / 2
    warm = sum((energy for month, energy in used if pues[month] > middle), Energy())
    cold = sum((energy for month, energy in used if pues[month] <= middle), Energy())
    whole = warm + cold
    joules = warm.facility_joules - warm.it_joules * cold.facility_joules / cold.it_joules
    grams = warm.grams - warm.it_joules * cold.grams / cold.it_joules
    if whole.grams <= 0 or grams < LEAST_SEASON * whole.grams or joules <= 0:
        return None
    names = _spans([int(month[5:]) for month, _ in used if pues[month] > middle])
    return Advice(
        "season",
        "Let work that can wait for months run in the cold ones",
        f"in {names} the PUE was {warm.facility_joules / warm.it_joules:.2f}, in the other months {cold.facility_joules / cold.it_joules:.2f}; those months have "
        f"{warm.it_mj / whole.it_mj * 100:.0f} % of the jobs' energy, and at the PUE and intensity of the other months {joules / warm.facility_joules * 100:.1f} % less "
        f"facility energy and {grams / warm.grams * 100:.1f} % lower emissions would belong to it; few jobs can wait so long, and the boards need room then",
        joules,
        grams=grams,
        is_upper_bound=True,
    )


def _spans(months: Sequence[int]) -> str:
    """April to June and September: months by name, those that follow each other as one span."""
    spans = []
    for _, run in groupby(enumerate(sorted(months)), key=lambda at: at[1] - at[0]):
        names = [month_name[month] for _, month in run]
        spans.append(names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}")
    return spans[0] if len(spans) == 1 else f"{', '.join(spans[:-1])} and {spans[-1]}"
