"""When, where and how to run a job: now, at another start, in pieces, elsewhere, under a power cap, in another month, or not worth it."""

import math
import os
from calendar import month_name
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.errors import CarbonreportError
from carbonreport.model.notes import Note
from carbonreport.model.option import Option
from carbonreport.model.run import RunRecord
from carbonreport.recommend.windows import starts
from carbonreport.recommend.worth import Verdict
from carbonreport.units import SECONDS_PER_HOUR
from carbonreport.workflows.ask import MOST_AHEAD_H, Ask
from carbonreport.workflows.candidate import Candidate, candidate, elsewhere
from carbonreport.workflows.judged import NOTHING_SAVED, judged, moved, option_of
from carbonreport.workflows.months import other_months
from carbonreport.workflows.place import PlaceOptions
from carbonreport.workflows.signals import Second, Signals, check_marginal, marginal_signals
from carbonreport.workflows.ways import (
    Way,
    best_start,
    coarse_notes,
    every_start,
    facility_joules,
    in_pieces,
    piece,
    under_a_cap,
)

DEFAULT_SLACK_H = 24.0


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
        signals: What the marginal signal says of each option, in their order; None where it says nothing.
    """

    now: Option
    options: tuple[Option, ...]
    verdict: Verdict
    because: str
    source: str
    notes: tuple[tuple[str, str], ...] = ()
    start_grams: tuple[tuple[float, float], ...] = field(default=(), repr=False)
    price: tuple[float, str] | None = None
    signals: tuple[Second | None, ...] = ()

    def second(self, option: Option) -> Second | None:
        """What the marginal signal says of one of the options."""
        return next((second for other, second in zip(self.options, self.signals, strict=False) if other is option), None)

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
    others = [candidate(ask, elsewhere(options, zone), None, environ, offline=offline) for zone in ask.zones]
    zones = [site.place.zone for site in (home, *others)]
    signals = marginal_signals(ask.marginal, zones, ask.earliest_s, ask.latest_end_s, environ=environ, offline=offline)
    now_runs = piece(ask.earliest_s, ask.job)
    now_grams = float(starts(ask.job, home.rates, earliest_s=ask.earliest_s, latest_end_s=ask.latest_end_s).grams[0])
    now_way = Way("none", home, ask.job, now_runs, now_grams)
    now = option_of(now_way, ask, now_runs, NOTHING_SAVED, "", is_advised=False)

    def second(way: Way, place: int = 0) -> Second | None:
        return signals.second(now_way, way, place, (now.facility_joules, facility_joules(way, ask)))

    priced = every_start(ask, home, ask.job)
    ways = (*best_start("shift", ask, home, ask.job), *in_pieces(ask, home), *under_a_cap(ask, home))
    found = [(judged(way, home, ask, now, second(way)), second(way)) for way in ways]
    for i, (zone, there) in enumerate(zip(ask.zones, others, strict=True), start=1):
        moves = best_start("move", ask, there, ask.job)
        found += [(moved(way, home, ask, now, zone, second(way, i)), second(way, i)) for way in moves]
    found += [(option, None) for option in other_months(ask, home, now)]
    found.sort(key=lambda pair: (pair[0].action != "cap", pair[0].grams))  # what lowers energy lowers it under every signal
    found_options = tuple(option for option, _ in found)
    verdict, because = _verdict(found_options, home, ask)
    curve = tuple((float(t), float(g)) for t, g in zip(priced.at_s, priced.grams, strict=True) if not math.isnan(g))
    notes = (
        *((note.slug, note.text) for note in (*home.place.notes, *coarse_notes(ask), *_unmatched(signals, found))),
        *home.series.notes,
    )
    answers = tuple(second for _, second in found)
    return Answer(now, found_options, verdict, because, home.series.source, notes, curve, home.price, answers)


def _unmatched(signals: Signals, found: Sequence[tuple[Option, Second | None]]) -> list[Note]:
    """A note where a marginal signal was given and does not reach over the whole time of an option."""
    without = [option.action for option, second in found if second is None and option.action not in ("season", "cap+season")]
    if not signals.places or not without:
        return []
    return [Note("marginal-unknown", f"the marginal signal says nothing of the place or of the whole time of: {', '.join(without)}")]


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
