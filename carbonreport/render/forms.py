"""Rows of the forms: a model card, the EU model documentation form, ISO/IEC 21031."""

import math
from collections.abc import Sequence
from dataclasses import replace

from carbonreport.combine.footprint import total
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.origin import Origin
from carbonreport.model.quantity import Quantity
from carbonreport.model.statement import CardData
from carbonreport.render.digits import Shown, counted, mass_name, plain, share_in_words, shown
from carbonreport.render.form_words import NOBREAK, NOT_GIVEN, FunctionalUnit, functional_unit, said, time_in_words, unsaid
from carbonreport.render.paragraph import nothing_read
from carbonreport.render.paragraph_energy import method_of, pue_basis
from carbonreport.render.setting import (
    Group,
    Setting,
    gpus_by_name,
    is_estimate,
    is_timeless,
    is_unread,
    not_covered,
    read_time,
    reason_left_out,
)
from carbonreport.render.table import hardware
from carbonreport.render.words import capital, count_in_words, listed, quality_in_words, shortened
from carbonreport.units import days, kwh, mwh

_APART = ("inference", "evaluation")
_MOST_GROUPS = 4
_MOST_CARD_DIGITS = 6  # of the one number that a machine reads; its interval stands beside it
_NARROW = 1.1  # high / low up to which three digits are honest (method, section 3)


# Model card


def card(footprint: Footprint, setting: Setting) -> CardData:
    """The metadata of a Hugging Face model card."""
    is_known = not is_unread(footprint)
    grams = f"{footprint.grams.value:.{_MOST_CARD_DIGITS}g}" if is_known else ""
    return CardData(
        grams=_without_exponent(grams),
        source=f"{setting.made_by}, location-based; 90 % interval {_interval(shown(footprint.grams))}" if is_known else setting.made_by,
        training_type=setting.facts.training_type or "",
        geographical_location=_location(footprint, setting),
        hardware_used=_boards(footprint) or ("CPU" if footprint.devices else ""),
        gas=footprint.grams.unit.removeprefix("g"),
    )


def _boards(footprint: Footprint) -> str:
    gpus = gpus_by_name(footprint)
    others = sum(n for _, n in gpus[_MOST_GROUPS:])
    return ", ".join([*(f"{n} × {shortened(name)}" for name, n in gpus[:_MOST_GROUPS]), *([f"{others} other GPUs"] if others else [])])


def _without_exponent(number: str) -> str:
    return f"{float(number):.12f}".rstrip("0").rstrip(".") if "e" in number else number


def _interval(text: Shown) -> str:
    return f"{text.interval} {text.unit}" if text.interval else text.with_unit.replace(NOBREAK, " ")


def _location(footprint: Footprint, setting: Setting) -> str:
    if setting.facts.geographical_location is not None:
        return shortened(setting.facts.geographical_location)
    known = dict.fromkeys(setting.place_of(grid).removeprefix("the ") for grid in footprint.grids if setting.knows(grid))
    return capital(listed(list(known)))


def card_rows(footprint: Footprint, runs: Sequence[ChargedRun], setting: Setting) -> tuple[tuple[str, str], ...]:
    """The section of a model card: label and text."""
    emitted = "not known: no energy could be read" if is_unread(footprint) else shown(footprint.grams).sentence
    return (
        ("Hardware Type", hardware(footprint, runs)),
        ("Hours used", time_in_words(footprint)),
        ("Cloud Provider", shortened(setting.site) if setting.site else unsaid(setting)),
        ("Compute Region", _location(footprint, setting) or "not known"),
        ("Carbon Emitted", emitted),
    )


# EU model documentation form


def gpai_rows(groups: Sequence[Group], setting: Setting) -> tuple[tuple[str, str], ...]:
    """The EU model documentation form: label and text."""
    training = [group for group in groups if group.kind not in _APART]
    facts = setting.facts
    compute = NOT_GIVEN if facts.flop is None else f"{_power_of_ten(facts.flop)}{NOBREAK}FLOP"
    rows = [("Model", said(facts.model)), ("Training compute", compute), *_training_rows(training)]
    rows += [(f"{capital(kind)}, apart", _apart(groups, kind)) for kind in _APART if any(group.kind == kind for group in groups)]
    return (*rows, ("Inference compute, benchmarked", NOT_GIVEN))


def _training_rows(groups: Sequence[Group]) -> list[tuple[str, str]]:
    if not groups:
        return [("Training time", "no training run among the records"), ("Training energy", "no training run among the records")]
    runs = [c for group in groups for c in group.runs]
    whole = total(runs)
    return [
        (
            "Training time, wall-clock" + (", summed over runs" if len(runs) > 1 else ""),
            "not known: no reading" if is_timeless(whole) else f"{plain(days(whole.run_seconds), 2)}{NOBREAK}days",
        ),
        ("Training time, hardware", _hardware_days(whole)),
        ("Training energy, IT equipment", _megawatt_hours(whole, whole.it_joules)),
        ("Training energy, whole facility", _megawatt_hours(whole, whole.facility_joules)),
        ("Method", _method_in_words(whole, runs)),
    ]


