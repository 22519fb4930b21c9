"""AIPowerMeter's power_metrics.json: JSON lines of date and metrics; the package, never psys beside it, which contains it."""

from collections.abc import Mapping
from typing import Any

from carbonreport.importers.curves import Reading, curve_of_powers
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import first_object, objects, real
from carbonreport.importers.limits import MOST_NODE_WATTS
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.run import DeviceKind

FORMAT = "aipowermeter"
_DRAWS: tuple[tuple[str, DeviceKind, str, tuple[str, ...]], ...] = (
    ("cpu-package", "cpu", "cpu", ("intel_power",)),
    ("gpu", "gpu", "gpu", ("nvidia_draw_absolute",)),
)


def create(options: Mapping[str, str]) -> "AiPowerMeter":
    """The importer of AIPowerMeter."""
    return AiPowerMeter(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class AiPowerMeter:
    """Reads {"date": …, "metrics": {"cpu": {"intel_power": …}, "gpu": {…}}}."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By date and metrics."""
        first = first_object(file.head)
        return "date" in first and isinstance(first.get("metrics"), dict)

    def read(self, file: LogFile) -> Imported:
        """One run of package and GPUs."""
        rejected: list[Rejected] = []
        rows = list(objects(file.text, rejected))
        stamps = moments([str(row.get("date", "")) for _, row in rows], zone=self._wishes.zone)
        loads, why_not = [], None
        for name, kind, group, path in _DRAWS:
            readings: list[Reading] = []
            for (line, row), at_s in zip(rows, stamps.seconds, strict=True):
                watts = real(_inside(row, ("metrics", group, *path)))
                if watts is not None and at_s is not None:
                    readings.append((line, at_s, watts))
            read = curve_of_powers(readings, MOST_NODE_WATTS, named=path[-1])
            rejected += read.rejected
            why_not = why_not or read.why_not or None
            if read.curve is not None:
                loads.append(Load(name, name, kind, "reported", f"AIPowerMeter {path[-1]}", read.curve))
        drafts = [Draft("", file.stem, tuple(loads), stamps.clock)] if loads else []
        return imported(FORMAT, file, drafts, rows=len(rows), rejected=rejected, wishes=self._wishes, why_not=why_not)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
