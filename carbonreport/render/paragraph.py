"""The paragraph: what ran, what it drew, what the facility used, what was emitted, and how sure that is."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from zoneinfo import ZoneInfo

from carbonreport.combine.overlap import one_a_job
from carbonreport.model.footprint import ChargedRun, Footprint, GridUse, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import DeviceKind, RunKind
from carbonreport.model.series import Quality
from carbonreport.model.statement import Sentence
from carbonreport.render.caps import settings_of
from carbonreport.render.digits import counted, duration, percent, plain, scaled, shown
from carbonreport.render.setting import (
    Group,
    Setting,
    gpu_count,
    gpus_by_name,
    host_count,
    is_estimate,
    is_gpu_only,
    is_mostly_estimate,
    is_timeless,
    is_too_short,
    is_unread,
    not_covered,
)
from carbonreport.render.words import (
    capital,
    charged_by,
    clock_name,
    count_in_words,
    counters_in_words,
    in_scale,
    listed,
    sensors_in_words,
    shortened,
    unbracketed,
)
from carbonreport.render.works import works_of
from carbonreport.units import hours

_NOBREAK = "\u00a0"
_PREPARATION: tuple[RunKind, ...] = ("search", "preliminary", "failed")
_ONE_MONTH_S = 32 * 86400.0
_MOST_NAMES = 3
_MOST_SPANS = 3
_MOST_METHODS = 2
_MOST_ZONES = 4
_FULLY_COVERED = 0.995


def paragraph(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> tuple[Sentence, ...]:
    """The statement proper, in sentences."""
    sentences = [what_ran(footprint, runs, groups, setting)]
    if is_unread(footprint):
        return (*sentences, Sentence(nothing_read(footprint)), _made_by(setting))
    if footprint.run_seconds == 0:
        return (*sentences, Sentence("It has no length, so that there is nothing to charge."), _made_by(setting))
    sentences += [_what_it_drew(footprint, runs), *settings_of(runs), _facility(footprint, runs), _emissions(footprint, setting, runs)]
    sentences += [
        *_market(footprint),
        *_embodied(footprint),
        *_water(footprint),
        *_per_item(groups),
        *_preparation(groups),
        *_project(footprint, setting),
    ]
    return (*sentences, _how_sure(footprint, setting))


def nothing_read(footprint: Footprint) -> str:
    """The sentence that stands where the energy would."""
    time = "how long it ran nor " if is_timeless(footprint) else ""
    return f"No energy could be read, so that neither {time}energy nor emissions can be stated."


# What ran


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


# Energy


def _what_it_drew(footprint: Footprint, runs: Sequence[ChargedRun]) -> Sentence:
    """Kinds with one verb share it; kinds with one method share its brackets."""
    clauses = []
    for verb, kinds in groupby(footprint.kinds, key=lambda kind: _verb(kind[1])):
        parts: list[str] = []
        for method, alike in groupby(kinds, key=lambda kind: method_of(footprint, kind[0])):
            members = list(alike)
            for kind, quantity in members:
                said = "" if parts else f"{_conjugated(verb, footprint, kind)} "
                text = shown(quantity, beside=footprint.facility_joules)
                amount = text.with_aside(method) if kind == members[-1][0] else text.sentence
                parts.append(f"{_noun(footprint, kind)} {said}{amount}")
        clauses.append(listed(parts))
    left_out = "not included" if is_estimate(footprint) else "not measured"
    covered = f"; readings cover {percent(footprint.covered)} of the time" if footprint.covered < _FULLY_COVERED else ""
    return Sentence(f"{capital(', and '.join(clauses))}; {listed(not_covered(footprint, runs))} were {left_out}{covered}.")


def _verb(quantity: Quantity) -> str:
    return {"measured": "drew", "reported": "reported"}.get(quantity.origin, "estimated")


def _conjugated(verb: str, footprint: Footprint, kind: DeviceKind) -> str:
    if verb == "drew":
        return verb
    return f"{'are' if _noun(footprint, kind) in _MANY.values() else 'is'} {verb} at"


_MANY: dict[DeviceKind, str] = {"gpu": "the GPUs", "cpu": "the processors", "node": "the nodes as a whole", "other": "other devices"}
_ONE: dict[DeviceKind, str] = {"gpu": "the GPU", "cpu": "the processors", "node": "the node as a whole", "other": "another device"}


def _noun(footprint: Footprint, kind: DeviceKind) -> str:
    count = sum(d.count for d in footprint.devices if d.kind == kind)
    return (_ONE if count == 1 else _MANY).get(kind, "the memory")


def method_of(footprint: Footprint, kind: DeviceKind) -> str:
    """How the energy of one kind of device is known."""
    devices = [d for d in footprint.devices if d.kind == kind]
    methods = list(dict.fromkeys(d.method for d in devices))
    if kind != "gpu":
        return listed(list(dict.fromkeys(counters_in_words(kind, method) for method in methods)))
    texts = [text] if (text := sensors_in_words(methods, gpu_count(footprint))) else []
    sources = list(dict.fromkeys(unbracketed(d.source) for d in devices if d.method == "model"))
    return "; ".join([*texts, *sources[:_MOST_METHODS], *(["and others"] if len(sources) > _MOST_METHODS else [])])


def _facility(footprint: Footprint, runs: Sequence[ChargedRun]) -> Sentence:
    article = {"assumed": "an assumed PUE", "estimated": "a modelled PUE"}.get(footprint.pue.origin, "a PUE")
    basis = unbracketed(pue_basis(footprint, runs))
    joules = shown(footprint.facility_joules).sentence
    verb = "that makes {} at the facility’s meter" if is_mostly_estimate(footprint) else "the facility used {}"
    gpus = "GPU" if gpu_count(footprint) == 1 else "GPUs"
    alone = f" for the {gpus} alone" if is_gpu_only(footprint) else ""
    return Sentence(f"At {article} of {shown(footprint.pue).sentence} ({basis}) {verb.format(joules)}{alone}.")


def pue_basis(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    """Where the PUE comes from; where runs have several, each with its value."""
    if len({c.pue_source for c in runs}) < 2:
        return without_class(footprint.pue.source)
    values: dict[str, list[float]] = {}
    for c in runs:
        values.setdefault(without_class(c.pue_source), []).extend(c.pue.tolist())
    return "; ".join(f"{math.fsum(v) / len(v):.2f}, {source}" for source, v in values.items())


def without_class(source: str) -> str:
    """The source of a PUE without the name of its class, which is a word of the command line."""
    return source.partition(": ")[2] if source.startswith("class ") else source


# Emissions


def _emissions(footprint: Footprint, setting: Setting, runs: Sequence[ChargedRun]) -> Sentence:
    factor = {"lifecycle": ", life-cycle", "direct": ", direct"}.get(footprint.grids[0].family.factor, "")
    verb = "are estimated at" if is_mostly_estimate(footprint) else "were"
    alike: dict[tuple[object, ...], list[GridUse]] = {}
    for grid in footprint.grids:
        alike.setdefault(_grid_key(grid, runs, setting), []).append(grid)
    how = "; ".join(_charged(grids, runs, setting) for grids in alike.values())
    cites = dict.fromkeys(work.key for grid in footprint.grids for work in works_of(grid.source))
    return Sentence(f"Its location-based{factor} emissions {verb} {shown(footprint.grams).sentence}; {how}.", tuple(cites))


def _grid_key(grid: GridUse, runs: Sequence[ChargedRun], setting: Setting) -> tuple[object, ...]:
    """Grids that one clause can speak of together."""
    return (setting.nowhere.get(grid.zone), tuple(q for q, _ in _by_share(grid)), month_of(grid, runs, setting), _short(grid.source))


def _charged(grids: Sequence[GridUse], runs: Sequence[ChargedRun], setting: Setting) -> str:
    first, is_one = grids[0], len(grids) == 1
    qualities = _by_share(first)
    by, but = charged_by(qualities[0][0], month_of(first, runs, setting), is_one)
    means = listed([plain(grid.grams_per_kwh.value) for grid in grids[:_MOST_ZONES]] + (["others"] if len(grids) > _MOST_ZONES else []))
    data = f"({'mean' if is_one else 'means'} {means}{_NOBREAK}{shown(first.grams_per_kwh).unit}, {_short(first.source)})"
    rest = [f"{percent(share)} of the energy by {charged_by(quality, '', is_one)[0]}" for quality, share in qualities[1:] if share >= 0.005]
    return f"{_grid_noun(grids, setting)} charged by {by} {data}{f', {listed(rest)}' if rest else ''}{but}"


def _grid_noun(grids: Sequence[GridUse], setting: Setting) -> str:
    if not setting.knows(grids[0]):
        return f"{setting.nowhere[grids[0].zone]} was"
    if len(grids) == 1:
        return f"the grid of {_grid_name(grids[0], setting)} was"
    more = [f"{len(grids) - _MOST_ZONES} more zones"] if len(grids) > _MOST_ZONES else []
    return f"the grids of {listed([*dict.fromkeys(_grid_name(grid, setting) for grid in grids[:_MOST_ZONES]), *more])} were"


def _grid_name(grid: GridUse, setting: Setting) -> str:
    return setting.name_of(grid).removeprefix("the area of ")


def _by_share(grid: GridUse) -> list[tuple[Quality, float]]:
    """Qualities of the hours, the most used first."""
    return sorted(grid.qualities, key=lambda q: -q[1]) or [("typical", 1.0)]


def _short(source: str) -> str:
    """A data set's name without its licence and years, which the table has."""
    return source.partition(" (")[0]


