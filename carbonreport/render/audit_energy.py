"""The energies of a year, which add up: parts of the IT energy, the facility's overhead, and both together."""

from collections.abc import Callable

from carbonreport.model.audit import Energy, Priced, Year
from carbonreport.model.origin import weakest
from carbonreport.render.audit_facts import AuditFacts, Line
from carbonreport.render.audit_sums import overhead, year_scale
from carbonreport.render.audit_words import UNKNOWN, known_in_words, origin_or_nothing, share
from carbonreport.render.digits import shown

_MUCH = 0.2  # of the energy: where so much more or less was measured, a change may be the method's


def energy_lines(facts: AuditFacts) -> list[Line]:
    """IT energy with its parts, overhead and facility energy, all in one unit."""
    now, year, whole = facts.priced, facts.priced.year, facts.priced.year.whole
    before = None if facts.before is None or facts.before.year.known_whole is None else facts.before
    scale = year_scale(now)
    last_scale = None if before is None else year_scale(before, like=scale)

    def last(joules: Callable[[Priced], float | None]) -> str:
        if before is None or last_scale is None:
            return "" if facts.before is None else UNKNOWN
        found = joules(before)
        return UNKNOWN if found is None else last_scale.text(found)

    def part(energy: Energy | None) -> str:
        return UNKNOWN if energy is None else scale.text(energy.it_joules)

    return [
        Line(
            "IT energy",
            scale.text(whole.it_joules),
            scale.ends(now.it_joules),
            last(lambda priced: priced.year.whole.it_joules),
            known_in_words(whole),
            now.it_joules.source,
        ),
        Line(
            "of which jobs",
            part(year.jobs.known_energy),
            "",
            last(lambda priced: _it(priced.year.jobs.known_energy)),
            origin_or_nothing(year.jobs.known_energy),
            "job ledger",
            is_part=True,
        ),
        Line(
            "of which idle: metered boards that no job had",
            part(year.known_idle),
            "",
            last(lambda priced: _it(priced.year.known_idle)),
            origin_or_nothing(year.known_idle),
            _source_of_idle(year),
            is_part=True,
        ),
        *(
            Line(f"of which unattributed: {why}", part(energy), "", "", known_in_words(energy), "meter ledger", is_part=True)
            for why, energy in year.unattributed
        ),
        Line(
            "Facility overhead",
            scale.text(overhead(whole.facility_joules, whole.it_joules)),
            "",
            last(lambda priced: overhead(priced.year.whole.facility_joules, priced.year.whole.it_joules)),
            weakest(now.pue.origin, now.it_joules.origin),
            f"PUE {shown(now.pue).value}, {now.pue.source}",
        ),
        Line(
            "Facility energy",
            scale.text(whole.facility_joules),
            scale.ends(now.facility_joules),
            last(lambda priced: priced.year.whole.facility_joules),
            now.facility_joules.origin,
            "IT energy of each moment times its PUE",
            True,
        ),
    ]


def _source_of_idle(year: Year) -> str:
    if year.known_idle is not None:
        return "meter ledger"
    if not year.metered_gpu_us:
        return "no board was metered on a host whose jobs are known"
    return "boards waited beside jobs, and no hour without a job was metered: that energy is the jobs'"


def _it(energy: Energy | None) -> float | None:
    return None if energy is None else energy.it_joules


def compared(facts: AuditFacts) -> str:
    """A word on last year's figures where they were known in another way, else nothing."""
    now, last = facts.priced.year.known_whole, None if facts.before is None else facts.before.year.known_whole
    if now is None or last is None:
        return ""
    parts = (("measured", now.measured_mj, last.measured_mj), ("reported", now.reported_mj, last.reported_mj))
    told = [
        f"{share(mj, now.it_mj)} was {word} this year, {share(mj_before, last.it_mj)} last year"
        for word, mj, mj_before in parts
        if abs(mj / now.it_mj - mj_before / last.it_mj) > _MUCH
    ]
    return f"Of the IT energy {'; '.join(told)}: a part of the change since last year is the method's." if told else ""
