"""What ran, on what, for how long, when and where."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.combine.overlap import one_a_job
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.run import RunKind
from carbonreport.model.statement import Sentence
from carbonreport.render.digits import duration, plain
from carbonreport.render.setting import Group, Setting, gpu_count, gpus_by_name, host_count, is_timeless
from carbonreport.render.words import capital, clock_name, count_in_words, listed, shortened
from carbonreport.units import hours

_NOBREAK = "\u00a0"
_MOST_NAMES = 3
_MOST_ZONES = 4


def what_ran(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> Sentence:
    """What ran, on what, for how long, when and where."""
    in_all = " in all" if len(one_a_job(runs)) > 1 else ""
    if is_timeless(footprint):
        begun = _when(runs, setting)
        return Sentence(
            f"{capital(_subject(runs, groups))} broke off before a first reading, {begun} {place_in_words(footprint, setting)}."
        )
    if not footprint.devices:
        when, where = _when(runs, setting), place_in_words(footprint, setting)
        return Sentence(
            f"{capital(_subject(runs, groups))} ran for {_time(footprint)}{in_all} without a device that could be read, {when} {where}."
        )
    return Sentence(
        f"{capital(_subject(runs, groups))} used {_hardware(footprint)} for {_time(footprint)}{in_all}, {_when(runs, setting)} {place_in_words(footprint, setting)}."
    )


def _subject(runs: Sequence[ChargedRun], groups: Sequence[Group]) -> str:
    runs = one_a_job(runs)
    if len(runs) == 1:
        run = runs[0].run
        noun = {"other": "run", "search": "search", "preliminary": "preliminary run", "failed": "failed run"}.get(run.kind, run.kind)
        article = "" if noun == run.kind and run.kind != "search" else "the "
        return f"{article if run.is_complete else 'the interrupted '}{noun} “{shortened(run.name)}”"
    if len(groups) == 1 and groups[0].names == 1:
        return f"{count_in_words(len(runs))} {_adjective(groups[0].kind)}runs “{shortened(groups[0].name)}”"
    names = [_counted_group(group) for group in groups[:_MOST_NAMES]]
    more = [f"{count_in_words(len(groups) - _MOST_NAMES)} more"] if len(groups) > _MOST_NAMES else []
    return f"{count_in_words(len(runs))} runs ({listed([*names, *more])})"


def _adjective(kind: RunKind) -> str:
    return "" if kind == "other" else f"{kind} "


def _counted_group(group: Group) -> str:
    kind = "" if group.kind == "other" else f"{group.kind} "
    count = len(one_a_job(group.runs))
    many = f"{count_in_words(count)} {kind}runs"
    if group.names > 1:
        return f"{many} of {count_in_words(group.names)} names"
    return f"{many if count > 1 else kind.rstrip()} “{shortened(group.name, 40)}”".lstrip()


def _hardware(footprint: Footprint) -> str:
    gpus, hosts = gpus_by_name(footprint), host_count(footprint)
    on_hosts = f" of {count_in_words(hosts)} host{'s' if hosts > 1 else ''}" if hosts else ""
    if not gpus:
        return f"the processors{on_hosts}"
    if gpu_count(footprint) == 1:
        on_hosts = ""
    names = [f"{count_in_words(n)}{_NOBREAK}{shortened(name)}" for name, n in gpus[:_MOST_NAMES]]
    others = sum(n for _, n in gpus[_MOST_NAMES:])
    return listed([*names, *([f"{count_in_words(others)} other GPU{'s' if others > 1 else ''}"] if others else [])]) + on_hosts


def _time(footprint: Footprint) -> str:
    text = duration(footprint.run_seconds)
    is_same = footprint.gpu_seconds in (0, footprint.run_seconds)
    return text if is_same else f"{text} ({plain(hours(footprint.gpu_seconds))}{_NOBREAK}GPU-hours)"


def _when(runs: Sequence[ChargedRun], setting: Setting) -> str:
    zone = ZoneInfo(setting.time_zone)
    begin, end = min(c.run.started_s for c in runs), max(c.run.ended_s for c in runs)
    first, last = (datetime.fromtimestamp(s, UTC).astimezone(zone) for s in (begin, end))
    first_zone = "" if clock_name(first) == clock_name(last) else f" {clock_name(first)}"
    joint, until = ("from", "to") if len(runs) == 1 else ("between", "and")
    if setting.is_anonymous:
        months = [f"{moment:%B} {moment.year}" for moment in (first, last)]
        return f"in {months[0]}" if months[0] == months[1] else f"between {months[0]} and {months[1]}"
    if first.date() != last.date():
        last_date = f"{last.day} {last:%B}" + (f" {last.year}" if first.year != last.year else "")
        return f"{joint} {_date(first)} {first:%H:%M}{first_zone} {until} {last_date} {last:%H:%M} {clock_name(last)}"
    if f"{first:%H:%M}{first_zone}" == f"{last:%H:%M}":
        return f"on {_date(first)} at {first:%H:%M} {clock_name(first)}"
    return f"on {_date(first)} {joint} {first:%H:%M}{first_zone} {until} {last:%H:%M} {clock_name(last)}"


def _date(day: datetime) -> str:
    return f"{day.day} {day:%B} {day.year}"


def place_in_words(footprint: Footprint, setting: Setting) -> str:
    """The place with its preposition: "in Germany", "at our cluster, Germany"."""
    known = [grid for grid in footprint.grids if setting.knows(grid)]
    more = [f"{len(known) - _MOST_ZONES} more grid zones"] if len(known) > _MOST_ZONES else []
    places = listed([*dict.fromkeys(setting.place_of(grid) for grid in known[:_MOST_ZONES]), *more])
    if known and any(note.slug == "zone-guessed" for note in footprint.notes):
        places += ", guessed from the clock’s time zone"
    unknown = "a place that is not known"
    if setting.site:
        return f"at {setting.site}, {places or unknown}"
    if not known:
        return f"at {unknown}"
    return f"in {places}" + (f" and at {unknown}" if len(known) < len(footprint.grids) else "")
