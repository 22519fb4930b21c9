"""The tables of a year: months, groups of jobs, and the jobs with the most energy."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.audit import Dimension, Energy, Group, TopJob
from carbonreport.render.audit_facts import AuditFacts, Table
from carbonreport.render.audit_words import energy_text, hours_text, known_in_words, label_of, table_unit
from carbonreport.render.digits import plain, scaled, share_in_words
from carbonreport.units import MJ_PER_J, US_PER_S

_MOST_ROWS = 25
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
        if len(groups) > 1 or (groups and groups[0].name != "not said"):
            tables.append(_groups(title, dimension, groups, facts))
    if year.top:
        tables.append(_top(facts))
    return tables


def _months(facts: AuditFacts) -> Table:
    before = {} if facts.before is None else {month[5:]: energy for month, energy in facts.before.year.months}
    unit, size = table_unit(max((energy.facility_joules for _, energy in facts.priced.year.months), default=0.0))
    rows = []
    for month, energy in facts.priced.year.months:
        pue = energy.facility_joules / energy.it_joules if energy.it_mj else 0.0
        last = before.get(month[5:])
        rows.append(
            (
                month,
                *(plain(mj / MJ_PER_J / size) for mj in (energy.measured_mj, energy.reported_mj, energy.estimated_mj)),
                plain(max(energy.facility_joules - energy.it_joules, 0.0) / size),
                plain(energy.facility_joules / size),
                f"{pue:.2f}" if energy.it_mj else "",
                scaled(energy.grams, facts.gas) if energy.it_mj else "0",
                "" if last is None else plain(last.facility_joules / size),
            )
        )
    caption = f"Energy in {unit}, idle and unattributed energy included. Parts are rounded and may not add."
    columns = ("Month", "Measured", "Reported", "Estimated", "Overhead", "Facility", "PUE", "Location-based", "Facility, last year")
    if facts.before is None:
        return Table("By month", caption, columns[:-1], tuple(row[:-1] for row in rows))
    return Table("By month", caption, columns, tuple(rows))


def _groups(title: str, dimension: Dimension, groups: Sequence[Group], facts: AuditFacts) -> Table:
    unit, size = table_unit(max((group.energy.it_joules for group in groups), default=0.0))
    whole = max(sum(group.energy.it_mj for group in groups), 1)
    before = {} if facts.before is None else {group.name: group for group in facts.before.year.groups[dimension]}
    rows = []
    for group in groups[:_MOST_ROWS]:
        energy = group.energy
        last = before.get(group.name)
        rows.append(
            (
                label_of(group.name, dimension),
                f"{group.jobs:,}",
                hours_text(group.gpu_us),
                plain(energy.it_joules / size) if energy.it_mj else "unknown" if group.gpu_us else "0",
                share_in_words(energy.it_mj / whole),
                known_in_words(energy),
                plain(energy.facility_joules / size) if energy.it_mj else "",
                scaled(energy.grams, facts.gas) if energy.it_mj else "",
                *(() if facts.before is None else ("" if last is None else plain(last.energy.it_joules / size),)),
            )
        )
    rest = groups[_MOST_ROWS:]
    if rest:
        more = sum((group.energy for group in rest), Energy())
        rows.append(
            (
                f"{len(rest)} more",
                f"{sum(g.jobs for g in rest):,}",
                hours_text(sum(g.gpu_us for g in rest)),
                plain(more.it_joules / size),
                share_in_words(more.it_mj / whole),
                known_in_words(more),
                plain(more.facility_joules / size),
                scaled(more.grams, facts.gas),
                *(() if facts.before is None else ("",)),
            )
        )
    caption = f"Energy of jobs in {unit}; idle and unattributed energy is nobody's and stands above. Parts are rounded and may not add."
    columns = (
        title.removeprefix("By ")[:1].upper() + title.removeprefix("By ")[1:],
        "Jobs",
        "GPU-hours",
        "IT energy",
        "Share",
        "How known",
        "Facility",
        "Location-based",
    )
    return Table(title, caption, (*columns, "IT, last year") if facts.before is not None else columns, tuple(rows))


def _top(facts: AuditFacts) -> Table:
    with_person = facts.people != "none"

    def row(job: TopJob) -> tuple[str, ...]:
        start = datetime.fromtimestamp(job.start_us / US_PER_S, UTC).astimezone(ZoneInfo(facts.time_zone))
        board = f"{job.gpus} × {job.gpu_model or 'GPU'}" if job.gpus else "no GPU"
        return (
            job.job_id, job.project, *((job.person,) if with_person else ()), board, f"{start:%Y-%m-%d %H:%M}", plain(job.hours), job.state.lower().replace("_", " "),
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
