"""What forms ask for, in sentences and rows: compute, project, set-up, statistics, model card, EU documentation form, SCI."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from carbonreport.combine.footprint import total
from carbonreport.model.footprint import ChargedRun, Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.statement import CardData, Details
from carbonreport.render.digits import Shown, counted, duration, percent, plain, shown
from carbonreport.render.paragraph import method_of, place_in_words, preparation_shares, project_hours, what_ran, without_class
from carbonreport.render.setting import (
    Group,
    Setting,
    gpu_count,
    gpus_by_name,
    is_estimate,
    is_gpu_only,
    is_unread,
    not_covered,
    reason_left_out,
)
from carbonreport.render.table import hardware, spread_of
from carbonreport.render.words import capital, count_in_words, in_scale, listed, quality_in_words, shortened
from carbonreport.units import days, hours, kwh, mwh

_NOBREAK = "\u00a0"
_NOT_GIVEN = "not given"
_NO_ENERGY = "No energy could be read, so that neither energy nor emissions can be stated."
_NO_LENGTH = "The runs have no length, so that there is nothing to charge."
_SEARCH = ("search", "preliminary", "failed")
_APART = ("inference", "evaluation")
_MOST_GROUPS = 4
_MOST_CARD_DIGITS = 6  # of the one number that a machine reads; its interval stands beside it
_NARROW = 1.1  # high / low up to which three digits are honest (method, section 3)


def details(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> Details:
    """Everything that a form may ask for."""
    return Details(
        what_ran=what_ran(footprint, runs, groups, setting).text,
        workers=_workers(footprint, runs, setting),
        memory=_memory(setting),
        each_run=_each_run(runs, groups),
        in_all=_in_all(footprint, runs),
        project=project(footprint, groups, setting),
        energy=_energy(footprint, runs),
        left_out=f"Not in these figures: {listed(not_covered(footprint, runs))} ({reason_left_out(footprint)}).",
        parameters=_parameters(setting),
        setup=_setup(footprint, runs),
        search=_search(groups),
        statistics=_statistics(groups),
        adoption=_adoption(groups, setting),
        card=_card(footprint, setting),
        card_rows=_card_rows(footprint, runs, setting),
        gpai_rows=_gpai_rows(groups, setting),
        sci_rows=_sci_rows(footprint, runs, groups, setting),
    )


# Compute


def _workers(footprint: Footprint, runs: Sequence[ChargedRun], setting: Setting) -> str:
    kind = "GPU" if gpu_count(footprint) else "CPU" if footprint.devices else "Compute"
    known = f"{kind} workers: {hardware(footprint, runs)}, {place_in_words(footprint, setting)}"
    return f"{known}." if setting.site else f"{known}; whether an internal cluster or a cloud: {_unsaid(setting)}."


def _unsaid(setting: Setting) -> str:
    """Why a site is not named."""
    return "withheld for review" if setting.is_anonymous else _NOT_GIVEN


def _memory(setting: Setting) -> str:
    facts = setting.facts
    memory = _NOT_GIVEN if facts.memory_gb is None else f"{counted(facts.memory_gb)}{_NOBREAK}GB"
    return f"Memory of a worker: {memory}; storage: {_said(facts.storage)}."


def _said(text: str | None) -> str:
    return _NOT_GIVEN if text is None else shortened(text, 120)


def _each_run(runs: Sequence[ChargedRun], groups: Sequence[Group]) -> str:
    if len(runs) == 1:
        return f"The one run took {_time(groups[0].footprint)} and {_it_energy(groups[0].footprint)}."
    parts = [_group_in_words(group) for group in groups[:_MOST_GROUPS]]
    more = len(groups) - _MOST_GROUPS
    return f"By name: {'; '.join([*parts, *([f'and {count_in_words(more)} more'] if more > 0 else [])])}."


def _group_in_words(group: Group) -> str:
    many, mean = len(group.runs), group.footprint.run_seconds / len(group.runs)
    called = f"“{shortened(group.name, 40)}”" if group.names == 1 else f"runs of {count_in_words(group.names)} names"
    if many == 1:
        return f"{called} ({group.kind}): {_time(group.footprint)} and {_it_energy(group.footprint)}"
    return f"{called} ({group.kind}): {count_in_words(many)} runs of {duration(mean)} in the mean, {_it_energy(group.footprint)} together"


def _time(footprint: Footprint) -> str:
    gpu_hours = f" ({plain(hours(footprint.gpu_seconds))}{_NOBREAK}GPU-hours)" if footprint.gpu_seconds else ""
    return f"{duration(footprint.run_seconds)}{gpu_hours}"


def _it_energy(footprint: Footprint) -> str:
    return "an unknown IT energy" if is_unread(footprint) else f"{shown(footprint.it_joules).with_unit} of IT energy"


def _in_all(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    return f"In all: {count_in_words(len(runs))} run{'s' if len(runs) != 1 else ''}, {_time(footprint)}."


def project(footprint: Footprint, groups: Sequence[Group], setting: Setting) -> str:
    """What the project used beyond the reported runs, by kinds and by the author's total; said once."""
    parts = []
    kinds, before, whole = preparation_shares(groups)
    if kinds and 0 < before < whole:
        parts.append(
            f"{listed(kinds)} runs took {percent(before / whole)} of the energy stated here, which is {plain(whole / (whole - before), 2)} times that of the other runs"
        )
    used = project_hours(footprint, setting)
    return f"{capital('; '.join([*parts, used]))}."


