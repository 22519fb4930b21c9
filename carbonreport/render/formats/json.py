"""JSON: the numbers in full, units in the names; what `show --json` prints."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from carbonreport.model.footprint import DeviceEnergy, Footprint, SpanEnergy
from carbonreport.model.quantity import Quantity
from carbonreport.model.statement import Statement
from carbonreport.render.setting import is_too_short, is_unread
from carbonreport.units import SECONDS_PER_HOUR, kwh

MARK = "written_by"


def create(options: Mapping[str, str]) -> "Json":
    """The JSON format; it has no options."""
    return Json()


def available() -> str | None:
    """Why JSON cannot be written: never."""
    return None


class Json:
    """Renders a statement with its numbers."""

    suffix = ".json"

    def render(self, statement: Statement, footprint: Footprint, style: str, *, has_bib: bool) -> str:
        """The object of `show --json` plus the statement's sections."""
        return dumps(
            {
                MARK: statement.made_by,
                **footprint_object(footprint, has_dates=not statement.is_anonymous),
                "sections": statement_object(statement),
                **inputs_object(statement, footprint),
            }
        )


def inputs_object(s: Statement, f: Footprint) -> dict[str, Any]:
    """What the statement was made of: hashes of the records, the data behind the grid, the options; nothing of an anonymous one."""
    if s.inputs is None:
        return {}
    return {
        "inputs": {
            "records": [{"file": name, "sha256": sha256} for name, sha256 in s.inputs.records],
            **({"hours": [{"file": name, "sha256": sha256} for name, sha256 in s.inputs.beside]} if s.inputs.beside else {}),
            "records_sha256": s.inputs.list_sha256,
            "grids": [{"zone": g.zone, "source": g.source} for g in f.grids],
            "options": dict(s.inputs.asked),
        }
    }


def dumps(value: Any) -> str:
    """Readable JSON with a final newline."""
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def quantity_object(q: Quantity) -> dict[str, Any]:
    """A quantity with its interval and how it is known."""
    return {"value": q.value, "low": q.low, "high": q.high, "unit": q.unit, "origin": q.origin, "source": q.source}


def footprint_object(f: Footprint, *, has_dates: bool = True) -> dict[str, Any]:
    """Everything that `show --json` prints; energies in J, masses in g, times UTC, or hours from the first one without dates.

    What was not read is null, never 0.
    """
    unread = is_unread(f)
    return {
        "it_joules": None if unread else quantity_object(f.it_joules),
        "facility_joules": None if unread else quantity_object(f.facility_joules),
        "grams": None if unread else quantity_object(f.grams),
        "market_grams": None if f.market_grams is None or unread else quantity_object(f.market_grams),
        "embodied": None if f.embodied is None else {**quantity_object(f.embodied.grams), "basis": list(f.embodied.basis)},
        "water": None if f.water is None or unread else quantity_object(f.water),
        "pue": quantity_object(f.pue),
        "devices": [_device(d, unread or not d.is_read) for d in f.devices],
        "kinds": {kind: quantity_object(quantity) for kind, quantity in f.kinds},
        "spans": [_span(s, unread) for s in f.spans],
        "rest": {"it_joules": None if unread else f.rest_joules, "grams": None if unread else f.rest_grams},
        "hours": _hours(f, has_dates),
        "grids": [
            {
                "zone": g.zone,
                "grams_per_kwh": quantity_object(g.grams_per_kwh),
                "share": g.share,
                "qualities": dict(g.qualities),
                "family": str(g.family),
                "source": g.source,
            }
            for g in f.grids
        ],
        "covered": f.covered,
        "run_seconds": f.run_seconds,
        "gpu_seconds": f.gpu_seconds,
        "origins": {} if unread else dict(f.origins),
        "notes": [{"slug": note.slug, "text": note.text} for note in f.notes],
    }


def _device(d: DeviceEnergy, unread: bool) -> dict[str, Any]:
    numbers = {"it_joules": d.it_joules, "grams": d.grams, "share": d.share}
    return {
        "id": d.id,
        "name": d.name,
        "kind": d.kind,
        "method": d.method,
        "source": d.source,
        "count": d.count,
        **(dict.fromkeys(numbers) if unread else numbers),
    }


def _span(s: SpanEnergy, unread: bool) -> dict[str, Any]:
    numbers = {
        "it_joules": s.it_joules,
        "it_joules_low": s.it_joules_low,
        "it_joules_high": s.it_joules_high,
        "grams": s.grams,
        "joules_per_item": None if is_too_short(s) else s.joules_per_item,
    }
    return {
        "path": s.path,
        "count": s.count,
        "seconds": s.seconds,
        "items": s.items,
        **(dict.fromkeys(numbers) if unread else numbers),
        "own_seconds": s.own_seconds,
        "own_it_joules": None if unread else s.own_it_joules,
        "told_with": s.told_with,
        "because": s.because,
        "includes": list(s.includes),
    }


def _hours(f: Footprint, has_dates: bool) -> list[dict[str, Any]]:
    rows = []
    hours, unread = f.hours, is_unread(f)
    columns = zip(hours.start_s.tolist(), hours.it_joules.tolist(), hours.facility_joules.tolist(), hours.grams.tolist(), strict=True)
    for i, (start_s, it_joules, facility_joules, grams) in enumerate(columns):
        numbers = {"it_joules": it_joules, "facility_joules": facility_joules, "grams": grams}
        rows.append(
            {
                **({"start": datetime.fromtimestamp(start_s, UTC).strftime("%Y-%m-%dT%H:%MZ")} if has_dates else {"hour": _count(start_s)}),
                **(dict.fromkeys(numbers) if unread else numbers),
                "grams_per_kwh": grams / kwh(facility_joules) if facility_joules else None,
                "pue": facility_joules / it_joules if it_joules else None,
                "quality": hours.quality_of(i),
            }
        )
    return rows


def _count(start_s: float) -> int:
    """Hours since the first one."""
    return round(start_s / SECONDS_PER_HOUR)


def statement_object(s: Statement) -> dict[str, Any]:
    """The statement's words, as every format prints them."""
    return {
        "paragraph": " ".join(sentence.text for sentence in s.paragraph),
        "table": [{"label": r.label, "value": r.value, "interval": r.interval, "known": r.known, "source": r.source} for r in s.rows],
        "runs": [
            {
                "name": r.name,
                "kind": r.kind,
                "runs": r.runs,
                "time": r.time,
                "energy": r.energy,
                "each": r.each,
                "emissions": r.emissions,
                "per_item": r.per_item,
            }
            for r in s.runs
        ],
        "rerun": " ".join(sentence.text for sentence in s.rerun),
        "omissions": list(s.omissions),
        "notes": [{"slug": slug, "text": text} for slug, text in s.notes],
    }
