"""A lab's year in words and rows: rounded, each figure with how it is known. Pure; templates compute nothing."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from carbonreport.model.audit import Advice
from carbonreport.model.slices import is_slice
from carbonreport.render.audit_facts import AuditFacts, Report, Task
from carbonreport.render.audit_lines import lines_of
from carbonreport.render.audit_tables import tables_of
from carbonreport.render.audit_words import coverage, energy_text, hours_text, money, share, tied
from carbonreport.render.digits import scaled, shown
from carbonreport.units import kwh

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
        tasks=tuple(_task(advice, facts) for advice in facts.advice),
        no_tasks="Nothing stands out: what was looked at (boards that wait, jobs that did not finish, the lab's own sweeps, hours of the day, seasons) is small or not known.",
        tables=tuple(tables_of(facts)),
        findings=tuple(tied(text) for text in _findings(facts)),
        method=tuple(tied(text) for text in _method(facts)),
        notes=facts.notes,
    )


def _lead(facts: AuditFacts) -> list[str]:
    priced, year = facts.priced, facts.priced.year
    energy, grams = shown(priced.facility_joules), shown(priced.location_grams)
    if not year.whole.it_mj:
        sentences = [
            f"{year.jobs.jobs:,} jobs held {hours_text(year.jobs.gpu_us)} GPU-hours. Their energy is not known: nothing was metered, and nobody says which boards they had."
        ]
        return [*sentences, *_caveats(facts)]
    sentences = [
        f"{year.jobs.jobs:,} jobs held {hours_text(year.jobs.gpu_us)} GPU-hours; with idle boards and the facility's part the year used {energy.sentence}, "
        f"to which {grams.sentence} belong, location-based, {_where(facts)}.",
        f"{coverage(year.jobs)} of the GPU-hours have measured or reported energy; {share(year.whole.measured_mj, year.whole.it_mj)} of the IT energy was measured, "
        f"{share(year.whole.reported_mj, year.whole.it_mj)} reported and {share(year.whole.estimated_mj, year.whole.it_mj)} estimated.",
    ]
    return [*sentences, *_caveats(facts)]


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
            f"{hours_text(year.jobs.unknown_gpu_us)} GPU-hours have no energy at all, not even an estimate, since nobody knows their boards; they are missing, not 0."
        )
    return sentences


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
        found.append(f"{facts.repeated:,} rows of the ledger that another file reports too; each counts once")
    for name, rows, not_used, noted in facts.files:
        found.append("; ".join([f"{name}: {rows:,} rows used", *(f"{n:,} {what}" for what, n in (*not_used, *noted))]))
    return found


def _method(facts: AuditFacts) -> list[str]:
    split = facts.priced.year.whole.split_mj
    sentences = [
        "Energy by trust: counters and power samples of the boards; Slurm's energy of whole nodes where a job had them alone; else GPU time at the mean power that this lab measured of the board, or at a typical share of its rated power.",
        "Jobs are clipped at the year's edges in the site's time zone; energy without a reading is taken as even over a job's time.",
        "What boards' meters see is the boards alone: hosts, network and storage are in it only where a node's own meter was read, and are otherwise missing.",
        "Intervals of estimated energy are as wide as single jobs differ from the mean that stands for them, or as a rated power is off: as if all were off alike.",
        f"Location-based and market-based figures stand beside each other and are never added. Intensities are {facts.family}.",
        _PEOPLE[facts.people],
    ]
    if split:
        sentences.insert(
            1,
            f"Where several jobs had a host at once, its metered energy was shared out among them by GPU time ({energy_text(split)}): the sum is measured, the shares are estimated.",
        )
    return sentences
