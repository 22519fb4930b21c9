"""The answer of `carbonreport when` as an object for JSON."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from carbonreport.units import kwh

if TYPE_CHECKING:
    from carbonreport.model.option import Option
    from carbonreport.workflows.signals import Second
    from carbonreport.workflows.when import Answer


def answer_object(answer: "Answer", latest_end_s: float, rule: str | None) -> dict[str, Any]:
    """What could be done; the deadline beside it, with the name of its rule if it has one."""
    return {
        "now": _option(answer.now),
        "deadline": _moments(latest_end_s, ZoneInfo(answer.now.time_zone)) | {"rule": rule},
        "options": [
            _option(option) | _against_now(option, answer) | {"marginal": _marginal(answer.second(option))} for option in answer.options
        ],
        "verdict": answer.verdict,
        "because": answer.because,
        "source": answer.source,
        "notes": [{"slug": slug, "text": text} for slug, text in answer.notes],
    }


def _against_now(option: "Option", answer: "Answer") -> dict[str, Any]:
    """What it saves in energy, emissions and money, and what it costs in hours."""
    joules = answer.now.facility_joules - option.facility_joules
    price = answer.price
    return {
        "advised": option.is_advised,
        "in_time": option.is_in_time,
        "cap_watts": option.cap_watts,
        "saved": {
            "kwh": kwh(joules),
            "grams": answer.now.grams - option.grams,
            "money": None if price is None else {"amount": kwh(joules) * price[0], "currency": price[1]},
        },
    }


def _marginal(second: "Second | None") -> dict[str, Any] | None:
    """The second signal: never added to the first."""
    if second is None:
        return None
    change_percent = 100 * (second.ratio - 1)
    return {
        "grams": second.grams,
        "now_grams": second.now_grams,
        "change_percent": change_percent,
        "agrees": second.agrees,
        "source": second.source,
    }


def _option(option: "Option") -> dict[str, Any]:
    work_s = sum(to_s - from_s for from_s, to_s in option.runs)
    zone = ZoneInfo(option.time_zone)
    return {
        "action": option.action,
        "zone": option.zone,
        "start": _moments(option.start_s, zone),
        "end": _moments(option.end_s, zone),
        "runs": [[_iso(from_s, UTC), _iso(to_s, UTC)] for from_s, to_s in option.runs],
        "grams": option.grams,
        "grams_per_kwh": option.grams / kwh(option.facility_joules) if option.facility_joules else None,
        "it_joules": option.it_joules,
        "facility_joules": option.facility_joules,
        "run_seconds": work_s,
        "waits_hours": option.waits_h,
        "saving_percent": {"value": 100 * option.saving, "low": 100 * option.low, "high": 100 * option.high},
        "chance": option.chance,
        "because": option.because,
    }


def _moments(at_s: float, zone: ZoneInfo) -> dict[str, Any]:
    return {"utc": _iso(at_s, UTC), "local": _iso(at_s, zone)}


def _iso(at_s: float, zone: Any) -> str:
    return datetime.fromtimestamp(at_s, UTC).astimezone(zone).isoformat(timespec="seconds")
