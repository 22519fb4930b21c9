"""BoAmps reports: a field named powerConsumption that holds kilowatt-hours."""

from collections.abc import Mapping
from typing import Any

from carbonreport.importers.cells import joules_from_kwh
from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import parsed, real
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note
from carbonreport.model.run import RunKind

FORMAT = "boamps"
_KINDS: dict[str, RunKind] = {
    "training": "training",
    "inference": "inference",
    "finetuning": "training",
    "fine-tuning": "training",
    "retraining": "training",
}


def create(options: Mapping[str, str]) -> "BoAmps":
    """The importer of BoAmps reports."""
    return BoAmps(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class BoAmps:
    """Reads {"header": …, "measures": [{"powerConsumption": kWh, "measurementDuration": s, …}]}."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its measures."""
        return file.head.lstrip().startswith("{") and '"measures"' in file.head and '"powerConsumption"' in file.text

    def read(self, file: LogFile) -> Imported:
        """One run a measure; several measures of the same time measure the same and count once."""
        found = parsed(file.text)
        report = found if isinstance(found, dict) else {}
        measures = [m for m in report.get("measures") or () if isinstance(m, dict)] if isinstance(report.get("measures"), list) else []
        rejected: list[Rejected] = []
        header = report.get("header") if isinstance(report.get("header"), dict) else {}
        task = report.get("task") if isinstance(report.get("task"), dict) else {}
        stamps = moments([str(m.get("measurementDateTime") or "") for m in measures], zone=self._wishes.zone)
        drafts, seen = [], set()
        for number, (measure, end_s) in enumerate(zip(measures, stamps.seconds, strict=True), start=1):
            kwh, seconds = real(measure.get("powerConsumption")), real(measure.get("measurementDuration"))
            if why := _wrong(kwh, seconds):
                rejected.append((number, why))
                continue
            when = (str(measure.get("measurementDateTime")), seconds)
            if when in seen:
                rejected.append((number, "another measure is of the same time; it would count twice"))
                continue
            seen.add(when)
            length_s, joules = seconds or 0.0, joules_from_kwh(kwh or 0.0) / (self._wishes.pue or 1.0)
            start_s = end_s - length_s if end_s is not None else 0.0
            method = str(measure.get("measurementMethod") or "a tool that it does not name")
            load = Load(
                "machine", f"what {method} measured", "node", "reported", f"BoAmps, by {method}", steady(length_s, joules, start_s=start_s)
            )
            drafts.append(_draft(header, task, number, load, stamps.clock if end_s is not None else "none"))
        notes = [
            Note(
                "import-pue-unknown",
                f"{file.name}: BoAmps does not say whether the energy holds a PUE; CodeCarbon's does where one was set",
            )
        ]
        why_not = None if report else "it cannot be read as JSON"
        return imported(
            FORMAT,
            file,
            drafts,
            rows=len(measures),
            rejected=rejected,
            notes=notes if drafts and not self._wishes.pue else (),
            wishes=self._wishes,
            why_not=why_not,
        )


def _wrong(kwh: float | None, seconds: float | None) -> str:
    if kwh is None or kwh < 0:
        return "it has no powerConsumption"
    if seconds is None or seconds < 0:
        return "it has no measurementDuration"
    if joules_from_kwh(kwh) > max(seconds, 1.0) * 64 * MOST_NODE_WATTS:
        return f"{kwh:g} kWh in {seconds:g} s is not possible"
    return ""


def _draft(header: Any, task: Any, number: int, load: Load, clock: Any) -> Draft:
    kind = _KINDS.get(str(task.get("taskStage", "")).casefold(), "other")
    name = str(task.get("taskFamily") or header.get("reportId") or "")
    key = f"{header.get('reportId')} {number}" if header.get("reportId") else ""
    return Draft(key, name, (load,), clock, kind=kind)