def month_of(grid: GridUse, runs: Sequence[ChargedRun], setting: Setting) -> str:
    """The month in which all runs on that grid lie, or nothing."""
    zone = ZoneInfo(setting.time_zone)
    times = [(c.run.started_s, c.run.ended_s) for c in runs if c.grid.zone == grid.zone]
    months = {f"{datetime.fromtimestamp(s, UTC).astimezone(zone):%B}" for pair in times for s in pair}
    return months.pop() if len(months) == 1 and max(end - begin for begin, end in times) < _ONE_MONTH_S else ""


def _market(footprint: Footprint) -> list[Sentence]:
    if footprint.market_grams is None:
        return []
    text = shown(footprint.market_grams).sentence
    return [
        Sentence(
            f"By contract ({unbracketed(footprint.market_grams.source)}) the market-based figure is {text}; it stands beside the location-based one and is never added to it."
        )
    ]


def _embodied(footprint: Footprint) -> list[Sentence]:
    if footprint.embodied is None:
        return []
    text = shown(footprint.embodied.grams).sentence
    return [Sentence(f"Making the hardware accounts for a further {text}, not included above.")]


def _water(footprint: Footprint) -> list[Sentence]:
    if footprint.water is None:
        return []
    return [Sentence(f"Water used on site was {shown(footprint.water).sentence}.")]


