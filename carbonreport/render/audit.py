"""A lab's year in words and rows: rounded, each figure with how it is known. Pure; templates compute nothing."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.audit import NOBODY, Advice, Group, Missing, Year, agreed, row_reason
from carbonreport.model.slices import is_slice
from carbonreport.render.audit_energy import compared
from carbonreport.render.audit_facts import AuditFacts, Report, Task
from carbonreport.render.audit_lines import lines_of
from carbonreport.render.audit_made import not_covered, rated_sentence
from carbonreport.render.audit_sums import year_scale
from carbonreport.render.audit_tables import tables_of
from carbonreport.render.audit_words import coverage, energy_text, hours_text, money, share, tied
from carbonreport.render.digits import scaled, shown
from carbonreport.render.words import capital, listed
from carbonreport.units import kwh

_MOST_PARTITIONS = 3
_MONTHS_A_YEAR = 12
_PEOPLE = {
    "names": "People are named, as was asked for.",
    "pseudonyms": "People are written as pseudonyms; whoever has the salt can make them from names, nobody else.",
    "none": "People are left out, as was asked for.",
}


def compose(facts: AuditFacts) -> Report:
    """The report of a year."""
    where = facts.site or facts.place
    until = datetime.fromtimestamp(facts.until_s, UTC).astimezone(ZoneInfo(facts.time_zone))
    period = (
        f"1 January {facts.year} to "
        + (f"{until:%-d %B %Y, %H:%M}, a year in progress" if facts.in_progress else f"31 December {facts.year}")
        + f" ({facts.time_zone})"
    )
    return Report(
        title=f"Energy and carbon of {facts.year}" + (f", {where}" if where else ""),
        period=period,
        made_by=facts.made_by,
        lead=tuple(_lead(facts)),
        lines=tuple(lines_of(facts)),
        under_lines=tuple(tied(text) for text in (compared(facts), not_covered(facts.priced)) if text),
        tasks=tuple(_task(advice, facts) for advice in facts.advice),
        no_tasks="Nothing stands out: what was looked at (boards that wait, jobs that did not finish, the lab's own sweeps, hours of the day, seasons) is small or not known.",
        tables=tuple(tables_of(facts)),
        findings=tuple(tied(text) for text in _findings(facts)),
        method=tuple(tied(text) for text in _method(facts)),
        notes=facts.notes,
    )


def _lead(facts: AuditFacts) -> list[str]:
    priced, year = facts.priced, facts.priced.year
    scale, grams = year_scale(priced), shown(priced.location_grams)
    ends = scale.ends(priced.facility_joules)
    energy = scale.text(year.whole.facility_joules) + (f" [{ends.replace('–', ', ')}]" if ends else "")
    held = _held(year.jobs)
    if year.known_whole is None:
        sentences = [f"{held}. {agreed('[Its|Their]', year.jobs.jobs)} energy is not known: nothing was metered."]
        return [*sentences, *_caveats(facts)]
    has_interval = ends or grams.interval
    sentences = [
        f"{held}; with {'' if year.known_idle is None else 'idle boards and '}the facility's part the year used {energy}, "
        f"to which {grams.sentence} belong, location-based, {_where(facts)}."
        + (" Brackets, and ranges, are 90 % intervals: in nine of ten cases the figure lies inside." if has_interval else ""),
        capital(
            f"{_covered(year)}{share(year.whole.measured_mj, year.whole.it_mj)} of the IT energy was measured, "
            f"{share(year.whole.reported_mj, year.whole.it_mj)} reported and {share(year.whole.estimated_mj, year.whole.it_mj)} estimated."
        ),
    ]
    return [*(tied(sentence) for sentence in sentences), *_caveats(facts)]


def _held(jobs: Group) -> str:
    """How many jobs there were, and what they held."""
    if not jobs.jobs:
        return "The ledger has no job of the year"
    return f"{jobs.jobs:,} {agreed('[job|jobs]', jobs.jobs)} held {hours_text(jobs.gpu_us) if jobs.gpu_us else 'no'} GPU-hours"


def _covered(year: Year) -> str:
    """How much of the GPU time has measured or reported energy, and whose the energy is where none has; nothing where jobs held none."""
    if not year.jobs.gpu_us:
        return ""
    if year.jobs.known_gpu_us:
        return f"{coverage(year.jobs)} of the GPU-hours have measured or reported energy; "
    metered, of_jobs = (energy.measured_mj + energy.reported_mj for energy in (year.whole, year.jobs.energy))
    whose = "of other devices than their boards" if of_jobs else "of no job in the ledger"
    return "none of the GPU-hours has measured or reported energy; " + (f"what was measured or reported is {whose}; " if metered else "")


def _where(facts: AuditFacts) -> str:
    return f"at the intensities of {facts.place}" if facts.place else "at the mean intensity of the world, since nobody gave a grid zone"


def _caveats(facts: AuditFacts) -> list[str]:
    """What limits the figures."""
    year, sentences = facts.priced.year, []
    if facts.in_progress:
        sentences.append("The year has not ended: the figures go up to the end of the period above, and are no forecast.")
    if year.running:
        sentences.append(
            f"{year.running:,} job{'s were' if year.running > 1 else ' was'} still running and count{'' if year.running > 1 else 's'} up to then."
        )
    slices_us = sum(group.gpu_us for group in year.groups["gpu_model"] if is_slice(group.name))
    if slices_us:
        sentences.append(
            f"{hours_text(slices_us)} of the GPU-hours are of slices of boards (MIG); a slice counts as its part of the board's compute where its name tells how large that is, else as a board."
        )
    if year.jobs.unknown_gpu_us:
        sentences.append(
            f"{hours_text(year.jobs.unknown_gpu_us)} GPU-hours have no energy at all, not even an estimate; they are missing, not zero. Of them {'; '.join(_missing(facts))}."
        )
    return sentences


def _missing(facts: AuditFacts) -> Iterator[str]:
    """Why GPU time has no energy, where that is, and the way out."""
    missing = facts.priced.year.missing
    slices = [one for one in missing if is_slice(one.gpu_model)]
    unnamed = [one for one in missing if one.gpu_model == NOBODY]
    others = [one for one in missing if one not in slices and one not in unnamed]
    models = ", ".join(dict.fromkeys(one.gpu_model for one in others))
    for some, why in (
        (unnamed, "are of boards that sacct does not name: --gpu NAME names them"),
        (slices, "are of slices of boards (MIG), of which no power is known: meter their boards"),
        (others, f"are of boards of which no power is known ({models}): meter them"),
    ):
        if some:
            yield f"{hours_text(sum(one.gpu_us for one in some))} in {_partitions(some)} {why}"


def _partitions(missing: Sequence[Missing]) -> str:
    """The partitions of some GPU time, those with the most first."""
    names = list(dict.fromkeys("one that is not said" if one.partition == NOBODY else one.partition for one in missing))
    more = [f"{len(names) - _MOST_PARTITIONS} more"] if len(names) > _MOST_PARTITIONS else []
    return f"{agreed('[partition|partitions]', len(names))} {listed([*names[:_MOST_PARTITIONS], *more])}"


def _task(advice: Advice, facts: AuditFacts) -> Task:
    parts = []
    upto = "up to " if advice.is_upper_bound else ""
    if advice.joules is not None:
        parts.append(f"{upto}{scaled(advice.joules, 'J')}")
        if advice.low is not None and advice.high is not None:
            parts[-1] += f" ({scaled(advice.low, 'J')} to {scaled(advice.high, 'J')})"
        if facts.per_kwh is not None:
            parts.append(money(kwh(advice.joules) * facts.per_kwh[0], facts.per_kwh[1]))
    if advice.grams is not None:
        verb = "" if advice.joules is not None else upto
        parts.append(f"{verb}{scaled(advice.grams, facts.gas)} of the location-based figure")
    return Task(tied(advice.title), ", ".join(parts), tied(advice.because))


def _findings(facts: AuditFacts) -> list[str]:
    year = facts.priced.year
    found = [f"{f.count:,} {f.text}" + ("" if f.energy_mj is None else f" ({energy_text(f.energy_mj)})") for f in year.findings]
    if facts.repeated:
        found.append(agreed(f"{facts.repeated:,} [row|rows] of the ledger that another file reports too; each counts once", facts.repeated))
    for name, rows, not_used, noted in facts.files:
        found.append(
            "; ".join([f"{name}: {rows:,} {agreed('[row|rows]', rows)} used", *(row_reason(n, what) for what, n in (*not_used, *noted))])
        )
    return found


def _method(facts: AuditFacts) -> list[str]:
    split, waiting = facts.priced.year.whole.split_mj, facts.priced.year.idle.estimated_mj
    sentences = [
        "Energy by trust: counters and power samples of the boards; Slurm's energy of whole nodes where a job had them alone; else GPU time at the mean power that this lab measured of the board, or at a typical share of its rated power.",
        "Jobs are clipped at the year's edges in the site's time zone; energy without a reading is taken as even over a job's time.",
        "What boards' meters see is the boards alone: hosts, network and storage are in it only where a node's own meter was read, and are otherwise missing.",
        "Intervals of estimated energy are as wide as single jobs differ from the mean that stands for them, or as a rated power is off: as if all were off alike.",
        f"Location-based and market-based figures stand beside each other and are never added. Intensities are {facts.family}.",
        _PEOPLE[facts.people],
    ]
    if waiting:
        sentences.insert(
            1,
            f"Where jobs had only a part of a host's metered GPU time in an hour, the rest is taken as idle at the idle power that this lab measured ({energy_text(waiting)}), and what is left of the metered energy is the jobs'.",
        )
    if split:
        sentences.insert(
            1,
            f"Where several jobs had a host in the same hour, its metered energy was shared out among them by GPU time ({energy_text(split)}): the sum is measured, the shares are estimated.",
        )
    rated = rated_sentence(facts.priced.rated)
    return [*sentences[:1], *([rated] if rated else []), *sentences[1:], *_last_year(facts)]


def _last_year(facts: AuditFacts) -> Iterator[str]:
    """How much of the year before stands beside, or why it does not."""
    months = facts.months_before
    if facts.before is None and months is not None:
        yield f"Last year does not stand beside: the ledger has hardly anything of {facts.year - 1}, jobs that ended or readings in {'none' if not months else 'one'} of its months, as where a file reaches over New Year."
    elif months is not None and months < _MONTHS_A_YEAR:
        yield f"Last year stands beside as far as the ledger has it: jobs that ended or readings in {months} of the 12 months of {facts.year - 1}."
