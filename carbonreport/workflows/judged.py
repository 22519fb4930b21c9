"""What each way to run a job is worth against running it now, in one place or in another."""

import math

from carbonreport.cloud import is_region
from carbonreport.model.option import Option
from carbonreport.model.series import IntensitySeries
from carbonreport.recommend.caps import in_words
from carbonreport.recommend.worth import (
    Runs,
    Saving,
    apart_sd,
    difference_sd,
    has_typical_shape,
    is_typical,
    reason_against,
    saving_of,
)
from carbonreport.units import hours
from carbonreport.workflows.ask import Ask
from carbonreport.workflows.candidate import Candidate
from carbonreport.workflows.signals import Second
from carbonreport.workflows.ways import Way, facility_joules, it_joules

NOTHING_SAVED = Saving(0.0, 0.0, 0.0, 0.5)
_NOW_IS_BEST = "now is the best that is allowed"
_MOVING = (
    "the mean intensity is lower there; on marginal factors the direction of such moves differs in two cases of five, "
    "and data and people move with the job"
)


def judged(way: Way, home: Candidate, ask: Ask, now: Option, second: Second | None) -> Option:
    """A way on the same grid as now: the level cancels."""
    if tuple(way.runs) == now.runs and way.cap is None:
        return option_of(way, ask, now.runs, NOTHING_SAVED, _NOW_IS_BEST, is_advised=False)
    rests_on_typical = is_typical(home.series)
    energy_log = math.log(facility_joules(way, ask) / now.facility_joules) if now.facility_joules else 0.0
    saving = saving_of(
        now.grams,
        way.grams,
        difference_sd(home.series, now.runs, way.runs),
        is_typical=has_typical_shape(home.series),
        energy_log=energy_log,
        energy_sd=0.0 if way.cap is None else way.cap.energy_sd,
    )
    waits_on_typical = rests_on_typical and way.runs[0][0] > ask.earliest_s
    against = reason_against(saving, length_h=hours(way.job.seconds), rests_on_typical=waits_on_typical, marks=home.profile.marks)
    reasons = [] if way.cap is None else [in_words(way.cap, ask.gpu_share)]
    if way.action != "cap" and not against:
        reasons.append(_named_by(home.series))
        reasons += [second.words] if second else []
    return option_of(way, ask, now.runs, saving, against or "; ".join(reasons), is_advised=not against)


def moved(way: Way, home: Candidate, ask: Ask, now: Option, name: str, second: Second | None) -> Option:
    """A way on another grid, whose errors have nothing to do with those at home."""
    sd = apart_sd(home.series, now.runs, way.site.series, way.runs)
    saving = saving_of(now.grams, way.grams, sd, is_typical=False)
    against = reason_against(saving, length_h=hours(way.job.seconds), rests_on_typical=False)
    if second and not second.agrees:
        against = against or f"{second.words}: not advised"
    because = against or (
        _MOVING if second is None else f"the mean intensity is lower there; {second.words}; data and people move with the job"
    )
    return option_of(way, ask, now.runs, saving, f"{name}: {because}" if is_region(name) else because, is_advised=not against)


def option_of(way: Way, ask: Ask, now_runs: Runs, saving: Saving, because: str, *, is_advised: bool) -> Option:
    """A way with its saving, in the words and numbers that are shown."""
    return Option(
        action=way.action,
        zone=way.site.place.zone,
        time_zone=way.site.place.time_zone,
        runs=tuple(way.runs),
        grams=way.grams,
        it_joules=it_joules(way, ask),
        facility_joules=facility_joules(way, ask),
        saving=saving.value,
        low=saving.low,
        high=saving.high,
        chance=saving.chance,
        waits_h=hours(way.runs[-1][1] - now_runs[-1][1]),
        is_advised=is_advised,
        because=because,
        cap_watts=None if way.cap is None else way.cap.cap_watts,
    )


def _named_by(series: IntensitySeries) -> str:
    if is_typical(series):
        return "a typical day of the month names it"
    return "a typical day, corrected by the last observed hour, names it" if has_typical_shape(series) else "the hours of the grid name it"