def _hardware_days(footprint: Footprint) -> str:
    if is_timeless(footprint):
        return "not known: no reading"
    seconds = footprint.gpu_seconds or footprint.run_seconds
    return f"{plain(days(seconds), 2)}{NOBREAK}{'GPU-days' if footprint.gpu_seconds else 'host-days'}"


def _megawatt_hours(footprint: Footprint, quantity: Quantity) -> str:
    if is_unread(footprint):
        return "not known: no energy could be read"
    return mwh_in_words(quantity)


def mwh_in_words(quantity: Quantity) -> str:
    """Energy in MWh with two significant digits, three where the interval allows: what the form asks for."""
    is_narrow = quantity.low > 0 and quantity.high / quantity.low <= _NARROW
    return f"{plain(mwh(quantity.value), 3 if is_narrow else 2)}{NOBREAK}MWh"


def _apart(groups: Sequence[Group], kind: str) -> str:
    whole = total([c for group in groups if group.kind == kind for c in group.runs])
    if is_unread(whole):
        return "energy not known: no reading"
    return f"{mwh_in_words(whole.it_joules)} of IT equipment, {mwh_in_words(whole.facility_joules)} of the facility; not in the rows of training"


def _method_in_words(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    """About a hundred words."""
    if is_unread(footprint):
        return f"{nothing_read(footprint)} Not covered: {listed(not_covered(footprint, runs))}."
    kinds = "; ".join(f"{_KIND_NAMES[kind]}: {method_of(footprint, kind)}" for kind, _ in footprint.kinds)
    it, facility = shown(footprint.it_joules), shown(footprint.facility_joules)
    covered = "" if is_estimate(footprint) else f"Readings cover {share_in_words(read_time(footprint, runs))} of the time. "
    return (
        f"{_how_known(footprint)}, device by device ({kinds}). The figure of the IT equipment is the sum over all training runs among the records, search, preliminary and "
        f"failed runs included where they were recorded; inference and evaluation are kept apart. Its 90{NOBREAK}% interval is {_interval(it)}. "
        f"The facility’s figure multiplies every part of it by the PUE of its time, {shown(footprint.pue).sentence} "
        f"({pue_basis(footprint, runs)}); its interval is {_interval(facility)}. "
        f"{covered}Not covered, and not estimated: {listed(not_covered(footprint, runs))}, "
        f"making the hardware, and runs without a record."
    )


def _how_known(footprint: Footprint) -> str:
    """Whether energy was read, modelled or typed in; the share of each where there is more than one."""
    shares = {words: math.fsum(share for origin, share in footprint.origins if origin in origins) for words, origins in _HOW_KNOWN.items()}
    present = [(words, share) for words, share in shares.items() if share > 0]
    if len(present) < 2:
        return f"Energy was {present[0][0] if present else next(iter(_HOW_KNOWN))}"
    parts = [f"{share_in_words(share)} was {words}" for words, share in present]
    return f"Of the energy, {listed(parts)}"


_HOW_KNOWN: dict[str, tuple[Origin, ...]] = {
    "read while the training ran": ("measured", "reported"),
    "modelled while the training ran": ("estimated",),
    "estimated from power and hours, not measured": ("assumed",),
}


_KIND_NAMES = {"gpu": "GPUs", "cpu": "processors", "dram": "memory", "node": "whole nodes", "other": "other devices"}


def _power_of_ten(number: float) -> str:
    """1.2e23, as a line of plain text has it."""
    return f"{number:.1e}".replace("e+", "e")


# ISO/IEC 21031


def sci_rows(footprint: Footprint, runs: Sequence[ChargedRun], groups: Sequence[Group], setting: Setting) -> tuple[tuple[str, str], ...]:
    """Software carbon intensity by ISO/IEC 21031: label and text."""
    if is_unread(footprint) or not footprint.facility_joules.value:
        return (("Score", "cannot be stated: " + ("no energy could be read" if is_unread(footprint) else "no energy was used")),)
    unit = functional_unit(groups, setting)
    count, name = (float(len(runs)), "run") if unit is None else (unit.items, unit.name)
    made = footprint.embodied.grams if footprint.embodied else None
    is_alike = made is None or made.unit == footprint.grams.unit
    score = _score(footprint.grams, made if is_alike else None, count)
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
            f"{plain(intensity)}{NOBREAK}{mass_name(footprint.grams.unit)}/kWh, location-based, average, weighted by energy; by {grids}. No market-based measure is in it",
        ),
        (
            "M, embodied",
            shown(made).sentence + ("" if is_alike else ", not added: the operation is counted in CO₂ alone")
            if made
            else "left out: no figure for the hardware given; the score is that of operation alone",
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


def _why(unit: FunctionalUnit | None, groups: Sequence[Group], setting: Setting) -> str:
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
