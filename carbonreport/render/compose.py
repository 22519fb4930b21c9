"""Numbers to words and rows. Pure: the same footprint gives the same sentences, whatever the format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.footprint import ChargedRun, DeviceEnergy, Footprint, GridUse
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import RunKind
from carbonreport.model.statement import Row, RunRow, Sentence, Statement, Work
from carbonreport.render.digits import counted, duration, plain, scaled, shown
from carbonreport.render.words import count_in_words, listed, method_in_words, quality_in_words
from carbonreport.units import hours

_NOBREAK = "\u00a0"


@dataclass(frozen=True, slots=True)
class Setting:
    """What the words need besides the numbers.

    Attributes:
        zone_names: Zone code to name: {"DE": "Germany"}.
        time_zone: IANA name for the dates.
        site: Name of the site, or None.
        made_by: Name and version of the tool.
    """

    zone_names: Mapping[str, str]
    time_zone: str
    site: str | None
    made_by: str


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """All runs of one name and kind, with their own footprint."""

    name: str
    kind: RunKind
    runs: tuple[ChargedRun, ...]
    footprint: Footprint


def compose(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> Statement:
    """The statement of a footprint: paragraph, table, omissions and notes."""
    sentences = [
        _what_ran(footprint, runs, groups, setting),
        _what_it_drew(footprint),
        _facility(footprint),
        _emissions(footprint, setting, runs),
        *_market(footprint),
        *_embodied(footprint),
        *_per_item(groups),
        _how_recorded(footprint, setting),
    ]
    return Statement(
        paragraph=tuple(sentences),
        rows=tuple(_rows(footprint, runs, groups, setting)),
        runs=tuple(_run_row(group) for group in groups),
        omissions=tuple(_omissions(footprint)),
        notes=tuple((note.slug, note.text) for note in footprint.notes),
        figures=tuple(_figures(footprint)),
        works=_WORKS_ALWAYS + tuple(work for key, work in _WORKS_BY_SOURCE.items() if any(key in grid.source for grid in footprint.grids)),
        made_by=setting.made_by,
    )


# The paragraph


def _what_ran(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> Sentence:
    names = listed([f"{_kind_word(g.kind)} “{g.name}”" for g in groups[:3]] + ([f"{len(groups) - 3} more"] if len(groups) > 3 else []))
    several = len(runs) > 1
    subject = f"{count_in_words(len(runs)).capitalize()} runs ({names})" if several else names[:1].upper() + names[1:]
    where = f" {_where(footprint.grids, setting)}"
    return Sentence(f"{subject} used {_hardware(footprint)} for {_time(footprint)}, {_when(runs, setting)}{where}.")


def _kind_word(kind: RunKind) -> str:
    return {"other": "the run", "search": "the search", "preliminary": "the preliminary run", "failed": "the failed run"}.get(kind, kind)


def _hardware(footprint: Footprint) -> str:
    gpus = _by_name([d for d in footprint.devices if d.kind == "gpu"])
    hosts = _hosts(footprint)
    on_hosts = f" of {count_in_words(hosts)} host{'s' if hosts > 1 else ''}" if hosts else ""
    if not gpus:
        return f"the processors{on_hosts}" if footprint.devices else "a host without any reading"
    return listed([f"{count_in_words(n)}{_NOBREAK}{name}" for name, n in gpus]) + on_hosts


def _hosts(footprint: Footprint) -> int:
    """Hosts that were seen; none for an estimate, which knows of boards alone."""
    return len({d.host for d in footprint.devices if d.method != "model" or d.kind != "gpu"})


def _by_name(devices: Sequence[DeviceEnergy]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for device in devices:
        counts[device.name] = counts.get(device.name, 0) + device.count
    return list(counts.items())


def _time(footprint: Footprint) -> str:
    text = duration(footprint.run_seconds)
    return f"{text} ({plain(hours(footprint.gpu_seconds))}{_NOBREAK}GPU-hours)" if footprint.gpu_seconds else text


def _when(runs: Sequence[ChargedRun], setting: Setting) -> str:
    start = min(c.run.started_s for c in runs)
    end = max(c.run.ended_s for c in runs)
    zone = ZoneInfo(setting.time_zone)
    first, last = (datetime.fromtimestamp(s, UTC).astimezone(zone) for s in (start, end))
    if first.date() == last.date():
        return f"on {_date(first)}" + (
            f" from {first:%H:%M} to {last:%H:%M} {last:%Z}" if f"{first:%H:%M}" != f"{last:%H:%M}" else f" at {first:%H:%M} {first:%Z}"
        )
    if first.year == last.year:
        return f"from {first.day} {first:%B} {first:%H:%M} to {_date(last)} {last:%H:%M} {last:%Z}"
    return f"from {_date(first)} {first:%H:%M} to {_date(last)} {last:%H:%M} {last:%Z}"


def _date(day: datetime) -> str:
    return f"{day.day} {day:%B %Y}"


def _where(grids: Sequence[GridUse], setting: Setting) -> str:
    if all(grid.zone == "WORLD" for grid in grids):
        return f"at {setting.site} (grid zone unknown)" if setting.site else "at a place that nobody gave"
    places = listed([setting.zone_names.get(grid.zone, f"grid zone {grid.zone}") for grid in grids[:4]])
    return f"at {setting.site}, {places}" if setting.site else f"in {places}"


def _what_it_drew(footprint: Footprint) -> Sentence:
    drew = []
    for kind, quantity in footprint.kinds:
        verb = "drew" if quantity.origin == "measured" else "are estimated at"
        drew.append(f"{_KIND_SUBJECT[kind]} {verb} {shown(quantity).sentence} ({_method(footprint, kind)})")
    omitted = _not_measured(footprint)
    if not drew:
        return Sentence(f"No energy could be read; {listed(omitted)} were not measured.")
    text = listed(drew)
    left_out = f"; {listed(omitted)} were not measured" if omitted else ""
    covered = f"; readings cover {footprint.covered:.0%} of the time" if footprint.covered < 0.995 else ""
    return Sentence(f"{text[0].upper()}{text[1:]}{left_out}{covered}.")


_KIND_SUBJECT = {"gpu": "the GPUs", "cpu": "the processors", "dram": "the memory", "node": "the whole nodes", "other": "other devices"}


def _method(footprint: Footprint, kind: str) -> str:
    return listed(list(dict.fromkeys(method_in_words(d.method, d.kind) for d in footprint.devices if d.kind == kind)))


def _sources(footprint: Footprint, kind: str) -> str:
    return "; ".join(dict.fromkeys(d.source for d in footprint.devices if d.kind == kind))


def _not_measured(footprint: Footprint) -> list[str]:
    kinds = {d.kind for d in footprint.devices}
    if "node" in kinds:
        return ["storage outside the node", "network"]
    missing = [] if "cpu" in kinds else ["processors"]
    missing += [] if "dram" in kinds else ["memory"]
    return [*missing, "power supplies", "fans", "storage", "network"]


def _facility(footprint: Footprint) -> Sentence:
    article = "an assumed PUE" if footprint.pue.origin == "assumed" else "a PUE"
    return Sentence(
        f"At {article} of {shown(footprint.pue).sentence} ({footprint.pue.source}) the facility used {shown(footprint.facility_joules).sentence}."
    )


def _emissions(footprint: Footprint, setting: Setting, runs: Sequence[ChargedRun]) -> Sentence:
    grams = shown(footprint.grams)
    family = footprint.grids[0].family
    factor = {"lifecycle": "life-cycle", "direct": "direct"}.get(family.factor)
    kind = f"location-based{', ' + factor if factor else ''} emissions"
    how = listed([_charged_by(grid, setting, runs) for grid in footprint.grids[:3]])
    return Sentence(
        f"{'Their' if len(runs) > 1 else 'Its'} {kind} were {grams.sentence}: {how}.",
        tuple(dict.fromkeys(_cite_of(grid) for grid in footprint.grids if _cite_of(grid))),
    )


def _charged_by(grid: GridUse, setting: Setting, runs: Sequence[ChargedRun]) -> str:
    name = (
        "the world's average grid" if grid.zone == "WORLD" else f"the grid of {setting.zone_names.get(grid.zone, grid.zone)} ({grid.zone})"
    )
    quality = max(grid.qualities, key=lambda q: q[1])[0] if grid.qualities else "typical"
    mean = shown(grid.grams_per_kwh)
    by = quality_in_words(quality, _months(grid, runs, setting))
    return f"{name} was charged by {by} (mean {plain(grid.grams_per_kwh.value)}{_NOBREAK}{mean.unit}, {_short(grid.source)})"


def _short(source: str) -> str:
    """A data set's name without its licence and years, which the table has."""
    return source.partition(" (")[0]


