"""When, where and how to run a job: now, at another start, in pieces, elsewhere, under a power cap, in another month, or not worth it."""

import math
import os
from calendar import month_name
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.cloud import is_region
from carbonreport.errors import CarbonreportError
from carbonreport.model.option import Option
from carbonreport.model.run import RunRecord
from carbonreport.recommend.caps import in_words
from carbonreport.recommend.windows import starts
from carbonreport.recommend.worth import Runs, Saving, Verdict, apart_sd, difference_sd, is_typical, reason_against, saving_of
from carbonreport.units import SECONDS_PER_HOUR, hours
from carbonreport.workflows.ask import MOST_AHEAD_H, Ask
from carbonreport.workflows.candidate import Candidate, candidate, elsewhere
from carbonreport.workflows.months import other_months
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.signals import check_marginal, second_signal
from carbonreport.workflows.ways import Way, best_start, every_start, facility_joules, in_pieces, it_joules, piece, under_a_cap

DEFAULT_SLACK_H = 24.0
_NOTHING_SAVED = Saving(0.0, 0.0, 0.0, 0.5)
_NOW_IS_BEST = "now is the best that is allowed"
_MOVING = (
    "the mean intensity is lower there; on marginal factors the direction of such moves differs in two cases of five, "
    "and data and people move with the job"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What could be done.

    Attributes:
        now: Running at once.
        options: The others, the cap alone first, then by emissions; those that cannot be are left out.
        verdict: worth-it, not-worth-it, or unknown where the place is not known.
        because: One sentence.
        source: Where the intensities are from.
        notes: What a reader must know: (slug, text).
        start_grams: Emissions of every start in the home zone: (POSIX s, gCO2e), for a picture.
        price: Price of a kWh and its currency, or None.
    """

    now: Option
    options: tuple[Option, ...]
    verdict: Verdict
    because: str
    source: str
    notes: tuple[tuple[str, str], ...] = ()
    start_grams: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    price: tuple[float, str] | None = None

    @property
    def best(self) -> Option | None:
        """The option that is expected to save most, of those that are worth it and end in time."""
        advised = [option for option in self.options if option.is_advised and option.is_in_time]
        return max(advised, key=lambda option: option.saving, default=None)

    @property
    def shift(self) -> Option | None:
        """The best start in one piece on the grid at home."""
        return next((option for option in self.options if option.action == "shift"), None)


def plan(
    ask: Ask,
    options: PlaceOptions,
    *,
    like: RunRecord | None = None,
    environ: Mapping[str, str] = os.environ,
    offline: bool = False,
) -> Answer:
    """Price every start and every schedule, and say what is worth it.

    Raises:
        CarbonreportError: Place, grid or time make no sense.
    """
    if ask.latest_end_s - ask.earliest_s > MOST_AHEAD_H * SECONDS_PER_HOUR:
        raise CarbonreportError("a deadline of over a year ahead: no profile says anything of it")
    check_marginal(ask.marginal, places=1 + len(ask.zones))
    home = candidate(ask, options, like, environ, offline=offline)
    now_runs = piece(ask.earliest_s, ask.job)
    now_grams = float(starts(ask.job, home.rates, earliest_s=ask.earliest_s, latest_end_s=ask.latest_end_s).grams[0])
    now = _option(Way("none", home, ask.job, now_runs, now_grams), ask, now_runs, _NOTHING_SAVED, "", is_advised=False)
    priced = every_start(ask, home, ask.job)
    found = [
        _judged(way, home, ask, now) for way in (*best_start("shift", ask, home, ask.job), *in_pieces(ask, home), *under_a_cap(ask, home))
    ]
    for i, zone in enumerate(ask.zones, start=1):
        there = candidate(ask, elsewhere(options, zone), None, environ, offline=offline)
        found += [_moved(way, home, ask, now, (i, zone)) for way in best_start("move", ask, there, ask.job)]
    found += other_months(ask, home, now)
    found.sort(key=lambda option: (option.action != "cap", option.grams))  # what lowers energy lowers it under every signal
    verdict, because = _verdict(found, home, ask)
    curve = tuple((float(t), float(g)) for t, g in zip(priced.at_s, priced.grams, strict=True) if not math.isnan(g))
    notes = (*((note.slug, note.text) for note in home.place.notes), *home.series.notes)
    return Answer(now, tuple(found), verdict, because, home.series.source, notes, curve, home.price)


# What they are worth


def _judged(way: Way, home: Candidate, ask: Ask, now: Option) -> Option:
    """A way on the same grid as now: the level cancels."""
    if tuple(way.runs) == now.runs and way.cap is None:
        return _option(way, ask, now.runs, _NOTHING_SAVED, _NOW_IS_BEST, is_advised=False)
    rests_on_typical = is_typical(home.series)
    energy_log = math.log(facility_joules(way, ask) / now.facility_joules) if now.facility_joules else 0.0
    saving = saving_of(
        now.grams,
        way.grams,
        difference_sd(home.series, now.runs, way.runs),
        is_typical=rests_on_typical,
        energy_log=energy_log,
        energy_sd=0.0 if way.cap is None else way.cap.energy_sd,
    )
    waits_on_typical = rests_on_typical and way.runs[0][0] > ask.earliest_s
    against = reason_against(saving, length_h=hours(way.job.seconds), rests_on_typical=waits_on_typical, marks=home.profile.marks)
    reasons = [] if way.cap is None else [in_words(way.cap, ask.gpu_share)]
    if way.action != "cap" and not against:
        reasons.append("a typical day of the month names it" if rests_on_typical else "the hours of the grid name it")
        second = second_signal(ask.marginal, (0, now.runs), (0, way.runs))
        reasons += [second.words] if second else []
    return _option(way, ask, now.runs, saving, against or "; ".join(reasons), is_advised=not against)


def _moved(way: Way, home: Candidate, ask: Ask, now: Option, place: tuple[int, str]) -> Option:
    """A way on another grid, whose errors have nothing to do with those at home."""
    number, name = place
    sd = apart_sd(home.series, now.runs, way.site.series, way.runs)
    saving = saving_of(now.grams, way.grams, sd, is_typical=False)
    against = reason_against(saving, length_h=hours(way.job.seconds), rests_on_typical=False)
    second = second_signal(ask.marginal, (0, now.runs), (number, way.runs))
    if second and not second.agrees:
        against = against or f"{second.words}: not advised"
    because = against or (
        _MOVING if second is None else f"the mean intensity is lower there; {second.words}; data and people move with the job"
    )
    return _option(way, ask, now.runs, saving, f"{name}: {because}" if is_region(name) else because, is_advised=not against)


def _option(way: Way, ask: Ask, now_runs: Runs, saving: Saving, because: str, *, is_advised: bool) -> Option:
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


def _verdict(found: Sequence[Option], home: Candidate, ask: Ask) -> tuple[Verdict, str]:
    if home.place.is_guessed:
        return "unknown", f"the zone {home.place.zone} was only guessed: give --zone"
    in_time = [option for option in found if option.is_in_time]
    advised = [option for option in in_time if option.is_advised]
    if advised:
        best = max(advised, key=lambda option: option.saving)
        return "worth-it", best.because
    reasons = [option.because for option in in_time if option.because]
    reason = reasons[0] if reasons else "there is no other time in which it could run"
    return "not-worth-it", f"{reason}; what could be: {_what_could(found, home, ask)}"


def _what_could(found: Sequence[Option], home: Candidate, ask: Ask) -> str:
    """Levers beyond the start: those that are known to be worth it, then those that nobody asked about."""
    late = max((option for option in found if option.is_advised and not option.is_in_time), key=lambda option: option.saving, default=None)
    ways = [] if late is None else [f"{month_of(late)} ({100 * late.saving:.0f} % less)"]
    if not ask.caps:
        ways.append("a power cap (--sweep with your own, or --gpu)")
    if not ask.zones:
        ways.append("another place (--zone HOME,OTHER)")
    if not home.place.pue.months:
        ways.append("a season, where the facility's PUE is known by month")
    return ", ".join(ways) or "none of the levers that were asked about"


def month_of(option: Option) -> str:
    """The month in which an option begins, by its zone's clock."""
    return month_name[datetime.fromtimestamp(option.start_s, UTC).astimezone(ZoneInfo(option.time_zone)).month]
