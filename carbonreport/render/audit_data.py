"""A lab's year for programs: as CSV and as JSON, unrounded; what nobody knows is an empty cell, or null."""

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from carbonreport.model.audit import Energy, Group, Priced
from carbonreport.model.quantity import Quantity
from carbonreport.render.audit_facts import AuditFacts
from carbonreport.units import hours_from_microseconds, kilograms, kwh, kwh_from_millijoules


def as_csv(facts: AuditFacts) -> str:
    """One row a group, energies in kWh, unrounded, empty where unknown; the first line says what made it."""
    text = io.StringIO()
    text.write(f"# written by {facts.made_by}; energy in kWh, emissions in kg, location-based\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "dimension",
            "name",
            "jobs",
            "gpu_hours",
            "gpu_hours_known",
            "gpu_hours_unknown",
            "measured_kwh",
            "reported_kwh",
            "estimated_kwh",
            "it_kwh",
            "facility_kwh",
            "location_kg",
        ]
    )
    year = facts.priced.year
    for dimension, group in (("all", year.jobs), *((d, g) for d, groups in year.groups.items() for g in groups)):
        writer.writerow([dimension, _plain_cell(group.name), *_hours_of(group), *_kwh_of(group.known_energy)])
    for name, known in (
        ("idle", year.known_idle),
        *((f"unattributed: {why}", energy) for why, energy in year.unattributed),
        ("everything", year.known_whole),
    ):
        writer.writerow(["all", name, "", "", "", "", *_kwh_of(known)])
    for month, energy in year.known_months:
        writer.writerow(["month, everything", month, "", "", "", "", *_kwh_of(energy)])
    return text.getvalue()


def _plain_cell(text: str) -> str:
    """A name that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") or text[:1] in ("\t", "\r", "\n") else text


def _hours_of(group: Group) -> list[Any]:
    return [group.jobs, *(hours_from_microseconds(us) for us in (group.gpu_us, group.known_gpu_us, group.unknown_gpu_us))]


def _kwh_of(energy: Energy | None) -> list[float | str]:
    """Cells of an energy; empty ones where nobody knows it."""
    if energy is None:
        return [""] * 6
    parts = (energy.measured_mj, energy.reported_mj, energy.estimated_mj, energy.it_mj)
    return [*(kwh_from_millijoules(mj) for mj in parts), kwh(energy.facility_joules), kilograms(energy.grams)]


def as_json(facts: AuditFacts) -> str:
    """Everything, unrounded: energies of groups in whole millijoules, null where nobody knows them."""
    held = {
        "carbonreport_audit": 1,
        "made_by": facts.made_by,
        "year": facts.year,
        "time_zone": facts.time_zone,
        "until_s": facts.until_s,
        "in_progress": facts.in_progress,
        "place": facts.place,
        "intensities": facts.family,
        "people": facts.people,
        **_priced(facts.priced),
        "last_year": None if facts.before is None else _priced(facts.before),
        "last_year_months": facts.months_before,
        "contract": None
        if facts.contract is None
        else {"instrument": facts.contract.instrument, "share": facts.contract.share, "grams_per_kwh": facts.contract.grams_per_kwh},
        "advice": [
            {
                "slug": a.slug,
                "title": a.title,
                "because": a.because,
                "joules": a.joules,
                "low": a.low,
                "high": a.high,
                "grams": a.grams,
                "is_upper_bound": a.is_upper_bound,
            }
            for a in facts.advice
        ],
        "weekday_hours_joules": facts.weekday_hours.tolist(),
        "files": [
            {"name": name, "rows": rows, "not_used": [[why, n] for why, n in not_used], "noted": [[what, n] for what, n in noted]}
            for name, rows, not_used, noted in facts.files
        ],
        "repeated_rows": facts.repeated,
        "notes": [{"slug": slug, "text": text} for slug, text in facts.notes],
    }
    return json.dumps(held, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _priced(priced: Priced) -> dict[str, Any]:
    year = priced.year
    is_known = year.known_whole is not None
    return {
        "it_joules": _quantity(priced.it_joules if is_known else None),
        "facility_joules": _quantity(priced.facility_joules if is_known else None),
        "location_based": _quantity(priced.location_grams if is_known else None),
        "market_based": _quantity(priced.market_grams if is_known else None),
        "embodied": _quantity(priced.embodied_grams),
        "embodied_basis": list(priced.embodied_basis),
        "embodied_for": _hours_by_board(priced.embodied_for),
        "embodied_missing": _hours_by_board(priced.embodied_missing),
        "embodied_unused": list(priced.embodied_unused),
        "rated_powers": [
            {
                "gpu_model": power.gpu_model,
                "boards": [{"name": name, "rated_watts": watts} for name, watts in power.boards],
                "share": power.share,
                "watts": power.watts,
                "energy_mj": power.energy_mj,
            }
            for power in priced.rated
        ],
        "cost": None if priced.cost is None or not is_known else {"amount": priced.cost[0], "currency": priced.cost[1]},
        "jobs": _group(year.jobs),
        "idle": _energy(year.known_idle),
        "unattributed": [{"why": why, **_energy(energy)} for why, energy in year.unattributed],
        "everything": _energy(year.known_whole),
        "months": [{"month": month, **_energy(energy)} for month, energy in year.known_months],
        "groups": {dimension: [_group(group) for group in groups] for dimension, groups in year.groups.items()},
        "top": [
            {
                "job": job.job_id,
                "project": job.project,
                "person": job.person,
                "gpu_model": job.gpu_model,
                "gpus": job.gpus,
                "state": job.state,
                "start_us": job.start_us,
                "hours": job.hours,
                **_energy(job.energy),
            }
            for job in year.top
        ],
        "gpu_hours": {
            name: hours_from_microseconds(us)
            for name, us in (("metered", year.metered_gpu_us), ("busy", year.busy_gpu_us), ("idle", year.idle_gpu_us))
        },
        "running": year.running,
        "without_energy": [
            {"gpu_model": one.gpu_model, "partition": one.partition, "gpu_hours": hours_from_microseconds(one.gpu_us)}
            for one in year.missing
        ],
        "findings": [{"slug": f.slug, "text": f.text, "count": f.count, "energy_mj": f.energy_mj} for f in year.findings],
    }


def _hours_by_board(boards: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"gpu_model": name, "gpu_hours": hours_from_microseconds(us)} for name, us in boards]


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "jobs": group.jobs,
        "gpu_us": group.gpu_us,
        "known_gpu_us": group.known_gpu_us,
        "unknown_gpu_us": group.unknown_gpu_us,
        **_energy(group.known_energy),
    }


def _energy(energy: Energy | None) -> dict[str, Any]:
    names = ("measured_mj", "reported_mj", "estimated_mj", "it_mj", "split_mj", "facility_joules", "grams")
    return {name: None if energy is None else getattr(energy, name) for name in names}


def _quantity(quantity: Quantity | None) -> dict[str, Any] | None:
    if quantity is None:
        return None
    return {
        "value": quantity.value,
        "low": quantity.low,
        "high": quantity.high,
        "unit": quantity.unit,
        "origin": quantity.origin,
        "source": quantity.source,
    }
