"""The tables: one row a figure with interval, origin and source; and one row a name of runs."""

import math
from collections.abc import Sequence

from carbonreport.combine.overlap import one_a_job
from carbonreport.model.footprint import ChargedRun, Footprint, GridUse, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.run import DeviceKind
from carbonreport.model.statement import Row, RunRow
from carbonreport.render.digits import Shown, counted, duration, plain, shown, spread_shown
from carbonreport.render.paragraph_carbon import month_of
from carbonreport.render.paragraph_energy import pue_basis
from carbonreport.render.paragraph_purpose import item_energy
from carbonreport.render.setting import (
    Group,
    Setting,
    gpu_count,
    gpus_by_name,
    host_count,
    imported_runs,
    is_estimate,
    is_gpu_only,
    is_timeless,
    is_too_short,
    is_unread,
    not_covered,
    reason_left_out,
    typed_in_runs,
)
from carbonreport.render.words import family_in_words, listed, quality_in_words, shortened
from carbonreport.units import hours

_KIND_LABEL: dict[DeviceKind, str] = {
    "gpu": "GPU energy",
    "cpu": "CPU energy",
    "dram": "DRAM energy",
    "node": "Node energy",
    "other": "Other energy",
}
_MOST_SOURCES = 3
_MOST_BOARDS = 5
_MOST_SPANS = 8
_UNKNOWN = "not known"
_SMALL_SHARE = 0.01  # of the time: a smaller part does not say how the whole is known


