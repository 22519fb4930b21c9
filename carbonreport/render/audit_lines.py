"""The main figures of a year, each with its interval, its origin and its source, last year beside."""

from collections.abc import Callable

from carbonreport.model.audit import Priced
from carbonreport.render.audit_energy import energy_lines
from carbonreport.render.audit_facts import AuditFacts, Line
from carbonreport.render.audit_made import made_line
from carbonreport.render.audit_words import UNKNOWN, coverage, hours_text, money
from carbonreport.render.digits import plain, share_in_words, shown


def lines_of(facts: AuditFacts) -> list[Line]:
    """The figures, from IT energy to coverage; what is not known says so."""
    now, before = facts.priced, facts.before
    year = now.year
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
        *energy_lines(facts),
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
        made_line(facts),
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