# Items, preparation, certainty


def _per_item(groups: Sequence[Group]) -> list[Sentence]:
    texts = []
    for group in groups:
        for span in sorted(group.footprint.spans, key=lambda s: s.path.count("/")):
            if span.items and span.has_item_energy and not is_too_short(span):
                texts.append(f"{item_energy(group, span)} per item in “{shortened(span.path, 40)}” ({counted(span.items)} items)")
    return [Sentence(f"IT energy was {listed(texts[:_MOST_SPANS])}.")] if texts else []


def item_energy(group: Group, span: SpanEnergy, items: float = 1.0) -> str:
    """IT energy of so many items, with the digits that the interval of the span's energy allows; in words where it is not known."""
    if is_unread(group.footprint):
        return "not known"
    if is_too_short(span):
        return "too short to read"
    whole, joules = group.footprint.it_joules, (span.joules_per_item or 0.0) * items
    if not span.it_joules or span.it_joules_low is None or span.it_joules_high is None:
        return scaled(joules, "J")
    low, high = joules * span.it_joules_low / span.it_joules, joules * span.it_joules_high / span.it_joules
    return shown(Quantity(joules, low, high, "J", whole.origin, whole.source)).with_unit


def preparation_shares(groups: Sequence[Group]) -> tuple[list[RunKind], float, float]:
    """Kinds of preparation among the groups, their facility energy, and that of all groups. [J]"""
    joules = {group.kind: 0.0 for group in groups}
    for group in groups:
        joules[group.kind] += group.footprint.facility_joules.value
    kinds = [kind for kind in _PREPARATION if kind in joules]
    return kinds, sum(joules[kind] for kind in kinds), sum(joules.values())


