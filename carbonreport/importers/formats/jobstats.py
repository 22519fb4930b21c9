"""jobstats summaries: recognised, and refused, since they hold no energy."""

from collections.abc import Mapping

from carbonreport.importers.drafts import imported
from carbonreport.importers.imported import Imported
from carbonreport.importers.json_lines import parsed
from carbonreport.importers.log_file import LogFile
from carbonreport.importers.wishes import Wishes, wishes_of

FORMAT = "jobstats"


def create(options: Mapping[str, str]) -> "Jobstats":
    """The importer of jobstats summaries."""
    return Jobstats(wishes_of(options))


def available() -> str | None:
    """Always usable."""
    return None


class Jobstats:
    """Knows "JS1:…" and its decoded JSON."""

    def __init__(self, wishes: Wishes) -> None:
        self._wishes = wishes

    def recognises(self, file: LogFile) -> bool:
        """By the prefix, or by gpus, nodes and total_time."""
        text = file.head.lstrip()
        return text.startswith("JS1:") or (
            text.startswith("{") and all(f'"{key}"' in text for key in ("nodes", "total_time", "total_memory", "used_memory"))
        )

    def read(self, file: LogFile) -> Imported:
        """Nothing: utilisation is not power."""
        found = parsed(file.text)
        nodes = found.get("nodes") if isinstance(found, dict) else None
        why = "energy is not derivable: jobstats keeps use and memory, no power or energy; ask its Prometheus for nvidia_gpu_power_usage_milliwatts over the job's time"
        return imported(FORMAT, file, (), rows=len(nodes) if isinstance(nodes, dict) else 1, wishes=self._wishes, why_not=why)