def _months(grid: GridUse, runs: Sequence[ChargedRun], setting: Setting) -> str:
    zone = ZoneInfo(setting.time_zone)
    months = {
        f"{datetime.fromtimestamp(s, UTC).astimezone(zone):%B}"
        for c in runs
        if c.grid.zone == grid.zone
        for s in (c.run.started_s, c.run.ended_s)
    }
    lengths = [c.run.duration_s for c in runs if c.grid.zone == grid.zone]
    return months.pop() if len(months) == 1 and max(lengths) < 32 * 86400 else ""


def _market(footprint: Footprint) -> list[Sentence]:
    if footprint.market_grams is None:
        return []
    return [
        Sentence(
            f"By contract ({footprint.market_grams.source}) the market-based figure is {shown(footprint.market_grams).sentence}; it stands beside the location-based one and is not added to it."
        )
    ]


def _embodied(footprint: Footprint) -> list[Sentence]:
    if footprint.embodied is None:
        return []
    return [
        Sentence(
            f"The share of making the hardware is {shown(footprint.embodied.grams).sentence}, {listed(list(footprint.embodied.basis))}; it is not part of the figures above."
        )
    ]


def _per_item(groups: Sequence[Group]) -> list[Sentence]:
    texts = []
    for group in groups:
        for span in group.footprint.spans:
            per_item = span.joules_per_item
            if per_item is not None and span.items:
                texts.append(
                    f"{span.path} took {scaled(per_item, 'J')} an item ({scaled(per_item * 1000, 'J')} per 1,000 items, {counted(span.items)} items)"
                )
    return [Sentence(f"Of IT energy, {listed(texts[:4])}.")] if texts else []


