"""The report of joules (landauer-gap): devices with their method, energies without its PUE."""

from collections.abc import Mapping
from typing import Any

from carbonreport.importers.drafts import Draft, Load, imported, steady
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import parsed, real
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note
from carbonreport.model.run import DeviceKind

FORMAT = "joules"
_KINDS: dict[str, DeviceKind] = {"gpu": "gpu", "cpu": "cpu", "dram": "dram", "est": "cpu", "psys": "node"}


def create(options: Mapping[str, str]) -> "Joules":
    """The importer of joules' JSON."""
    return Joules(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Joules:
    """Reads {"schema": "joules/1", …}."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By its schema."""
        return file.head.lstrip().startswith("{") and '"joules/1"' in file.head

    def read(self, file: LogFile) -> Imported:
        """One run; simulated ones are refused."""
        found = parsed(file.text)
        report = found if isinstance(found, dict) else {}
        devices = report.get("devices") if isinstance(report.get("devices"), list) else []
        rejected: list[Rejected] = []
        stamps = moments([str(report.get("started_at") or "")], zone=self._wishes.zone)
        seconds = real(report.get("duration_s"))
        why = "it cannot be read as JSON" if not report else "its energies are simulated, as it says" if report.get("simulated") else ""
        why = why or ("it has no duration" if seconds is None or seconds < 0 else "")
        if why:
            return imported(FORMAT, file, (), rows=len(devices or ()), wishes=self._wishes, why_not=why)
        start_s, length_s = stamps.seconds[0], seconds or 0.0
        loads = []
        for number, device in enumerate(devices or (), start=1):
            load = _load(number, device, start_s or 0.0, length_s, rejected)
            if load is not None:
                loads.append(load)
        notes = [Note("import-warning", f"{file.name}: joules says: {text}") for text in report.get("notes") or () if isinstance(text, str)]
        name = str(report.get("label") or report.get("name") or file.stem)
        facts = {"joules": str(report.get("tool", "")).removeprefix("joules ")}
        drafts = [Draft("", name, tuple(loads), stamps.clock if start_s is not None else "none", facts=facts)] if loads else []
        return imported(FORMAT, file, drafts, rows=len(devices or ()), rejected=rejected, notes=notes, wishes=self._wishes)


def _load(number: int, device: Any, start_s: float, seconds: float, rejected: list[Rejected]) -> Load | None:
    """One device; an estimate of processor time is a model, whatever else is a report."""
    joules = real(device.get("energy_j")) if isinstance(device, dict) else None
    if joules is None or joules < 0 or joules > max(seconds, 1.0) * MOST_NODE_WATTS:
        rejected.append((number, "it has no energy" if joules is None else f"{joules:g} J in {seconds:g} s is not possible"))
        return None
    method, name = str(device.get("method", "")), str(device.get("name", f"device {number}"))
    kind = _KINDS.get(str(device.get("kind", "")).casefold(), "other")
    is_model = "estimate" in method.casefold() or device.get("kind") == "est"
    return Load(
        f"device-{number}", name, kind, "model" if is_model else "reported", f"joules: {method}", steady(seconds, joules, start_s=start_s)
    )