def _preparation(groups: Sequence[Group]) -> list[Sentence]:
    """Search, failed and preliminary runs beside the reported ones."""
    kinds, before, whole = preparation_shares(groups)
    if not kinds or before in (0, whole):
        return []
    return [
        Sentence(
            f"Of the energy, {percent(before / whole)} went into {listed(kinds)} runs: the whole is {plain(whole / (whole - before), 2)} times that of the reported runs."
        )
    ]


def _project(footprint: Footprint, setting: Setting) -> list[Sentence]:
    """The whole project beside these runs, where the author gave it."""
    return [] if setting.facts.project_gpu_hours is None else [Sentence(f"{capital(project_hours(footprint, setting))}.")]


def project_hours(footprint: Footprint, setting: Setting) -> str:
    """The author's GPU-hours of the whole project beside those of these runs, without a full stop."""
    facts = setting.facts
    runs = f" in {counted(facts.runs)} run{'s' if facts.runs != 1 else ''}" if facts.runs else ""
    if facts.project_gpu_hours is None:
        return f"whether the whole project{runs} used more compute than these runs: not given"
    used = f"the whole project{runs} used {in_scale(facts.project_gpu_hours)}{_NOBREAK}GPU-hours"
    if not footprint.gpu_seconds:
        return used
    return f"{used}, {plain(facts.project_gpu_hours / hours(footprint.gpu_seconds), 2)} times those of these runs"


def _how_sure(footprint: Footprint, setting: Setting) -> Sentence:
    if not shown(footprint.grams).interval:
        return _made_by(setting)
    widest = _widest(footprint)
    chiefly = f", that of the emissions chiefly from {listed(widest)}" if widest else ""
    return Sentence(f"Intervals are 90{_NOBREAK}%{chiefly}; energy was charged hour by hour with {setting.made_by}.", ("carbonreport",))


def _widest(footprint: Footprint) -> list[str]:
    """The inputs that make up most of the variance, the widest first."""
    is_model = is_estimate(footprint)
    one = gpu_count(footprint) == 1
    gpus = (
        ("the power of the GPU" if one else "the power of the GPUs") if is_model else ("the GPU’s sensor" if one else "the GPUs’ sensors")
    )
    names = {"gpu": gpus, "host": "the processors’ energy", "pue": "the PUE", "grid": "the grid’s intensity"}
    widths = sorted(((width, name) for name, width in footprint.log_widths), reverse=True)
    total = math.fsum(width**2 for width, _ in widths)
    if total < 0.01**2:
        return []
    taken: list[str] = []
    variance = 0.0
    for width, name in widths:
        if variance <= 0.6 * total:
            taken.append(names[name])
            variance += width**2
    return taken


def _made_by(setting: Setting) -> Sentence:
    return Sentence(f"This statement was written by {setting.made_by}.", ("carbonreport",))
