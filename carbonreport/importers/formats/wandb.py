"""System metrics of Weights & Biases (the events stream): watts of each GPU, averaged over some 15 or 30 s."""

import re
from collections import defaultdict
from collections.abc import Mapping

from carbonreport.importers.curves import Reading, curve_of_powers
from carbonreport.importers.drafts import Draft, Load, imported
from carbonreport.importers.imported import Imported, Rejected
from carbonreport.importers.json_lines import first_object, objects, real
from carbonreport.importers.limits import limit_of
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.moments import moments
from carbonreport.importers.wishes import Wishes, wishes_of
from carbonreport.model.notes import Note

FORMAT = "wandb"
_POWER = re.compile(r"(?:system[./])?gpu\.(\d+)\.powerWatts")  # gpu.process.N is the same board again
_ANY = re.compile(r"(?:system[./])?(?:gpu|cpu|memory|disk|network|proc)\b.*")


def create(options: Mapping[str, str]) -> "Wandb":
    """The importer of W&B's events."""
    return Wandb(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Wandb:
    """Reads JSON lines such as {"system.gpu.0.powerWatts": 27.8, "_timestamp": 1582070941}."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By _timestamp and system metrics."""
        first = first_object(file.head)
        return "_timestamp" in first and any(_ANY.fullmatch(key) and key.startswith("system") for key in first)

    def read(self, file: LogFile) -> Imported:
        """One run of all GPUs."""
        rejected: list[Rejected] = []
        rows = list(objects(file.text, rejected))
        seen = len(rows) + len(rejected)
        stamps = moments(
            [repr(real(row.get("_timestamp"))) if real(row.get("_timestamp")) is not None else "" for _, row in rows], zone=None
        )
        series: dict[str, list[Reading]] = defaultdict(list)
        for (line, row), at_s in zip(rows, stamps.seconds, strict=True):
            if at_s is None:
                rejected.append((line, "it has no _timestamp"))
                continue
            for key, value in row.items():
                found = _POWER.fullmatch(key)
                watts = real(value) if found else None
                if found and watts is None:
                    rejected.append((line, f"{key} is {str(value)[:40]}"))
                elif found and watts is not None:
                    series[found.group(1)].append((line, at_s, watts))
        if not series:
            why = "energy is not derivable: it has no gpu.N.powerWatts (W&B leaves it out for MIG slices, Macs and machines without a GPU)"
            return imported(FORMAT, file, (), rows=seen, rejected=rejected, wishes=self._wishes, why_not=why)
        loads, why_not, repeats = [], None, 0
        for gpu, readings in sorted(series.items()):
            read = curve_of_powers(readings, limit_of(""), named=f"gpu.{gpu}.powerWatts")
            rejected += read.rejected
            why_not = why_not or read.why_not or None
            if read.curve is not None:
                repeats += read.curve.twins
                loads.append(Load(f"gpu-{gpu}", "GPU", "gpu", "averaged", "W&B system metrics", read.curve))
        notes = [Note("import-repeats", f"{file.name}: {repeats} rows repeat a reading and count once")] if repeats else []
        before_s = real(rows[0][1].get("_runtime")) if rows else None
        if before_s is not None and before_s > 1 and loads:
            notes.append(
                Note(
                    "import-partial",
                    f"{file.name}: the first reading comes {before_s:g} s after the start; the energy of that time is missing",
                )
            )
        drafts = [Draft("", file.stem, tuple(loads), stamps.clock, kind="training")] if loads else []
        return imported(FORMAT, file, drafts, rows=seen, rejected=rejected, notes=notes, wishes=self._wishes, why_not=why_not)