def _energy(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    if is_unread(footprint):
        return _NO_ENERGY
    if footprint.run_seconds == 0:
        return _NO_LENGTH
    many = len(runs) > 1
    who = f"The run{'s' if many else ''}"
    used = f"{who} {'are' if many else 'is'} estimated to have used" if is_estimate(footprint) else f"{who} used"
    gpus = f", the GPU{'s' if gpu_count(footprint) > 1 else ''} alone" if is_gpu_only(footprint) else ""
    factor = {"lifecycle": ", life-cycle", "direct": ", direct"}.get(footprint.grids[0].family.factor, "")
    facility = shown(footprint.facility_joules).sentence
    return (
        f"{used} {shown(footprint.it_joules).sentence} of IT energy and, at a PUE of {shown(footprint.pue).sentence}, {facility} at the facility’s meter{gpus}; "
        f"location-based{factor} emissions are estimated at {shown(footprint.grams).sentence}; intervals are 90{_NOBREAK}%."
    )


# Model, set-up, statistics


def _parameters(setting: Setting) -> str:
    facts = setting.facts
    of_model = f" of {shortened(facts.model)}" if facts.model else ""
    number = _NOT_GIVEN if facts.parameters is None else in_scale(facts.parameters)
    return f"Number of parameters{of_model}: {number}."


def _setup(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    versions = [f"{name} {shortened(value)}" for name in ("driver", "python") for value in _values(runs, name)[:2]]
    spans = list(dict.fromkeys(shortened(span.path, 40) for span in footprint.spans if span.is_top_level))
    what = f"time, and energy by hour, of {hardware(footprint, runs)}" if footprint.devices else "time"
    recorded = [what, *versions, *([f"spans {listed(spans[:_MOST_GROUPS])}"] if spans else [])]
    return f"Recorded: {'; '.join(recorded)}. Values of hyper-parameters: not recorded."


def _values(runs: Sequence[ChargedRun], name: str) -> list[str]:
    return [value for value in dict.fromkeys(c.run.environment.get(name, "") for c in runs) if value]


def _search(groups: Sequence[Group]) -> str:
    parts = []
    for kind in _SEARCH:
        alike = [group for group in groups if group.kind == kind]
        if alike:
            many = sum(len(group.runs) for group in alike)
            seconds = sum(group.footprint.run_seconds for group in alike)
            parts.append(
                f"{count_in_words(many)} {kind} run{'s' if many != 1 else ''} of {duration(seconds)}{' together' if many > 1 else ''}"
            )
    return f"Among the records: {listed(parts)}." if parts else "Runs of a hyper-parameter search among the records: none."


def _statistics(groups: Sequence[Group]) -> str:
    results = "Spread of the results themselves: not recorded."
    repeated = [(group, spread) for group in groups if (spread := spread_of(group)) is not None and not is_unread(group.footprint)]
    if not repeated:
        return f"Times and energies are of single runs. {results}"
    texts = [f"{_repeated(group)} {_mean_and_ends(spread)}" for group, spread in repeated[:_MOST_GROUPS]]
    return (
        f"IT energy of one run: {'; '.join(texts)}; the others are single runs. {results}"
        if len(repeated) < len(groups)
        else (f"IT energy of one run: {'; '.join(texts)}. {results}")
    )


def _repeated(group: Group) -> str:
    called = f"“{shortened(group.name, 40)}”" if group.names == 1 else f"{group.kind} runs of {count_in_words(group.names)} names"
    return f"{called} ({count_in_words(len(group.runs))} runs)"


def _mean_and_ends(spread: Shown) -> str:
    return f"mean {spread.with_unit}, least {spread.low}, most {spread.high}" if spread.interval else f"{spread.with_unit} each"


# Functional unit


@dataclass(frozen=True, slots=True)
class _Unit:
    """What one use is, and what all of them together took.

    Attributes:
        name: "item of “answer”".
        items: How many were counted.
        facility_joules: Facility energy of the spans that counted them.
    """

    name: str
    items: float
    facility_joules: Quantity


def _unit(groups: Sequence[Group], setting: Setting) -> _Unit | None:
    """The items of the span that the functional unit names, by its path or the last part of it; None for a run."""
    unit = setting.facts.functional_unit
    if unit is None or unit.casefold() == "run":
        return None
    counting = [(group, span) for group in groups for span in group.footprint.spans if span.items]
    named = [(group, span) for group, span in counting if span.path == unit]
    chosen = named or [(group, span) for group, span in counting if span.path.rpartition("/")[2] == unit]
    if len({span.path for _, span in chosen}) != 1:
        return None
    return _Unit(
        f"item of “{shortened(chosen[0][1].path, 40)}”", math.fsum(span.items or 0.0 for _, span in chosen), _facility_part(chosen)
    )


def _facility_part(chosen: Sequence[tuple[Group, SpanEnergy]]) -> Quantity:
    """Facility energy of spans; the errors of sensors and PUE are common to all of them, so that the ends add."""
    parts = [
        (group.footprint.facility_joules, span.it_joules / group.footprint.it_joules.value)
        for group, span in chosen
        if group.footprint.it_joules.value
    ]
    value, low, high = (math.fsum(getattr(whole, end) * share for whole, share in parts) for end in ("value", "low", "high"))
    return Quantity(value, low, high, "J", "assumed", "use as in the records")


def _adoption(groups: Sequence[Group], setting: Setting) -> str:
    """A year of use at the energy of one item; nothing where no unit or no use was given."""
    uses, unit = setting.facts.uses_per_year, _unit(groups, setting)
    if uses is None or unit is None or not unit.facility_joules.value:
        return ""
    times, whole = uses / unit.items, unit.facility_joules
    year = replace(whole, value=whole.value * times, low=whole.low * times, high=whole.high * times)
    return (
        f"At {in_scale(uses)} uses a year, each of the energy of one {unit.name}, use takes {shown(year).sentence} a year at the "
        f"facility’s meter; whether demand grows with it is not known."
    )


# Model card


def _card(footprint: Footprint, setting: Setting) -> CardData:
    is_known = not is_unread(footprint)
    grams = f"{footprint.grams.value:.{_MOST_CARD_DIGITS}g}" if is_known else ""
    return CardData(
        grams=_without_exponent(grams),
        source=f"{setting.made_by}, location-based; 90 % interval {_interval(shown(footprint.grams))}" if is_known else setting.made_by,
        training_type=setting.facts.training_type or "",
        geographical_location=_location(footprint, setting),
        hardware_used=_boards(footprint) or ("CPU" if footprint.devices else ""),
    )


def _boards(footprint: Footprint) -> str:
    gpus = gpus_by_name(footprint)
    others = sum(n for _, n in gpus[_MOST_GROUPS:])
    return ", ".join([*(f"{n} × {shortened(name)}" for name, n in gpus[:_MOST_GROUPS]), *([f"{others} other GPUs"] if others else [])])


def _without_exponent(number: str) -> str:
    return f"{float(number):.12f}".rstrip("0").rstrip(".") if "e" in number else number


def _interval(text: Shown) -> str:
    return f"{text.interval} {text.unit}" if text.interval else text.with_unit.replace(_NOBREAK, " ")


def _location(footprint: Footprint, setting: Setting) -> str:
    if setting.facts.geographical_location is not None:
        return shortened(setting.facts.geographical_location)
    known = dict.fromkeys(setting.place_of(grid).removeprefix("the ") for grid in footprint.grids if setting.knows(grid))
    return capital(listed(list(known)))


def _card_rows(footprint: Footprint, runs: Sequence[ChargedRun], setting: Setting) -> tuple[tuple[str, str], ...]:
    emitted = "not known: no energy could be read" if is_unread(footprint) else shown(footprint.grams).sentence
    return (
        ("Hardware Type", hardware(footprint, runs)),
        ("Hours used", _time(footprint)),
        ("Cloud Provider", shortened(setting.site) if setting.site else _unsaid(setting)),
        ("Compute Region", _location(footprint, setting) or "not known"),
        ("Carbon Emitted", emitted),
    )


# EU model documentation form


def _gpai_rows(groups: Sequence[Group], setting: Setting) -> tuple[tuple[str, str], ...]:
    training = [group for group in groups if group.kind not in _APART]
    facts = setting.facts
    compute = _NOT_GIVEN if facts.flop is None else f"{_power_of_ten(facts.flop)}{_NOBREAK}FLOP"
    rows = [("Model", _said(facts.model)), ("Training compute", compute), *_training_rows(training)]
    rows += [(f"{capital(kind)}, apart", _apart(groups, kind)) for kind in _APART if any(group.kind == kind for group in groups)]
    return (*rows, ("Inference compute, benchmarked", _NOT_GIVEN))


def _training_rows(groups: Sequence[Group]) -> list[tuple[str, str]]:
    if not groups:
        return [("Training time", "no training run among the records"), ("Training energy", "no training run among the records")]
    runs = [c for group in groups for c in group.runs]
    whole = total(runs)
    return [
        (
            "Training time, wall-clock" + (", summed over runs" if len(runs) > 1 else ""),
            f"{plain(days(whole.run_seconds), 2)}{_NOBREAK}days",
        ),
        ("Training time, hardware", _hardware_days(whole)),
        ("Training energy, IT equipment", _megawatt_hours(whole, whole.it_joules)),
        ("Training energy, whole facility", _megawatt_hours(whole, whole.facility_joules)),
        ("Method", _method_in_words(whole, runs)),
    ]


def _hardware_days(footprint: Footprint) -> str:
    seconds = footprint.gpu_seconds or footprint.run_seconds
    return f"{plain(days(seconds), 2)}{_NOBREAK}{'GPU-days' if footprint.gpu_seconds else 'host-days'}"


def _megawatt_hours(footprint: Footprint, quantity: Quantity) -> str:
    if is_unread(footprint):
        return "not known: no energy could be read"
    return mwh_in_words(quantity)


def mwh_in_words(quantity: Quantity) -> str:
    """Energy in MWh with two significant digits, three where the interval allows: what the form asks for."""
    is_narrow = quantity.low > 0 and quantity.high / quantity.low <= _NARROW
    return f"{plain(mwh(quantity.value), 3 if is_narrow else 2)}{_NOBREAK}MWh"


def _apart(groups: Sequence[Group], kind: str) -> str:
    whole = total([c for group in groups if group.kind == kind for c in group.runs])
    if is_unread(whole):
        return "energy not known: no reading"
    return f"{mwh_in_words(whole.it_joules)} of IT equipment, {mwh_in_words(whole.facility_joules)} of the facility; not in the rows of training"


def _method_in_words(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    """About a hundred words."""
    if is_unread(footprint):
        return f"{_NO_ENERGY} Not covered: {listed(not_covered(footprint, runs))}."
    verb = "Energy was estimated, not measured" if is_estimate(footprint) else "Energy was read while the training ran"
    kinds = "; ".join(f"{_KIND_NAMES[kind]}: {method_of(footprint, kind)}" for kind, _ in footprint.kinds)
    it, facility = shown(footprint.it_joules), shown(footprint.facility_joules)
    covered = "" if is_estimate(footprint) else f"Readings cover {percent(footprint.covered)} of the time. "
    return (
        f"{verb}, device by device ({kinds}). The figure of the IT equipment is the sum over all training runs among the records, search, preliminary and "
        f"failed runs included where they were recorded; inference and evaluation are kept apart. Its 90{_NOBREAK}% interval is {_interval(it)}. "
        f"The facility’s figure multiplies every part of it by the PUE of its time, {shown(footprint.pue).sentence} "
        f"({without_class(footprint.pue.source)}); its interval is {_interval(facility)}. "
        f"{covered}Not covered, and not estimated: {listed(not_covered(footprint, runs))}, "
        f"making the hardware, and runs without a record."
    )


_KIND_NAMES = {"gpu": "GPUs", "cpu": "processors", "dram": "memory", "node": "whole nodes", "other": "other devices"}


def _power_of_ten(number: float) -> str:
    """1.2e23, as a line of plain text has it."""
    return f"{number:.1e}".replace("e+", "e")


# ISO/IEC 21031


def _sci_rows(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> tuple[tuple[str, str], ...]:
    if is_unread(footprint) or not footprint.facility_joules.value:
        return (("Score", "cannot be stated: " + ("no energy could be read" if is_unread(footprint) else "no energy was used")),)
    unit = _unit(groups, setting)
    count, name = (float(len(runs)), "run") if unit is None else (unit.items, unit.name)
    made = footprint.embodied.grams if footprint.embodied else None
    score = _score(footprint.grams, made, count)
    grids = listed(list(dict.fromkeys(quality_in_words(q, "") for grid in footprint.grids for q, _ in grid.qualities)))
    intensity = footprint.grams.value / kwh(footprint.facility_joules.value)
    return (
        ("Score", f"SCI = ((E × I) + M) per R = {score.sentence} per {name}"),
        ("Functional unit R", f"{_why(unit, groups, setting)}; {counted(count)} in all, to which everything recorded is charged"),
        (
            "E, energy",
            f"{shown(footprint.facility_joules).sentence} at the facility’s meter, IT energy times a PUE of {shown(footprint.pue).with_unit}",
        ),
        (
            "I, intensity",
            f"{plain(intensity)}{_NOBREAK}gCO₂e/kWh, location-based, average, weighted by energy; by {grids}. No market-based measure is in it",
        ),
        (
            "M, embodied",
            shown(made).sentence if made else "left out: no figure for the hardware given; the score is that of operation alone",
        ),
        ("Software boundary", f"{count_in_words(len(runs))} recorded run{'s' if len(runs) != 1 else ''} on {hardware(footprint, runs)}"),
        ("Not in the boundary", f"{listed(not_covered(footprint, runs))} ({reason_left_out(footprint)})"),
        *((f"Method, {_KIND_NAMES[kind]}", f"{_measured(quantity)}: {method_of(footprint, kind)}") for kind, quantity in footprint.kinds),
    )


def _score(operation: Quantity, made: Quantity | None, count: float) -> Shown:
    """Grams of one functional unit; the standard adds embodied emissions to those of the electricity, which nothing else here does."""
    whole = replace(operation, family="")
    whole = whole if made is None else whole + replace(made, family="")
    return shown(replace(whole, value=whole.value / count, low=whole.low / count, high=whole.high / count))


def _measured(quantity: Quantity) -> str:
    return quantity.origin if quantity.origin in ("measured", "reported") else "modelled"


def _why(unit: _Unit | None, groups: Sequence[Group], setting: Setting) -> str:
    given = setting.facts.functional_unit
    if unit is not None:
        return f"one {unit.name}"
    if given is None:
        return "one run, since no functional unit is given"
    if given.casefold() == "run":
        return "one run"
    is_counted = any(span.items for group in groups for span in group.footprint.spans)
    why = "items were counted, but in no one span of that name" if is_counted else "no items were counted"
    return f"one run, for “{shortened(given, 40)}” cannot be counted: {why}"
