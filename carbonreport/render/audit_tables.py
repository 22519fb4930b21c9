"""The tables of a year: months, groups of jobs, and the jobs with the most energy."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.audit import NOBODY, Dimension, Energy, Group, TopJob, outcome_words
from carbonreport.render.audit_facts import AuditFacts, Table
from carbonreport.render.audit_sums import Scale, energy_scale, finest, groups_scales, mass_scale, overhead
from carbonreport.render.audit_words import UNKNOWN, energy_text, hours_text, known_in_words, label_of, table_unit
from carbonreport.render.digits import plain, scaled, share_in_words
from carbonreport.units import MJ_PER_J, US_PER_S

_MOST_ROWS = 25
_WITHOUT = "GPU-hours without energy"
_TITLES: dict[Dimension, str] = {
    "project": "By project",
    "person": "By person",
    "partition": "By partition",
    "gpu_model": "By GPU model",
    "outcome": "By how jobs ended",
}


def tables_of(facts: AuditFacts) -> list[Table]:
    """The tables that have something to say."""
    year = facts.priced.year
    tables = [_months(facts)]
    for dimension, title in _TITLES.items():
        groups = year.groups[dimension]
        if dimension == "person" and facts.people == "none":
            continue
        if len(groups) > 1 or (groups and groups[0].name != NOBODY):
            tables.append(_groups(title, dimension, groups, facts))
    if year.top:
        tables.append(_top(facts))
    return tables


def _months(facts: AuditFacts) -> Table:
    year, before = facts.priced.year, None if facts.before is None else facts.before.year
    last = {} if before is None else {month[5:]: (energy, month in before.unknown_months) for month, energy in before.known_months}
    without = {group.name: group.unknown_gpu_us for group in year.groups["month"]}
    unit = table_unit(max((energy.facility_joules for _, energy in year.months), default=0.0))
    energies = [energy for _, energy in year.months]
    scale = _months_scale(energies, unit)
    grams = mass_scale(sum(energy.grams for energy in energies), [energy.grams for energy in energies], facts.gas)
    rows = [
        (
            month,
            *_month(energy, scale, grams, is_unknown=month in year.unknown_months),
            *((hours_text(without[month]) if month in without else "",) if year.missing else ()),
            *(() if before is None else (_facility(*last.get(month[5:], (None, False)), scale),)),
        )
        for month, energy in year.known_months
    ]
    columns = (
        *("Month", "Measured", "Reported", "Estimated", "Overhead", "Facility", "PUE", "Location-based"),
        *((_WITHOUT,) if year.missing else ()),
        *(() if before is None else ("Facility, last year",)),
    )
    empty = any(energy is None and month not in year.unknown_months for month, energy in year.known_months)
    caption = (
        f"Energy in {scale.unit}, idle and unattributed energy included; the parts add up to the facility's within the last digit."
        + (" Of an empty month the ledger has no energy and no job." if empty else "")
    )
    return Table("By month", caption, columns, tuple(rows))


def _months_scale(energies: Sequence[Energy], unit: tuple[str, float]) -> Scale:
    """Three digits of the largest month, and as many more as its parts need to add up; so, too, the months to the year."""
    parts = [(e.measured_mj / MJ_PER_J, e.reported_mj / MJ_PER_J, e.estimated_mj / MJ_PER_J, _overhead(e)) for e in energies]
    facility = [energy.facility_joules for energy in energies]
    largest = energy_scale([(max(facility, default=0.0), [max(facility, default=0.0)])], unit=unit)
    return finest(largest, [(sum(facility), facility), *zip(facility, parts, strict=True)])


def _overhead(energy: Energy) -> float:
    return overhead(energy.facility_joules, energy.it_joules)


def _month(energy: Energy | None, scale: Scale, grams: Scale, *, is_unknown: bool) -> tuple[str, ...]:
    """Measured, reported, estimated, overhead, facility, PUE and emissions of a month."""
    if energy is None:
        return (*("", "", "", ""), UNKNOWN, "", UNKNOWN) if is_unknown else ("",) * 7
    return (
        *(scale.number(mj / MJ_PER_J) for mj in (energy.measured_mj, energy.reported_mj, energy.estimated_mj)),
        scale.number(_overhead(energy)),
        scale.number(energy.facility_joules),
        f"{energy.facility_joules / energy.it_joules:.2f}" if energy.it_mj else "",
        grams.text(energy.grams),
    )


def _facility(energy: Energy | None, is_unknown: bool, scale: Scale) -> str:
    if energy is None:
        return UNKNOWN if is_unknown else ""
    return scale.number(energy.facility_joules)


def _groups(title: str, dimension: Dimension, groups: Sequence[Group], facts: AuditFacts) -> Table:
    unit = table_unit(max((group.energy.it_joules for group in groups), default=0.0))
    scale, grams = groups_scales(groups, unit, facts.gas)
    whole = max(sum(group.energy.it_mj for group in groups), 1)
    before = {} if facts.before is None else {group.name: group for group in facts.before.year.groups[dimension]}
    has_missing = bool(facts.priced.year.missing)

    def row(name: str, group: Group, last: Group | None) -> tuple[str, ...]:
        energy = group.known_energy
        known = (UNKNOWN, UNKNOWN, "", UNKNOWN, UNKNOWN)
        if energy is not None:
            parts = (share_in_words(energy.it_mj / whole), known_in_words(energy), scale.number(energy.facility_joules))
            known = (scale.number(energy.it_joules), *parts, grams.text(energy.grams))
        return (
            *(name, f"{group.jobs:,}", hours_text(group.gpu_us), *known),
            *((hours_text(group.unknown_gpu_us),) if has_missing else ()),
            *(() if facts.before is None else (_it(last, scale),)),
        )

    rows = [row(label_of(group.name, dimension), group, before.get(group.name)) for group in groups[:_MOST_ROWS]]
    rest = groups[_MOST_ROWS:]
    if rest:
        rows.append(row(f"{len(rest)} more", _together(rest), None))
    caption = (
        f"Energy of jobs in {scale.unit}; idle and unattributed energy is nobody's and stands above. A share is of the energy of all jobs"
    )
    caption += ", as far as that is known." if any(group.unknown_gpu_us for group in groups) else "."
    columns = (
        title.removeprefix("By ")[:1].upper() + title.removeprefix("By ")[1:],
        "Jobs",
        "GPU-hours",
        "IT energy",
        "Share",
        "How known",
        "Facility",
        "Location-based",
        *((_WITHOUT,) if has_missing else ()),
        *(() if facts.before is None else ("IT, last year",)),
    )
    return Table(title, caption, columns, tuple(rows))


def _it(last: Group | None, scale: Scale) -> str:
    """Last year's IT energy of a group; nothing where it was not there."""
    if last is None:
        return ""
    return UNKNOWN if last.known_energy is None else scale.number(last.known_energy.it_joules)


