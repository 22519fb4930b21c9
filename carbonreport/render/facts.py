"""What forms ask for, in sentences and rows: compute, project, set-up, statistics, model card, EU documentation form, SCI."""

from collections.abc import Sequence
from dataclasses import replace

from carbonreport.combine.overlap import one_a_job
from carbonreport.model.footprint import ChargedRun, Footprint
from carbonreport.model.statement import Details
from carbonreport.render.caps import settings_of
from carbonreport.render.digits import Shown, counted, duration, percent, plain, shown
from carbonreport.render.form_words import NOBREAK, NOT_GIVEN, functional_unit, said, time_in_words, unsaid
from carbonreport.render.forms import card, card_rows, gpai_rows, sci_rows
from carbonreport.render.paragraph import nothing_read
from carbonreport.render.paragraph_purpose import preparation_shares, project_hours
from carbonreport.render.paragraph_ran import place_in_words, what_ran
from carbonreport.render.setting import (
    Group,
    Setting,
    gpu_count,
    is_gpu_only,
    is_mostly_estimate,
    is_unread,
    not_covered,
    reason_left_out,
)
from carbonreport.render.table import hardware, spread_of
from carbonreport.render.words import capital, count_in_words, in_scale, listed, shortened

_NO_LENGTH = "The runs have no length, so that there is nothing to charge."
_SEARCH = ("search", "preliminary", "failed")
_APART = ("inference", "evaluation")
_MOST_GROUPS = 4


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
        card=card(footprint, setting),
        card_rows=card_rows(footprint, runs, setting),
        gpai_rows=gpai_rows(groups, setting),
        sci_rows=sci_rows(footprint, runs, groups, setting),
    )


# Compute


def _workers(footprint: Footprint, runs: Sequence[ChargedRun], setting: Setting) -> str:
    kind = "GPU" if gpu_count(footprint) else "CPU" if footprint.devices else "Compute"
    known = f"{kind} workers: {hardware(footprint, runs)}, {place_in_words(footprint, setting)}"
    return f"{known}." if setting.site else f"{known}; whether an internal cluster or a cloud: {unsaid(setting)}."


def _memory(setting: Setting) -> str:
    facts = setting.facts
    memory = NOT_GIVEN if facts.memory_gb is None else f"{counted(facts.memory_gb)}{NOBREAK}GB"
    return f"Memory of a worker: {memory}; storage: {said(facts.storage)}."


def _each_run(runs: Sequence[ChargedRun], groups: Sequence[Group]) -> str:
    if len(runs) == 1:
        return f"The one run took {time_in_words(groups[0].footprint)} and {_it_energy(groups[0].footprint)}."
    parts = [_group_in_words(group) for group in groups[:_MOST_GROUPS]]
    more = len(groups) - _MOST_GROUPS
    return f"By name: {'; '.join([*parts, *([f'and {count_in_words(more)} more'] if more > 0 else [])])}."


def _group_in_words(group: Group) -> str:
    many, mean = len(group.runs), group.footprint.run_seconds / len(group.runs)
    called = f"“{shortened(group.name, 40)}”" if group.names == 1 else f"runs of {count_in_words(group.names)} names"
    if many == 1:
        return f"{called} ({group.kind}): {time_in_words(group.footprint)} and {_it_energy(group.footprint)}"
    return f"{called} ({group.kind}): {count_in_words(many)} runs of {duration(mean)} in the mean, {_it_energy(group.footprint)} together"


def _it_energy(footprint: Footprint) -> str:
    return "an unknown IT energy" if is_unread(footprint) else f"{shown(footprint.it_joules).with_unit} of IT energy"


def _in_all(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    count = len(one_a_job(runs))
    return f"In all: {count_in_words(count)} run{'s' if count != 1 else ''}, {time_in_words(footprint)}."


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
        return nothing_read(footprint)
    if footprint.run_seconds == 0:
        return _NO_LENGTH
    many = len(runs) > 1
    who = f"The run{'s' if many else ''}"
    used = f"{who} {'are' if many else 'is'} estimated to have used" if is_mostly_estimate(footprint) else f"{who} used"
    gpus = f", the GPU{'s' if gpu_count(footprint) > 1 else ''} alone" if is_gpu_only(footprint) else ""
    factor = {"lifecycle": ", life-cycle", "direct": ", direct"}.get(footprint.grids[0].family.factor, "")
    facility = shown(footprint.facility_joules).sentence
    return (
        f"{used} {shown(footprint.it_joules).sentence} of IT energy and, at a PUE of {shown(footprint.pue).sentence}, {facility} at the facility’s meter{gpus}; "
        f"location-based{factor} emissions are estimated at {shown(footprint.grams).sentence}; intervals are 90{NOBREAK}%."
    )


# Model, set-up, statistics


def _parameters(setting: Setting) -> str:
    facts = setting.facts
    of_model = f" of {shortened(facts.model)}" if facts.model else ""
    number = NOT_GIVEN if facts.parameters is None else in_scale(facts.parameters)
    return f"Number of parameters{of_model}: {number}."


def _setup(footprint: Footprint, runs: Sequence[ChargedRun]) -> str:
    versions = [f"{name} {shortened(value)}" for name in ("driver", "python") for value in _values(runs, name)[:2]]
    spans = list(dict.fromkeys(shortened(span.path, 40) for span in footprint.spans if span.is_top_level))
    what = f"time, and energy by hour, of {hardware(footprint, runs)}" if footprint.devices else "time"
    recorded = [what, *versions, *([f"spans {listed(spans[:_MOST_GROUPS])}"] if spans else [])]
    settings = "".join(f" {sentence.text}" for sentence in settings_of(runs))
    return f"Recorded: {'; '.join(recorded)}.{settings} Values of hyper-parameters: not recorded."


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


def _adoption(groups: Sequence[Group], setting: Setting) -> str:
    """A year of use at the energy of one item; nothing where no unit or no use was given."""
    uses, unit = setting.facts.uses_per_year, functional_unit(groups, setting)
    if uses is None or unit is None or not unit.facility_joules.value:
        return ""
    times, whole = uses / unit.items, unit.facility_joules
    year = replace(whole, value=whole.value * times, low=whole.low * times, high=whole.high * times)
    return (
        f"At {in_scale(uses)} uses a year, each of the energy of one {unit.name}, use takes {shown(year).sentence} a year at the "
        f"facility’s meter; whether demand grows with it is not known."
    )