def _how_recorded(footprint: Footprint, setting: Setting) -> Sentence:
    names = {"gpu": "the GPUs' sensors", "host": "the host's energy", "pue": "the PUE", "grid": "the grid's intensity"}
    widths = sorted(((width, name) for name, width in footprint.log_widths if width > 0.01), reverse=True)
    widest = f" Most of the interval of the emissions comes from {names[widths[0][1]]}." if widths else ""
    return Sentence(f"Intervals are 90 %; energy was recorded and charged hour by hour with {setting.made_by}.{widest}", ("carbonreport",))


# The table


def _rows(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> list[Row]:
    rows = [Row("Hardware", _hardware_cell(footprint), known=_hardware_known(footprint), source=_environment(runs)), _time_row(footprint)]
    rows += [_quantity_row(_KIND_LABEL[kind], quantity, _sources(footprint, kind)) for kind, quantity in footprint.kinds]
    rows.append(Row("Not measured", listed(_not_measured(footprint)), known="omitted", source="no reading on this host"))
    rows += [_quantity_row("PUE", footprint.pue, footprint.pue.source), _quantity_row("Facility energy", footprint.facility_joules, "")]
    rows += [
        _quantity_row(
            f"Grid intensity, weighted by energy{_zone_suffix(footprint, grid)}",
            grid.grams_per_kwh,
            f"{grid.source}, zone {grid.zone}, {grid.family.factor}",
        )
        for grid in footprint.grids
    ]
    main = shown(footprint.grams)
    rows.append(
        Row(f"Location-based emissions{_factor_suffix(footprint)}", main.with_unit, main.interval, footprint.grams.origin, "", is_main=True)
    )
    rows.append(_market_row(footprint))
    rows.append(_embodied_row(footprint))
    return rows + _item_rows(groups)


_KIND_LABEL = {"gpu": "GPU energy", "cpu": "CPU energy", "dram": "DRAM energy", "node": "Node energy", "other": "Other energy"}


def _zone_suffix(footprint: Footprint, grid: GridUse) -> str:
    return f", {grid.zone}" if len(footprint.grids) > 1 else ""


def _factor_suffix(footprint: Footprint) -> str:
    return {"lifecycle": ", life-cycle", "direct": ", direct"}.get(footprint.grids[0].family.factor, "")


def _quantity_row(label: str, quantity: Quantity, source: str) -> Row:
    text = shown(quantity)
    return Row(label, text.with_unit, text.interval, quantity.origin, source)


def _hardware_cell(footprint: Footprint) -> str:
    gpus = [f"{n} × {name}" for name, n in _by_name([d for d in footprint.devices if d.kind == "gpu"])]
    cpus = [f"{d.name}" for d in footprint.devices if d.kind == "cpu"]
    hosts = _hosts(footprint)
    on_hosts = [f"{hosts} host{'s' if hosts > 1 else ''}"] if hosts else []
    return ", ".join([*(gpus or list(dict.fromkeys(cpus))), *on_hosts])


def _hardware_known(footprint: Footprint) -> str:
    return (
        "reported"
        if all(d.method in ("model", "reported") and d.kind == "gpu" for d in footprint.devices) and footprint.devices
        else "measured"
    )


def _environment(runs: Sequence[ChargedRun]) -> str:
    facts = [
        f"{key} {value}"
        for key in ("driver", "nvidia_driver")
        for value in dict.fromkeys(c.run.environment.get(key, "") for c in runs)
        if value
    ]
    return ", ".join(facts)


def _time_row(footprint: Footprint) -> Row:
    label, value = "Wall-clock", duration(footprint.run_seconds)
    if footprint.gpu_seconds:
        label, value = "Wall-clock / GPU-hours", f"{value} / {plain(hours(footprint.gpu_seconds))}"
    return Row(label, value, known="reported" if _hardware_known(footprint) == "reported" else "measured")


def _market_row(footprint: Footprint) -> Row:
    if footprint.market_grams is None:
        return Row("Market-based emissions", "not stated", known="omitted", source="no contract given")
    return _quantity_row("Market-based emissions", footprint.market_grams, footprint.market_grams.source)


def _embodied_row(footprint: Footprint) -> Row:
    if footprint.embodied is None:
        return Row("Embodied emissions", "not stated", known="omitted", source="no figure for the hardware given")
    return _quantity_row("Embodied emissions", footprint.embodied.grams, "; ".join(footprint.embodied.basis))


def _item_rows(groups: Sequence[Group]) -> list[Row]:
    rows = []
    for group in groups:
        for span in group.footprint.spans:
            if span.joules_per_item is not None and span.items:
                known = group.footprint.it_joules.origin
                value = f"{scaled(span.joules_per_item, 'J')} / {scaled(span.joules_per_item * 1000, 'J')}"
                rows.append(
                    Row(
                        f"{span.path}: per item / per 1,000",
                        value,
                        known=known,
                        source=f"{counted(span.items)} items, {span.count:,} spans",
                    )
                )
    return rows


def _run_row(group: Group) -> RunRow:
    f = group.footprint
    per_item = [f"{span.path} {scaled(span.joules_per_item, 'J')}" for span in f.spans if span.joules_per_item is not None]
    return RunRow(
        group.name,
        group.kind,
        str(len(group.runs)),
        duration(f.run_seconds),
        shown(f.it_joules).sentence,
        shown(f.grams).sentence,
        ", ".join(per_item),
    )


def _omissions(footprint: Footprint) -> list[str]:
    rows = [f"{part}: no reading on this host" for part in _not_measured(footprint)]
    if footprint.market_grams is None:
        rows.append("market-based emissions: no contract given")
    if footprint.embodied is None:
        rows.append("embodied emissions: no figure for the hardware given")
    return rows


def _figures(footprint: Footprint) -> list[tuple[str, str]]:
    """Names of macros and their text: letters only, since TeX allows no digits in them."""
    quantities = {
        "ItEnergy": footprint.it_joules,
        "FacilityEnergy": footprint.facility_joules,
        "Emissions": footprint.grams,
        "Pue": footprint.pue,
    }
    rows = []
    for name, quantity in quantities.items():
        text = shown(quantity)
        rows += [(name, text.with_unit), (f"{name}Interval", f"{text.interval} {text.unit}".strip() if text.interval else text.with_unit)]
    return [*rows, ("WallClock", duration(footprint.run_seconds)), ("GpuHours", plain(hours(footprint.gpu_seconds)))]


# Works


def _cite_of(grid: GridUse) -> str:
    return next((work.key for source, work in _WORKS_BY_SOURCE.items() if source in grid.source), "")


_WORKS_ALWAYS = (
    Work(
        "carbonreport",
        "misc",
        (
            ("title", "carbonreport: energy and carbon of machine learning, told honestly"),
            ("author", "{The carbonreport authors}"),
            ("year", "2026"),
            ("note", "Software"),
        ),
    ),
)
_WORKS_BY_SOURCE = {
    "Electricity Maps": Work(
        "electricitymaps",
        "misc",
        (
            ("title", "Carbon intensity of electricity, data portal"),
            ("author", "{Electricity Maps}"),
            ("note", "Open Database License 1.0"),
        ),
    ),
    "Ember": Work("ember", "misc", (("title", "Yearly electricity data"), ("author", "{Ember}"), ("note", "CC BY 4.0"))),
}