def rows(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> tuple[Row, ...]:
    """The main table, in the order of the paragraph."""
    return (
        _hardware(footprint, runs),
        _time(footprint, runs),
        *(_energy(_KIND_LABEL[kind], quantity, footprint, quantity.source) for kind, quantity in footprint.kinds),
        _left_out(footprint, runs),
        _quantity("PUE", footprint.pue, pue_basis(footprint, runs)),
        _facility(footprint),
        *(_grid(grid, footprint, runs, setting) for grid in footprint.grids),
        _emissions(footprint),
        _market(footprint),
        _embodied(footprint),
        *_water(footprint),
        *_items(groups),
    )


def run_rows(footprint: Footprint, groups: Sequence[Group]) -> tuple[RunRow, ...]:
    """One row a name; none where the main table says it all, for a single run."""
    if sum(len(group.runs) for group in groups) < 2:
        return ()
    return tuple(_run_row(group, footprint) for group in groups)


def omissions(footprint: Footprint, runs: Sequence[ChargedRun]) -> tuple[str, ...]:
    """What is not in the numbers, each with its reason."""
    reason = reason_left_out(footprint)
    lines = [f"{part}: {reason}" for part in not_covered(footprint, runs)]
    if footprint.market_grams is None:
        lines.append("market-based emissions: no contract given")
    if footprint.embodied is None:
        lines.append("embodied emissions: no figure for the hardware given")
    return tuple(lines)


def _quantity(label: str, quantity: Quantity, source: str) -> Row:
    text = shown(quantity)
    return Row(label, text.with_unit, text.interval, quantity.origin, source)


def _energy(label: str, quantity: Quantity, footprint: Footprint, source: str) -> Row:
    if is_unread(footprint):
        return Row(label, _UNKNOWN, known="omitted", source="no reading")
    text = shown(quantity, beside=footprint.facility_joules)
    return Row(label, text.with_unit, text.interval, quantity.origin, _few(source))


def _few(sources: str) -> str:
    """The first few of many sources that are joined by semicolons."""
    parts = sources.split("; ")
    return "; ".join(parts[:_MOST_SOURCES] + ([f"{len(parts) - _MOST_SOURCES} more"] if len(parts) > _MOST_SOURCES else []))


def hardware(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    """Boards, processors and hosts for a cell; processors only where the runs are given."""
    gpus = gpus_by_name(footprint)
    parts = [f"{n} × {shortened(name)}" for name, n in gpus[:_MOST_BOARDS]]
    parts += [f"{sum(n for _, n in gpus[_MOST_BOARDS:])} other GPUs"] if len(gpus) > _MOST_BOARDS else []
    parts += [shortened(name) for name in dict.fromkeys(c.run.environment.get("cpu", "") for c in runs) if name][:_MOST_SOURCES]
    hosts = host_count(footprint)
    return ", ".join([*parts, f"{hosts} host{'s' if hosts > 1 else ''}"] if hosts else parts) or _UNKNOWN


def _hardware(footprint: Footprint, runs: Sequence[ChargedRun]) -> Row:
    text = hardware(footprint, runs)
    return Row("Hardware", text, known="omitted" if text == _UNKNOWN else "reported", source=_facts(runs))


def _facts(runs: Sequence[ChargedRun]) -> str:
    drivers = [value for value in dict.fromkeys(c.run.environment.get("driver", "") for c in runs) if value]
    return f"driver {listed(drivers[:_MOST_SOURCES])}" if drivers else ""


def _time(footprint: Footprint, runs: Sequence[ChargedRun]) -> Row:
    if is_timeless(footprint):
        return Row("Wall-clock", _UNKNOWN, known="omitted", source="no reading")
    given_s, logged_s = (math.fsum(c.run.duration_s for c in some) for some in (typed_in_runs(runs), imported_runs(runs)))
    known = "reported" if given_s + logged_s > _SMALL_SHARE * footprint.run_seconds or is_estimate(footprint) else "measured"
    parts = [f"{duration(given_s)} given by the author"] if given_s else []
    parts += [f"{duration(logged_s)} read from logs"] if logged_s else []
    rest = footprint.run_seconds - given_s - logged_s
    source = "" if not parts or (rest <= 0 and len(parts) == 1) else ", ".join([*parts, *(["the rest measured"] if rest > 0 else [])])
    text = duration(footprint.run_seconds)
    if not footprint.gpu_seconds:
        return Row("Wall-clock", text, known=known, source=source)
    return Row("Wall-clock / GPU-hours", f"{text} / {plain(hours(footprint.gpu_seconds))}", known=known, source=source)


def _left_out(footprint: Footprint, runs: Sequence[ChargedRun]) -> Row:
    label = "Not included" if is_estimate(footprint) else "Not measured"
    return Row(label, listed(not_covered(footprint, runs)), known="omitted", source=reason_left_out(footprint))


def _facility(footprint: Footprint) -> Row:
    gpus = "GPU" if gpu_count(footprint) == 1 else "GPUs"
    label = "Facility energy" + (f", {gpus} only" if is_gpu_only(footprint) else "")
    return _energy(label, footprint.facility_joules, footprint, "energy above × PUE, before rounding")


def _grid(grid: GridUse, footprint: Footprint, runs: Sequence[ChargedRun], setting: Setting) -> Row:
    label = "Grid intensity, weighted by energy" + (f", {grid.zone}" if len(footprint.grids) > 1 else "")
    text = shown(grid.grams_per_kwh)
    qualities = sorted(grid.qualities, key=lambda q: -q[1])
    month = month_of(grid, runs, setting)
    how = " and ".join(quality_in_words(quality, month) for quality, share in qualities if share >= 0.005)
    where = f" of {grid.zone}" if setting.knows(grid) else ""
    # The mean is a datum, given to three digits so that a reader can multiply; its interval says how far to trust it.
    value = f"{plain(grid.grams_per_kwh.value)}\u00a0{text.unit}"
    return Row(label, value, text.interval, grid.grams_per_kwh.origin, f"{how}{where}; {grid.source}; {family_in_words(grid.family)}")


def _emissions(footprint: Footprint) -> Row:
    factor = footprint.grids[0].family.factor
    label = "Location-based emissions" + {"lifecycle": ", life-cycle", "direct": ", direct"}.get(factor, "")
    if is_unread(footprint):
        return Row(label, _UNKNOWN, known="omitted", source="no reading", is_main=True)
    scope = {"lifecycle": "electricity: scope 2, and upstream of it scope 3.3", "direct": "electricity: scope 2"}.get(factor, "electricity")
    text = shown(footprint.grams)
    return Row(label, text.with_unit, text.interval, footprint.grams.origin, scope, is_main=True)


def _market(footprint: Footprint) -> Row:
    if footprint.market_grams is None:
        return Row("Market-based emissions", "not stated", known="omitted", source="no contract given")
    return _quantity("Market-based emissions", footprint.market_grams, footprint.market_grams.source)


def _embodied(footprint: Footprint) -> Row:
    if footprint.embodied is None:
        return Row("Embodied emissions", "not stated", known="omitted", source="no figure for the hardware given")
    return _quantity("Embodied emissions", footprint.embodied.grams, "; ".join(footprint.embodied.basis))


def _water(footprint: Footprint) -> list[Row]:
    """A row of its own where the site's use is known; in no sum."""
    if footprint.water is None or is_unread(footprint):
        return []
    return [_quantity("Water on site", footprint.water, footprint.water.source)]


def _items(groups: Sequence[Group]) -> list[Row]:
    """The spans that counted items, those of the most energy, in their order."""
    spans = [(group, span) for group in groups for span in group.footprint.spans if span.has_item_energy]
    kept = sorted(range(len(spans)), key=lambda i: -(spans[i][1].it_joules or 0.0))[:_MOST_SPANS]
    return [_item_row(*spans[i]) for i in sorted(kept)]


def _item_row(group: Group, span: SpanEnergy) -> Row:
    label, items = f"IT energy per item / per 1,000, {shortened(span.path, 40)}", f"{counted(span.items or 0.0)} items"
    if is_unread(group.footprint) or is_too_short(span):
        return Row(label, item_energy(group, span), known="omitted", source=items)
    text = f"{item_energy(group, span)} / {item_energy(group, span, 1000.0)}"
    return Row(label, text, known=group.footprint.it_joules.origin, source=items)


def _run_row(group: Group, whole: Footprint) -> RunRow:
    f = group.footprint
    per_item = [f"{shortened(span.path, 40)} {item_energy(group, span)}" for span in f.spans if span.has_item_energy][:_MOST_SPANS]
    unread = is_unread(f)
    return RunRow(
        shortened(group.name) if group.names == 1 else f"{group.names} names",
        group.kind,
        str(len(one_a_job(group.runs))),
        _UNKNOWN if is_timeless(f) else duration(f.run_seconds),
        _UNKNOWN if unread else shown(f.it_joules, beside=whole.it_joules).compact,
        "" if unread else _each(group),
        _UNKNOWN if unread else shown(f.grams, beside=whole.grams).compact,
        ", ".join(per_item),
    )


def _each(group: Group) -> str:
    spread = spread_of(group)
    return "" if spread is None else spread.compact


def spread_of(group: Group) -> Shown | None:
    """Mean, least and most IT energy of one of several runs; None for a single run."""
    joules = [float(c.it_joules.sum()) for c in group.runs]
    if len(joules) < 2:
        return None
    whole, mean = group.footprint.it_joules, sum(joules) / len(joules)
    return spread_shown(Quantity(mean, min(joules), max(joules), "J", whole.origin, whole.source))
