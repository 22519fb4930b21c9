"""The main figures of a year, each with its interval, its origin and its source, last year beside."""

from collections.abc import Callable

from carbonreport.model.audit import Priced
from carbonreport.render.audit_facts import AuditFacts, Line
from carbonreport.render.audit_words import (
    UNKNOWN,
    coverage,
    energy_or_unknown,
    energy_text,
    hours_text,
    known_in_words,
    money,
    origin_or_nothing,
)
from carbonreport.render.digits import plain, scaled, share_in_words, shown


def lines_of(facts: AuditFacts) -> list[Line]:
    """The figures, from IT energy to coverage; what is not known says so."""
    now, before = facts.priced, facts.before
    whole, year = now.year.whole, now.year
    sources = now.it_joules.source
    if year.known_whole is None:
        return [
            Line("IT energy", UNKNOWN, source="nothing was metered or reported, and no power of the boards is known"),
            Line(
                "GPU-hours held by jobs",
                hours_text(year.jobs.gpu_us),
                "",
                "" if before is None else hours_text(before.year.jobs.gpu_us),
                "reported",
                "Slurm, and records",
            ),
        ]
    return [
        Line(
            "IT energy",
            shown(now.it_joules).with_unit,
            shown(now.it_joules).interval,
            _last(before, lambda last: shown(last.it_joules).with_unit),
            known_in_words(whole),
            sources,
        ),
        Line(
            "  of jobs",
            energy_or_unknown(year.jobs.known_energy),
            "",
            "" if before is None else energy_or_unknown(before.year.jobs.known_energy),
            origin_or_nothing(year.jobs.known_energy),
            "job ledger",
        ),
        Line(
            "  idle: metered boards that no job had",
            energy_or_unknown(year.known_idle),
            "",
            "" if before is None else energy_or_unknown(before.year.known_idle),
            origin_or_nothing(year.known_idle),
            "meter ledger" if year.known_idle else "no board was metered on a host whose jobs are known",
        ),
        *(
            Line(f"  unattributed: {why}", energy_text(energy.it_mj), "", "", known_in_words(energy), "meter ledger")
            for why, energy in year.unattributed
        ),
        Line(
            "Facility overhead",
            scaled(max(whole.facility_joules - whole.it_joules, 0.0), "J"),
            "",
            _last(before, lambda last: scaled(max(last.year.whole.facility_joules - last.year.whole.it_joules, 0.0), "J")),
            now.pue.origin,
            f"PUE {shown(now.pue).value}, {now.pue.source}",
        ),
        Line(
            "Facility energy",
            shown(now.facility_joules).with_unit,
            shown(now.facility_joules).interval,
            _last(before, lambda last: shown(last.facility_joules).with_unit),
            now.facility_joules.origin,
            "IT energy of each moment times its PUE",
            True,
        ),
        Line(
            f"Electricity, location-based ({'scope 2, direct' if facts.is_direct else 'life-cycle: scope 2 and 3.3'})",
            shown(now.location_grams).with_unit,
            shown(now.location_grams).interval,
            _last(before, lambda last: shown(last.location_grams).with_unit),
            now.location_grams.origin,
            f"{now.location_grams.source}; {facts.family}",
            True,
        ),
        _market(facts),
        _embodied(facts),
        _cost(facts),
        Line(
            "GPU-hours held by jobs",
            hours_text(year.jobs.gpu_us),
            "",
            "" if before is None else hours_text(before.year.jobs.gpu_us),
            "reported",
            "Slurm, and records",
        ),
        _utilisation(facts),
        Line(
            "GPU-hours with measured or reported energy",
            coverage(year.jobs),
            "",
            "" if before is None else coverage(before.year.jobs),
            "counted",
            "both ledgers",
        ),
    ]


def _last(before: Priced | None, text: Callable[[Priced], str]) -> str:
    """Last year's figure of energy, or of what follows from it; a year of which no energy is known has none."""
    return "" if before is None else UNKNOWN if before.year.known_whole is None else text(before)


def _market(facts: AuditFacts) -> Line:
    label = "Electricity, market-based (beside the line above, never added to it)"
    found, contract = facts.priced.market_grams, facts.contract
    if found is None or contract is None:
        return Line(label, "not stated", known="", source="no [contract] in the site file: factor, share, instrument")
    before = _last(facts.before, lambda last: "" if last.market_grams is None else shown(last.market_grams).with_unit)
    source = f"{contract.instrument}: {contract.share * 100:.0f} % at {contract.grams_per_kwh:g} g/kWh"
    source += "" if contract.share >= 1 else "; the rest at the location-based intensity"
    return Line(
        label, shown(found).with_unit, shown(found).interval, before, "reported" if contract.share >= 1 else found.origin, source, True
    )


def _embodied(facts: AuditFacts) -> Line:
    found = facts.priced.embodied_grams
    if found is None:
        return Line(
            "Making of the boards (scope 3)", "not stated", known="", source="no [embodied] in the site file that names these boards"
        )
    before = "" if facts.before is None or facts.before.embodied_grams is None else shown(facts.before.embodied_grams).with_unit
    return Line(
        "Making of the boards (scope 3), for the hours that jobs held",
        shown(found).with_unit,
        shown(found).interval,
        before,
        found.origin,
        "; ".join(facts.priced.embodied_basis),
    )


def _cost(facts: AuditFacts) -> Line:
    if facts.priced.cost is None or facts.per_kwh is None:
        return Line("Cost of the electricity", "not stated", known="", source="no [price] in the site file")
    amount, currency = facts.priced.cost
    joules = facts.priced.facility_joules
    ends = "–".join(plain(amount * end / joules.value) for end in (joules.low, joules.high)) if joules.value else ""
    before = _last(facts.before, lambda last: "" if last.cost is None else money(*last.cost))
    return Line(
        "Cost of the electricity",
        money(amount, currency),
        ends,
        before,
        facts.priced.facility_joules.origin,
        f"{facts.per_kwh[0]:g} {facts.per_kwh[1]} for each kWh at the facility's meter",
    )


def _utilisation(facts: AuditFacts) -> Line:
    def text(priced: Priced | None) -> str:
        return (
            "" if priced is None or not priced.year.metered_gpu_us else share_in_words(priced.year.busy_gpu_us / priced.year.metered_gpu_us)
        )

    value = text(facts.priced)
    label = "Occupancy: GPU-hours held by jobs, of those metered"
    if not value:
        return Line(label, "not known", known="", source="no meter covers the boards of hosts whose jobs are known by host")
    return Line(
        label,
        value,
        "",
        text(facts.before),
        "counted",
        f"{hours_text(facts.priced.year.metered_gpu_us)} metered GPU-hours on hosts whose jobs are known",
    )
