"""Another month, alone and under a power cap: typical months laid on what now costs."""

import math
from calendar import month_name

from carbonreport.model.option import Option
from carbonreport.recommend import season
from carbonreport.recommend.caps import capped, in_words
from carbonreport.recommend.worth import change, reason_against
from carbonreport.units import hours
from carbonreport.workflows.ask import Ask
from carbonreport.workflows.candidate import Candidate, months_missed
from carbonreport.workflows.ways import best_cap, piece

_LEAST_SEASON = 0.05


def other_months(ask: Ask, home: Candidate, now: Option) -> list[Option]:
    """The best month, alone and under the cap; its savings are those of typical months, laid on what now costs."""
    has_months = bool(home.place.pue.months)
    if not (has_months or ask.with_season):
        return []
    missed, test_year = months_missed().get(home.place.zone, (None, 0))
    cap = best_cap(ask)
    found = []
    for job, point in ((ask.job, None), *(((capped(ask.job, cap, ask.gpu_share), cap),) if cap else ())):
        months = season.months(ask.job, ask.earliest_s, home.profile, home.place.pue, home.place.time_zone, missed, then=job)
        month = season.best(months)
        energy_log = math.log(job.joules / ask.job.joules)
        saving = season.saving(month, energy_log=energy_log, energy_sd=point.energy_sd if point else 0.0)
        against = reason_against(saving, length_h=0.0, rests_on_typical=False)
        if not against and 1 - month.pue_ratio < _LEAST_SEASON:
            against = "the facility's PUE does not ask for it, and what the grid's months promise has low confidence"
        words = [*([in_words(point, ask.gpu_share)] if point else []), _in_words(month, now.pue, missed, test_year)]
        runs = piece(month.start_s, job)
        option = Option(
            action="cap+season" if point else "season",
            zone=home.place.zone,
            time_zone=home.place.time_zone,
            runs=tuple(runs),
            grams=now.grams * month.ratio * math.exp(energy_log),
            it_joules=job.joules,
            facility_joules=job.joules * now.pue * month.pue_ratio,
            saving=saving.value,
            low=saving.low,
            high=saving.high,
            chance=saving.chance,
            waits_h=hours(runs[-1][1] - now.end_s),
            is_advised=not against,
            because="; ".join([against, *words] if against else words),
            cap_watts=point.cap_watts if point else None,
            is_in_time=runs[-1][1] <= ask.latest_end_s,
        )
        found.append(option)
    return found


def _in_words(month: season.Month, pue_now: float, missed: float | None, test_year: int) -> str:
    error = (
        "how far the zone's months are off is not known, elsewhere up to 21 %"
        if missed is None
        else f"its months missed by {100 * missed:.0f} % when {test_year} was held out"
    )
    return (
        f"in {month_name[month.number]} the facility's PUE is {pue_now * month.pue_ratio:.2f} against {pue_now:.2f} ({change(month.pue_ratio)}), "
        f"the typical grid {change(month.grid_ratio)}, with low confidence ({error})"
    )