def _together(groups: Sequence[Group]) -> Group:
    """Several groups as one."""
    return Group(
        "",
        sum(group.jobs for group in groups),
        sum(group.gpu_us for group in groups),
        sum(group.known_gpu_us for group in groups),
        sum(group.unknown_gpu_us for group in groups),
        sum((group.energy for group in groups), Energy()),
    )


def _top(facts: AuditFacts) -> Table:
    with_person = facts.people != "none"

    def row(job: TopJob) -> tuple[str, ...]:
        start = datetime.fromtimestamp(job.start_us / US_PER_S, UTC).astimezone(ZoneInfo(facts.time_zone))
        board = f"{job.gpus} × {job.gpu_model or 'GPU'}" if job.gpus else "no GPU"
        return (
            job.job_id, job.project, *((job.person,) if with_person else ()), board, f"{start:%Y-%m-%d %H:%M}", plain(job.hours), outcome_words(job.state),
            energy_text(job.energy.it_mj), known_in_words(job.energy), scaled(job.energy.grams, facts.gas),
        )  # fmt: skip

    columns = (
        "Job",
        "Project",
        *(("Person",) if with_person else ()),
        "Boards",
        "Began",
        "Hours in the year",
        "Ended",
        "IT energy",
        "How known",
        "Location-based",
    )
    return Table("The jobs with the most energy", "IT energy within the year.", columns, tuple(row(job) for job in facts.priced.year.top))
